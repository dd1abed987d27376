/// Lists the cases of a suite, topic by topic, once for everything that needs the list: the
/// modules, the table that cases are found in, and the exported macro that generates the tests.
///
/// The cases are visible to the list only, and whatever the list does not name is dead code, which
/// is an error. So no case can be written and forgotten.
///
/// The first argument is a dollar sign, which a macro that defines a macro cannot write itself.
macro_rules! list {
    (
        ($d:tt)
        $(#[$doc:meta])*
        $suite:ident calls $run:ident with $env:ty;
        $( $topic:ident { $( $case:ident )* } )*
    ) => {
        $( #[deny(dead_code, reason = "a case that is not listed never runs")] mod $topic; )*

        pub(crate) static LIST: &[$crate::run::Case<$env>] = &[
            $( $( $crate::run::Case {
                name: concat!(stringify!($topic), "::", stringify!($case)),
                run: |env| Box::pin($topic::$case(env)),
            }, )* )*
        ];

        $(#[$doc])*
        #[macro_export]
        macro_rules! $suite {
            ($d harness:expr, $d runtime:expr) => {
                $( mod $topic {
                    #[allow(unused_imports)]
                    use super::*;
                    $(
                        #[test]
                        fn $case() {
                            let name = concat!(stringify!($topic), "::", stringify!($case));
                            $crate::$run($d harness, $d runtime, name);
                        }
                    )*
                } )*
            };
        }
    };
}

pub(crate) use list;

use super::PoolMode;

/// What is otherwise behind a pooler, in either of its modes.
const BY_POOLERS: &[&str] = &[];

/// Whether a case is left out for what is before the servers.
pub(super) fn is(case: &str) -> bool {
    PoolMode::of_all().is_some() && BY_POOLERS.contains(&case)
}

use crate::{Error, Result};

const OLDEST_VERSION: i32 = 140_000;

/// Servers that call themselves PostgreSQL first and by their own name later, by a part of what they
/// say. They speak its protocol, many of them have the functions, and none of them promises what is
/// relied on here: locks that exclude at once and end with their session, `pg_locks` that shows them,
/// waits that end with `lock_timeout`.
const OTHERS: [(&str, &str); 10] = [
    ("-YB-", "YugabyteDB"),
    ("Redshift", "Amazon Redshift"),
    ("Greenplum", "Greenplum"),
    ("Greengage", "Greengage"),
    ("Cloudberry", "Apache Cloudberry"),
    ("openGauss", "openGauss"),
    ("aterialize", "Materialize"),
    ("RisingWave", "RisingWave"),
    ("QuestDB", "QuestDB"),
    ("CedarDB", "CedarDB"),
];

/// Refuses what is not PostgreSQL, or too old, by what it answers to `version()`.
///
/// More is not asked of a server before: those others, and old ones, may not understand it.
pub(super) fn check(version: &str) -> Result<()> {
    let Some(rest) = version.strip_prefix("PostgreSQL ") else {
        let name = version.split(" (").next().unwrap_or_default();
        return Err(not_postgres(name));
    };
    if let Some((_, name)) = OTHERS.iter().find(|(part, _)| rest.contains(part)) {
        return Err(not_postgres(name));
    }
    let digits = rest.split(|c: char| !c.is_ascii_digit()).next();
    match digits.and_then(|digits| digits.parse::<i32>().ok()) {
        Some(major) => check_number(major.saturating_mul(10_000)),
        None => Ok(()),
    }
}

/// Refuses what is too old, by its `server_version_num`.
pub(super) fn check_number(version: i32) -> Result<()> {
    if version < OLDEST_VERSION {
        return Err(Error::unsupported(format!(
            "PostgreSQL 14 is the oldest that will do, this is {}",
            version / 10_000
        )));
    }
    Ok(())
}

fn not_postgres(name: &str) -> Error {
    Error::unsupported(format!("this is not PostgreSQL but {name}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn assert_refused(version: &str, reason: &str) {
        let refused = check(version).unwrap_err();
        assert!(matches!(refused, Error::Unsupported { .. }), "{refused:?}");
        let expected = format!("the server is not supported: {reason}");
        assert_eq!(refused.to_string(), expected, "{version}");
    }

    #[test]
    fn postgres_will_do_whoever_has_built_it() {
        for version in [
            "PostgreSQL 14.0",
            "PostgreSQL 15.14 (Debian 15.14-0+deb12u1) on x86_64-pc-linux-gnu, compiled by gcc",
            "PostgreSQL 16.4 (EnterpriseDB Advanced Server 16.4.1) on x86_64-pc-linux-gnu",
            "PostgreSQL 17.2 - Percona Server for PostgreSQL 17.2.1 on x86_64-pc-linux-gnu",
            "PostgreSQL 18beta1 on aarch64-apple-darwin",
            "PostgreSQL 19devel on x86_64-pc-linux-gnu",
        ] {
            assert!(check(version).is_ok(), "{version}");
        }
    }

    #[test]
    fn what_has_another_name_is_refused() {
        assert_refused(
            "CockroachDB CCL v23.1.0 (x86_64-pc-linux-gnu, built 2023/05/11)",
            "this is not PostgreSQL but CockroachDB CCL v23.1.0",
        );
        assert_refused("CrateDB 5.8.1", "this is not PostgreSQL but CrateDB 5.8.1");
        assert_refused("", "this is not PostgreSQL but ");
    }

    #[test]
    fn what_adds_its_name_is_refused() {
        for (version, name) in [
            (
                "PostgreSQL 15.12-YB-2025.1.0.0-b0 on x86_64-pc-linux-gnu",
                "YugabyteDB",
            ),
            ("PostgreSQL 11.2-YB-2024.2.4.0-b0", "YugabyteDB"),
            (
                "PostgreSQL 8.0.2 on i686-pc-linux-gnu, compiled by GCC, Redshift 1.0.12103",
                "Amazon Redshift",
            ),
            (
                "PostgreSQL 12.12 (Greenplum Database 7.1.0 build 1) on x86_64",
                "Greenplum",
            ),
            (
                "PostgreSQL 14.4 (Apache Cloudberry 2.0.0 build 1) on x86_64",
                "Apache Cloudberry",
            ),
            ("PostgreSQL 13.14.0-RisingWave-2.1.0", "RisingWave"),
            (
                "PostgreSQL 12.3, compiled by Visual C++ build 1914, 64-bit, QuestDB",
                "QuestDB",
            ),
        ] {
            assert_refused(version, &format!("this is not PostgreSQL but {name}"));
        }
    }

    #[test]
    fn what_is_old_is_refused() {
        let oldest = "PostgreSQL 14 is the oldest that will do";
        assert_refused("PostgreSQL 13.22", &format!("{oldest}, this is 13"));
        assert_refused("PostgreSQL 9.6.24", &format!("{oldest}, this is 9"));
        assert!(check_number(130_022).is_err());
        assert!(check_number(140_000).is_ok());
    }
}

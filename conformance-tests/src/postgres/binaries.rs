use std::{env, fs, os::unix::fs::MetadataExt, path::PathBuf};

/// What is run of PostgreSQL's.
const PROGRAMS: [&str; 2] = ["initdb", "pg_ctl"];

/// The folder of PostgreSQL's programs: `PG_BINDIR`, or the first on the `PATH`, or the newest of
/// those that Debian installs.
pub(super) fn folder() -> PathBuf {
    let named = env::var_os("PG_BINDIR").map(PathBuf::from);
    named
        .into_iter()
        .chain(path())
        .chain(debian())
        .find(|folder| {
            PROGRAMS
                .iter()
                .all(|program| folder.join(program).is_file())
        })
        .unwrap_or_else(|| {
            panic!(
                "these tests need a PostgreSQL server: install one (its {} are looked for in \
                 PG_BINDIR, the PATH and /usr/lib/postgresql/*/bin), or name a running one by \
                 DATABASE_URL, with a role that may create databases",
                PROGRAMS.join(", ")
            )
        })
}

/// PgBouncer's program: on the `PATH`, or where Debian has it.
pub(super) fn pgbouncer() -> PathBuf {
    path()
        .into_iter()
        .chain([PathBuf::from("/usr/sbin")])
        .map(|folder| folder.join("pgbouncer"))
        .find(|program| program.is_file())
        .expect("these tests need PgBouncer: its pgbouncer is looked for in the PATH and /usr/sbin")
}

fn path() -> Vec<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path).collect()
}

fn debian() -> Vec<PathBuf> {
    let versions = fs::read_dir("/usr/lib/postgresql").into_iter().flatten();
    let mut versions: Vec<(u32, PathBuf)> = versions
        .flatten()
        .filter_map(|entry| {
            let version = entry.file_name().to_str()?.parse().ok()?;
            Some((version, entry.path().join("bin")))
        })
        .collect();
    versions.sort();
    versions
        .into_iter()
        .rev()
        .map(|(_, folder)| folder)
        .collect()
}

/// Whether this process runs as root, as it does in many containers.
pub(super) fn is_root() -> bool {
    fs::metadata("/proc/self").is_ok_and(|own| own.uid() == 0)
}

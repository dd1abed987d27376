//! The versions that the README and the crate's documentation state are those of the manifests.

use std::{fs, path::Path};

const TEXTS: [&str; 2] = ["README.md", "src/lib.rs"];

#[test]
fn the_rust_version_is_the_manifests() {
    let stated = stated("README.md", "Rust ");
    assert_eq!(stated, [env!("CARGO_PKG_RUST_VERSION")]);
}

#[test]
fn the_cargo_lines_name_this_version() {
    let versions: Vec<_> = TEXTS
        .iter()
        .flat_map(|text| stated(text, "advisory = { version = \""))
        .collect();
    assert!(!versions.is_empty());
    for version in versions {
        assert!(
            format!("{}.", env!("CARGO_PKG_VERSION")).starts_with(&format!("{version}.")),
            "{version} is not the version of this package"
        );
    }
}

#[test]
fn the_cargo_lines_name_the_version_of_sqlx_that_the_backend_uses() {
    let used = stated("Cargo.toml", "sqlx = { version = \"");
    let versions: Vec<_> = TEXTS
        .iter()
        .flat_map(|text| stated(text, "sqlx = { version = \""))
        .collect();
    assert!(!versions.is_empty());
    for version in versions {
        assert_eq!([version], *used);
    }
}

/// The version numbers that follow `before` in a file of this package.
fn stated(file: &str, before: &str) -> Vec<String> {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join(file);
    let text = fs::read_to_string(path).expect("the file is there");
    text.split(before)
        .skip(1)
        .map(|rest| {
            let end = rest.find(|c: char| !c.is_ascii_digit() && c != '.');
            rest[..end.unwrap_or(rest.len())].to_owned()
        })
        .filter(|version| !version.is_empty())
        .collect()
}

//! What the tests share that run the examples as programs.

use std::{env, fs, io, path::Path, process::Command};

/// An example's program, which is next to the folder of this one. `cargo test` builds both, but
/// `cargo test --test …` only this one; then the other may be missing or out of date.
pub(crate) fn example(name: &str) -> Command {
    let this = env::current_exe().expect("this test is a program");
    let profile = this.ancestors().nth(2).expect("it is in a folder of Cargo");
    let example = profile.join("examples").join(name);
    assert!(
        is_up_to_date(&example).unwrap_or(false),
        "run `cargo build --example {name}` first"
    );
    Command::new(example)
}

/// Whether a program is younger than each of its sources, of which Cargo leaves a list beside it.
fn is_up_to_date(program: &Path) -> io::Result<bool> {
    let built = program.metadata()?.modified()?;
    let list = fs::read_to_string(program.with_extension("d"))?;
    // `program: source source …`, where a space within a name is escaped.
    let (_, sources) = list.split_once(": ").unwrap_or_default();
    for source in sources.trim_end().replace("\\ ", "\0").split(' ') {
        if fs::metadata(source.replace('\0', " "))?.modified()? > built {
            return Ok(false);
        }
    }
    Ok(true)
}

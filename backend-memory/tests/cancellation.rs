//! What is left behind by those who go away in the middle: nothing.

mod memory;

use advisory_conformance_tests::{every_poll_suite, runtime};
use memory::Memory;

mod threads {
    use super::*;
    every_poll_suite!(yielding(), runtime::Threads);
}

mod tokio {
    use super::*;
    every_poll_suite!(yielding(), runtime::Tokio::new());
}

fn yielding() -> Memory {
    Memory {
        yields: true,
        ..Memory::default()
    }
}

//! The suite that every backend must pass, on the memory backend and on each runtime.

mod memory;

use advisory_conformance_tests::{Sharing, runtime, suite};
use memory::Memory;

mod threads {
    use super::*;
    suite!(Memory::default(), runtime::Threads);
}

mod tokio {
    use super::*;
    suite!(Memory::default(), runtime::Tokio::new());
}

mod smol {
    use super::*;
    suite!(Memory::default(), runtime::Smol);
}

mod async_std {
    use super::*;
    suite!(Memory::default(), runtime::AsyncStd);
}

/// All locks of a manager on one session.
mod sharing {
    use super::*;
    suite!(Sharing(Memory::default()), runtime::Threads);
}

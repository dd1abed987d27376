use std::{fs, time::Duration};

/// The processor time that this process has used, the server's excluded; `None` where there is no
/// `/proc` to ask.
pub(crate) fn time() -> Option<Duration> {
    let mut total = 0;
    for thread in fs::read_dir("/proc/self/task").ok()? {
        // A thread may end between the look at the folder and the look at its file.
        let Ok(text) = fs::read_to_string(thread.ok()?.path().join("schedstat")) else {
            continue;
        };
        let nanoseconds: u64 = text.split(' ').next()?.parse().ok()?;
        total += nanoseconds;
    }
    Some(Duration::from_nanos(total))
}

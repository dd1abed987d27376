//! Limits that are hardly ever reached.

use std::{
    future::Future,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::{Pin, pin},
    sync::{LazyLock, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker},
    thread::{self, Thread},
    time::{Duration, Instant},
};

use foldhash::HashMap;
use futures::future::{Either, select};
use futures_timer::Delay;

/// How late a limit may be.
const TICK: Duration = Duration::from_millis(50);

/// Shorter ones have to be exact.
const COARSE_FROM: Duration = Duration::from_millis(500);

/// How many ticks without a limit the clock goes on for.
const IDLE_TICKS: u32 = 40;

/// Ends when its time is over, or up to a tick after that.
///
/// Every call to a server has a limit, and nearly none reaches it. A timer of its own for each wakes
/// the timers' thread each time, at several times the cost of what it watches over; these are looked
/// at by a thread that wakes up now and then, and sleeps while there are none.
#[derive(Debug)]
#[must_use = "a limit that is not awaited does not end"]
pub(crate) struct Limit {
    kind: Kind,
}

#[derive(Debug)]
enum Kind {
    Exact(Delay),
    Coarse {
        over_at: Instant,
        entry: Option<EntryId>,
    },
}

type EntryId = u64;

impl Limit {
    pub(crate) fn new(time: Duration) -> Self {
        let over_at = Instant::now().checked_add(time);
        let kind = match over_at.filter(|_| time >= COARSE_FROM && CLOCK.is_some()) {
            Some(over_at) => Kind::Coarse {
                over_at,
                entry: None,
            },
            None => Kind::Exact(Delay::new(time)),
        };
        Self { kind }
    }
}

impl Future for Limit {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        match &mut self.kind {
            Kind::Exact(delay) => Pin::new(delay).poll(cx),
            // The clock sees to the first poll as well.
            Kind::Coarse {
                over_at,
                entry: Some(_),
            } if *over_at <= Instant::now() => Poll::Ready(()),
            Kind::Coarse { over_at, entry } => {
                if let Some(clock) = &*CLOCK {
                    clock.wake_at(*over_at, entry, cx.waker());
                }
                Poll::Pending
            }
        }
    }
}

impl Drop for Limit {
    fn drop(&mut self) {
        if let Kind::Coarse {
            entry: Some(entry), ..
        } = self.kind
            && let Some(clock) = &*CLOCK
        {
            clock.forget(entry);
        }
    }
}

/// What comes of work that has so much time; `None` if that ends first. Then the work is dropped.
///
/// For limits that are hardly ever reached, such as that of a statement: as long as the work does
/// not reach it, it costs next to nothing. It may be late by a twentieth of a second.
#[cfg_attr(
    not(feature = "postgres"),
    expect(unreachable_pub, reason = "it is the drivers' as well")
)]
pub async fn in_time<T>(work: impl Future<Output = T>, time: Duration) -> Option<T> {
    match select(pin!(work), Limit::new(time)).await {
        Either::Left((outcome, _)) => Some(outcome),
        Either::Right(_) => None,
    }
}

/// `None` if there is no thread to be had.
static CLOCK: LazyLock<Option<Clock>> = LazyLock::new(|| {
    let thread = thread::Builder::new().name("advisory-clock".to_owned());
    // It ends with the process.
    let thread = thread.spawn(|| CLOCK.as_ref().map(Clock::run)).ok()?;
    Some(Clock {
        thread: thread.thread().clone(),
        state: Mutex::default(),
    })
});

struct Clock {
    thread: Thread,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    entries: HashMap<EntryId, Entry>,
    next_id: EntryId,
    asleep: bool,
}

struct Entry {
    over_at: Instant,
    waker: Waker,
}

impl Clock {
    fn wake_at(&self, over_at: Instant, entry: &mut Option<EntryId>, waker: &Waker) {
        let mut state = self.state();
        let known = entry.and_then(|id| state.entries.get(&id));
        if known.is_some_and(|known| known.waker.will_wake(waker)) {
            return;
        }
        let id = *entry.get_or_insert(state.next_id);
        state.next_id = state.next_id.max(id + 1);
        let waker = waker.clone();
        let replaced = state.entries.insert(id, Entry { over_at, waker });
        let was_asleep = std::mem::take(&mut state.asleep);
        drop(state);
        // A waker's drop may run foreign code.
        drop(replaced);
        if was_asleep {
            self.thread.unpark();
        }
    }

    fn forget(&self, entry: EntryId) {
        let forgotten = self.state().entries.remove(&entry);
        drop(forgotten);
    }

    fn run(&self) {
        let mut idle = 0;
        loop {
            thread::sleep(TICK);
            for entry in self.over() {
                // It is everybody's clock, and must go on if somebody's waker panics.
                _ = catch_unwind(AssertUnwindSafe(|| entry.waker.wake()));
            }
            let mut state = self.state();
            idle = if state.entries.is_empty() {
                idle + 1
            } else {
                0
            };
            if idle < IDLE_TICKS {
                continue;
            }
            idle = 0;
            state.asleep = true;
            while state.asleep {
                drop(state);
                thread::park();
                state = self.state();
            }
        }
    }

    /// Takes out the entries whose time is over.
    fn over(&self) -> Vec<Entry> {
        let now = Instant::now();
        let mut state = self.state();
        let over = state.entries.extract_if(|_, entry| entry.over_at <= now);
        over.map(|(_, entry)| entry).collect()
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Entries are added and removed whole.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

#[cfg(test)]
mod tests {
    use futures::{
        executor::block_on,
        future::{join, pending},
    };

    use super::*;

    const COARSE: Duration = Duration::from_millis(600);

    #[test]
    fn no_limit_ends_early_and_none_is_forgotten() {
        for time in [Duration::ZERO, Duration::from_millis(3), COARSE] {
            let started = Instant::now();
            block_on(join(Limit::new(time), Limit::new(time)));
            assert!(started.elapsed() >= time);
        }
    }

    #[test]
    fn the_clock_wakes_up_again() {
        block_on(Limit::new(COARSE));
        thread::sleep(TICK * (IDLE_TICKS + 10));
        block_on(select(pending::<()>(), Limit::new(COARSE)));
    }

    #[test]
    fn beyond_all_times_is_no_overflow() {
        drop(Limit::new(Duration::MAX));
    }
}

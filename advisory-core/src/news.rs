use std::{
    future::Future,
    mem,
    pin::Pin,
    sync::{Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker},
};

use foldhash::HashMap;

/// What several wait for, and are told all at once.
///
/// Wakers are called when nothing is locked here: some executors poll a task in its waker, and the task
/// may come straight back.
#[derive(Debug, Default)]
pub(crate) struct News {
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    /// How often there were any.
    told: u64,
    listeners: HashMap<u64, Waker>,
    next_listener: u64,
}

/// Ends with the first news after its making.
#[derive(Debug)]
#[must_use = "news that nobody awaits are missed"]
pub(crate) struct Listening<'a> {
    news: &'a News,
    told: u64,
    /// By which its waker is known, if it has left one.
    listener: Option<u64>,
}

impl News {
    pub(crate) fn tell(&self) {
        let listeners = {
            let mut state = self.state();
            state.told += 1;
            mem::take(&mut state.listeners)
        };
        for waker in listeners.into_values() {
            waker.wake();
        }
    }

    pub(crate) fn listen(&self) -> Listening<'_> {
        Listening {
            news: self,
            told: self.state().told,
            listener: None,
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        // Each step leaves it whole.
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Future for Listening<'_> {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let mut state = self.news.state();
        if state.told != self.told {
            return Poll::Ready(());
        }
        let listener = self.listener.unwrap_or(state.next_listener);
        state.next_listener = state.next_listener.max(listener + 1);
        let known = state.listeners.get(&listener);
        let replaced = if known.is_some_and(|known| known.will_wake(cx.waker())) {
            None
        } else {
            state.listeners.insert(listener, cx.waker().clone())
        };
        drop(state);
        // Its drop may run foreign code as well.
        drop(replaced);
        self.listener = Some(listener);
        Poll::Pending
    }
}

impl Drop for Listening<'_> {
    fn drop(&mut self) {
        if let Some(listener) = self.listener {
            let forgotten = self.news.state().listeners.remove(&listener);
            drop(forgotten);
        }
    }
}

#[cfg(test)]
mod tests {
    use futures::{FutureExt, executor::block_on, future::join};

    use super::*;

    #[test]
    fn all_who_listen_are_told_and_nobody_who_comes_later() {
        let news = News::default();
        let (mut one, other) = (news.listen(), news.listen());
        assert!((&mut one).now_or_never().is_none());
        news.tell();
        block_on(join(one, other));
        assert!(news.listen().now_or_never().is_none());
    }

    #[test]
    fn who_goes_leaves_nothing_behind() {
        let news = News::default();
        let mut gone = news.listen();
        assert!((&mut gone).now_or_never().is_none());
        assert_eq!(news.state().listeners.len(), 1);
        drop(gone);
        assert_eq!(news.state().listeners.len(), 0);
    }
}

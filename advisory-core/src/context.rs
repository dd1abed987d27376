//! The context of nested calls: which frames enclose the code that is being polled.
//!
//! A thread-local holds the innermost frame while a section's future is polled and is put back
//! after each poll, so that contexts follow the future, not the thread, on any executor.

use std::{
    cell::RefCell,
    future::Future,
    iter,
    pin::Pin,
    sync::{
        Arc, Weak,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    task,
};

use pin_project_lite::pin_project;

use crate::owner::Owner;

thread_local! {
    static INNERMOST: RefCell<Option<Arc<Frame>>> = const { RefCell::new(None) };
}

/// A section or scope that is running: whose session nested calls reuse, and what they may
/// re-enter.
#[derive(Debug)]
pub(crate) struct Frame {
    id: FrameId,
    /// The manager that the frame's locks belong to; contexts of two managers never mix.
    manager: ManagerId,
    /// The owner that nested calls use. Weak: a frame that was leaked with its future must not
    /// keep a session alive.
    owner: Weak<Owner>,
    /// The frame of the same owner that this one is part of: what it holds, this one re-enters.
    parent: Option<Arc<Self>>,
    /// The frame around the code that opened this one, of whatever manager: the context to fall
    /// back to.
    enclosing: Option<Arc<Self>>,
    /// Set when the section is over; calls that are still made from within it (by a future that
    /// was leaked) fall back to the enclosing frame.
    ended: AtomicBool,
}

/// Identifies a frame among all of this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct FrameId(u64);

/// Identifies a manager among all of this process.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(crate) struct ManagerId(u64);

impl ManagerId {
    pub(crate) fn next() -> Self {
        Self(next_id())
    }
}

fn next_id() -> u64 {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    NEXT.fetch_add(1, Ordering::Relaxed)
}

impl Frame {
    /// A frame of this owner, part of `parent` if that is given.
    pub(crate) fn open(
        manager: ManagerId,
        owner: Weak<Owner>,
        parent: Option<Arc<Self>>,
    ) -> Arc<Self> {
        Arc::new(Self {
            id: FrameId(next_id()),
            manager,
            owner,
            parent,
            enclosing: INNERMOST.with_borrow(Clone::clone),
            ended: AtomicBool::new(false),
        })
    }

    /// The innermost running frame of this manager around the calling code, and its owner.
    pub(crate) fn current(manager: ManagerId) -> Option<(Arc<Self>, Arc<Owner>)> {
        Self::innermost(|frame| frame.manager == manager)
    }

    /// The innermost running frame of any manager around the calling code, and its owner.
    pub(crate) fn current_of_any() -> Option<(Arc<Self>, Arc<Owner>)> {
        Self::innermost(|_| true)
    }

    fn innermost(accept: impl Fn(&Self) -> bool) -> Option<(Arc<Self>, Arc<Owner>)> {
        INNERMOST.with_borrow(|innermost| {
            iter::successors(innermost.as_ref(), |frame| frame.enclosing.as_ref())
                .filter(|frame| accept(frame) && !frame.ended.load(Ordering::Acquire))
                .find_map(|frame| Some((Arc::clone(frame), frame.owner.upgrade()?)))
        })
    }

    pub(crate) fn id(&self) -> FrameId {
        self.id
    }

    pub(crate) fn manager(&self) -> ManagerId {
        self.manager
    }

    /// Whether `other` is this frame or one that it is part of.
    pub(crate) fn is_within(&self, other: FrameId) -> bool {
        iter::successors(Some(self), |frame| frame.parent.as_deref()).any(|frame| frame.id == other)
    }

    /// Runs a future inside this frame, and ends the frame with it.
    pub(crate) fn run<F: Future>(self: Arc<Self>, future: F) -> InFrame<F> {
        InFrame {
            future,
            frame: EndOnDrop(self),
        }
    }
}

#[derive(Debug)]
struct EndOnDrop(Arc<Frame>);

impl Drop for EndOnDrop {
    fn drop(&mut self) {
        self.0.ended.store(true, Ordering::Release);
    }
}

pin_project! {
    /// A future that is polled inside a frame.
    #[derive(Debug)]
    pub(crate) struct InFrame<F> {
        #[pin]
        future: F,
        // After the future, so that the frame ends when the future has been dropped.
        frame: EndOnDrop,
    }
}

impl<F: Future> Future for InFrame<F> {
    type Output = F::Output;

    fn poll(self: Pin<&mut Self>, cx: &mut task::Context<'_>) -> task::Poll<F::Output> {
        let this = self.project();
        let _entered = Entered::new(Arc::clone(&this.frame.0));
        this.future.poll(cx)
    }
}

/// Makes a frame the innermost one; the drop puts back what was there, also when a poll panics.
struct Entered(Option<Arc<Frame>>);

impl Entered {
    fn new(frame: Arc<Frame>) -> Self {
        Self(INNERMOST.replace(Some(frame)))
    }
}

impl Drop for Entered {
    fn drop(&mut self) {
        INNERMOST.set(self.0.take());
    }
}

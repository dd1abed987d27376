use std::{fmt, sync::Arc};

use crate::{Lock, key::KeySpace, manager::Shared};

/// A derived key space: the same name in two namespaces makes two different locks.
///
/// Comes from [`LockManager::namespace`](crate::LockManager::namespace), nests, and is cheap to
/// clone. Order matters: `a` inside `b` is not `b` inside `a`. There are no raw keys in a
/// namespace, because nothing could keep them apart from the names.
///
/// # Examples
///
/// ```
/// # use advisory_core::LockManager;
/// # use advisory_backend_memory::MemoryBackend;
/// let locks = LockManager::new(MemoryBackend::new());
/// let tenant = locks.namespace("tenant-a");
///
/// assert_ne!(tenant.named("digest").key(), locks.named("digest").key());
/// assert_ne!(tenant.named("digest").key(), tenant.namespace("jobs").named("digest").key());
/// ```
#[derive(Clone)]
pub struct Namespace {
    shared: Arc<Shared>,
    space: KeySpace,
}

impl Namespace {
    pub(crate) fn new(shared: Arc<Shared>, space: KeySpace) -> Self {
        Self { shared, space }
    }

    /// The lock called `name` in this namespace. Nothing happens until it is used.
    #[must_use]
    pub fn named(&self, name: impl AsRef<str>) -> Lock {
        let name = name.as_ref();
        Lock::new(Arc::clone(&self.shared), Some(name), self.space.key(name))
    }

    /// A namespace inside this one.
    #[must_use]
    pub fn namespace(&self, namespace: impl AsRef<str>) -> Self {
        Self {
            shared: Arc::clone(&self.shared),
            space: self.space.enter(namespace.as_ref()),
        }
    }
}

impl fmt::Debug for Namespace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Namespace").finish_non_exhaustive()
    }
}

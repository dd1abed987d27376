use std::{future::Future, sync::Arc};

use futures::future::BoxFuture;

use crate::{Lock, Result};

impl Lock {
    /// A function that always takes this lock: each call of it waits for the lock, calls
    /// `function`, and frees the lock, as [`with`](Self::with) does.
    ///
    /// What comes back is `Clone`, `Send`, `Sync` and `'static`, and so are the futures that it
    /// returns, but for `Clone` and `Sync`. Calls of clones exclude each other.
    ///
    /// # Errors
    ///
    /// Those of [`with`](Self::with), from the futures.
    ///
    /// # Examples
    ///
    /// ```
    /// # use advisory_core::LockManager;
    /// # use advisory_backend_memory::MemoryBackend;
    /// # futures::executor::block_on(async {
    /// # let locks = LockManager::new(MemoryBackend::new());
    /// async fn rebuild() -> usize {
    ///     3
    /// }
    ///
    /// let refresh = locks.named("search:index").wrap(rebuild);
    /// assert_eq!(refresh().await?, 3);
    /// # Ok::<(), advisory_core::Error>(())
    /// # }).unwrap();
    /// ```
    pub fn wrap<F, Fut>(
        &self,
        function: F,
    ) -> impl Fn() -> BoxFuture<'static, Result<Fut::Output>> + Clone + Send + Sync + use<F, Fut>
    where
        F: Fn() -> Fut + Send + Sync + 'static,
        Fut: Future<Output: Send> + Send + 'static,
    {
        let wrapped = self.wrap_with(move |()| function());
        move || wrapped(())
    }

    /// As [`wrap`](Self::wrap), for a function of one argument. Several go as a tuple.
    ///
    /// # Errors
    ///
    /// Those of [`with`](Self::with), from the futures.
    ///
    /// # Examples
    ///
    /// ```
    /// # use advisory_core::LockManager;
    /// # use advisory_backend_memory::MemoryBackend;
    /// # futures::executor::block_on(async {
    /// # let locks = LockManager::new(MemoryBackend::new());
    /// async fn import((tenant, rows): (&str, usize)) -> String {
    ///     format!("{tenant}: {rows}")
    /// }
    ///
    /// let import = locks.named("imports:run").wrap_with(import);
    /// assert_eq!(import(("tenant-a", 7)).await?, "tenant-a: 7");
    /// # Ok::<(), advisory_core::Error>(())
    /// # }).unwrap();
    /// ```
    pub fn wrap_with<A, F, Fut>(
        &self,
        function: F,
    ) -> impl Fn(A) -> BoxFuture<'static, Result<Fut::Output>> + Clone + Send + Sync + use<A, F, Fut>
    where
        A: Send + 'static,
        F: Fn(A) -> Fut + Send + Sync + 'static,
        Fut: Future<Output: Send> + Send + 'static,
    {
        let lock = self.clone();
        let function = Arc::new(function);
        move |argument| {
            let lock = lock.clone();
            let function = Arc::clone(&function);
            Box::pin(async move { lock.with(async || function(argument).await).await })
        }
    }
}

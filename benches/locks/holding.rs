use std::{ops::Range, sync::Arc};

use futures::future::BoxFuture;
use tokio::{sync::Notify, task::JoinHandle};

use crate::rivals::Rival;

/// Locks that a rival holds in a task of their own.
pub(crate) struct Holding {
    release: Arc<Notify>,
    task: JoinHandle<()>,
}

impl Holding {
    /// Comes back when the locks are held.
    pub(crate) async fn take(rival: Arc<dyn Rival>, keys: Range<i64>) -> Self {
        let held = Arc::new(Notify::new());
        let release = Arc::new(Notify::new());
        let task = {
            let (held, release) = (Arc::clone(&held), Arc::clone(&release));
            tokio::spawn(async move {
                let section = || -> BoxFuture<'_, ()> {
                    Box::pin(async {
                        held.notify_one();
                        release.notified().await;
                    })
                };
                rival.hold(keys, &section).await;
            })
        };
        held.notified().await;
        Self { release, task }
    }

    pub(crate) async fn release(self) {
        self.release.notify_one();
        self.task.await.expect("no rival fails");
    }
}

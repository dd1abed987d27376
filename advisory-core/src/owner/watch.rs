use std::{
    future::{Future, pending},
    pin::pin,
    sync::{Arc, Weak},
    time::Duration,
};

use futures::future::{Either, select};

use super::Owner;
use crate::{Error, Options, Result, limit::Limit, line::Vitals};

impl Owner {
    /// Runs work for as long as the session lives. When it is seen to be lost, the work is dropped
    /// first, and then the loss reported.
    pub(crate) async fn while_alive<T>(
        self: &Arc<Self>,
        work: impl Future<Output = T>,
    ) -> Result<T> {
        match select(pin!(work), pin!(self.lost())).await {
            Either::Left((value, _)) => Ok(value),
            Either::Right((lost, _)) => Err(lost),
        }
    }

    /// Ends when the session is lost; never if it ends in any other way.
    ///
    /// Whoever polls this does the watching. It keeps no hold on the session, but for the time of a
    /// probe.
    pub(crate) fn lost(self: &Arc<Self>) -> impl Future<Output = Error> + Send + use<> {
        let tenure = self.vitals.tenure();
        watch(Arc::downgrade(self), Arc::clone(&self.vitals), tenure)
    }

    /// Finds out whether the session lives, at the cost of a round trip if nothing has been heard
    /// from it for long.
    async fn look_after(&self) -> Result<()> {
        self.check()?;
        let options = self.admission.options();
        let patience = if self.line.notices_loss() {
            probe_after(options)
        } else {
            probe_after(options).min(options.closed_within / 2)
        };
        if self.vitals.silent_for() < patience {
            return Ok(());
        }
        self.line.probe(options.silent_within / 2).await
    }

    /// When to look again: often enough for a closed connection, and in time for the next probe.
    fn look_again_in(&self) -> Duration {
        let options = self.admission.options();
        let due = probe_after(options).saturating_sub(self.vitals.silent_for());
        due.max(options.silent_within / 20)
            .min(options.closed_within / 2)
    }
}

/// How long a session may be silent before it is probed. It has half of the bound to answer, and what
/// is left is for the looks.
fn probe_after(options: &Options) -> Duration {
    options.silent_within * 2 / 5
}

async fn watch(owner: Weak<Owner>, vitals: Arc<Vitals>, tenure: u64) -> Error {
    loop {
        if vitals.is_lost() && vitals.tenure() == tenure {
            return Error::lost(None);
        }
        // When nobody is left on it, or somebody else is, it was not lost while the one was who
        // asks.
        let Some(owner) = owner.upgrade() else {
            return pending().await;
        };
        if vitals.tenure() != tenure {
            Owner::leave(owner).await;
            return pending().await;
        }
        if let Err(lost) = owner.look_after().await
            && vitals.tenure() == tenure
        {
            return lost;
        }
        let interval = owner.look_again_in();
        Owner::leave(owner).await;
        Limit::new(interval).await;
    }
}

use std::{
    future::{Future, pending},
    pin::pin,
    sync::{Arc, Weak},
};

use futures::future::{Either, select};
use futures_timer::Delay;

use super::{Owner, Vitals};
use crate::{Error, Result};

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
        watch(Arc::downgrade(self), Arc::clone(&self.vitals))
    }

    /// Finds out whether the session lives, at the cost of a round trip if nothing has been heard
    /// from it for long.
    async fn look_after(&self) -> Result<()> {
        self.check()?;
        let options = self.admission.options();
        let patience = if self.line.notices_loss() {
            options.silent_within / 2
        } else {
            options.closed_within / 2
        };
        if self.vitals.silent_for() < patience {
            return Ok(());
        }
        self.line.probe(options.silent_within / 2).await
    }
}

async fn watch(owner: Weak<Owner>, vitals: Arc<Vitals>) -> Error {
    loop {
        if vitals.is_lost() {
            return Error::lost(None);
        }
        let Some(owner) = owner.upgrade() else {
            // Nobody is left on it, and it was not lost while there was.
            return pending().await;
        };
        if let Err(lost) = owner.look_after().await {
            return lost;
        }
        let interval = owner.admission.options().closed_within / 2;
        Owner::leave(owner).await;
        Delay::new(interval).await;
    }
}

use std::{collections::HashMap, sync::Mutex};

use advisory_core::{FencingToken, Result, SessionId};
use async_trait::async_trait;

use crate::broken::{Fault, Sound};

/// Gives out one and the same.
#[derive(Debug)]
pub(crate) struct StandStill;

#[async_trait]
impl Fault for StandStill {
    async fn fencing_token(&self, _: &mut Sound) -> Result<FencingToken> {
        Ok(FencingToken::new(1))
    }
}

/// Counts for each session anew.
#[derive(Debug, Default)]
pub(crate) struct GrowBySession(Mutex<HashMap<Option<SessionId>, i64>>);

#[async_trait]
impl Fault for GrowBySession {
    async fn fencing_token(&self, sound: &mut Sound) -> Result<FencingToken> {
        let mut tokens = self.0.lock().unwrap();
        let token = tokens.entry(sound.session.id()).or_default();
        *token += 1;
        Ok(FencingToken::new(*token))
    }
}

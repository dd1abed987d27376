use std::{
    collections::HashSet,
    time::{Duration, SystemTime},
};

use super::{
    Connection, DriverError, Param, Row,
    server::Server,
    statements,
    tag::{HeldTag, LockTag, mode_of},
};
use crate::{Holder, LockKey};

/// Who holds the key, in any mode.
pub(super) async fn holders(
    connection: &mut impl Connection,
    server: &Server,
    key: LockKey,
) -> Result<Vec<Holder>, DriverError> {
    let LockTag {
        class,
        object,
        subid,
    } = key.into();
    let params = [Param::Int4(class), Param::Int4(object), Param::Int4(subid)];
    let rows = connection.query(statements::HOLDERS, &params).await?;
    rows.into_iter()
        .map(|row| holder(row, server, key).ok_or_else(DriverError::unexpected_answer))
        .collect()
}

/// What this session itself holds, as the server has it. Costs more the more locks there are.
pub(super) async fn held(
    connection: &mut impl Connection,
) -> Result<HashSet<HeldTag>, DriverError> {
    let rows = connection.query(statements::HELD, &[]).await?;
    rows.iter()
        .map(|row| HeldTag::from_row(row).ok_or_else(DriverError::unexpected_answer))
        .collect()
}

/// Whether somebody waits for a lock that this session holds, and how long a wait lasts by now before
/// the server looks for deadlocks.
pub(super) async fn is_awaited(
    connection: &mut impl Connection,
) -> Result<(bool, Duration), DriverError> {
    let rows = connection.query(statements::AWAITED, &[]).await?;
    let row = match rows.first().map(Vec::as_slice) {
        Some([awaited, timeout]) => awaited.bool().zip(timeout.int8()),
        _ => None,
    };
    let (awaited, timeout) = row.ok_or_else(DriverError::unexpected_answer)?;
    Ok((awaited, Duration::from_millis(timeout.unsigned_abs())))
}

fn holder(row: Row, server: &Server, key: LockKey) -> Option<Holder> {
    let [pid, mode, application, state, since, client] = row.try_into().ok()?;
    let mut holder = Holder::new(server.session(pid.int4()?), key, mode_of(&mode)?);
    holder.application = application.text().map(str::to_owned);
    holder.state = state.text().map(str::to_owned);
    holder.since = since.int8().and_then(time);
    holder.client = client.text().map(str::to_owned);
    Some(holder)
}

/// From microseconds since 1970.
fn time(micros: i64) -> Option<SystemTime> {
    let since = Duration::from_micros(micros.try_into().ok()?);
    SystemTime::UNIX_EPOCH.checked_add(since)
}

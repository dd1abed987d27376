use super::Value;
use crate::{LockKey, LockMode, spi::Claim};

/// A lock as `pg_locks` shows it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct LockTag {
    /// `classid`: the first number of a pair, or the upper half of a big one.
    pub(super) class: i32,
    /// `objid`: the second number of a pair, or the lower half of a big one.
    pub(super) object: i32,
    /// `objsubid`, which keeps the two key spaces apart.
    pub(super) subid: i32,
}

impl From<LockKey> for LockTag {
    fn from(key: LockKey) -> Self {
        match key {
            LockKey::BigInt(key) => {
                let [a, b, c, d, e, f, g, h] = key.to_be_bytes();
                Self {
                    class: i32::from_be_bytes([a, b, c, d]),
                    object: i32::from_be_bytes([e, f, g, h]),
                    subid: 1,
                }
            }
            LockKey::Pair(class, object) => Self {
                class,
                object,
                subid: 2,
            },
        }
    }
}

/// A tag with its mode: one granted row of `pg_locks`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub(super) struct HeldTag(LockTag, LockMode);

impl HeldTag {
    /// From the columns `classid`, `objid`, `objsubid` and `mode`.
    pub(super) fn from_row(row: &[Value]) -> Option<Self> {
        let [class, object, subid, mode] = row else {
            return None;
        };
        let tag = LockTag {
            class: class.int4()?,
            object: object.int4()?,
            subid: subid.int4()?,
        };
        Some(Self(tag, mode_of(mode)?))
    }
}

impl From<Claim> for HeldTag {
    fn from(claim: Claim) -> Self {
        Self(claim.key.into(), claim.mode)
    }
}

/// The mode that `pg_locks` calls by this name.
pub(super) fn mode_of(name: &Value) -> Option<LockMode> {
    match name.text()? {
        "ExclusiveLock" => Some(LockMode::Exclusive),
        "ShareLock" => Some(LockMode::Shared),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tag(key: impl Into<LockKey>) -> LockTag {
        key.into().into()
    }

    #[test]
    fn a_big_key_is_cut_in_two_and_differs_from_the_pair_of_its_halves() {
        let big = tag(-4_294_967_294_i64);
        assert_eq!((big.class, big.object), (-1, 2));

        let pair = tag((-1, 2));
        assert_eq!((pair.class, pair.object), (-1, 2));
        assert_ne!(big, pair);
    }
}

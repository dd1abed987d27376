use std::fmt;

use sha2::{Digest, Sha256};

/// What a lock is taken on: a 64-bit number, or a pair of 32-bit numbers.
///
/// PostgreSQL keeps the two key spaces apart: `BigInt(4_294_967_297)` and `Pair(1, 1)` have the
/// same bits and are different locks. Named locks live in the `BigInt` space (see [`derive_key`]);
/// raw keys come from [`LockManager::keyed`](crate::LockManager::keyed).
///
/// Keys are signed, as the server's are. There is no conversion from an unsigned number on
/// purpose: it would have to pick one of two readings without being asked.
///
/// # Examples
///
/// ```
/// use advisory_core::LockKey;
///
/// assert_eq!(LockKey::from(42_i64), LockKey::BigInt(42));
/// assert_eq!(LockKey::from((7, -1)), LockKey::Pair(7, -1));
/// assert_ne!(LockKey::BigInt((1 << 32) + 1), LockKey::Pair(1, 1));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum LockKey {
    /// A key of the one-argument functions, such as `pg_advisory_lock(bigint)`.
    BigInt(i64),
    /// A key of the two-argument functions, such as `pg_advisory_lock(int, int)`.
    Pair(i32, i32),
}

impl From<i64> for LockKey {
    fn from(key: i64) -> Self {
        Self::BigInt(key)
    }
}

impl From<(i32, i32)> for LockKey {
    fn from((class, object): (i32, i32)) -> Self {
        Self::Pair(class, object)
    }
}

/// Writes the key as SQL would: `42`, or `(7, -1)`.
impl fmt::Display for LockKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::BigInt(key) => write!(f, "{key}"),
            Self::Pair(class, object) => write!(f, "({class}, {object})"),
        }
    }
}

/// The key of the lock called `name` in the given namespaces, outermost first.
///
/// A stable contract, so that a key can be computed anywhere, in any language: with `S0` empty and
/// `Sn = SHA-256(Sn-1 ‖ namespace n)`, the key is the first 8 bytes of `SHA-256(Sn ‖ name)`, read
/// as a signed big-endian integer. All text is UTF-8, case-sensitive and not normalised.
///
/// Names, namespaces and raw keys share 64 bits, so two names can collide in theory: among a
/// million names the odds are about one in 37 million.
///
/// # Examples
///
/// ```
/// use advisory_core::{LockKey, derive_key};
///
/// assert_eq!(derive_key("db:migrate", &[]), LockKey::BigInt(3385325551285341936));
/// assert_eq!(
///     derive_key("db:migrate", &["tenant-a", "jobs"]),
///     LockKey::BigInt(-1540740859457476831),
/// );
/// ```
#[must_use]
pub fn derive_key(name: &str, namespaces: &[&str]) -> LockKey {
    namespaces
        .iter()
        .fold(KeySpace::ROOT, |space, namespace| space.enter(namespace))
        .key(name)
}

/// Where names become keys: the digest of the namespaces entered so far, `Sn` of [`derive_key`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct KeySpace {
    /// `None` is the empty `S0`, so that a name in the root space is hashed with no prefix.
    digest: Option<[u8; 32]>,
}

impl KeySpace {
    pub(crate) const ROOT: Self = Self { digest: None };

    pub(crate) fn enter(self, namespace: &str) -> Self {
        Self {
            digest: Some(self.hash(namespace)),
        }
    }

    pub(crate) fn key(self, name: &str) -> LockKey {
        let [a, b, c, d, e, f, g, h, ..] = self.hash(name);
        LockKey::BigInt(i64::from_be_bytes([a, b, c, d, e, f, g, h]))
    }

    fn hash(self, text: &str) -> [u8; 32] {
        let mut hasher = Sha256::new();
        if let Some(digest) = self.digest {
            hasher.update(digest);
        }
        hasher.update(text);
        hasher.finalize().into()
    }
}

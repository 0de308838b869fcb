//! Why unwrapping a key fails.

/// Why unwrapping a key failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyWrapError {
    /// The secret does not fit.
    #[error("the key or passphrase does not open this store")]
    WrongKey,
    /// The wrapped key was changed.
    #[error("the wrapped key is damaged")]
    Damaged,
}

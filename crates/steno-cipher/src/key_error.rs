//! Why a key cannot be unwrapped.

/// A key that could not be unwrapped.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum KeyWrapError {
    /// The secret does not fit.
    #[error("the key or passphrase does not open this store")]
    WrongKey,
    /// The wrapped key was changed.
    #[error("the wrapped key is damaged")]
    Damaged,
}

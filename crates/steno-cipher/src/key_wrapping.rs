//! Wraps the master key for recipients and passphrases.

use std::fmt;

use scrypt::Params;

use crate::age_stanza::{self, AgeFile, AgeStanza, FILE_KEY_BYTES, encode_argument};
use crate::key_error::KeyWrapError;
use crate::master_key::{KEY_BYTES, MasterKey, derive_key, random_bytes};
use crate::recipient::{AgeIdentity, AgeRecipient};

const X25519_LABEL: &[u8] = b"age-encryption.org/v1/X25519";
const SCRYPT_LABEL: &[u8] = b"age-encryption.org/v1/scrypt";

/// Cost of scrypt, as a power of two: 32 MB and about a tenth of a second for each command that asks a passphrase.
const SCRYPT_WORK: u8 = 15;

/// The highest cost that is accepted when reading.
const MAX_SCRYPT_WORK: u8 = 22;

/// What unwraps the master key.
#[derive(Clone)]
pub enum UnlockSecret {
    /// Secret keys of recipients.
    Identities(Vec<AgeIdentity>),
    /// A passphrase.
    Passphrase(String),
}

impl fmt::Debug for UnlockSecret {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("UnlockSecret")
    }
}

impl MasterKey {
    /// Wraps the key for a recipient.
    pub(crate) fn wrap_for(&self, recipient: &AgeRecipient) -> Result<Vec<u8>, KeyWrapError> {
        let ephemeral: [u8; KEY_BYTES] = random_bytes();
        let share = x25519_dalek::x25519(ephemeral, x25519_dalek::X25519_BASEPOINT_BYTES);
        let key =
            recipient_wrap_key(x25519_dalek::x25519(ephemeral, recipient.0), &share, recipient);
        let arguments = vec!["X25519".to_owned(), encode_argument(&share)];
        self.wrap_with(&key, arguments)
    }

    /// Wraps the key with a passphrase.
    pub(crate) fn wrap_with_passphrase(&self, passphrase: &str) -> Result<Vec<u8>, KeyWrapError> {
        let salt: [u8; 16] = random_bytes();
        let key = passphrase_key(passphrase, &salt, SCRYPT_WORK)?;
        let arguments = ["scrypt".to_owned(), encode_argument(&salt), SCRYPT_WORK.to_string()];
        self.wrap_with(&key, arguments.to_vec())
    }

    fn wrap_with(
        &self,
        key: &[u8; KEY_BYTES],
        arguments: Vec<String>,
    ) -> Result<Vec<u8>, KeyWrapError> {
        let file_key: [u8; FILE_KEY_BYTES] = random_bytes();
        let mut body = file_key.to_vec();
        age_stanza::seal(key, [0; 12], &mut body)?;
        age_stanza::encrypt_secret(&AgeStanza { arguments, body }, &file_key, &self.0)
    }

    /// Unwraps a key.
    pub(crate) fn unwrap_with(wrapped: &[u8], secret: &UnlockSecret) -> Result<Self, KeyWrapError> {
        let file = AgeFile::parse(wrapped).ok_or(KeyWrapError::Damaged)?;
        let keys = wrap_keys(&file.stanza, secret)?;
        let mut opened =
            keys.iter().filter_map(|key| age_stanza::open(key, [0; 12], &file.stanza.body).ok());
        let file_key = opened.next().ok_or(KeyWrapError::WrongKey)?;
        let bytes = file.decrypt(&file_key)?;
        bytes.try_into().map(Self).map_err(|_| KeyWrapError::Damaged)
    }
}

/// The keys that may have wrapped the stanza.
fn wrap_keys(
    stanza: &AgeStanza,
    secret: &UnlockSecret,
) -> Result<Vec<[u8; KEY_BYTES]>, KeyWrapError> {
    let kind = stanza.arguments.first().map(String::as_str);
    match (kind, secret) {
        (Some("X25519"), UnlockSecret::Identities(identities)) => {
            let share = stanza.bytes_argument(1).and_then(|share| share.try_into().ok());
            let share: [u8; KEY_BYTES] = share.ok_or(KeyWrapError::Damaged)?;
            let key = |identity: &AgeIdentity| {
                let shared = x25519_dalek::x25519(identity.0, share);
                // A share of low order gives a key that everybody knows.
                (shared != [0; KEY_BYTES])
                    .then(|| recipient_wrap_key(shared, &share, &identity.recipient()))
            };
            Ok(identities.iter().filter_map(key).collect())
        }
        (Some("scrypt"), UnlockSecret::Passphrase(passphrase)) => {
            let salt = stanza.bytes_argument(1).ok_or(KeyWrapError::Damaged)?;
            let work = stanza.arguments.get(2).and_then(|work| work.parse().ok());
            let work = work.filter(|work| (1..=MAX_SCRYPT_WORK).contains(work));
            let work = work.ok_or(KeyWrapError::Damaged)?;
            Ok(vec![passphrase_key(passphrase, &salt, work)?])
        }
        _ => Ok(Vec::new()),
    }
}

fn recipient_wrap_key(
    shared: [u8; KEY_BYTES],
    share: &[u8; KEY_BYTES],
    recipient: &AgeRecipient,
) -> [u8; KEY_BYTES] {
    derive_key(&shared, &[&share[..], &recipient.0].concat(), X25519_LABEL)
}

fn passphrase_key(
    passphrase: &str,
    salt: &[u8],
    work: u8,
) -> Result<[u8; KEY_BYTES], KeyWrapError> {
    let mut key = [0; KEY_BYTES];
    let params = Params::new(work, 8, 1, KEY_BYTES).map_err(|_| KeyWrapError::Damaged)?;
    let salt = [SCRYPT_LABEL, salt].concat();
    scrypt::scrypt(passphrase.as_bytes(), &salt, &params, &mut key)
        .map_err(|_| KeyWrapError::Damaged)?;
    Ok(key)
}

//! The file format of age, version 1, for one short secret: a header with one stanza, and one chunk of payload.
//!
//! The programs `age` and `rage` can read what is written here, and the reverse. The crate `age` is not used: it would
//! add over 80 packages, most of them for translations.

use base64::Engine;
use base64::engine::general_purpose::STANDARD_NO_PAD;
use ring::aead::{Aad, CHACHA20_POLY1305, LessSafeKey, NONCE_LEN, Nonce, UnboundKey};
use ring::hmac;

use crate::key_error::KeyWrapError;
use crate::master_key::{derive_key, random_bytes};

const VERSION_LINE: &str = "age-encryption.org/v1";
pub(crate) const FILE_KEY_BYTES: usize = 16;
const PAYLOAD_NONCE_BYTES: usize = 16;

/// A stanza wraps the key of the file for one recipient.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AgeStanza {
    /// Its kind, such as `X25519`, and its arguments.
    pub(crate) arguments: Vec<String>,
    pub(crate) body: Vec<u8>,
}

impl AgeStanza {
    /// Decodes an argument.
    pub(crate) fn bytes_argument(&self, index: usize) -> Option<Vec<u8>> {
        STANDARD_NO_PAD.decode(self.arguments.get(index)?).ok()
    }

    fn to_header(&self) -> String {
        let body = STANDARD_NO_PAD.encode(&self.body);
        format!("{VERSION_LINE}\n-> {}\n{body}\n---", self.arguments.join(" "))
    }
}

pub(crate) fn encode_argument(bytes: &[u8]) -> String {
    STANDARD_NO_PAD.encode(bytes)
}

/// Encrypts a secret with a key that `stanza` wraps.
pub(crate) fn encrypt_secret(
    stanza: &AgeStanza,
    file_key: &[u8; FILE_KEY_BYTES],
    secret: &[u8],
) -> Result<Vec<u8>, KeyWrapError> {
    let header = stanza.to_header();
    let mac = STANDARD_NO_PAD.encode(hmac::sign(&header_key(file_key), header.as_bytes()));
    let nonce: [u8; PAYLOAD_NONCE_BYTES] = random_bytes();
    let mut payload = secret.to_vec();
    seal(&payload_key(file_key, &nonce), last_chunk_nonce(), &mut payload)?;
    Ok([header.as_bytes(), b" ", mac.as_bytes(), b"\n", &nonce, &payload].concat())
}

/// An encrypted secret.
pub(crate) struct AgeFile<'a> {
    pub(crate) stanza: AgeStanza,
    header: String,
    mac: Vec<u8>,
    payload: &'a [u8],
}

impl<'a> AgeFile<'a> {
    /// Parses a file with one stanza.
    pub(crate) fn parse(bytes: &'a [u8]) -> Option<Self> {
        let mut rest = bytes;
        let mut next_line = || {
            let end = rest.iter().position(|byte| *byte == b'\n')?;
            let (line, after) = rest.split_at(end);
            rest = &after[1..];
            std::str::from_utf8(line).ok()
        };
        if next_line()? != VERSION_LINE {
            return None;
        }
        let arguments = next_line()?.strip_prefix("-> ")?.split(' ').map(str::to_owned).collect();
        let body = STANDARD_NO_PAD.decode(next_line()?).ok()?;
        let mac = STANDARD_NO_PAD.decode(next_line()?.strip_prefix("--- ")?).ok()?;
        let stanza = AgeStanza { arguments, body };
        let header = stanza.to_header();
        Some(Self { stanza, header, mac, payload: rest })
    }

    /// Decrypts the secret with the unwrapped key of the file.
    pub(crate) fn decrypt(&self, file_key: &[u8]) -> Result<Vec<u8>, KeyWrapError> {
        let is_header = hmac::verify(&header_key(file_key), self.header.as_bytes(), &self.mac);
        is_header.map_err(|_| KeyWrapError::Damaged)?;
        let (nonce, sealed) =
            self.payload.split_at_checked(PAYLOAD_NONCE_BYTES).ok_or(KeyWrapError::Damaged)?;
        open(&payload_key(file_key, nonce), last_chunk_nonce(), sealed)
            .map_err(|_| KeyWrapError::Damaged)
    }
}

fn header_key(file_key: &[u8]) -> hmac::Key {
    hmac::Key::new(hmac::HMAC_SHA256, &derive_key(file_key, b"", b"header"))
}

fn payload_key(file_key: &[u8], nonce: &[u8]) -> [u8; 32] {
    derive_key(file_key, nonce, b"payload")
}

/// The nonce of the first chunk, if it is the last.
fn last_chunk_nonce() -> [u8; NONCE_LEN] {
    let mut nonce = [0; NONCE_LEN];
    nonce[NONCE_LEN - 1] = 1;
    nonce
}

/// Encrypts with ChaCha20-Poly1305, and appends the tag. Each key of age is used once.
pub(crate) fn seal(
    key: &[u8; 32],
    nonce: [u8; NONCE_LEN],
    bytes: &mut Vec<u8>,
) -> Result<(), KeyWrapError> {
    let nonce = Nonce::assume_unique_for_key(nonce);
    let sealed = cipher(key).seal_in_place_append_tag(nonce, Aad::empty(), bytes);
    sealed.map_err(|_| KeyWrapError::Damaged)
}

/// Decrypts with ChaCha20-Poly1305.
pub(crate) fn open(
    key: &[u8; 32],
    nonce: [u8; NONCE_LEN],
    sealed: &[u8],
) -> Result<Vec<u8>, KeyWrapError> {
    let mut bytes = sealed.to_vec();
    let nonce = Nonce::assume_unique_for_key(nonce);
    let opened = cipher(key).open_in_place(nonce, Aad::empty(), &mut bytes);
    opened.map(|plain| plain.to_vec()).map_err(|_| KeyWrapError::WrongKey)
}

fn cipher(key: &[u8; 32]) -> LessSafeKey {
    let key = UnboundKey::new(&CHACHA20_POLY1305, key);
    LessSafeKey::new(key.expect("the key has the cipher's length"))
}

//! The cipher of pages: key, nonces and the layout of an encrypted page.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};

use ring::aead::{AES_256_GCM, Aad, LessSafeKey, NONCE_LEN, Nonce, Tag, UnboundKey};
use ring::rand::{SecureRandom, SystemRandom};

/// The size of a page.
pub const PAGE_BYTES: usize = 16 << 10;

/// The bytes at the end of each page that SQLite leaves unused: nonce, tag and padding.
pub const RESERVED_BYTES: usize = 32;

/// The part of a page that is encrypted.
const CONTENT_BYTES: usize = PAGE_BYTES - RESERVED_BYTES;

/// Nonces that are drawn from the system at once.
const NONCE_BATCH: usize = 128;

/// The key of a database.
#[derive(Clone)]
pub struct PageKey(Arc<KeyState>);

struct KeyState {
    /// Distinguishes the keys of a process; it reveals nothing of them.
    bytes: [u8; 32],
    key: LessSafeKey,
    nonces: Mutex<Vec<u8>>,
}

impl fmt::Debug for PageKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("PageKey")
    }
}

impl PartialEq for PageKey {
    fn eq(&self, other: &Self) -> bool {
        self.0.bytes == other.0.bytes
    }
}

/// The file that a page is in. A page of one cannot be moved to the other.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum PageFile {
    Database,
    Log,
}

/// A failed encryption or decryption.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct CipherFailure;

impl PageKey {
    /// A key of 32 random bytes.
    pub fn new(bytes: [u8; 32]) -> Self {
        let key = UnboundKey::new(&AES_256_GCM, &bytes).expect("the key has the cipher's length");
        let nonces = Mutex::default();
        Self(Arc::new(KeyState { bytes, key: LessSafeKey::new(key), nonces }))
    }

    /// Encrypts a page in place.
    pub(crate) fn encrypt_page(
        &self,
        page: &mut [u8],
        number: u32,
        file: PageFile,
    ) -> Result<(), CipherFailure> {
        let nonce = self.next_nonce()?;
        let (content, reserved) = page.split_at_mut_checked(CONTENT_BYTES).ok_or(CipherFailure)?;
        let tag = self
            .0
            .key
            .seal_in_place_separate_tag(
                Nonce::assume_unique_for_key(nonce),
                page_identity(number, file),
                content,
            )
            .map_err(|_| CipherFailure)?;
        reserved.fill(0);
        reserved[..NONCE_LEN].copy_from_slice(&nonce);
        reserved[NONCE_LEN..][..tag.as_ref().len()].copy_from_slice(tag.as_ref());
        Ok(())
    }

    /// Decrypts a page in place. The reserved bytes become zeros, as SQLite wrote them.
    pub(crate) fn decrypt_page(
        &self,
        page: &mut [u8],
        number: u32,
        file: PageFile,
    ) -> Result<(), CipherFailure> {
        let (content, reserved) = page.split_at_mut_checked(CONTENT_BYTES).ok_or(CipherFailure)?;
        let (nonce, rest) = reserved.split_at(NONCE_LEN);
        let (tag, padding) = rest.split_at(AES_256_GCM.tag_len());
        if padding.iter().any(|byte| *byte != 0) {
            return Err(CipherFailure);
        }
        let nonce = Nonce::try_assume_unique_for_key(nonce).map_err(|_| CipherFailure)?;
        let tag = Tag::try_from(tag).map_err(|_| CipherFailure)?;
        self.0
            .key
            .open_in_place_separate_tag(nonce, page_identity(number, file), tag, content, 0..)
            .map_err(|_| CipherFailure)?;
        reserved.fill(0);
        Ok(())
    }

    /// A random nonce. With 2^32 pages written under one key, two are equal with a probability below 2^-32.
    fn next_nonce(&self) -> Result<[u8; NONCE_LEN], CipherFailure> {
        let mut nonces = self.0.nonces.lock().unwrap_or_else(PoisonError::into_inner);
        if nonces.is_empty() {
            nonces.resize(NONCE_BATCH * NONCE_LEN, 0);
            SystemRandom::new().fill(&mut nonces).map_err(|_| CipherFailure)?;
        }
        let rest = nonces.len() - NONCE_LEN;
        let nonce = nonces[rest..].try_into().map_err(|_| CipherFailure)?;
        nonces.truncate(rest);
        Ok(nonce)
    }
}

/// Binds a page to its number and file, so that a page in another place is not accepted.
fn page_identity(number: u32, file: PageFile) -> Aad<[u8; 5]> {
    let mut identity = [0; 5];
    identity[..4].copy_from_slice(&number.to_be_bytes());
    identity[4] = u8::from(file == PageFile::Log);
    Aad::from(identity)
}

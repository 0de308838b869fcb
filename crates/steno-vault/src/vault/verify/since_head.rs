//! The journal's head: a short value that, stored elsewhere, proves later what the vault contained.

use std::fmt;
use std::io::{BufReader, Read};
use std::str::FromStr;

use super::{DamagedFile, VerifyReport};
use crate::line_hash::{FIRST_LINE_HASH, LineHash};
use crate::vault::frame::{self, HexHash, NextFrame, SealedFileHeader};
use crate::vault::journal::{FileState, JournalState, ListedFile};
use crate::vault::log_head::LogHead;
use crate::vault::{SessionDir, Vault};
use steno_cipher::store_fs;
use steno_model::durable::{FileError, OnPath};

/// The length of the journal and the hash of its last line at some time.
///
/// The hash covers every line before it, so no other journal can have the same head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JournalHead(LogHead);

/// An invalid journal head.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a head of the journal, such as 1234-00112233445566778899aabbccddeeff: {0:?}")]
pub struct JournalHeadError(String);

impl fmt::Display for JournalHead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.0.length, self.0.line_hash.as_str())
    }
}

impl FromStr for JournalHead {
    type Err = JournalHeadError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parse = || {
            let (length, hash) = text.trim().split_once('-')?;
            let is_hex = hash.bytes().all(|byte| byte.is_ascii_hexdigit());
            Some(LogHead {
                length: length.parse().ok()?,
                line_hash: LineHash::parse(hash).filter(|_| is_hex)?,
            })
        };
        parse().map(Self).ok_or_else(|| JournalHeadError(text.to_owned()))
    }
}

impl Vault {
    /// The current head of the journal; `None` if there is no journal or it is empty.
    pub fn journal_head(&self) -> Result<Option<JournalHead>, FileError> {
        Ok(self.journal.read_end()?.map(JournalHead))
    }

    /// Adds to a report everything that existed at `head` and has changed or disappeared since.
    ///
    /// Call it together with [`Vault::verify`], which checks the current files.
    pub fn verify_since(
        &self,
        head: JournalHead,
        report: &mut VerifyReport,
    ) -> Result<(), FileError> {
        let path = self.journal.path();
        let Some(then) = JournalState::read_at_head(&path, head.0)? else {
            let reason = "this head is not in the journal: the journal or the whole store is older or a different one";
            report.add_damage(&path, 0, reason);
            return Ok(());
        };
        let now = self.journal.read_state()?.map(|state| state.sessions).unwrap_or_default();
        let mut sessions: Vec<_> = then.sessions.into_iter().collect();
        sessions.sort_by(|a, b| a.0.cmp(&b.0));
        for (session, files) in sessions {
            let Some(dir) = self.session_for_key(&session) else { continue };
            if dir.is_forgotten()? {
                // The tombstone states the removed files.
                continue;
            }
            for (name, then) in files.iter() {
                let listed = now.get(&session).and_then(|files| files.get(name));
                let damage = find_change_since(&dir, name, then, listed)?;
                report.damage.extend(damage);
            }
        }
        Ok(())
    }
}

/// The change of a file since it was listed as `then`.
fn find_change_since(
    dir: &SessionDir,
    name: &str,
    then: &ListedFile,
    now: Option<&ListedFile>,
) -> Result<Option<DamagedFile>, FileError> {
    let path = dir.path().join(name);
    let damage =
        |reason: &str| Some(DamagedFile { path: path.clone(), offset: 0, reason: reason.into() });
    let Some(now) = now else {
        let is_sealed_since =
            then.state == FileState::Open && SessionDir::parse_live_log_base(name).is_some();
        // The content of a live log is verified with the sealed file.
        return Ok(if is_sealed_since {
            None
        } else {
            damage("the journal no longer lists this file")
        });
    };
    if now.state == FileState::Replaced {
        return Ok(damage("it was found damaged, and the session file was kept again"));
    }
    if now.length < then.length {
        return Ok(damage("shorter than it was"));
    }
    let (FileState::Kept, Some(chain)) = (then.state, then.chain_end()) else { return Ok(None) };
    let is_there = now == then || chain_has_link(dir, name, (then.length, chain))?;
    Ok(if is_there { None } else { damage("its first bytes have changed") })
}

/// Whether the chain of a sealed file has a link, or had it before an upgrade from version 1.
fn chain_has_link(dir: &SessionDir, name: &str, wanted: (u64, HexHash)) -> Result<bool, FileError> {
    let Some((stem, generation)) = crate::vault::parse_sealed_name(name) else { return Ok(false) };
    let Ok(sealed) = dir.open_sealed(&stem, generation) else { return Ok(true) };
    let path = sealed.path().to_owned();
    let mut input = BufReader::new(store_fs::open(&path).on("open", &path)?);
    let Ok((header, _)) = frame::read_header::<SealedFileHeader>(&mut input) else {
        return Ok(true);
    };
    if header.upgraded == Some(wanted) {
        return Ok(true);
    }
    let mut chain = frame::encode_file_header(&header).1;
    if wanted == (0, chain) {
        return Ok(true);
    }
    // `Vault::verify` reports damage.
    while let Ok(next) = frame::read_next_header(&mut input) {
        let NextFrame::Frame(header, _) = next else { continue };
        if header.chain_links(chain).any(|link| link == wanted) {
            return Ok(true);
        }
        chain = header.chain;
        std::io::copy(&mut (&mut input).take(header.stored), &mut std::io::sink())
            .on("read", &path)?;
    }
    Ok(false)
}

impl JournalState {
    /// Reads the journal as it was when `head` was its head; `None` if it never was.
    fn read_at_head(path: &std::path::Path, head: LogHead) -> Result<Option<Self>, FileError> {
        if head == (LogHead { length: 0, line_hash: FIRST_LINE_HASH }) {
            return Ok(Some(Self::default()));
        }
        Self::read_prefix(path, head)
    }
}

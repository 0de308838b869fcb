//! The journal's head: a short value that, stored elsewhere, proves later what the vault contained.

use std::fmt;
use std::fs::File;
use std::io::{BufReader, Read};
use std::str::FromStr;

use super::{Damage, Report};
use crate::durable::{FileError, OnPath};
use crate::vault::frame::{self, FileHeader, Hash, NextFrame};
use crate::vault::head::Head;
use crate::vault::journal::{FileState, JournalState, ListedFile};
use crate::vault::live::{FIRST_SUM, Sum};
use crate::vault::{SessionDir, Vault};

/// The length of the journal and the hash of its last line at some time.
///
/// The hash covers every line before it, so no other journal can have the same head.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct JournalHead(Head);

/// An invalid journal head.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("not a head of the journal, such as 1234-00112233445566778899aabbccddeeff: {0:?}")]
pub struct JournalHeadError(String);

impl fmt::Display for JournalHead {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}-{}", self.0.length, self.0.sum.as_str())
    }
}

impl FromStr for JournalHead {
    type Err = JournalHeadError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let parse = || {
            let (length, hash) = text.trim().split_once('-')?;
            let is_hex = hash.bytes().all(|byte| byte.is_ascii_hexdigit());
            Some(Head { length: length.parse().ok()?, sum: Sum::parse(hash).filter(|_| is_hex)? })
        };
        parse().map(Self).ok_or_else(|| JournalHeadError(text.to_owned()))
    }
}

impl Vault {
    /// The current head of the journal; `None` if there is no journal or it is empty.
    pub fn journal_head(&self) -> Result<Option<JournalHead>, FileError> {
        Ok(self.journal.end()?.map(JournalHead))
    }

    /// Adds to a report everything that existed at `head` and has changed or disappeared since.
    ///
    /// Call it together with [`Vault::verify`], which checks the current files.
    pub fn verify_since(&self, head: JournalHead, report: &mut Report) -> Result<(), FileError> {
        let path = self.journal.path();
        let Some(then) = JournalState::read_until(&path, head.0)? else {
            let reason = "this head is not in the journal: the journal or the whole store is older or a different one";
            report.add_damage(&path, 0, reason);
            return Ok(());
        };
        let now = self.journal.state()?.map(|state| state.sessions).unwrap_or_default();
        let mut sessions: Vec<_> = then.sessions.into_iter().collect();
        sessions.sort_by(|a, b| a.0.cmp(&b.0));
        for (session, files) in sessions {
            let Some(dir) = self.session_of_key(&session) else { continue };
            for (name, then) in files.iter() {
                let listed = now.get(&session).and_then(|files| files.get(name));
                let damage = change_since(&dir, name, then, listed)?;
                report.damage.extend(damage);
            }
        }
        Ok(())
    }
}

/// The change of a file since it was listed as `then`.
fn change_since(
    dir: &SessionDir,
    name: &str,
    then: &ListedFile,
    now: Option<&ListedFile>,
) -> Result<Option<Damage>, FileError> {
    let path = dir.path().join(name);
    let damage =
        |reason: &str| Some(Damage { path: path.clone(), offset: 0, reason: reason.into() });
    let Some(now) = now else {
        let is_sealed_since =
            then.state == FileState::Open && SessionDir::live_base(name).is_some();
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
    let (FileState::Kept, Some(chain)) = (then.state, then.chain()) else { return Ok(None) };
    let is_there = now == then || has_link(dir, name, (then.length, chain))?;
    Ok(if is_there { None } else { damage("its first bytes have changed") })
}

/// Whether the chain of a sealed file has a link, or had it before an upgrade from version 1.
fn has_link(dir: &SessionDir, name: &str, wanted: (u64, Hash)) -> Result<bool, FileError> {
    let Some((stem, generation)) = crate::vault::kept_file(name) else { return Ok(false) };
    let Ok(sealed) = dir.open_kept(&stem, generation) else { return Ok(true) };
    let path = sealed.path().to_owned();
    let mut input = BufReader::new(File::open(&path).on("open", &path)?);
    let Ok((header, _)) = frame::read_header::<FileHeader>(&mut input) else { return Ok(true) };
    if header.upgraded == Some(wanted) {
        return Ok(true);
    }
    let mut chain = frame::begin(&header).1;
    if wanted == (0, chain) {
        return Ok(true);
    }
    // `Vault::verify` reports damage.
    while let Ok(next) = frame::read_next(&mut input) {
        let NextFrame::Frame(header, _) = next else { continue };
        if header.links(chain).any(|link| link == wanted) {
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
    fn read_until(path: &std::path::Path, head: Head) -> Result<Option<Self>, FileError> {
        if head == (Head { length: 0, sum: FIRST_SUM }) {
            return Ok(Some(Self::default()));
        }
        Self::read_prefix(path, head)
    }
}

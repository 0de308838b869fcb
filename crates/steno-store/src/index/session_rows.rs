//! What the index derives from a session, as rows for the database of a team.
//!
//! The rows are the same as those of the local index: the same texts, numbers and keys of usage.

use std::collections::HashMap;
use std::sync::Arc;

use super::IndexError;
use super::session_draft::PreparedSession;
use super::session_indexer::{SessionReadOutcome, read_in_parts};
use super::text_blocks::{TextHash, hash_text};
use crate::cost::bill;
use crate::cost::bill::signed_counts;
use crate::cost::file_charges::token_band;
use steno_model::session::Session;
use steno_vault::SessionDir;

/// Version of the rules that make [`UsageRecord::key`]. Raise it when they change, together with a migration of the team's
/// database, which older programs then refuse. A push replaces usage with keys of an older version.
///
/// 1: messages of Codex have a key that copies of the session have too.
pub const USAGE_KEY_VERSION: i16 = 1;

/// All rows of one session, or of a part of it.
#[derive(Debug)]
pub struct SessionRows {
    /// The session. For a part, only its agent and id are set.
    pub session: Session,
    /// Whether more of the session follows.
    pub is_part: bool,
    /// The number of the first entry.
    pub first_number: usize,
    /// Its entries, in order.
    pub entries: Vec<EntryRecord>,
    /// What it states of each API message. The last part has also what is left of the session's own total.
    pub usage: Vec<UsageRecord>,
}

/// One entry.
#[derive(Debug)]
pub struct EntryRecord {
    /// When it was created, in milliseconds since 1970.
    pub time: Option<i64>,
    /// The role.
    pub role: String,
    /// The kind.
    pub kind: &'static str,
    /// The tool of a call or result.
    pub tool: Option<String>,
    /// The model.
    pub model: Option<String>,
    /// Who spoke.
    pub source: String,
    /// Whether it is an error, or a tool that failed.
    pub is_failure: bool,
    /// The searchable text.
    pub text: Option<Arc<String>>,
    /// The hash of the text.
    pub text_hash: Option<[u8; 16]>,
    /// A hash over this entry and all before it.
    pub digest: [u8; 16],
}

/// The usage of one API message, or the remainder of a session's total.
#[derive(Debug)]
pub struct UsageRecord {
    /// The key that identifies the message in all sessions.
    pub key: [u8; 16],
    /// The number of the first entry that states it.
    pub number: Option<i64>,
    /// The time, in milliseconds since 1970.
    pub time: Option<i64>,
    /// The model.
    pub model: Option<String>,
    /// Tokens of each kind, in the order of `Usage`.
    pub tokens: [i64; 7],
    /// The band of the prompt's length, for its price.
    pub band: i64,
}

impl SessionRows {
    /// Reads a session and passes it to `take`, in parts if it takes more than `max_part_bytes`. After `take` has returned
    /// `false`, nothing more is passed.
    pub fn read_in_parts(
        dir: &SessionDir,
        max_part_bytes: usize,
        take: &mut dyn FnMut(Self) -> bool,
    ) -> Result<(), IndexError> {
        let mut take_part = |part| Ok(take(Self::from_prepared(part)));
        let outcome = read_in_parts(dir, max_part_bytes, &mut take_part)?;
        if let SessionReadOutcome::Prepared(prepared) = outcome {
            take(Self::from_prepared(*prepared));
        }
        Ok(())
    }

    /// The number after the last entry.
    pub fn end_number(&self) -> usize {
        self.first_number + self.entries.len()
    }

    fn from_prepared(mut prepared: PreparedSession) -> Self {
        let usage = usage_records(&prepared);
        let texts = std::mem::take(&mut prepared.texts).into_iter();
        let texts: HashMap<TextHash, Arc<String>> =
            texts.map(|(hash, text)| (hash, Arc::new(text))).collect();
        let entry = |row: super::session_draft::IndexedEntry| EntryRecord {
            time: row.time,
            role: row.role.as_str().to_owned(),
            kind: row.kind.as_str(),
            tool: row.tool,
            model: row.model,
            source: row.source,
            is_failure: row.is_failure,
            text: row.text.and_then(|hash| texts.get(&hash).cloned()),
            text_hash: row.text,
            digest: row.digest,
        };
        let entries = prepared.rows.into_iter().map(entry).collect();
        let PreparedSession { session, is_part, first_number, .. } = prepared;
        Self { session, is_part, first_number, entries, usage }
    }
}

fn usage_records(prepared: &PreparedSession) -> Vec<UsageRecord> {
    let session = &prepared.session;
    let mut records: Vec<UsageRecord> = Vec::new();
    for bill in &prepared.bills {
        let tokens = signed_counts(bill.usage.numbers());
        records.push(UsageRecord {
            key: hash_text(&bill.message_key(session)),
            number: i64::try_from(bill.number).ok(),
            time: bill.at.map(|at| at.instant().as_millisecond()),
            model: bill.model.clone(),
            tokens,
            band: token_band(tokens) as i64,
        });
    }
    if prepared.is_part {
        return records;
    }
    let (agent, name) = match &prepared.total_origin {
        Some(origin) => (&origin.agent, &origin.id),
        None => (&session.agent, &session.id),
    };
    let rest = bill::bill_remainder(session, &prepared.billed_usage);
    if rest.tokens != [0; 7] {
        records.push(UsageRecord {
            key: hash_text(&format!("rest\n{agent}\n{name}")),
            number: None,
            time: rest.at.map(|at| at.instant().as_millisecond()),
            model: rest.model,
            tokens: rest.tokens,
            band: token_band(rest.tokens) as i64,
        });
    }
    records
}

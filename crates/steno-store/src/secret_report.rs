//! Finds the secrets in everything that a store keeps: which, where, how often and when last.
//!
//! Entries and notes are searched first, then the kept bytes, because agents write more than a reader emits. What was
//! found is then counted wherever it stands, in all sessions: a key in an address may stand alone elsewhere. A secret
//! has an id that is stable within the store. It is a keyed hash, so that an id alone confirms no guess.

mod secret_id;
#[cfg(test)]
mod tests;

use std::collections::{BTreeMap, BTreeSet, HashSet};
use std::num::NonZero;
use std::sync::Mutex;
use std::thread;

use steno_agents::reader::FormatError;
use steno_model::durable::FileError;

use steno_model::{Problem, SessionId, Timestamp};
use steno_vault::SessionDir;
use steno_vault::sealed::SharedProblems;

pub use self::secret_id::{SecretId, SecretIdError, SecretIdKey};
use crate::store_location::StoreLocation;
use crate::transcript::ReadTranscript;
use crate::view::redaction::{SecretRedactor, SecretText, search_file};

/// All secrets that a store keeps.
#[derive(Debug, Default)]
pub struct SecretReport {
    /// The secrets, the one that was seen last first.
    pub secrets: Vec<KeptSecret>,
    /// Sessions that could not be read, with the error.
    pub unread: Vec<(SessionDir, FormatError)>,
    /// Damage of sessions that were read: secrets in the damaged part are missing.
    pub damage: Vec<(SessionDir, Problem)>,
}

impl SecretReport {
    /// Whether all that is kept was searched.
    pub fn is_complete(&self) -> bool {
        self.unread.is_empty() && self.damage.is_empty()
    }
}

/// A secret that a store keeps.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KeptSecret {
    /// Its id in this store.
    pub id: SecretId,
    /// The name of the rule that found it.
    pub rule: &'static str,
    /// The secret itself. Show [`KeptSecret::masked_value`] instead.
    pub value: String,
    /// Where it is, in order of sessions and entries.
    pub places: Vec<SecretPlace>,
}

/// A place of a secret.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SecretPlace {
    /// The agent of the session.
    pub agent: String,
    /// The session.
    pub session: SessionId,
    /// The entry, counted from 0 as in search hits. `None` if the secret is in a note, in what is known of the session,
    /// or in bytes that no entry shows.
    pub entry: Option<u64>,
    /// When the entry was produced, or else the session ended.
    pub at: Option<Timestamp>,
    /// How often it is there.
    pub count: u64,
}

impl KeptSecret {
    /// How often the secret is kept.
    pub fn count(&self) -> u64 {
        self.places.iter().map(|place| place.count).sum()
    }

    /// When the secret was last seen.
    pub fn last_seen(&self) -> Option<Timestamp> {
        self.places.iter().filter_map(|place| place.at).max_by_key(|at| at.instant())
    }

    /// The entries of each session that contain the secret, and the sessions that contain it elsewhere.
    pub fn entries_by_session(&self) -> BTreeMap<(String, SessionId), Vec<Option<u64>>> {
        let mut entries: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for place in &self.places {
            let session = (place.agent.clone(), place.session.clone());
            entries.entry(session).or_default().push(place.entry);
        }
        entries
    }

    /// The first characters and the length: enough to recognise a secret, too little to use it.
    pub fn masked_value(&self) -> String {
        let length = self.value.chars().count();
        let shown = if length >= 16 { 4 } else { 1 };
        let start: String = self.value.chars().take(shown).collect();
        let start = start.replace(char::is_control, " ");
        format!("{start}…({length})")
    }
}

/// Finds all secrets of a store. `on_session` is called before each session is read. A session that cannot be read is
/// no error: the report lists it.
pub fn report_secrets(
    store: &StoreLocation,
    on_session: &(dyn Fn(&SessionDir) + Sync),
) -> Result<SecretReport, FileError> {
    let key = SecretIdKey::load_or_create(&store.folder);
    let sessions = store.vault().list_sessions()?;
    let mut found = search_in_threads(sessions, |session| {
        on_session(&session);
        let searched = SearchedSession::read(&session);
        (session, searched)
    });
    let texts: BTreeSet<SecretText> = found
        .iter()
        .filter_map(|(_, searched)| searched.as_ref().ok())
        .flat_map(|searched| searched.places.values().map(|(secret, _)| secret.clone()))
        .collect();
    // No rule finds a key that stands alone, but `forget --secret` masks it there too.
    if let Some(redactor) = SecretRedactor::for_known(&texts.into_iter().collect::<Vec<_>>()) {
        found = search_in_threads(found, |(session, searched)| {
            let searched =
                searched.and_then(|searched| searched.add_known(&session, redactor.duplicate()));
            (session, searched)
        });
    }
    found.sort_by(|(a, _), (b, _)| (a.agent(), a.id()).cmp(&(b.agent(), b.id())));
    Ok(join_report(&key, found))
}

/// Does the work on each item, in as many threads as there are processors. The results are in no order.
fn search_in_threads<T: Send, U: Send>(items: Vec<T>, work: impl Fn(T) -> U + Sync) -> Vec<U> {
    let (items, results) = (Mutex::new(items), Mutex::new(Vec::new()));
    let no_panic = "no thread panics while it holds the lock";
    let run = || {
        loop {
            let item = items.lock().expect(no_panic).pop();
            let Some(item) = item else { return };
            let result = work(item);
            results.lock().expect(no_panic).push(result);
        }
    };
    let threads = thread::available_parallelism().map_or(1, NonZero::get);
    thread::scope(|scope| (0..threads).for_each(|_| drop(scope.spawn(run))));
    results.into_inner().expect(no_panic)
}

fn join_report(
    key: &SecretIdKey,
    found: Vec<(SessionDir, Result<SearchedSession, FormatError>)>,
) -> SecretReport {
    let (mut unread, mut damage) = (Vec::new(), Vec::new());
    let mut secrets: BTreeMap<SecretId, KeptSecret> = BTreeMap::new();
    for (session, searched) in found {
        let searched = match searched {
            Ok(searched) => searched,
            Err(error) => {
                unread.push((session, error));
                continue;
            }
        };
        damage.extend(searched.damage.into_iter().map(|problem| (session.clone(), problem)));
        for (SecretText { text, rule }, place) in searched.places.into_values() {
            let id = key.secret_id(&text);
            let new = || KeptSecret { id: id.clone(), rule, value: text, places: Vec::new() };
            secrets.entry(id.clone()).or_insert_with(new).places.push(place);
        }
    }
    let mut secrets: Vec<_> = secrets.into_values().collect();
    secrets
        .sort_by_cached_key(|secret| std::cmp::Reverse(secret.last_seen().map(|at| at.instant())));
    SecretReport { secrets, unread, damage }
}

/// What was found in one session.
struct SearchedSession {
    /// By the text, the number of the entry, and the time. What no entry has comes last.
    places: BTreeMap<(String, u64, Option<i64>), (SecretText, SecretPlace)>,
    known: HashSet<String>,
    damage: Vec<Problem>,
}

impl SearchedSession {
    fn read(session: &SessionDir) -> Result<Self, FormatError> {
        let mut searched =
            Self { places: BTreeMap::new(), known: HashSet::new(), damage: Vec::new() };
        searched.search(session, SecretRedactor::default())?;
        Ok(searched)
    }

    /// Adds the places of secrets that are known from all sessions.
    fn add_known(
        mut self,
        session: &SessionDir,
        redactor: SecretRedactor,
    ) -> Result<Self, FormatError> {
        self.search(session, redactor)?;
        Ok(self)
    }

    fn search(
        &mut self,
        session: &SessionDir,
        mut redactor: SecretRedactor,
    ) -> Result<(), FormatError> {
        let transcript = session.read_transcript()?;
        let ended = transcript.session.ended.or(transcript.session.started);
        let (agent, id) = (session.agent().to_owned(), session.id().clone());
        let elsewhere = SecretPlace { agent, session: id, entry: None, at: ended, count: 0 };
        for (number, entry) in transcript.entries.iter().enumerate() {
            redactor.redact_entry(&mut entry.clone());
            let (entry, at) = (Some(number as u64), entry.created_at.or(ended));
            self.add(redactor.take_found(), &SecretPlace { entry, at, ..elsewhere.clone() });
        }
        for note in &transcript.notes {
            redactor.redact_text(&note.text);
            let at = Some(note.at);
            self.add(redactor.take_found(), &SecretPlace { at, ..elsewhere.clone() });
        }
        redactor.redact_session(&mut transcript.session.clone());
        self.damage = transcript.problems.into_iter().filter(Problem::is_damage).collect();
        search_kept_bytes(session, &mut redactor)?;
        let mut unseen = redactor.take_found();
        unseen.retain(|secret| !self.known.contains(&secret.text));
        self.add(unseen, &elsewhere);
        Ok(())
    }

    /// Adds what was found in a place. What an earlier search found there too counts once.
    fn add(&mut self, found: Vec<SecretText>, place: &SecretPlace) {
        let mut counts: BTreeMap<String, (SecretText, u64)> = BTreeMap::new();
        for secret in found {
            counts.entry(secret.text.clone()).or_insert((secret, 0)).1 += 1;
        }
        let at = place.at.map(|at| at.instant().as_millisecond());
        for (text, (secret, count)) in counts {
            self.known.insert(text.clone());
            let key = (text, place.entry.unwrap_or(u64::MAX), at);
            let new = || (secret, SecretPlace { count: 0, ..place.clone() });
            let known = &mut self.places.entry(key).or_insert_with(new).1;
            known.count = known.count.max(count);
        }
    }
}

/// Searches the bytes of a session's files and recordings.
fn search_kept_bytes(session: &SessionDir, redactor: &mut SecretRedactor) -> Result<(), FileError> {
    let bundle = session.kept_bundle()?;
    for file in bundle.files.iter().chain(&bundle.excerpts).chain(&bundle.earlier_files) {
        search_file(redactor, &mut file.open()?).map_err(|source| FileError {
            action: "read",
            path: file.path().to_owned(),
            source,
        })?;
    }
    // The transcript has the damage.
    let problems = SharedProblems::default();
    session.for_each_recorded_line(&problems, &mut |_, mut line| {
        // A line in memory can always be read.
        let _ = search_file(redactor, &mut line);
    })
}

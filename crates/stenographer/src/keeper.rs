//! Takes sessions that were found in files into the store.

use std::collections::{HashMap, HashSet};
use std::fs::File;
use std::io::ErrorKind;
use std::path::PathBuf;
use std::sync::Arc;

use jiff::Timestamp as Instant;
use steno_core::Wanted;
use steno_core::agent::aider;
use steno_core::durable::{self, FileError, OnPath};
use steno_core::entry::PRIMARY;
use steno_core::format::{FormatError, Found, Item};
use steno_core::index::Draft;
use steno_core::index::attribution::TimeSpan;
use steno_core::index::pending::Marker;
use steno_core::vault::commit::VaultCommit;
use steno_core::vault::likeness::Likeness;
use steno_core::vault::{AgentName, SessionDir, Vault};
use steno_core::{Bundle, Entry, Kind, Problem, ProblemList, Role, Session, SessionId};

use crate::error::CommandError;
use crate::indexer::Indexer;
use crate::projects::Projects;
use crate::seen::{Stamp, stamp};

/// From how many bytes on a session is not held beside others that wait for the index.
const LARGE: u64 = 8 << 20;

/// How many sessions are acknowledged together.
const MAX_BATCH: usize = 128;

/// How many characters of a prompt stand for a title.
const TITLE: usize = 60;

/// Keeps sessions, each under an id of its own.
pub(crate) struct Keeper {
    vault: Vault,
    /// The agent of each kept session. There may be very many, so that no folders are held.
    known: HashMap<SessionId, Arc<AgentName>>,
    /// The agent of the session that was kept last: many in a row have the same.
    last_agent: Option<Arc<AgentName>>,
    /// Files with several sessions that were kept, each as it was then and with the session that holds it.
    shared: HashMap<PathBuf, (Option<Stamp>, SessionDir)>,
    projects: Projects,
    /// What is written and not acknowledged yet, and whose it is.
    commit: VaultCommit,
    batch: Vec<SessionId>,
    /// Sessions of which something could not be acknowledged.
    failed: HashSet<SessionId>,
    indexer: Indexer,
    /// Whether what is kept goes into the index at once, or waits for the next search.
    pub(crate) is_indexing: bool,
    /// The time of the first entry in all sessions that were kept since traffic was last attributed.
    first_entry: Option<Instant>,
    /// Held by whoever gives names to sessions; there is none before the first is kept.
    lock: Option<File>,
}

/// A session that was kept.
pub(crate) struct Kept {
    pub(crate) dir: SessionDir,
    /// What it is about: its title, or else how its first prompt begins.
    pub(crate) title: Option<String>,
    /// Entries that it has now.
    pub(crate) entries: u64,
    /// Bytes that are new.
    pub(crate) added: u64,
    /// Bytes that it takes in the vault.
    pub(crate) stored: u64,
    /// What of it could not be read.
    pub(crate) problems: ProblemList,
    /// What of it was damaged in the vault, and was kept anew.
    pub(crate) damage: Vec<Problem>,
}

impl Keeper {
    pub(crate) fn new(vault: Vault) -> Result<Self, CommandError> {
        let mut known = HashMap::new();
        for agent in vault.agents()?.iter().filter_map(|agent| agent.parse().ok()).map(Arc::new) {
            vault.each_session_id(&agent, &mut |id| drop(known.insert(id, Arc::clone(&agent))))?;
        }
        let projects = Projects::load(durable::parent(vault.root()));
        let indexer = Indexer::new(durable::parent(vault.root()));
        let commit = vault.commit();
        Ok(Self {
            vault,
            known,
            last_agent: None,
            shared: HashMap::new(),
            projects,
            commit,
            batch: Vec::new(),
            failed: HashSet::new(),
            indexer,
            is_indexing: true,
            first_entry: None,
            lock: None,
        })
    }

    /// Acknowledges what was written: it is on disk when this returns, and goes into the index next.
    pub(crate) fn commit(&mut self) -> Result<(), CommandError> {
        let batch = std::mem::take(&mut self.batch);
        if let Err(error) = self.commit.finish() {
            self.failed.extend(batch);
            self.indexer.discard();
            return Err(error.into());
        }
        Ok(())
    }

    /// The sessions of which something could not be acknowledged since this was last asked.
    pub(crate) fn take_failed(&mut self) -> HashSet<SessionId> {
        std::mem::take(&mut self.failed)
    }

    /// Waits until no other process gives names to sessions.
    fn lock(&mut self) -> Result<(), CommandError> {
        let lock = match self.lock.take() {
            Some(lock) => lock,
            None => {
                let path = self.vault.root().with_file_name("keeping.lock");
                durable::create_private_dir(durable::parent(&path))?;
                durable::remove_leftovers(durable::parent(&path));
                let mut options = durable::private_options();
                options.create(true).append(true).open(&path).on("open", &path)?
            }
        };
        if lock.try_lock().is_err() {
            // Whoever has it may wait for one of the sessions that we hold.
            self.commit()?;
            lock.lock()?;
        }
        self.lock = Some(lock);
        Ok(())
    }

    fn unlock(&self) -> Result<(), CommandError> {
        Ok(self.lock.as_ref().map_or(Ok(()), File::unlock)?)
    }

    /// Whether a session of this id is kept.
    pub(crate) fn has(&self, id: &SessionId) -> bool {
        self.known.contains_key(id)
    }

    /// The kept session of this id, of whichever agent.
    fn known_session(&self, id: &SessionId) -> Option<SessionDir> {
        self.known.get(id).map(|agent| self.vault.session(agent, id))
    }

    /// Remembers that a session is kept.
    fn note_known(&mut self, dir: &SessionDir) -> Result<(), CommandError> {
        if self.known.get(dir.id()).is_none_or(|agent| agent.as_str() != dir.agent()) {
            let same = self.last_agent.take().filter(|agent| agent.as_str() == dir.agent());
            let agent = match same {
                Some(agent) => agent,
                None => Arc::new(dir.agent().parse()?),
            };
            self.last_agent = Some(Arc::clone(&agent));
            self.known.insert(dir.id().clone(), agent);
        }
        Ok(())
    }

    /// The session that is kept from its own files, of one that another file tells of too.
    pub(crate) fn better(&self, found: &Found) -> Option<SessionDir> {
        let native_id = found.bundle.key.as_deref().filter(|_| found.bundle.is_only_told())?;
        let kept = self.known_session(&SessionId::for_native(found.reader.agent, native_id))?;
        Some(kept).filter(|kept| kept.is_only_told().is_ok_and(|is_told| !is_told))
    }

    /// Keeps what is new of a session. It counts once [`Keeper::commit`] or [`Keeper::flush`] has returned.
    pub(crate) fn keep(&mut self, found: &Found) -> Result<Kept, CommandError> {
        let before = stamps(&found.bundle);
        if is_large(&before) {
            self.commit()?;
            self.indexer.put();
        }
        let read = self.read_session(found)?;
        let ReadSession { session, entries, first_entry, prompt, draft, problems } = read;
        self.first_entry = self.first_entry.into_iter().chain(first_entry).min();
        // Two processes must not give one id to two sessions.
        self.lock()?;
        let kept = self.keep_named(&session, &found.bundle);
        if let Some(folder) = &session.project {
            // Only a shortcut for later: what is kept is kept without it.
            let _ = self.projects.note(folder.as_ref());
        }
        self.unlock()?;
        let Written { dir, marker, damage, added, is_more } = kept?;
        let stored = dir.size()?;
        self.note_known(&dir)?;
        let title = session.title.clone().or(prompt);
        let is_read = stamps(&found.bundle) == before && !is_more;
        if let Some(draft) = draft.filter(|_| is_read) {
            let named = Session { id: dir.id().clone(), ..session };
            let named = draft.complete(named);
            self.indexer.add(draft.finish(named, Some(stored)), marker);
        } else if self.is_indexing {
            // More was kept than was read, what it was before tells more, or it is too large to be held.
            self.commit()?;
            self.indexer.add_kept(&dir, marker);
        }
        self.reindex_older_history(found)?;
        self.commit_full_batch()?;
        Ok(Kept { dir, title, entries, added, stored, problems, damage })
    }

    /// Brings an Aider history that version 0.1 kept as one session into the index again: its chats are kept on their own.
    fn reindex_older_history(&mut self, found: &Found) -> Result<(), CommandError> {
        if found.reader.agent != aider::AGENT || !self.is_indexing {
            return Ok(());
        }
        let Some(history) = self.known_session(&aider::id_of_history(&found.bundle.root)) else {
            return Ok(());
        };
        self.commit()?;
        let marker = self.indexer.mark(&history);
        self.indexer.add_kept(&history, marker);
        Ok(())
    }

    /// Reads a session on its way into the vault.
    fn read_session(&self, found: &Found) -> Result<ReadSession, CommandError> {
        let (mut entries, mut problems, mut prompt) = (0, ProblemList::default(), None);
        let mut first_entry: Option<Instant> = None;
        let mut draft = self.is_indexing.then(Draft::default);
        let wanted = if self.is_indexing { Wanted::All } else { Wanted::Counts };
        let bundle = found.bundle.clone().wanting(wanted);
        let read = (found.reader.read)(&bundle, &mut |item| match item {
            Item::Entry(entry) => {
                entries += 1;
                first_entry =
                    first_entry.into_iter().chain(entry.created_at.map(|at| at.instant())).min();
                prompt = prompt.take().or_else(|| beginning(&entry));
                if let Some(open) = &mut draft {
                    open.push(*entry);
                    if open.is_full() {
                        draft = None;
                    }
                }
            }
            Item::Problem(problem) => problems.push(problem),
        });
        let session = match read {
            // What cannot be read is kept all the same: it may be unfinished, or a better reader may come.
            Err(FormatError::File(error)) if is_too_large(&error) => {
                problems.push(Problem::of(&error.path, &error.source));
                unread(found)
            }
            Err(FormatError::Invalid(problem)) => {
                problems.push(problem);
                unread(found)
            }
            other => other?,
        };
        Ok(ReadSession { session, entries, first_entry, prompt, draft, problems })
    }

    /// Acknowledges what was written and puts it into the index, once so much is gathered.
    fn commit_full_batch(&mut self) -> Result<(), CommandError> {
        if self.indexer.is_full() || self.commit.sessions() >= MAX_BATCH {
            self.commit()?;
            self.indexer.put();
        }
        Ok(())
    }

    /// Acknowledges what was written and brings it into the index; what that fails of is taken in by the next search.
    pub(crate) fn flush(&mut self) -> Result<(), CommandError> {
        self.commit()?;
        self.indexer.flush()
    }

    /// Moves traffic that was recorded since the sessions began that were kept, and that belongs to them. `since` leaves
    /// out recordings that ended before.
    pub(crate) fn attribute_traffic(&mut self, since: Option<Instant>) -> Result<(), CommandError> {
        let first = self.first_entry.take().filter(|_| self.is_indexing);
        let Some(from) = first.max(first.and(since)) else { return Ok(()) };
        let span = TimeSpan { from: from.as_millisecond(), to: i64::MAX };
        self.indexer.attribute_traffic(&self.vault, span)
    }

    /// Writes the files of a session into the vault, under the name that they belong to.
    fn keep_named(&mut self, session: &Session, bundle: &Bundle) -> Result<Written, CommandError> {
        let Home { dir, has_all } = self.home(&session.agent, &session.id, bundle)?;
        let marker = self.indexer.mark(&dir);
        let damage = dir.damage()?;
        let is_new = dir.is_empty()?;
        let added = if has_all { 0 } else { self.keep_files(&dir, bundle)? };
        self.batch.push(dir.id().clone());
        if !is_new {
            // Whether more is kept than was found shows in what is listed; and a session that is recorded right now must
            // not wait for others.
            self.commit()?;
        }
        let is_more = has_all || dir.has_more_than(bundle.files().len())?;
        Ok(Written { dir, marker, damage, added, is_more })
    }

    /// Keeps the session's files. One that holds several sessions is kept with the first of them that comes by.
    fn keep_files(&mut self, dir: &SessionDir, bundle: &Bundle) -> Result<u64, CommandError> {
        let Some(file) = bundle.shared_file() else {
            return Ok(dir.keep_all_in(bundle, &mut self.commit)?);
        };
        let now = stamp(file.path());
        if let Some((then, holder)) = self.shared.get(file.path())
            && *then == now
            && holder != dir
        {
            dir.point_to(holder, bundle, &mut self.commit)?;
            return Ok(0);
        }
        let holder = dir.holder()?.filter(SessionDir::exists);
        let grown = match &holder {
            Some(holder) => holder.grow(&file, &mut self.commit)?,
            None => None,
        };
        let (holder, added) = match (holder, grown) {
            (Some(holder), Some(added)) => {
                dir.point_to(&holder, bundle, &mut self.commit)?;
                (holder, added)
            }
            _ => (dir.clone(), dir.keep_all_in(bundle, &mut self.commit)?),
        };
        self.shared.insert(file.path().to_owned(), (now, holder));
        Ok(added)
    }

    /// Where a session belongs. One of the same name from another place goes on with what is kept, if it begins with
    /// that; else it gets a name of its own.
    fn home(&mut self, agent: &str, id: &SessionId, bundle: &Bundle) -> Result<Home, CommandError> {
        let name = agent.parse()?;
        let unread = self.vault.session(&name, &unread_id(agent, bundle));
        if !self.batch.contains(unread.id()) && !unread.is_empty()? {
            return Ok(Home { dir: unread, has_all: false });
        }
        let dir = self.vault.session(&name, id);
        let place = format!("{}\n{id}", bundle.root.to_string_lossy());
        let apart = self.vault.session(&name, &SessionId::for_native(agent, &place));
        if self.batch.contains(id) || self.batch.contains(apart.id()) {
            // Only what is listed can be compared.
            self.commit()?;
        }
        // Of another agent, or kept by another process since we looked.
        let known = self.known_session(id).unwrap_or_else(|| dir.clone());
        let is_own = known.agent() == agent;
        if known.is_empty()? || (is_own && is_kept_from(&known, bundle)?) {
            return Ok(Home { dir, has_all: false });
        }
        if is_own && apart.is_empty()? {
            match known.likeness(bundle)? {
                Likeness::More => return Ok(Home { dir, has_all: false }),
                Likeness::Less => return Ok(Home { dir, has_all: true }),
                // Only what was moved, not copied, has a new place.
                Likeness::Same => {
                    let has_all = known.bundle()?.root.exists();
                    return Ok(Home { dir, has_all });
                }
                Likeness::Other => {}
            }
        }
        Ok(Home { dir: apart, has_all: false })
    }
}

/// A session that was read.
struct ReadSession {
    session: Session,
    entries: u64,
    /// The time of its first entry.
    first_entry: Option<Instant>,
    /// How its first prompt begins.
    prompt: Option<String>,
    /// Its entries for the index; nothing if they do not go there, or are too many to be held.
    draft: Option<Draft>,
    problems: ProblemList,
}

/// A session whose files were written.
struct Written {
    dir: SessionDir,
    marker: Option<Marker>,
    damage: Vec<Problem>,
    /// Bytes that are new.
    added: u64,
    /// Whether more is kept than was found.
    is_more: bool,
}

/// Where a session belongs in the vault.
struct Home {
    dir: SessionDir,
    /// Whether all of it is kept there, from another place.
    has_all: bool,
}

/// How a prompt begins; nothing for any other entry.
fn beginning(entry: &Entry) -> Option<String> {
    let is_prompt = entry.role == Role::User && entry.kind == Kind::Text && entry.source == PRIMARY;
    let line = entry.content.lines().find(|line| !line.trim().is_empty());
    line.filter(|_| is_prompt).map(|line| line.trim().chars().take(TITLE).collect())
}

/// Whether a file can be kept but not read.
fn is_too_large(error: &FileError) -> bool {
    error.source.kind() == ErrorKind::FileTooLarge
}

/// A session that only its place names.
fn unread(found: &Found) -> Session {
    let agent = found.reader.agent;
    Session::new(unread_id(agent, &found.bundle), agent)
}

/// The id of a session that could not be read when it was kept first. It stays its id.
fn unread_id(agent: &str, bundle: &Bundle) -> SessionId {
    let key = bundle.key.as_deref().map(|key| format!("#{key}")).unwrap_or_default();
    SessionId::for_native(agent, &format!("{}{key}", bundle.root.display()))
}

fn is_large(stamps: &[Option<Stamp>]) -> bool {
    stamps.iter().flatten().map(|(size, _)| size).sum::<u64>() > LARGE
}

/// Sizes and times of a session's files.
fn stamps(bundle: &Bundle) -> Vec<Option<Stamp>> {
    bundle.files().iter().map(|source| stamp(source.path())).collect()
}

fn is_kept_from(dir: &SessionDir, bundle: &Bundle) -> Result<bool, CommandError> {
    if !dir.is_imported()? {
        return Ok(false);
    }
    let kept = dir.bundle()?;
    if kept.root == dir.path() {
        // None of its files can be read: nothing says that it is another one.
        return Ok(true);
    }
    // A file that holds several sessions now may have held one when it was kept.
    let is_key = kept.key.is_none() || kept.key == bundle.key;
    Ok(is_key && kept.root.to_string_lossy() == bundle.root.to_string_lossy())
}

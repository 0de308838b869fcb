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
use crate::known_projects::KnownProjects;
use crate::seen_files::{FileStamp, file_stamp};

/// From how many bytes on a session is not held beside others that wait for the index.
const LARGE_SESSION_BYTES: u64 = 8 << 20;

/// How many sessions are acknowledged together.
const MAX_BATCH: usize = 128;

/// How many characters of a prompt stand for a title.
const MAX_TITLE_CHARS: usize = 60;

/// Keeps sessions, each under an id of its own.
pub(crate) struct SessionImporter {
    vault: Vault,
    /// The agent of each kept session. There may be very many, so that no folders are held.
    known_agents: HashMap<SessionId, Arc<AgentName>>,
    /// The agent of the session that was kept last: many in a row have the same.
    last_agent: Option<Arc<AgentName>>,
    /// Files with several sessions that were kept, each as it was then and with the session that holds it.
    shared_files: HashMap<PathBuf, (Option<FileStamp>, SessionDir)>,
    projects: KnownProjects,
    /// What is written and not acknowledged yet, and whose it is.
    vault_commit: VaultCommit,
    batch: Vec<SessionId>,
    /// Sessions of which something could not be acknowledged.
    failed_sessions: HashSet<SessionId>,
    indexer: Indexer,
    /// Whether what is kept goes into the index at once, or waits for the next search.
    pub(crate) is_indexing: bool,
    /// The time of the first entry in all sessions that were kept since traffic was last attributed.
    first_entry: Option<Instant>,
    /// Held by whoever gives names to sessions; there is none before the first is kept.
    name_lock: Option<File>,
}

/// A session that was kept.
pub(crate) struct ImportedSession {
    pub(crate) dir: SessionDir,
    /// What it is about: its title, or else how its first prompt begins.
    pub(crate) title: Option<String>,
    /// Entries that it has now.
    pub(crate) entries: u64,
    /// Bytes that are new.
    pub(crate) bytes_added: u64,
    /// Bytes that it takes in the vault.
    pub(crate) bytes_stored: u64,
    /// What of it could not be read.
    pub(crate) problems: ProblemList,
    /// What of it was damaged in the vault, and was kept anew.
    pub(crate) damage: Vec<Problem>,
}

impl SessionImporter {
    pub(crate) fn new(vault: Vault) -> Result<Self, CommandError> {
        let mut known = HashMap::new();
        for agent in vault.agents()?.iter().filter_map(|agent| agent.parse().ok()).map(Arc::new) {
            vault.each_session_id(&agent, &mut |id| drop(known.insert(id, Arc::clone(&agent))))?;
        }
        let projects = KnownProjects::load(durable::parent(vault.root()));
        let indexer = Indexer::new(durable::parent(vault.root()));
        let commit = vault.commit();
        Ok(Self {
            vault,
            known_agents: known,
            last_agent: None,
            shared_files: HashMap::new(),
            projects,
            vault_commit: commit,
            batch: Vec::new(),
            failed_sessions: HashSet::new(),
            indexer,
            is_indexing: true,
            first_entry: None,
            name_lock: None,
        })
    }

    /// Acknowledges what was written: it is on disk when this returns, and goes into the index next.
    pub(crate) fn commit(&mut self) -> Result<(), CommandError> {
        let batch = std::mem::take(&mut self.batch);
        if let Err(error) = self.vault_commit.finish() {
            self.failed_sessions.extend(batch);
            self.indexer.discard();
            return Err(error.into());
        }
        Ok(())
    }

    /// The sessions of which something could not be acknowledged since this was last asked.
    pub(crate) fn take_failed(&mut self) -> HashSet<SessionId> {
        std::mem::take(&mut self.failed_sessions)
    }

    /// Waits until no other process gives names to sessions.
    fn lock_names(&mut self) -> Result<(), CommandError> {
        let lock = match self.name_lock.take() {
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
        self.name_lock = Some(lock);
        Ok(())
    }

    fn unlock_names(&self) -> Result<(), CommandError> {
        Ok(self.name_lock.as_ref().map_or(Ok(()), File::unlock)?)
    }

    /// Whether a session of this id is kept.
    pub(crate) fn has_session(&self, id: &SessionId) -> bool {
        self.known_agents.contains_key(id)
    }

    /// The kept session of this id, of whichever agent.
    fn known_session(&self, id: &SessionId) -> Option<SessionDir> {
        self.known_agents.get(id).map(|agent| self.vault.session(agent, id))
    }

    /// Remembers that a session is kept.
    fn remember_session(&mut self, dir: &SessionDir) -> Result<(), CommandError> {
        if self.known_agents.get(dir.id()).is_none_or(|agent| agent.as_str() != dir.agent()) {
            let same = self.last_agent.take().filter(|agent| agent.as_str() == dir.agent());
            let agent = match same {
                Some(agent) => agent,
                None => Arc::new(dir.agent().parse()?),
            };
            self.last_agent = Some(Arc::clone(&agent));
            self.known_agents.insert(dir.id().clone(), agent);
        }
        Ok(())
    }

    /// The session that is kept from its own files, of one that another file tells of too.
    pub(crate) fn find_better_copy(&self, found: &Found) -> Option<SessionDir> {
        let native_id = found.bundle.key.as_deref().filter(|_| found.bundle.is_only_told())?;
        let kept = self.known_session(&SessionId::for_native(found.reader.agent, native_id))?;
        Some(kept).filter(|kept| kept.is_only_told().is_ok_and(|is_told| !is_told))
    }

    /// Keeps what is new of a session. It counts once [`Keeper::commit`] or [`Keeper::flush`] has returned.
    pub(crate) fn import(&mut self, found: &Found) -> Result<ImportedSession, CommandError> {
        let before = file_stamps(&found.bundle);
        if is_large_session(&before) {
            self.commit()?;
            self.indexer.write_batch();
        }
        let read = self.read_session(found)?;
        let ReadSession { session, entries, first_entry, prompt, draft, problems } = read;
        self.first_entry = self.first_entry.into_iter().chain(first_entry).min();
        // Two processes must not give one id to two sessions.
        self.lock_names()?;
        let kept = self.write_session(&session, &found.bundle);
        if let Some(folder) = &session.project {
            // Only a shortcut for later: what is kept is kept without it.
            let _ = self.projects.note_repository(folder.as_ref());
        }
        self.unlock_names()?;
        let WrittenSession { dir, marker, damage, bytes_added: added, is_more } = kept?;
        let stored = dir.size()?;
        self.remember_session(&dir)?;
        let title = session.title.clone().or(prompt);
        let is_read = file_stamps(&found.bundle) == before && !is_more;
        if let Some(draft) = draft.filter(|_| is_read) {
            let named = Session { id: dir.id().clone(), ..session };
            let named = draft.complete(named);
            self.indexer.add_prepared(draft.finish(named, Some(stored)), marker);
        } else if self.is_indexing {
            // More was kept than was read, what it was before tells more, or it is too large to be held.
            self.commit()?;
            self.indexer.add_from_vault(&dir, marker);
        }
        self.reindex_older_history(found)?;
        self.commit_full_batch()?;
        Ok(ImportedSession {
            dir,
            title,
            entries,
            bytes_added: added,
            bytes_stored: stored,
            problems,
            damage,
        })
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
        self.indexer.add_from_vault(&history, marker);
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
                prompt = prompt.take().or_else(|| prompt_start(&entry));
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
            Err(FormatError::File(error)) if is_file_too_large(&error) => {
                problems.push(Problem::of(&error.path, &error.source));
                unread_session(found)
            }
            Err(FormatError::Invalid(problem)) => {
                problems.push(problem);
                unread_session(found)
            }
            other => other?,
        };
        Ok(ReadSession { session, entries, first_entry, prompt, draft, problems })
    }

    /// Acknowledges what was written and puts it into the index, once so much is gathered.
    fn commit_full_batch(&mut self) -> Result<(), CommandError> {
        if self.indexer.is_full() || self.vault_commit.sessions() >= MAX_BATCH {
            self.commit()?;
            self.indexer.write_batch();
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
    fn write_session(
        &mut self,
        session: &Session,
        bundle: &Bundle,
    ) -> Result<WrittenSession, CommandError> {
        let SessionDestination { dir, is_complete: has_all } =
            self.find_destination(&session.agent, &session.id, bundle)?;
        let marker = self.indexer.mark(&dir);
        let damage = dir.damage()?;
        let is_new = dir.is_empty()?;
        let added = if has_all { 0 } else { self.write_files(&dir, bundle)? };
        self.batch.push(dir.id().clone());
        if !is_new {
            // Whether more is kept than was found shows in what is listed; and a session that is recorded right now must
            // not wait for others.
            self.commit()?;
        }
        let is_more = has_all || dir.has_more_than(bundle.files().len())?;
        Ok(WrittenSession { dir, marker, damage, bytes_added: added, is_more })
    }

    /// Keeps the session's files. One that holds several sessions is kept with the first of them that comes by.
    fn write_files(&mut self, dir: &SessionDir, bundle: &Bundle) -> Result<u64, CommandError> {
        let Some(file) = bundle.shared_file() else {
            return Ok(dir.keep_all_in(bundle, &mut self.vault_commit)?);
        };
        let now = file_stamp(file.path());
        if let Some((then, holder)) = self.shared_files.get(file.path())
            && *then == now
            && holder != dir
        {
            dir.point_to(holder, bundle, &mut self.vault_commit)?;
            return Ok(0);
        }
        let holder = dir.holder()?.filter(SessionDir::exists);
        let grown = match &holder {
            Some(holder) => holder.grow(&file, &mut self.vault_commit)?,
            None => None,
        };
        let (holder, added) = match (holder, grown) {
            (Some(holder), Some(added)) => {
                dir.point_to(&holder, bundle, &mut self.vault_commit)?;
                (holder, added)
            }
            _ => (dir.clone(), dir.keep_all_in(bundle, &mut self.vault_commit)?),
        };
        self.shared_files.insert(file.path().to_owned(), (now, holder));
        Ok(added)
    }

    /// Where a session belongs. One of the same name from another place goes on with what is kept, if it begins with
    /// that; else it gets a name of its own.
    fn find_destination(
        &mut self,
        agent: &str,
        id: &SessionId,
        bundle: &Bundle,
    ) -> Result<SessionDestination, CommandError> {
        let name = agent.parse()?;
        let unread = self.vault.session(&name, &unread_id(agent, bundle));
        if !self.batch.contains(unread.id()) && !unread.is_empty()? {
            return Ok(SessionDestination { dir: unread, is_complete: false });
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
        if known.is_empty()? || (is_own && is_imported_from(&known, bundle)?) {
            return Ok(SessionDestination { dir, is_complete: false });
        }
        if is_own && apart.is_empty()? {
            match known.likeness(bundle)? {
                Likeness::More => return Ok(SessionDestination { dir, is_complete: false }),
                Likeness::Less => return Ok(SessionDestination { dir, is_complete: true }),
                // Only what was moved, not copied, has a new place.
                Likeness::Same => {
                    let has_all = known.bundle()?.root.exists();
                    return Ok(SessionDestination { dir, is_complete: has_all });
                }
                Likeness::Other => {}
            }
        }
        Ok(SessionDestination { dir: apart, is_complete: false })
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
struct WrittenSession {
    dir: SessionDir,
    marker: Option<Marker>,
    damage: Vec<Problem>,
    /// Bytes that are new.
    bytes_added: u64,
    /// Whether more is kept than was found.
    is_more: bool,
}

/// Where a session belongs in the vault.
struct SessionDestination {
    dir: SessionDir,
    /// Whether all of it is kept there, from another place.
    is_complete: bool,
}

/// How a prompt begins; nothing for any other entry.
fn prompt_start(entry: &Entry) -> Option<String> {
    let is_prompt = entry.role == Role::User && entry.kind == Kind::Text && entry.source == PRIMARY;
    let line = entry.content.lines().find(|line| !line.trim().is_empty());
    line.filter(|_| is_prompt).map(|line| line.trim().chars().take(MAX_TITLE_CHARS).collect())
}

/// Whether a file can be kept but not read.
fn is_file_too_large(error: &FileError) -> bool {
    error.source.kind() == ErrorKind::FileTooLarge
}

/// A session that only its place names.
fn unread_session(found: &Found) -> Session {
    let agent = found.reader.agent;
    Session::new(unread_id(agent, &found.bundle), agent)
}

/// The id of a session that could not be read when it was kept first. It stays its id.
fn unread_id(agent: &str, bundle: &Bundle) -> SessionId {
    let key = bundle.key.as_deref().map(|key| format!("#{key}")).unwrap_or_default();
    SessionId::for_native(agent, &format!("{}{key}", bundle.root.display()))
}

fn is_large_session(stamps: &[Option<FileStamp>]) -> bool {
    stamps.iter().flatten().map(|(size, _)| size).sum::<u64>() > LARGE_SESSION_BYTES
}

/// Sizes and times of a session's files.
fn file_stamps(bundle: &Bundle) -> Vec<Option<FileStamp>> {
    bundle.files().iter().map(|source| file_stamp(source.path())).collect()
}

fn is_imported_from(dir: &SessionDir, bundle: &Bundle) -> Result<bool, CommandError> {
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

//! The store: its size, its index, the last sync and the free space.

use std::fs;
use std::path::{Path, PathBuf};

use jiff::Timestamp;
use serde::Serialize;
use steno_store::index::{AgentSummary, Index, IndexError, SessionFacet};

use crate::byte_size::ByteSize;
use crate::commands::cost::budgets::describe_unknown_project;
use crate::config::Config;
use crate::error::CommandError;
use crate::process_environment::ProcessEnvironment;
use crate::session_store::SessionStore;
use crate::sync_state::LastSync;
use crate::ui::count_noun;

/// With less free space, the next recordings may fail.
const MIN_FREE_BYTES: u64 = 200_000_000;

/// The state of the store.
#[derive(Debug, Serialize)]
pub(crate) struct StoreReport {
    path: PathBuf,
    exists: bool,
    /// Sessions with entries.
    pub(crate) sessions: u64,
    /// Recordings without entries, and sessions that cannot be read.
    empty_sessions: u64,
    bytes: u64,
    free_bytes: Option<u64>,
    last_sync: Option<String>,
    index: IndexState,
    /// Sessions that are kept and not in the index yet.
    missing_in_index: usize,
    damaged_sessions: usize,
    #[serde(skip)]
    errors: Vec<String>,
}

/// The state of the index.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
enum IndexState {
    /// There is none; the next command builds it.
    Absent,
    /// It has all sessions.
    Current,
    /// The next command adds sessions.
    Behind,
    /// It cannot be read.
    Unreadable,
}

impl StoreReport {
    /// Collects the state of the store, and the sessions of each agent.
    pub(crate) fn collect(env: &ProcessEnvironment) -> (Self, Vec<AgentSummary>) {
        let store = &env.store;
        let mut report = Self {
            path: store.clone(),
            exists: store.is_dir(),
            sessions: 0,
            empty_sessions: 0,
            bytes: folder_size(store),
            free_bytes: free_space(store),
            last_sync: LastSync::load(store).map(|last| last.finished.to_string()),
            index: IndexState::Absent,
            missing_in_index: 0,
            damaged_sessions: 0,
            errors: Vec::new(),
        };
        let settings = Config::load(env).and_then(|config| config.check_all(&env.home));
        report.errors.extend(settings.err().map(|error| error.to_line()));
        let summaries = match Index::open_read_only(store) {
            Ok(index) => report.read_index(env, &index),
            Err(IndexError::Absent(_)) => report.read_vault(env),
            Err(error) => Err(error.into()),
        };
        let summaries = summaries.unwrap_or_else(|error| {
            report.index = IndexState::Unreadable;
            report.errors.push(error.to_line());
            Vec::new()
        });
        (report, summaries)
    }

    fn read_index(
        &mut self,
        env: &ProcessEnvironment,
        index: &Index,
    ) -> Result<Vec<AgentSummary>, CommandError> {
        let vault = SessionStore::new(env).vault;
        let boot = ProcessEnvironment::boot_id();
        let summaries = index.summarize_agents()?;
        self.sessions = summaries.iter().map(|summary| summary.sessions).sum();
        self.empty_sessions = summaries.iter().map(|summary| summary.empty_sessions).sum();
        self.damaged_sessions = index.damaged_sessions(usize::MAX >> 1)?.len();
        self.missing_in_index = index.count_missing(&vault, boot.as_deref())?;
        let projects = index.facet_values(SessionFacet::Project)?;
        let folders: Vec<&str> = projects.iter().map(String::as_str).collect();
        // Mistakes in the settings are reported with those of all tables.
        let limits = Config::load(env).and_then(|config| config.budgets()).unwrap_or_default();
        let unknown = limits.unknown_projects(&folders);
        self.errors.extend(unknown.iter().map(describe_unknown_project));
        let is_behind = self.missing_in_index > 0;
        self.index = if is_behind { IndexState::Behind } else { IndexState::Current };
        Ok(summaries)
    }

    /// Counts the sessions without an index, which knows their messages.
    fn read_vault(&mut self, env: &ProcessEnvironment) -> Result<Vec<AgentSummary>, CommandError> {
        let vault = SessionStore::new(env).vault;
        let mut summaries = Vec::new();
        for agent in vault.list_agents()? {
            let (mut sessions, empty_sessions, last_activity) = (0, 0, None);
            for session in vault.list_agent_sessions(&agent)? {
                sessions += u64::from(!session.is_empty()?);
            }
            summaries.push(AgentSummary { agent, sessions, empty_sessions, last_activity });
        }
        self.sessions = summaries.iter().map(|summary| summary.sessions).sum();
        self.missing_in_index = usize::try_from(self.sessions).unwrap_or(usize::MAX);
        Ok(summaries)
    }

    /// Returns whether sessions in the store are damaged.
    pub(crate) fn has_damage(&self) -> bool {
        self.damaged_sessions > 0
    }

    /// Returns what is wrong.
    pub(crate) fn find_problems(&self) -> Vec<String> {
        let mut problems = self.errors.clone();
        if self.path.exists() && !self.exists {
            problems.push(format!("the store is not a folder: {}", self.path.display()));
        }
        let folders = [self.path.clone(), self.path.join("vault")];
        if let Some(folder) = folders.iter().find(|folder| !is_writable(folder)) {
            problems.push(format!("the store cannot be written: {}", folder.display()));
        }
        if self.damaged_sessions > 0 {
            let sessions = count_noun(self.damaged_sessions as u64, "session");
            problems.push(format!("{sessions} cannot be read completely"));
        }
        if let Some(free) = self.free_bytes.filter(|free| *free < MIN_FREE_BYTES) {
            let free = ByteSize(free);
            problems.push(format!("only {free} left on the disk of {}", self.path.display()));
        }
        problems
    }

    pub(crate) fn render_text(&self, env: &ProcessEnvironment) -> String {
        let path = shorten_home(&self.path, env);
        let free = self.free_bytes.map(|free| format!(", {} free", ByteSize(free)));
        let free = free.unwrap_or_default();
        let mut text = if self.exists {
            let sessions = count_noun(self.sessions, "session");
            format!("store: {path}: {sessions}, {}{free}\n", ByteSize(self.bytes))
        } else {
            format!("store: {path}: not created yet{free}\n")
        };
        if self.empty_sessions > 0 {
            text.push_str(&format!("       {} without entries\n", self.empty_sessions));
        }
        let last = self.last_sync.as_deref().and_then(|last| last.parse::<Timestamp>().ok());
        let last = last.map_or_else(|| "never".to_owned(), format_age);
        text.push_str(&format!("last sync: {last}\n"));
        let index = match self.index {
            IndexState::Absent if self.sessions > 0 => {
                "not built yet; the next search builds it".to_owned()
            }
            IndexState::Absent => "not built yet".to_owned(),
            IndexState::Current => "up to date".to_owned(),
            IndexState::Behind => {
                let sessions = count_noun(self.missing_in_index as u64, "session");
                format!("{sessions} missing; the next search adds them")
            }
            IndexState::Unreadable => "cannot be read".to_owned(),
        };
        text.push_str(&format!("index: {index}\n"));
        text
    }
}

/// Shortens a path in the home folder.
pub(crate) fn shorten_home(path: &Path, env: &ProcessEnvironment) -> String {
    match path.strip_prefix(&env.home) {
        Ok(below) => format!("~/{}", below.display()),
        Err(_) => path.display().to_string(),
    }
}

/// Formats the time since a moment: `3 minutes ago`.
fn format_age(at: Timestamp) -> String {
    let seconds = Timestamp::now().duration_since(at).as_secs().max(0).unsigned_abs();
    match seconds {
        0..120 => "just now".to_owned(),
        120..7200 => format!("{} ago", count_noun(seconds / 60, "minute")),
        7200..172_800 => format!("{} ago", count_noun(seconds / 3600, "hour")),
        _ => format!("{} ago", count_noun(seconds / 86_400, "day")),
    }
}

/// Returns the size of all files below a folder.
fn folder_size(folder: &Path) -> u64 {
    let entries = fs::read_dir(folder).into_iter().flatten().flatten();
    let sizes = entries.filter_map(|entry| {
        let metadata = entry.metadata().ok()?;
        Some(if metadata.is_dir() { folder_size(&entry.path()) } else { metadata.len() })
    });
    sizes.sum()
}

/// Returns whether this user may write to a folder. One that does not exist can be created.
fn is_writable(folder: &Path) -> bool {
    #[cfg(unix)]
    return !folder.is_dir()
        || rustix::fs::access(folder, rustix::fs::Access::WRITE_OK | rustix::fs::Access::EXEC_OK)
            .is_ok();
    #[cfg(not(unix))]
    return !fs::metadata(folder).is_ok_and(|found| found.permissions().readonly());
}

/// Returns the free space for this user on the disk of a folder, which may not exist yet.
fn free_space(folder: &Path) -> Option<u64> {
    let existing = folder.ancestors().find(|folder| folder.exists())?;
    #[cfg(unix)]
    return rustix::fs::statvfs(existing).ok().map(|disk| disk.f_bavail * disk.f_frsize);
    #[cfg(not(unix))]
    {
        let _ = existing;
        None
    }
}

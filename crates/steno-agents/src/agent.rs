//! What Steno knows about one agent, protocol or interchange format.
//!
//! Each has an [`Agent`] in its own folder; [`crate::registry`] lists them. This module knows none of them.

pub mod continuation;
pub mod hooks;
pub mod launch;
pub mod mcp_client;
pub mod nearby;
pub mod record_format;
pub mod resume;
pub mod session_headers;
pub mod user_folders;

use std::path::{Path, PathBuf};

use steno_model::session::SessionId;
use steno_vault::DatabaseSchemas;

use self::continuation::ContinuationRule;
use self::hooks::AgentHooks;
use self::launch::AgentLaunch;
use self::mcp_client::McpClient;
use self::nearby::NearbyRules;
use self::record_format::RecordFormat;
use self::resume::ResumeRule;
use self::session_headers::SessionHeaders;
use self::user_folders::UserFolders;
use crate::reader::FormatReader;

/// All that is known about an agent. Most agents lack most of it: `..Agent::new(..)` gives the fields of an agent with
/// a reader only.
#[derive(Debug)]
pub struct Agent {
    /// The name for people, as its makers write it.
    pub display_name: &'static str,
    /// Finds and reads its sessions. The reader has the name under which they are stored.
    pub reader: &'static FormatReader,
    /// The version of what the reader finds and decodes. Raise it with each change of that: the index is then rebuilt,
    /// and files seen before are checked again.
    pub reader_version: u32,
    /// The folders and files in a user's home folder that have its sessions. They may not exist.
    pub locations: fn(&UserFolders<'_>) -> Vec<PathBuf>,
    /// The folders and files in these project folders that have its sessions. They may not exist.
    pub project_locations: fn(&UserFolders<'_>, &[PathBuf]) -> Vec<PathBuf>,
    /// Folders relative to the home folder with programs of the agent. Nothing is ever restored to them.
    pub program_folders: &'static [&'static str],
    /// How the files of a session are found from one of them.
    pub nearby: NearbyRules,
    /// Recognises its records, one per line, without their file name.
    pub lines: Option<RecordFormat>,
    /// Recognises a session that is one document, without its file name.
    pub document: Option<RecordFormat>,
    /// The schemas of its databases.
    pub database_schemas: DatabaseSchemas,
    /// How it resumes a session.
    pub resume: Option<ResumeRule>,
    /// How its sessions are written, so that it continues those of other agents.
    pub continuation: Option<ContinuationRule>,
    /// How it calls Steno.
    pub hooks: Option<AgentHooks>,
    /// How it reaches servers of the Model Context Protocol.
    pub mcp_client: Option<McpClient>,
    /// How Steno runs it.
    pub launch: Option<AgentLaunch>,
    /// A word in the names of its program and adapters, by which a connection of the Agent Client Protocol shows it.
    pub acp_word: Option<&'static str>,
    /// How its requests name their session.
    pub session_headers: Option<SessionHeaders>,
    /// Whether names of its session files contain the session's id.
    pub is_session_in_file_name: bool,
    /// Whether it reports the tokens of a session together with those of subagents in the same file.
    pub bills_subagents_together: bool,
    /// The id under which an earlier version of Steno stored all sessions of a file as one.
    pub earlier_session_id: Option<fn(&Path) -> SessionId>,
}

impl Agent {
    /// An agent of which only the files are known.
    pub const fn new(display_name: &'static str, reader: &'static FormatReader) -> Self {
        Self {
            display_name,
            reader,
            reader_version: 1,
            locations: |_| Vec::new(),
            project_locations: |_, _| Vec::new(),
            program_folders: &[],
            nearby: NearbyRules::NONE,
            lines: None,
            document: None,
            database_schemas: &[],
            resume: None,
            continuation: None,
            hooks: None,
            mcp_client: None,
            launch: None,
            acp_word: None,
            session_headers: None,
            is_session_in_file_name: true,
            bills_subagents_together: false,
            earlier_session_id: None,
        }
    }

    /// The name under which its sessions are stored.
    pub const fn name(&self) -> &'static str {
        self.reader.agent
    }
}

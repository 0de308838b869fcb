//! Where an agent's settings list servers of the Model Context Protocol, and where it reads skills.

use std::path::PathBuf;

use super::user_folders::UserFolders;

/// How to register an MCP server with an agent.
#[derive(Debug)]
pub struct McpClient {
    /// Where it reads its settings. The files may not exist.
    pub locations: fn(&UserFolders<'_>) -> Vec<McpClientLocation>,
    /// How the settings list servers.
    pub shape: McpServerShape,
}

/// The settings of one installation of an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct McpClientLocation {
    /// The agent's folder. It exists if the agent is installed.
    pub folder: PathBuf,
    /// The settings file.
    pub settings: PathBuf,
    /// The folder of its skills, each in a folder of its own.
    pub skills: Option<PathBuf>,
}

impl McpClientLocation {
    /// An agent with settings and skills in its own folder.
    pub fn in_folder(folder: PathBuf, settings_file: &str) -> Self {
        let (settings, skills) = (folder.join(settings_file), Some(folder.join("skills")));
        Self { folder, settings, skills }
    }
}

/// The format of a server in the settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum McpServerShape {
    /// `mcpServers.NAME` has `command` and `args`, after a `type` of this name.
    Servers {
        /// The transport's name, if the agent wants one.
        kind: Option<&'static str>,
        /// Whether it lists the allowed tools.
        lists_tools: bool,
    },
    /// `context_servers.NAME` has `source`, `command` and `args`.
    ContextServers,
    /// `mcp.NAME` has the program and its arguments in one list.
    CommandList,
    /// The TOML table `mcp_servers.NAME` has `command` and `args`.
    TomlTable,
}

impl McpServerShape {
    /// `mcpServers.NAME` has `command` and `args`.
    pub const PLAIN_SERVERS: Self = Self::Servers { kind: None, lists_tools: false };
}

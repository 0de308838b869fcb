//! Paths where agents keep their sessions, and the environment variables that change them.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;

/// A folder or file in which an agent keeps sessions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionLocation {
    /// The agent.
    pub agent: &'static str,
    /// The folder or file. It may not exist.
    pub path: PathBuf,
}

/// All known locations for a user with this home folder and these environment variables.
pub fn session_locations(
    home: &Path,
    variable: &dyn Fn(&str) -> Option<OsString>,
) -> Vec<SessionLocation> {
    let user = UserFolders { home, variable };
    let mut locations = Vec::new();
    let mut add = |agent, path: PathBuf| locations.push(SessionLocation { agent, path });
    user.add_terminal_agents(&mut add);
    user.add_data_folders(&mut add);
    user.add_editors(&mut add);
    locations
}

/// Locations in project folders: in `projects`, and in those that Crush lists.
pub fn project_locations(
    projects: &[PathBuf],
    home: &Path,
    variable: &dyn Fn(&str) -> Option<OsString>,
) -> Vec<SessionLocation> {
    let user = UserFolders { home, variable };
    let mut locations = Vec::new();
    let mut add = |agent, path: PathBuf| locations.push(SessionLocation { agent, path });
    let history =
        variable(AIDER_HISTORY_VARIABLE).unwrap_or_else(|| ".aider.chat.history.md".into());
    for project in projects {
        add(super::aider::AGENT, project.join(&history));
        add(super::crush::AGENT, project.join(".crush"));
    }
    for project in user.crush_projects() {
        add(super::crush::AGENT, project.path.join(project.data_dir));
    }
    locations
}

/// The settings folders of agents that support hooks, for a user with this home folder and these variables.
pub fn settings_folders(
    home: &Path,
    variable: &dyn Fn(&str) -> Option<OsString>,
) -> Vec<SessionLocation> {
    let user = UserFolders { home, variable };
    let mut locations = Vec::new();
    let mut add = |agent, path: PathBuf| locations.push(SessionLocation { agent, path });
    // Claude Code reads its settings from no other folder.
    for config in
        user.claude_folders().into_iter().filter(|path| *path != home.join(".config/claude"))
    {
        add(super::claude_code::AGENT, config);
    }
    add(super::codex::AGENT, user.folder_or_default("CODEX_HOME", ".codex"));
    add(super::gemini::AGENT, user.folder_or_default("GEMINI_CLI_HOME", "").join(".gemini"));
    add(super::qwen::AGENT, user.folder_or_default("QWEN_HOME", ".qwen"));
    add(super::copilot::AGENT, user.folder_or_default("COPILOT_HOME", ".copilot"));
    add(super::cursor::AGENT, home.join(".cursor"));
    locations
}

/// Crush's list of the projects it was used in.
#[derive(Deserialize)]
struct CrushProjects {
    projects: Vec<CrushProject>,
}

#[derive(Deserialize)]
struct CrushProject {
    path: PathBuf,
    data_dir: PathBuf,
}

/// The variable with the path of Aider's history, absolute or relative to the project.
const AIDER_HISTORY_VARIABLE: &str = "AIDER_CHAT_HISTORY_FILE";

/// Folder names of VS Code and of editors built from it.
const VSCODE_EDITORS: [&str; 11] = [
    "Code",
    "Code - Insiders",
    "Code - OSS",
    "VSCodium",
    "Cursor",
    "Windsurf",
    "Windsurf - Next",
    "Void",
    "Trae",
    "Kiro",
    "Antigravity",
];

/// Adds a location of an agent.
type AddLocation<'a> = &'a mut dyn FnMut(&'static str, PathBuf);

struct UserFolders<'a> {
    home: &'a Path,
    variable: &'a dyn Fn(&str) -> Option<OsString>,
}

impl UserFolders<'_> {
    /// Adds the agents with their own folder in the home folder.
    fn add_terminal_agents(&self, add: AddLocation<'_>) {
        let home = self.home;
        for config in self.claude_folders() {
            add(super::claude_code::AGENT, config.join("projects"));
            add(super::claude_code::AGENT, config.join("history.jsonl"));
        }
        let codex = self.folder_or_default("CODEX_HOME", ".codex");
        add(super::codex::AGENT, codex.join("sessions"));
        add(super::codex::AGENT, codex.join("archived_sessions"));
        add(super::codex::AGENT, codex.join("history.jsonl"));
        add(
            super::gemini::AGENT,
            self.folder_or_default("GEMINI_CLI_HOME", "").join(".gemini/tmp"),
        );
        let qwen = self.first_folder_or_default(&["QWEN_RUNTIME_DIR", "QWEN_HOME"], ".qwen");
        add(super::qwen::AGENT, qwen.join("projects"));
        add(super::qwen::AGENT, qwen.join("tmp"));
        let copilot = self.folder_or_default("COPILOT_HOME", ".copilot");
        add(super::copilot::AGENT, copilot.join("session-state"));
        add(super::copilot::AGENT, copilot.join("history-session-state"));
        add(super::cursor::AGENT, home.join(".cursor/projects"));
        add(super::cursor::AGENT, home.join(".cursor/chats"));
        add(super::droid::AGENT, home.join(".factory/sessions"));
        add(
            super::pi::AGENT,
            self.folder_or_default("PI_CODING_AGENT_DIR", ".pi/agent").join("sessions"),
        );
        add(super::pi::AGENT, home.join(".omp/agent/sessions"));
        self.path_variable("PI_SESSIONS_DIR")
            .into_iter()
            .for_each(|path| add(super::pi::AGENT, path));
        add(
            super::kimi::AGENT,
            self.folder_or_default("KIMI_CODE_HOME", ".kimi-code").join("sessions"),
        );
        add(super::kimi::AGENT, self.folder_or_default("KIMI_SHARE_DIR", ".kimi").join("sessions"));
        add(super::vibe::AGENT, self.folder_or_default("VIBE_HOME", ".vibe").join("logs/session"));
        let cline = self.path_variable("CLINE_DATA_DIR");
        let cline =
            cline.unwrap_or_else(|| self.folder_or_default("CLINE_DIR", ".cline").join("data"));
        add(super::cline::AGENT, cline.join("tasks"));
        let sessions = self.path_variable("CLINE_SESSION_DATA_DIR");
        add(super::cline::AGENT, sessions.unwrap_or_else(|| cline.join("sessions")));
        add(super::goose::AGENT, home.join(".goose/sessions"));
        // A relative path is searched in each project instead.
        let aider = self.path_variable(AIDER_HISTORY_VARIABLE).filter(|path| path.is_absolute());
        aider.into_iter().for_each(|path| add(super::aider::AGENT, path));
    }

    /// Adds the agents with data in the system's data folders.
    fn add_data_folders(&self, add: AddLocation<'_>) {
        let (data, library) = (self.data_folder(), self.home.join("Library/Application Support"));
        add(super::claude_code::AGENT, library.join("Claude/local-agent-mode-sessions"));
        add(super::opencode::AGENT, data.join("opencode"));
        // A relative path is in the data folder, which is already searched.
        let database = self.path_variable("OPENCODE_DB").filter(|path| path.is_absolute());
        database.into_iter().for_each(|path| add(super::opencode::AGENT, path));
        let amp = self.path_variable("AMP_DATA_DIR").unwrap_or_else(|| data.join("amp"));
        add(super::amp::AGENT, amp.join("threads"));
        let goose = self.path_variable("GOOSE_PATH_ROOT").map(|root| root.join("data"));
        add(super::goose::AGENT, goose.unwrap_or_else(|| data.join("goose")).join("sessions"));
        let flatpak = self.path_variable("FLATPAK_XDG_DATA_HOME");
        for base in flatpak.into_iter().chain([data]) {
            add(super::zed::AGENT, base.join("zed/threads"));
        }
        add(super::zed::AGENT, library.join("Zed/threads"));
    }

    /// Adds editors and the agents built into them.
    fn add_editors(&self, add: AddLocation<'_>) {
        for editor in self.editor_folders_named(&["Cursor"]) {
            // Its folder also has files of many extensions.
            add(super::cursor::AGENT, editor.join("globalStorage/state.vscdb"));
            add(super::cursor::AGENT, editor.join("workspaceStorage"));
        }
        for editor in self.editor_folders() {
            let global = editor.join("globalStorage");
            add(super::amp::AGENT, global.join("sourcegraph.amp/threads3"));
            add(super::cline::AGENT, global.join("saoudrizwan.claude-dev/tasks"));
            add(super::cline::AGENT, global.join("rooveterinaryinc.roo-cline/tasks"));
            add(super::vscode_chat::AGENT, editor.join("workspaceStorage"));
            add(super::vscode_chat::AGENT, global.join("state.vscdb"));
            for kind in ["emptyWindowChatSessions", "transferredChatSessions"] {
                add(super::vscode_chat::AGENT, global.join(kind));
            }
        }
    }

    /// The path in a variable.
    fn path_variable(&self, variable: &str) -> Option<PathBuf> {
        (self.variable)(variable).map(PathBuf::from)
    }

    /// The folder in a variable, or else one below the home folder.
    fn folder_or_default(&self, variable: &str, usual: &str) -> PathBuf {
        self.first_folder_or_default(&[variable], usual)
    }

    fn first_folder_or_default(&self, variables: &[&str], usual: &str) -> PathBuf {
        let named = variables.iter().find_map(|name| (self.variable)(name));
        named.map_or_else(|| self.home.join(usual), PathBuf::from)
    }

    fn data_folder(&self) -> PathBuf {
        self.folder_or_default("XDG_DATA_HOME", ".local/share")
    }

    /// Claude Code's folders. The variable may list several, separated by commas.
    fn claude_folders(&self) -> Vec<PathBuf> {
        match (self.variable)("CLAUDE_CONFIG_DIR") {
            Some(named) => {
                named.to_string_lossy().split(',').map(|part| part.trim().into()).collect()
            }
            None => vec![self.home.join(".claude"), self.home.join(".config/claude")],
        }
    }

    /// The projects that Crush lists. Empty if there is no list.
    fn crush_projects(&self) -> Vec<CrushProject> {
        let data = (self.variable)("CRUSH_GLOBAL_DATA");
        let data = data.map_or_else(|| self.data_folder().join("crush"), PathBuf::from);
        let bytes = fs::read(data.join("projects.json")).ok();
        let noted = bytes.and_then(|bytes| serde_json::from_slice::<CrushProjects>(&bytes).ok());
        noted.map(|noted| noted.projects).unwrap_or_default()
    }

    /// The `User` folders of VS Code and related editors.
    fn editor_folders(&self) -> Vec<PathBuf> {
        let mut editors = self.editor_folders_named(&VSCODE_EDITORS);
        editors.push(self.home.join(".vscode-server/data/User"));
        editors
    }

    fn editor_folders_named(&self, names: &[&str]) -> Vec<PathBuf> {
        let bases = [self.home.join(".config"), self.home.join("Library/Application Support")];
        let users =
            bases.iter().flat_map(|base| names.iter().map(|name| base.join(name).join("User")));
        users.collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn variables_move_folders() {
        let variable = |name: &str| match name {
            "CODEX_HOME" => Some("/c".into()),
            "CLAUDE_CONFIG_DIR" => Some("/a, /b".into()),
            _ => None,
        };
        let found = session_locations(Path::new("/home/u"), &variable);
        let of = |agent| -> Vec<&Path> {
            found
                .iter()
                .filter(|place| place.agent == agent)
                .map(|place| place.path.as_path())
                .collect()
        };
        let codex = ["/c/sessions", "/c/archived_sessions", "/c/history.jsonl"].map(Path::new);
        assert_eq!(of("codex"), codex);
        let claude = ["/a/projects", "/a/history.jsonl", "/b/projects"].map(Path::new);
        assert_eq!(of("claude-code")[..3], claude);
        assert_eq!(of("opencode"), [Path::new("/home/u/.local/share/opencode")]);
        let database = "/home/u/.config/Cursor/User/globalStorage/state.vscdb";
        assert!(of("cursor").contains(&Path::new(database)));
        let folders = settings_folders(Path::new("/home/u"), &variable);
        let paths: Vec<&Path> = folders.iter().map(|place| place.path.as_path()).collect();
        let moved = ["/a", "/b", "/c", "/home/u/.gemini"].map(Path::new);
        assert_eq!(paths[..4], moved);
    }
    #[test]
    fn every_agent_has_its_places() {
        let at = |variables: &[(&str, &str)], agent: &str, path: &str| {
            let value = |name: &str| {
                let found = variables.iter().find(|(variable, _)| *variable == name);
                found.map(|(_, value)| value.into())
            };
            let found = session_locations(Path::new("/u"), &value);
            found.contains(&SessionLocation { agent: agent_named(agent), path: path.into() })
        };
        let usual = [
            ("claude-code", "/u/.claude/history.jsonl"),
            ("claude-code", "/u/.config/claude/projects"),
            ("copilot", "/u/.copilot/history-session-state"),
            ("kimi", "/u/.kimi/sessions"),
            ("kimi", "/u/.kimi-code/sessions"),
            ("vibe", "/u/.vibe/logs/session"),
            ("cline", "/u/.cline/data/tasks"),
            ("cline", "/u/.cline/data/sessions"),
            ("goose", "/u/.goose/sessions"),
            ("goose", "/u/.local/share/goose/sessions"),
            ("zed", "/u/Library/Application Support/Zed/threads"),
        ];
        for (agent, path) in usual {
            assert!(at(&[], agent, path), "{agent}: {path}");
        }
        let moved = [
            ("KIMI_SHARE_DIR", "/k", "kimi", "/k/sessions"),
            ("KIMI_CODE_HOME", "/k", "kimi", "/k/sessions"),
            ("CLINE_DIR", "/c", "cline", "/c/data/tasks"),
            ("CLINE_DATA_DIR", "/c", "cline", "/c/sessions"),
            ("CLINE_SESSION_DATA_DIR", "/c", "cline", "/c"),
            ("OPENCODE_DB", "/o/x.db", "opencode", "/o/x.db"),
            ("GOOSE_PATH_ROOT", "/g", "goose", "/g/data/sessions"),
            ("FLATPAK_XDG_DATA_HOME", "/f", "zed", "/f/zed/threads"),
            ("PI_SESSIONS_DIR", "/p", "pi", "/p"),
            ("AIDER_CHAT_HISTORY_FILE", "/a.md", "aider", "/a.md"),
        ];
        for (variable, value, agent, path) in moved {
            assert!(at(&[(variable, value)], agent, path), "{variable}");
        }
    }

    #[test]
    fn a_configured_aider_history_is_in_each_project() {
        let variable =
            |name: &str| (name == "AIDER_CHAT_HISTORY_FILE").then(|| OsString::from("chat.md"));
        let found = project_locations(&["/p".into()], Path::new("/u"), &variable);
        assert_eq!(found[0].path, Path::new("/p/chat.md"));
    }

    fn agent_named(name: &str) -> &'static str {
        crate::registry::READERS.iter().find(|reader| reader.agent == name).unwrap().agent
    }
}

//! Where agents keep their sessions, with the variables that move them.

use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};

use serde::Deserialize;

/// A folder or file in which an agent keeps sessions.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Place {
    /// The agent.
    pub agent: &'static str,
    /// The folder or file, there or not.
    pub path: PathBuf,
}

/// Every place that is known, for a user with this home folder and these environment variables.
pub fn places(home: &Path, variable: &dyn Fn(&str) -> Option<OsString>) -> Vec<Place> {
    let user = User { home, variable };
    let mut places = Vec::new();
    let mut add = |agent, path: PathBuf| places.push(Place { agent, path });
    for config in user.claude() {
        add(super::claude_code::AGENT, config.join("projects"));
    }
    let desktop = "Library/Application Support/Claude/local-agent-mode-sessions";
    add(super::claude_code::AGENT, home.join(desktop));
    let codex = user.moved("CODEX_HOME", ".codex");
    add(super::codex::AGENT, codex.join("sessions"));
    add(super::codex::AGENT, codex.join("archived_sessions"));
    add(super::gemini::AGENT, user.moved("GEMINI_CLI_HOME", "").join(".gemini/tmp"));
    let qwen = user.first(&["QWEN_RUNTIME_DIR", "QWEN_HOME"], ".qwen");
    add(super::qwen::AGENT, qwen.join("projects"));
    add(super::qwen::AGENT, qwen.join("tmp"));
    add(super::opencode::AGENT, user.data().join("opencode"));
    add(super::copilot::AGENT, user.moved("COPILOT_HOME", ".copilot").join("session-state"));
    add(super::cursor::AGENT, home.join(".cursor/projects"));
    add(super::cursor::AGENT, home.join(".cursor/chats"));
    for editor in user.editors_named(&["Cursor"]) {
        // Beside it stand the files of many extensions.
        add(super::cursor::AGENT, editor.join("globalStorage/state.vscdb"));
        add(super::cursor::AGENT, editor.join("workspaceStorage"));
    }
    let amp = (variable)("AMP_DATA_DIR").map_or_else(|| user.data().join("amp"), PathBuf::from);
    add(super::amp::AGENT, amp.join("threads"));
    add(super::droid::AGENT, home.join(".factory/sessions"));
    add(super::pi::AGENT, user.moved("PI_CODING_AGENT_DIR", ".pi/agent").join("sessions"));
    add(super::pi::AGENT, home.join(".omp/agent/sessions"));
    add(super::goose::AGENT, user.data().join("goose/sessions"));
    add(super::zed::AGENT, user.data().join("zed/threads"));
    let cline = user.first(&["CLINE_DATA_DIR"], ".cline/data");
    add(super::cline::AGENT, cline.join("tasks"));
    for editor in user.editors() {
        add(super::amp::AGENT, editor.join("globalStorage/sourcegraph.amp/threads3"));
        add(super::cline::AGENT, editor.join("globalStorage/saoudrizwan.claude-dev/tasks"));
        add(super::cline::AGENT, editor.join("globalStorage/rooveterinaryinc.roo-cline/tasks"));
        add(super::vscode_chat::AGENT, editor.join("workspaceStorage"));
        for kind in ["emptyWindowChatSessions", "transferredChatSessions"] {
            add(super::vscode_chat::AGENT, editor.join("globalStorage").join(kind));
        }
    }
    places
}

/// The places in project folders: of those that are named, and of those that Crush has noted.
pub fn in_projects(
    projects: &[PathBuf],
    home: &Path,
    variable: &dyn Fn(&str) -> Option<OsString>,
) -> Vec<Place> {
    let user = User { home, variable };
    let mut places = Vec::new();
    let mut add = |agent, path: PathBuf| places.push(Place { agent, path });
    for project in projects {
        add(super::aider::AGENT, project.join(".aider.chat.history.md"));
        add(super::crush::AGENT, project.join(".crush"));
    }
    for noted in user.crush_projects() {
        add(super::crush::AGENT, noted.path.join(noted.data_dir));
    }
    places
}

/// The folders of the settings of agents that can call others, for a user with this home folder and these variables.
pub fn settings(home: &Path, variable: &dyn Fn(&str) -> Option<OsString>) -> Vec<Place> {
    let user = User { home, variable };
    let mut places = Vec::new();
    let mut add = |agent, path: PathBuf| places.push(Place { agent, path });
    // Claude Code itself reads no other folder than these.
    for config in user.claude().into_iter().filter(|path| *path != home.join(".config/claude")) {
        add(super::claude_code::AGENT, config);
    }
    add(super::codex::AGENT, user.moved("CODEX_HOME", ".codex"));
    add(super::gemini::AGENT, user.moved("GEMINI_CLI_HOME", "").join(".gemini"));
    add(super::qwen::AGENT, user.moved("QWEN_HOME", ".qwen"));
    add(super::copilot::AGENT, user.moved("COPILOT_HOME", ".copilot"));
    add(super::cursor::AGENT, home.join(".cursor"));
    places
}

/// What Crush notes of the projects that it was used in.
#[derive(Deserialize)]
struct CrushProjects {
    projects: Vec<CrushProject>,
}

#[derive(Deserialize)]
struct CrushProject {
    path: PathBuf,
    data_dir: PathBuf,
}

struct User<'a> {
    home: &'a Path,
    variable: &'a dyn Fn(&str) -> Option<OsString>,
}

impl User<'_> {
    /// The folder that a variable names, else one below the home folder.
    fn moved(&self, variable: &str, usual: &str) -> PathBuf {
        self.first(&[variable], usual)
    }

    fn first(&self, variables: &[&str], usual: &str) -> PathBuf {
        let named = variables.iter().find_map(|name| (self.variable)(name));
        named.map_or_else(|| self.home.join(usual), PathBuf::from)
    }

    fn data(&self) -> PathBuf {
        self.moved("XDG_DATA_HOME", ".local/share")
    }

    /// Claude Code's folders: several may be named, separated by commas.
    fn claude(&self) -> Vec<PathBuf> {
        match (self.variable)("CLAUDE_CONFIG_DIR") {
            Some(named) => {
                named.to_string_lossy().split(',').map(|part| part.trim().into()).collect()
            }
            None => vec![self.home.join(".claude"), self.home.join(".config/claude")],
        }
    }

    /// The projects that Crush knows; none if it has noted none.
    fn crush_projects(&self) -> Vec<CrushProject> {
        let data = (self.variable)("CRUSH_GLOBAL_DATA");
        let data = data.map_or_else(|| self.data().join("crush"), PathBuf::from);
        let bytes = fs::read(data.join("projects.json")).ok();
        let noted = bytes.and_then(|bytes| serde_json::from_slice::<CrushProjects>(&bytes).ok());
        noted.map(|noted| noted.projects).unwrap_or_default()
    }

    /// The `User` folders of VS Code and its kin.
    fn editors(&self) -> Vec<PathBuf> {
        let mut editors =
            self.editors_named(&["Code", "Code - Insiders", "VSCodium", "Cursor", "Windsurf"]);
        editors.push(self.home.join(".vscode-server/data/User"));
        editors
    }

    fn editors_named(&self, names: &[&str]) -> Vec<PathBuf> {
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
        let found = places(Path::new("/home/u"), &variable);
        let of = |agent| -> Vec<&Path> {
            found
                .iter()
                .filter(|place| place.agent == agent)
                .map(|place| place.path.as_path())
                .collect()
        };
        assert_eq!(of("codex"), [Path::new("/c/sessions"), Path::new("/c/archived_sessions")]);
        assert_eq!(of("claude-code")[..2], [Path::new("/a/projects"), Path::new("/b/projects")]);
        assert_eq!(of("opencode"), [Path::new("/home/u/.local/share/opencode")]);
        let database = "/home/u/.config/Cursor/User/globalStorage/state.vscdb";
        assert!(of("cursor").contains(&Path::new(database)));
        let folders = settings(Path::new("/home/u"), &variable);
        let paths: Vec<&Path> = folders.iter().map(|place| place.path.as_path()).collect();
        let moved = ["/a", "/b", "/c", "/home/u/.gemini"].map(Path::new);
        assert_eq!(paths[..4], moved);
    }
}

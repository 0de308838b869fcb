//! Paths where agents keep their sessions and settings.

use std::ffi::OsString;
use std::path::{Component, Path, PathBuf};

use super::all_agents;
use crate::agent::Agent;
use crate::agent::mcp_client::{McpClientLocation, McpServerShape};
use crate::agent::user_folders::UserFolders;

/// A folder or file of an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SessionLocation {
    /// The agent.
    pub agent: &'static str,
    /// The folder or file. It may not exist.
    pub path: PathBuf,
}

/// All known locations of sessions for a user with this home folder and these environment variables.
pub fn session_locations(
    home: &Path,
    variable: &dyn Fn(&str) -> Option<OsString>,
) -> Vec<SessionLocation> {
    let user = UserFolders { home, variable };
    list_locations(|agent| (agent.locations)(&user))
}

/// Where a user's own agent would keep a session file that it keeps at `file` for another user, whose home folder is
/// unknown. `None` if the path is in no session folder of the agent.
pub fn locate_for_user(agent: &str, file: &Path, user: &UserFolders<'_>) -> Option<PathBuf> {
    let agent = super::agent_named(agent)?;
    let usual = UserFolders { home: user.home, variable: &|_| None };
    let (usual, own) = ((agent.locations)(&usual), (agent.locations)(user));
    let parts: Vec<Component<'_>> = file.components().collect();
    let locate = |place: &PathBuf| {
        let below: Vec<Component<'_>> = place.strip_prefix(user.home).ok()?.components().collect();
        let start = parts.windows(below.len().max(1)).position(|some| some == below)?;
        let rest: PathBuf = parts[start + below.len()..].iter().collect();
        // A variable moves a location, but keeps its last name.
        let is_moved = |own: &&PathBuf| own.file_name() == place.file_name();
        let own = own.iter().find(|own| *own == place).or_else(|| own.iter().find(is_moved))?;
        Some((below.len(), own.iter().chain(rest.iter()).collect::<PathBuf>()))
    };
    let found = usual.iter().filter_map(locate);
    found.max_by_key(|(length, _)| *length).map(|(_, path)| path)
}

/// Locations of sessions in project folders: in `projects`, and in those that an agent lists.
pub fn project_locations(
    projects: &[PathBuf],
    home: &Path,
    variable: &dyn Fn(&str) -> Option<OsString>,
) -> Vec<SessionLocation> {
    let user = UserFolders { home, variable };
    list_locations(|agent| (agent.project_locations)(&user, projects))
}

/// The settings folders of agents that support hooks, for a user with this home folder and these variables.
pub fn settings_folders(
    home: &Path,
    variable: &dyn Fn(&str) -> Option<OsString>,
) -> Vec<SessionLocation> {
    let user = UserFolders { home, variable };
    list_locations(|agent| {
        agent.hooks.iter().flat_map(|hooks| (hooks.settings_folders)(&user)).collect()
    })
}

/// An agent that can use servers of the Model Context Protocol, and where its settings list them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct McpClientSettings {
    /// The agent.
    pub agent: &'static str,
    /// Where the settings are.
    pub location: McpClientLocation,
    /// How they list servers.
    pub shape: McpServerShape,
}

/// The agents that can use servers of the Model Context Protocol, for a user with this home folder and these variables.
pub fn mcp_client_settings(
    home: &Path,
    variable: &dyn Fn(&str) -> Option<OsString>,
) -> Vec<McpClientSettings> {
    let user = UserFolders { home, variable };
    let mut clients = Vec::new();
    for agent in all_agents() {
        let Some(client) = &agent.mcp_client else { continue };
        for location in (client.locations)(&user) {
            clients.push(McpClientSettings { agent: agent.name(), location, shape: client.shape });
        }
    }
    clients
}

fn list_locations(paths: impl Fn(&Agent) -> Vec<PathBuf>) -> Vec<SessionLocation> {
    let locations = |agent: &'static Agent| {
        let paths = paths(agent).into_iter();
        paths.map(|path| SessionLocation { agent: agent.name(), path })
    };
    all_agents().flat_map(locations).collect()
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
    fn a_session_file_of_another_user_has_a_place_here() {
        let variable = |name: &str| (name == "CODEX_HOME").then(|| "/c".into());
        let user = UserFolders { home: Path::new("/home/bob"), variable: &variable };
        let locate = |agent, file: &str| locate_for_user(agent, Path::new(file), &user);
        let place = |path: &str| Some(PathBuf::from(path));
        let file = "/Users/ada/.claude/projects/-Users-ada-shop/s.jsonl";
        let here = place("/home/bob/.claude/projects/-Users-ada-shop/s.jsonl");
        assert_eq!(locate("claude-code", file), here);
        assert_eq!(
            locate("codex", "/home/ada/.codex/sessions/1/r.jsonl"),
            place("/c/sessions/1/r.jsonl")
        );
        assert_eq!(locate("codex", "/home/ada/.ssh/authorized_keys"), None);
        assert_eq!(locate("nobody", file), None);
    }

    #[test]
    fn mcp_servers_are_listed_where_agents_read_them() {
        let settings = |variables: &'static [(&str, &str)]| -> Vec<(&str, String)> {
            let variable = move |name: &str| {
                let found = variables.iter().find(|(variable, _)| *variable == name);
                found.map(|(_, value)| value.into())
            };
            let clients = mcp_client_settings(Path::new("/u"), &variable).into_iter();
            clients.map(|it| (it.agent, it.location.settings.display().to_string())).collect()
        };
        let usual = settings(&[]);
        for expected in [
            ("claude-code", "/u/.claude.json"),
            ("codex", "/u/.codex/config.toml"),
            ("gemini", "/u/.gemini/settings.json"),
            ("opencode", "/u/.config/opencode/opencode.json"),
            ("qwen", "/u/.qwen/settings.json"),
            ("copilot", "/u/.copilot/mcp-config.json"),
            ("cursor", "/u/.cursor/mcp.json"),
            ("zed", "/u/.config/zed/settings.json"),
        ] {
            assert!(
                usual.contains(&(expected.0, expected.1.to_owned())),
                "{expected:?}: {usual:?}"
            );
        }
        assert_eq!(usual.len(), 8);
        let moved = settings(&[("CLAUDE_CONFIG_DIR", "/a"), ("XDG_CONFIG_HOME", "/x")]);
        assert!(moved.contains(&("claude-code", "/a/.claude.json".to_owned())), "{moved:?}");
        assert!(moved.contains(&("zed", "/x/zed/settings.json".to_owned())), "{moved:?}");
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
        assert!(found.contains(&SessionLocation { agent: "aider", path: "/p/chat.md".into() }));
        assert!(found.contains(&SessionLocation { agent: "crush", path: "/p/.crush".into() }));
        assert_eq!(found.len(), 2);
    }

    fn agent_named(name: &str) -> &'static str {
        crate::registry::agent_named(name).unwrap().name()
    }
}

//! Tests of `steno mcp`: the server as agents start it, and its registration in their settings.

use std::fs;
use std::io::{BufRead, BufReader, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Stdio};

use serde_json::{Value, json};
use steno_agents::registry::session_locations::mcp_client_settings;

use crate::harness::Home;

const JSONC: &str =
    "{\n\t// mine\n\t\"model\": \"opus\", /* why */\n\t\"mcpServers\": {\"own\": {}},\n}\n";
const TOML: &str = "# mine\nmodel = 'o3' # best\n\n[tui]\nnotifications = true # yes\n";

/// Writes a session of Claude Code in a project of this home.
fn write_session(home: &Home, id: &str, project: &str, text: &str) {
    let cwd = home.path().canonicalize().unwrap().join(project);
    let line = json!({"type": "user", "sessionId": id, "uuid": id, "cwd": cwd,
        "timestamp": "2026-01-05T09:00:00Z", "message": {"role": "user", "content": text}});
    home.file(&format!(".claude/projects/p/{id}.jsonl"), format!("{line}\n"));
    fs::create_dir_all(home.path().join(project)).unwrap();
}

/// A running server.
pub(crate) struct Server {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    next_id: u64,
}

impl Server {
    /// Starts the server in a folder of the home.
    pub(crate) fn start(home: &Home, folder: &str, args: &[&str]) -> Self {
        let mut command = home.command(&[&["mcp"], args].concat());
        command.current_dir(home.path().join(folder));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut child = command.spawn().unwrap();
        let (input, output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
        Self { child, input, output: BufReader::new(output), next_id: 0 }
    }

    fn send(&mut self, message: &Value) {
        writeln!(self.input, "{message}").unwrap();
    }

    /// Sends a request and returns the result. All that the server prints is a message.
    pub(crate) fn request(&mut self, method: &str, params: Value) -> Value {
        self.next_id += 1;
        let id = self.next_id;
        self.send(&json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params}));
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        let answer: Value = serde_json::from_str(&line).expect(&line);
        assert_eq!(answer["id"], id, "{answer}");
        answer["result"].clone()
    }

    pub(crate) fn initialize(&mut self) -> Value {
        let client = json!({"name": "test", "version": "1"});
        let params =
            json!({"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": client});
        let result = self.request("initialize", params);
        self.send(&json!({"jsonrpc": "2.0", "method": "notifications/initialized"}));
        result
    }

    pub(crate) fn search(&mut self, query: &str) -> String {
        let arguments = json!({ "query": query });
        let result = self
            .request("tools/call", json!({"name": "search_agent_history", "arguments": arguments}));
        result["content"][0]["text"].as_str().unwrap().to_owned()
    }

    /// Closes the input. The server must end well.
    pub(crate) fn close(self) -> String {
        drop(self.input);
        let output = self.child.wait_with_output().unwrap();
        assert!(output.status.success());
        String::from_utf8(output.stderr).unwrap()
    }
}

#[test]
fn an_agent_searches_the_project_it_works_in() {
    let home = Home::new();
    write_session(&home, "s1", "shop", "the heron gate");
    write_session(&home, "s2", "bank", "the heron vault");
    home.steno(&["sync"]).ok();
    let mut server = Server::start(&home, "shop", &["--no-sync"]);
    let info = server.initialize();
    assert_eq!(info["serverInfo"]["name"], "steno");
    assert_eq!(info["protocolVersion"], "2025-06-18");
    assert!(info["instructions"].as_str().unwrap().contains("search_agent_history"));
    let tools = server.request("tools/list", json!({}));
    assert!(tools.to_string().len() <= 3072, "{}", tools.to_string().len());
    let answer = server.search("heron");
    assert!(answer.starts_with("1 hit of ") && answer.contains("| the heron gate"), "{answer}");
    assert_eq!(server.close(), "");
}

#[test]
fn all_projects_or_another_one_are_served_if_asked_for() {
    let home = Home::new();
    write_session(&home, "s1", "shop", "the heron gate");
    write_session(&home, "s2", "bank", "the heron vault");
    home.steno(&["sync"]).ok();
    for (args, hits) in [
        (&["--all", "--no-sync"][..], "2 hits of all projects:"),
        (&["--project", "../bank", "--no-sync"][..], "1 hit of $HOME/bank:"),
    ] {
        let mut server = Server::start(&home, "shop", args);
        server.initialize();
        let answer = server.search("heron");
        let root = home.path().canonicalize().unwrap();
        let answer = answer.replace(root.to_str().unwrap(), "$HOME");
        assert!(answer.starts_with(hits), "{answer}");
        server.close();
    }
    let mut server = Server::start(&home, ".", &["--no-sync"]);
    server.initialize();
    assert!(server.search("heron").contains("which is not a project"));
    server.close();
}

#[test]
fn a_limited_answer_says_that_there_is_more() {
    let home = Home::new();
    write_session(&home, "s1", "shop", "the heron gate");
    write_session(&home, "s2", "bank", "the heron vault");
    home.steno(&["sync"]).ok();
    let mut server = Server::start(&home, "shop", &["--all", "--no-sync"]);
    server.initialize();
    let mut search = |limit: u64| {
        let arguments = json!({ "query": "heron", "limit": limit });
        let call = json!({"name": "search_agent_history", "arguments": arguments});
        let result = server.request("tools/call", call);
        result["content"][0]["text"].as_str().unwrap().to_owned()
    };
    let answer = search(1);
    assert!(answer.starts_with("1 hit, and more of all projects:"), "{answer}");
    assert!(answer.contains("There are more hits: raise limit or add words."), "{answer}");
    let answer = search(2);
    assert!(answer.starts_with("2 hits of ") && !answer.contains("more hits"), "{answer}");
    server.close();
}

#[test]
fn a_client_without_initialize_is_served() {
    let home = Home::new();
    write_session(&home, "s1", "shop", "the heron gate");
    home.steno(&["sync"]).ok();
    let mut server = Server::start(&home, "shop", &["--no-sync"]);
    let meta = json!({"io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientInfo": {"name": "test", "version": "1"},
        "io.modelcontextprotocol/clientCapabilities": {}});
    let call =
        json!({"name": "search_agent_history", "arguments": {"query": "heron"}, "_meta": meta});
    let result = server.request("tools/call", call);
    assert!(result["content"][0]["text"].as_str().unwrap().starts_with("1 hit"), "{result}");
    server.close();
}

#[test]
fn the_first_call_syncs_by_itself() {
    let home = Home::new();
    write_session(&home, "s1", "shop", "the heron gate");
    let mut command = home.command(&["mcp"]);
    command.env("STENO_SYNC_AUTOMATIC", "true").current_dir(home.path().join("shop"));
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let (input, output) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    let mut server = Server { child, input, output: BufReader::new(output), next_id: 0 };
    server.initialize();
    // The sync goes on in another process; on a slow machine the first answer may come before it.
    let found = (0..100).any(|_| {
        std::thread::sleep(std::time::Duration::from_millis(100));
        server.search("heron").starts_with("1 hit")
    });
    assert!(found);
    server.close();
}

#[test]
fn private_projects_of_the_settings_are_not_served() {
    let home = Home::new();
    write_session(&home, "s1", "acme/shop", "the heron gate");
    write_session(&home, "s2", "bank", "the heron vault");
    home.steno(&["sync"]).ok();
    home.file("store/config.toml", "[private]\nprojects = [\"~/acme\"]\n");
    let mut server = Server::start(&home, "bank", &["--all", "--no-sync"]);
    server.initialize();
    let answer = server.search("heron");
    assert!(answer.starts_with("1 hit") && answer.contains("vault"), "{answer}");
    server.close();
    home.file("store/config.toml", "[private]\nfolders = [\"acme\"]\n");
    let refused = home.steno(&["mcp", "--all"]);
    assert_eq!(refused.code, 1);
    let message = "config.toml:2: unknown setting folders; one of: agents, projects";
    assert!(refused.stderr.contains(message), "{}", refused.stderr);
    assert!(home.steno(&["doctor"]).stdout.contains("unknown setting folders"));
}

#[test]
fn an_agent_that_leaves_at_once_is_no_error() {
    let home = Home::new();
    let output = home.steno_with(&["mcp", "--no-sync"], b"");
    assert_eq!((output.code, output.stdout.as_str()), (0, ""), "{}", output.stderr);
}

/// Returns each agent that can use servers, with its settings and its skills.
fn clients() -> Vec<(&'static str, String, Option<String>)> {
    let home = Path::new("/home");
    let name = |path: &Path| path.strip_prefix(home).unwrap().to_str().unwrap().to_owned();
    let clients = mcp_client_settings(home, &|_| None).into_iter();
    clients
        .map(|client| {
            let skills = client.location.skills.as_deref().map(name);
            (client.agent, name(&client.location.settings), skills)
        })
        .collect()
}

fn states(home: &Home, args: &[&str]) -> Vec<(String, String)> {
    home.agent_states(&[&["mcp"], args].concat())
}

#[test]
fn installing_in_fresh_agents_and_removing_leaves_nothing() {
    let home = Home::new();
    assert!(states(&home, &["status"]).iter().all(|(_, state)| state == "not_found"));
    assert_eq!(home.steno(&["mcp", "install"]).code, 1);
    let names: Vec<&str> = clients().iter().map(|client| client.0).collect();
    assert_eq!(names.len(), 8);
    let installed = states(&home, &[&["install"], names.as_slice()].concat());
    let all = names.iter().map(|name| (name.to_string(), "installed".to_owned()));
    assert_eq!(installed, all.collect::<Vec<_>>());
    for (name, settings, skills) in clients() {
        let text = fs::read_to_string(home.path().join(settings)).unwrap();
        assert!(
            text.contains(env!("CARGO_BIN_EXE_steno")) && text.contains("mcp"),
            "{name}: {text}"
        );
        if let Some(skills) = skills {
            let skill = home.path().join(skills).join("steno-history/SKILL.md");
            assert!(fs::read_to_string(skill).unwrap().starts_with("---\nname: steno-history\n"));
        }
    }
    let before = home.files_outside_store();
    assert_eq!(states(&home, &["install"]), installed);
    assert_eq!(home.files_outside_store(), before);
    states(&home, &["install", "--all"]);
    assert!(fs::read_to_string(home.path().join(".claude.json")).unwrap().contains("--all"));
    assert!(states(&home, &["status"]).iter().all(|(_, state)| state == "installed"));
    states(&home, &[&["remove"], names.as_slice()].concat());
    assert_eq!(home.files_outside_store(), []);
}

#[test]
fn other_settings_stay_and_come_back_byte_for_byte() {
    let home = Home::new();
    for (_, settings, _) in clients() {
        home.file(&settings, if settings.ends_with(".toml") { TOML } else { JSONC });
    }
    home.file(".claude/skills/own/SKILL.md", "mine");
    let before = home.files_outside_store();
    let names: Vec<&str> = clients().iter().map(|client| client.0).collect();
    states(&home, &[&["install"], names.as_slice()].concat());
    for (_, settings, _) in clients() {
        let text = fs::read_to_string(home.path().join(settings)).unwrap();
        assert!(text.contains(" mine\n") && text.contains("mcp"), "{text}");
    }
    states(&home, &["remove"]);
    assert_eq!(home.files_outside_store(), before);
}

#[test]
fn files_of_the_user_are_not_replaced() {
    let home = Home::new();
    let own = "{\"mcpServers\": {\"steno\": {\"command\": \"other\"}}}";
    home.file(".cursor/mcp.json", own);
    let skill = home.file(".qwen/skills/steno-history/SKILL.md", "mine");
    let refused = home.steno(&["mcp", "install", "cursor"]);
    assert_eq!(refused.code, 1);
    assert!(refused.stderr.contains("another server has the name `steno`"), "{}", refused.stderr);
    assert_eq!(fs::read_to_string(home.path().join(".cursor/mcp.json")).unwrap(), own);
    let installed = home.steno(&["mcp", "install", "qwen"]);
    assert_eq!(installed.code, 0, "{}", installed.stderr);
    assert!(installed.stderr.contains("is not a file of steno"), "{}", installed.stderr);
    home.steno(&["mcp", "remove", "qwen"]).ok();
    assert_eq!(fs::read_to_string(skill).unwrap(), "mine");
}

//! Tests of `steno hooks` and `steno hook`.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread::sleep;
use std::time::Duration;

use serde_json::{Value, json};
use steno_agents::registry;
use steno_agents::registry::session_locations::{
    SessionLocation, session_locations, settings_folders,
};

use crate::harness::Home;

/// Returns each agent that has hooks, with its settings.
fn settings() -> Vec<(&'static str, String)> {
    let home = Path::new("/home");
    let folders = settings_folders(home, &|_| None).into_iter();
    let file = |folder: SessionLocation| {
        let hooks = registry::agent_named(folder.agent).unwrap().hooks.as_ref().unwrap();
        let path = folder.path.join(hooks.settings_file);
        (folder.agent, path.strip_prefix(home).unwrap().to_str().unwrap().to_owned())
    };
    folders.map(file).collect()
}

#[test]
fn settings_are_where_agents_read_them() {
    let settings = settings();
    for (agent, file) in [
        ("claude-code", ".claude/settings.json"),
        ("codex", ".codex/config.toml"),
        ("gemini", ".gemini/settings.json"),
        ("qwen", ".qwen/settings.json"),
        ("copilot", ".copilot/hooks/steno.json"),
        ("cursor", ".cursor/hooks.json"),
    ] {
        assert!(settings.contains(&(agent, file.to_owned())), "{agent}: {settings:?}");
    }
}

const ID: &str = "1b4e28ba-2fa1-41d2-883f-0016d3cca427";

const JSONC: &str = "{\n\t// mine\n\t\"model\": \"opus\", /* why */\n\t\"version\": 1,\n\t\
    \"hooks\": {\"Stop\": []},\n}\n";
const TOML: &str = "# mine\nmodel = 'o3' # best\n\n[tui]\nnotifications = true # yes\n";

/// Repeats `look` until it returns something, for at most a minute.
fn wait_for<T>(mut look: impl FnMut() -> Option<T>) -> T {
    for _ in 0..600 {
        if let Some(found) = look() {
            return found;
        }
        sleep(Duration::from_millis(100));
    }
    panic!("it never came");
}

fn states(home: &Home, args: &[&str]) -> Vec<(String, String)> {
    home.agent_states(&[&["hooks"], args].concat())
}

#[test]
fn installing_in_fresh_agents_and_removing_leaves_nothing() {
    let home = Home::new();
    assert!(states(&home, &["status"]).iter().all(|(_, state)| state == "not_found"));
    assert_eq!(home.steno(&["hooks", "install"]).code, 1);
    for (_, file) in settings() {
        fs::create_dir_all(home.path().join(file).parent().unwrap()).unwrap();
    }
    assert!(states(&home, &["status"]).iter().all(|(_, state)| state == "not_installed"));
    let installed = states(&home, &["install"]);
    let all = settings().into_iter().map(|(name, _)| (name.to_owned(), "installed".to_owned()));
    assert_eq!(installed, all.collect::<Vec<_>>());
    let before = home.files_outside_store();
    assert_eq!(before.len(), settings().len());
    assert_eq!(states(&home, &["install"]), installed);
    assert_eq!(home.files_outside_store(), before);
    states(&home, &["remove"]);
    assert_eq!(home.files_outside_store(), []);
}

#[test]
fn other_settings_stay_and_come_back_byte_for_byte() {
    let home = Home::new();
    for (_, file) in settings() {
        home.file(&file, if file.ends_with(".toml") { TOML } else { JSONC });
    }
    let before = home.files_outside_store();
    states(&home, &["install"]);
    for (_, file) in settings() {
        let text = fs::read_to_string(home.path().join(file)).unwrap();
        assert!(text.contains(" mine\n") && text.contains("hook"), "{text}");
    }
    let after = home.files_outside_store();
    states(&home, &["install"]);
    assert_eq!(home.files_outside_store(), after);
    states(&home, &["remove"]);
    assert_eq!(home.files_outside_store(), before);
}

#[test]
fn what_the_user_changed_meanwhile_stays() {
    let home = Home::new();
    let path = home.file(".claude/settings.json", JSONC);
    states(&home, &["install"]);
    let text = fs::read_to_string(&path).unwrap().replace("opus", "haiku");
    fs::write(&path, text).unwrap();
    states(&home, &["remove"]);
    let text = fs::read_to_string(&path).unwrap();
    assert!(
        text.contains("haiku") && text.contains("// mine") && !text.contains("steno"),
        "{text}"
    );
    // The backup is obsolete, but it belongs to the user: the next one gets another name.
    states(&home, &["install", "claude-code"]);
    let backup = path.with_file_name("settings.json.steno-backup");
    assert_eq!(fs::read_to_string(&backup).unwrap(), JSONC);
    states(&home, &["remove"]);
    assert_eq!(fs::read_to_string(&path).unwrap(), text);
}

#[test]
fn links_and_modes_of_settings_stay() {
    let home = Home::new();
    let target = home.file("dotfiles/claude.json", JSONC);
    fs::set_permissions(&target, fs::Permissions::from_mode(0o640)).unwrap();
    fs::create_dir(home.path().join(".claude")).unwrap();
    let link = home.path().join(".claude/settings.json");
    symlink(&target, &link).unwrap();
    states(&home, &["install", "claude-code"]);
    assert!(fs::symlink_metadata(&link).unwrap().is_symlink());
    assert!(fs::read_to_string(&target).unwrap().contains(" hook claude-code"));
    assert_eq!(fs::metadata(&target).unwrap().permissions().mode() & 0o777, 0o640);
    states(&home, &["remove", "claude-code"]);
    assert_eq!(fs::read_to_string(&link).unwrap(), JSONC);
    assert_eq!(home.files_outside_store().len(), 1);
}

#[test]
fn settings_that_cannot_be_read_are_left_alone() {
    let home = Home::new();
    home.file(".claude/settings.json", "{\n  \"a\": oops\n}");
    home.file(".codex/config.toml", "a = \n");
    home.file(".cursor/hooks.json", "");
    let before = home.files_outside_store();
    let output = home.steno(&["hooks", "install"]);
    assert_eq!(output.code, 1);
    assert!(output.stderr.contains("$HOME/.claude/settings.json:2: "), "{output}");
    assert!(output.stderr.contains("$HOME/.codex/config.toml:1: "), "{output}");
    assert!(output.stdout.contains("cursor"), "{output}");
    assert_eq!(home.files_outside_store()[..2], before[..2]);
}

#[test]
fn the_program_may_be_in_a_folder_with_spaces() {
    let home = Home::new();
    let old = home.path().join("my old's/bin/steno");
    fs::create_dir_all(old.parent().unwrap()).unwrap();
    fs::copy(env!("CARGO_BIN_EXE_steno"), &old).unwrap();
    home.file(".cursor/hooks.json", "{\"version\": 1}");
    let run = home.program(old.to_str().unwrap(), &["hooks", "install"]);
    home.finish(run, b"").ok();
    assert_eq!(states(&home, &["status", "cursor"])[0].1, "outdated");
    let text = fs::read_to_string(home.path().join(".cursor/hooks.json")).unwrap();
    let settings: Value = serde_json::from_str(&text).unwrap();
    let path = home.file("p/1b4e28ba.jsonl", cursor());
    let printed = json!({"conversation_id": ID, "transcript_path": path}).to_string();
    let shell = settings["hooks"]["stop"][0]["command"].as_str().unwrap().to_owned();
    let output = home.finish(home.program("sh", &["-c", &shell]), printed.as_bytes());
    assert_eq!((output.stdout.as_str(), output.code), ("", 0));
    wait_for(|| home.vault().list_sessions().unwrap().pop());
    assert_eq!(states(&home, &["install", "cursor"])[0].1, "installed");
    states(&home, &["remove"]);
    assert_eq!(
        fs::read_to_string(home.path().join(".cursor/hooks.json")).unwrap(),
        "{\"version\": 1}"
    );
}

fn claude() -> String {
    format!(
        "{}\n",
        json!({"type": "user", "uuid": "u1", "parentUuid": null, "isSidechain": false, "cwd": "/p",
            "sessionId": ID, "version": "2.1.0", "timestamp": "2026-01-05T09:15:32.000Z",
            "message": {"role": "user", "content": "hello"}})
    )
}

fn cursor() -> String {
    let text = "<user_query>\nhello\n</user_query>";
    let content = json!([{"type": "text", "text": text}]);
    format!("{}\n", json!({"role": "user", "message": {"content": content}}))
}

fn codex(id: &str) -> String {
    let at = "2026-01-05T09:15:32.000Z";
    let meta = json!({"timestamp": at, "type": "session_meta",
        "payload": {"id": id, "timestamp": at, "cwd": "/p", "originator": "codex_cli_rs",
            "cli_version": "0.166.0", "source": "cli"}});
    let said = json!({"timestamp": at, "type": "response_item", "payload": {"type": "message",
        "role": "user", "content": [{"type": "input_text", "text": "hello"}]}});
    format!("{meta}\n{said}\n")
}

fn gemini() -> String {
    let at = "2026-01-05T09:15:32.000Z";
    let head = json!({"sessionId": ID, "projectHash": "abc", "startTime": at, "lastUpdated": at});
    format!(
        "{head}\n{}\n",
        json!({"id": "m1", "timestamp": at, "type": "user", "content": "hello"})
    )
}

fn qwen() -> String {
    let message = json!({"role": "user", "parts": [{"text": "hello"}]});
    format!(
        "{}\n",
        json!({"uuid": "u1", "parentUuid": null, "sessionId": ID, "cwd": "/p", "version": "0.15.10",
            "timestamp": "2026-01-05T09:15:32.000Z", "type": "user", "message": message})
    )
}

fn copilot() -> String {
    let at = "2026-01-05T09:15:32.000Z";
    let start = json!({"type": "session.start", "id": "e1", "parentId": null, "timestamp": at,
        "data": {"sessionId": ID, "version": 1, "producer": "copilot-agent", "startTime": at}});
    let said = json!({"type": "user.message", "id": "e2", "parentId": "e1", "timestamp": at,
        "data": {"content": "hello", "attachments": []}});
    format!("{start}\n{said}\n")
}

#[test]
fn each_agents_session_is_copied_when_its_hook_runs() {
    let codex_file = format!(".codex/sessions/2026/01/05/rollout-2026-01-05T09-15-32-{ID}.jsonl");
    let cursor_file = format!(".cursor/projects/p/agent-transcripts/{ID}/{ID}.jsonl");
    let cases = [
        ("claude-code", format!(".claude/projects/-p/{ID}.jsonl"), claude(), "session_id"),
        ("gemini", format!(".gemini/tmp/p/chats/session-{ID}.jsonl"), gemini(), "session_id"),
        ("qwen", format!(".qwen/projects/p/chats/{ID}.jsonl"), qwen(), "session_id"),
        ("copilot", format!(".copilot/session-state/{ID}/events.jsonl"), copilot(), "sessionId"),
        ("cursor", cursor_file, cursor(), "conversation_id"),
        ("codex", codex_file, codex(ID), "thread-id"),
    ];
    for (agent, file, content, name) in cases {
        let home = Home::new();
        let path = home.file(&file, content);
        // Not every file with the session's id is a session.
        home.file(&format!("{}/locks/{ID}.lock", path.parent().unwrap().display()), "");
        let mut printed = json!({name: ID, "hook_event_name": "Stop"});
        if !["codex", "copilot", "cursor"].contains(&agent) {
            printed["transcript_path"] = path.to_str().into();
        }
        let printed = printed.to_string();
        let output = match agent {
            "codex" => home.steno(&["hook", agent, &printed]),
            _ => home.steno_with(&["hook", agent], printed.as_bytes()),
        };
        assert_eq!(output.to_string(), "--- exit 0", "{agent}");
        let session = wait_for(|| home.vault().list_sessions().unwrap().pop());
        assert_eq!(session.agent(), agent);
        assert_eq!(home.vault().list_sessions().unwrap().len(), 1, "{agent}");
        wait_for(|| home.steno(&["show", ID, "--json"]).stdout.contains("hello").then_some(()));
        // `sync` finds nothing left to do.
        wait_for(|| home.path().join("store/seen.json").exists().then_some(()));
        let synced = home.finish(home.command(&["sync"]), b"");
        assert_eq!(synced.to_string(), "--- stderr\nnothing new\n--- exit 0", "{agent}");
    }
}

/// Writes the first file of an agent's sample into its session folder.
fn write_sample(home: &Home, agent: &str) -> PathBuf {
    let corpus = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus").join(agent);
    let inputs = steno_store::format::list_file_paths(&corpus).unwrap();
    let is_sample = |path: &&PathBuf| {
        path.file_name().unwrap().to_string_lossy().starts_with("sample")
            && fs::read_to_string(path).is_ok()
    };
    let sample = inputs.iter().filter(is_sample).min();
    let sample = sample.unwrap_or_else(|| panic!("no sample of {agent} in {}", corpus.display()));
    let text = fs::read_to_string(sample).unwrap();
    let file = text.strip_prefix("@@ ").unwrap().split("\n@@ ").next().unwrap();
    let (name, content) = file.split_once('\n').unwrap();
    let locations = session_locations(home.path(), &|_| None);
    let folder = locations.into_iter().find(|location| location.agent == agent).unwrap().path;
    home.file(folder.join(name).to_str().unwrap(), content)
}

#[test]
fn each_agents_sample_is_copied_when_its_hook_runs() {
    for (agent, _) in settings() {
        let home = Home::new();
        let path = write_sample(&home, agent);
        let payload = json!({"session_id": ID, "transcript_path": path}).to_string();
        let output = home.steno_with(&["hook", agent], payload.as_bytes());
        assert_eq!(output.to_string(), "--- exit 0", "{agent}");
        let session = wait_for(|| home.vault().list_sessions().unwrap().pop());
        assert_eq!(session.agent(), agent);
    }
}

#[test]
fn subagents_are_copied_with_their_session_or_beside_it() {
    let home = Home::new();
    let main = home.file(&format!(".claude/projects/-p/{ID}.jsonl"), claude());
    let side = claude().replace("false", "true").replace("\"uuid\"", "\"agentId\":\"a1\",\"uuid\"");
    let side = home.file(&format!(".claude/projects/-p/{ID}/subagents/agent-a1.jsonl"), side);
    let printed = json!({"session_id": ID, "transcript_path": main, "agent_transcript_path": side,
        "hook_event_name": "SubagentStop"});
    let printed = printed.to_string();
    let calls: Vec<_> = (0..4)
        .map(|_| {
            let mut command = home.command(&["hook", "claude-code"]);
            let mut child = command.stdin(Stdio::piped()).spawn().unwrap();
            std::io::Write::write_all(&mut child.stdin.take().unwrap(), printed.as_bytes())
                .unwrap();
            child
        })
        .collect();
    calls.into_iter().for_each(|mut call| assert!(call.wait().unwrap().success()));
    let session = wait_for(|| home.vault().list_sessions().unwrap().pop());
    wait_for(|| (session.kept_bundle().ok()?.files.len() == 2).then_some(()));
    assert_eq!(home.vault().list_sessions().unwrap().len(), 1);
    let other = ID.replace("1b4e", "2b4e");
    for id in [ID, &other] {
        home.file(&format!(".codex/sessions/2026/01/05/rollout-1-{id}.jsonl"), codex(id));
    }
    home.steno(&["hook", "codex", &json!({"thread-id": other}).to_string()]).ok();
    wait_for(|| (home.vault().list_sessions().unwrap().len() == 3).then_some(()));
    wait_for(|| (home.steno(&["verify"]).code == 0).then_some(()));
}

#[test]
fn a_hook_never_fails_for_any_input() {
    let long = "x".repeat(100_000);
    let missing = json!({"session_id": ID, "transcript_path": "/nowhere/x.jsonl"}).to_string();
    let unknown = json!({"session_id": ID, "transcript_path": "/etc/passwd"}).to_string();
    let inputs: [&[u8]; 7] =
        [b"", b"{", b"[]", b"{}", long.as_bytes(), missing.as_bytes(), unknown.as_bytes()];
    for input in inputs {
        let home = Home::new();
        let output = home.steno_with(&["hook", "claude-code"], input);
        assert_eq!(output.to_string(), "--- exit 0");
        let status = || home.steno(&["hooks", "status", "claude-code"]).stderr;
        let status = wait_for(|| Some(status()).filter(|status| status.contains("last error")));
        assert!(status.contains("2026-01-05T09:15:32.5Z claude-code: "), "{status}");
    }
    let home = Home::new();
    for args in [&["hook", "--oops"][..], &["hook"], &["hook", "x", "y", "z"]] {
        assert_eq!(home.steno_with(args, b"").to_string(), "--- exit 0");
    }
    wait_for(|| home.path().join("store/hook.log").exists().then_some(()));
    // Without a store the error cannot be logged.
    let mut nowhere = home.command(&["hook", "claude-code"]);
    nowhere.env("STENO_HOME", "/proc/none");
    assert_eq!(home.finish(nowhere, b"{}").to_string(), "--- exit 0");
    let mut homeless = home.command(&["hook", "claude-code"]);
    homeless.env("STENO_NOW", "never");
    assert_eq!(home.finish(homeless, b"{}").to_string(), "--- exit 0");
}

#[test]
fn an_agent_that_never_closes_its_end_is_not_waited_for() {
    let home = Home::new();
    let path = home.file(&format!(".claude/projects/-p/{ID}.jsonl"), claude());
    let printed = json!({"session_id": ID, "transcript_path": path}).to_string();
    let mut command = home.command(&["hook", "claude-code"]);
    let mut child = command.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    assert!(child.wait().unwrap().success());
    std::io::Write::write_all(&mut stdin, printed.as_bytes()).unwrap();
    wait_for(|| home.vault().list_sessions().unwrap().pop());
    drop(stdin);
}

#[test]
fn a_program_that_codex_called_before_is_still_called() {
    let home = Home::new();
    let script = home.file(
        "beep.sh",
        "printf '%s\\n' \"$@\" > \"$HOME/beeps.part\"; mv \"$HOME/beeps.part\" \"$HOME/beeps\"\n",
    );
    let before = format!("notify = [\"sh\", {:?}, \"--loud\"]\n", script);
    let settings = home.file(".codex/config.toml", &before);
    states(&home, &["install"]);
    let text = fs::read_to_string(&settings).unwrap();
    let list = text.trim().strip_prefix("notify = ").unwrap();
    let list: Vec<String> = serde_json::from_str(list).unwrap();
    home.file(&format!(".codex/sessions/2026/01/05/rollout-1-{ID}.jsonl"), codex(ID));
    let printed = json!({"thread-id": ID}).to_string();
    let arguments: Vec<&str> =
        list[1..].iter().map(String::as_str).chain([printed.as_str()]).collect();
    let called: Command = home.program(&list[0], &arguments);
    assert_eq!(home.finish(called, b"").to_string(), "--- exit 0");
    let beeps = wait_for(|| fs::read_to_string(home.path().join("beeps")).ok());
    assert_eq!(beeps, format!("--loud\n{printed}\n"));
    wait_for(|| home.vault().list_sessions().unwrap().pop());
    states(&home, &["remove"]);
    assert_eq!(fs::read_to_string(&settings).unwrap(), before);
}

#[test]
fn a_program_that_is_gone_costs_no_session() {
    let home = Home::new();
    home.file(&format!(".codex/sessions/2026/01/05/rollout-1-{ID}.jsonl"), codex(ID));
    let printed = json!({"thread-id": ID}).to_string();
    let output = home.steno(&["hook", "codex", "--", "/nowhere/beep", &printed]);
    assert_eq!(output.to_string(), "--- exit 0");
    let session = wait_for(|| home.vault().list_sessions().unwrap().pop());
    assert_eq!(session.agent(), "codex");
    let status = home.steno(&["hooks", "status", "codex"]);
    assert!(status.stderr.contains("codex: could not start /nowhere/beep"), "{status}");
}

#[test]
fn settings_are_found_where_variables_put_them() {
    let home = Home::new();
    for folder in ["moved/claude", "moved/codex"] {
        fs::create_dir_all(home.path().join(folder)).unwrap();
    }
    let mut install = home.command(&["hooks", "install"]);
    install.env("CLAUDE_CONFIG_DIR", home.path().join("moved/claude"));
    install.env("CODEX_HOME", home.path().join("moved/codex"));
    insta::assert_snapshot!(home.finish(install, b""), @"
    AGENT        STATE      SETTINGS
    claude-code  installed  $HOME/moved/claude/settings.json
    codex        installed  $HOME/moved/codex/config.toml
    --- exit 0
    ");
    assert_eq!(home.files_outside_store().len(), 2);
}

#[test]
fn hooks_of_a_plugin_or_an_extension_are_seen() {
    let home = Home::new();
    let enabled = json!({"enabledPlugins": {"steno@steno": true, "other@x": true}});
    let settings = home.file(".claude/settings.json", enabled.to_string());
    home.file(".gemini/extensions/steno/gemini-extension.json", "{}");
    let agents = ["claude-code", "gemini"].map(str::to_owned);
    let by_plugin = agents.map(|agent| (agent, "plugin".to_owned())).to_vec();
    assert_eq!(states(&home, &["status", "claude-code", "gemini"]), by_plugin);
    // A second hook would copy each session twice.
    assert_eq!(states(&home, &["install", "claude-code", "gemini"]), by_plugin);
    assert_eq!(fs::read_to_string(&settings).unwrap(), enabled.to_string());
    let doctor: Value = serde_json::from_str(&home.steno(&["doctor", "--json"]).ok()).unwrap();
    assert!(!doctor["next"].to_string().contains("hooks install"), "{doctor}");
    fs::write(&settings, json!({"enabledPlugins": {"steno@steno": false}}).to_string()).unwrap();
    let state = states(&home, &["status", "claude-code"]);
    assert_eq!(state, [("claude-code".to_owned(), "not_installed".to_owned())]);
}

//! The resume commands of the agents in the registry.

use std::fs;
use std::path::{Path, PathBuf};

use crate::agent::resume::{ResumeLocationError, SessionFolderMove};
use crate::agents::gemini::PROJECT_ROOT_FILE;
use crate::registry::resume_command;

fn place(agent: &str, file: &str, from: &str, to: &str) -> Result<PathBuf, ResumeLocationError> {
    let moved = SessionFolderMove { from: Some(Path::new(from)), to: Path::new(to) };
    resume_command(agent).unwrap().locate_file(Path::new(file), moved)
}

#[test]
fn each_agent_has_its_words() {
    let of = |agent, id| resume_command(agent).unwrap().arguments(id, Path::new("/s/f.jsonl"));
    let words = |agent| of(agent, "s1").unwrap();
    assert_eq!(words("claude-code"), ["--resume", "s1"]);
    assert_eq!(words("copilot"), ["--resume=s1"]);
    assert_eq!(words("pi"), ["--session", "/s/f.jsonl"]);
    assert!(resume_command("zed").is_none());
    for bad in ["", "--yolo", "a b", "../x"] {
        assert_eq!(of("claude-code", bad), None, "{bad:?}");
    }
    for agent in [
        "aider",
        "amp",
        "claude-code",
        "codex",
        "copilot",
        "crush",
        "cursor",
        "droid",
        "gemini",
        "goose",
        "kimi",
        "opencode",
        "pi",
        "qwen",
    ] {
        assert!(resume_command(agent).is_some(), "{agent}");
    }
}

#[test]
fn files_follow_a_folder_that_moved() {
    let claude = "/h/.claude/projects/-w-my-app/s/subagents/agent-1.jsonl";
    let moved = place("claude-code", claude, "/w/my.app", "/v/ä𝄞").unwrap();
    assert_eq!(moved, Path::new("/h/.claude/projects/-v----/s/subagents/agent-1.jsonl"));
    let stays = place("claude-code", claude, "/w/my.app", "/w/my.app").unwrap();
    assert_eq!(stays, Path::new(claude));
    let again = place("claude-code", claude, "/other", "/v").unwrap();
    assert_eq!(again, Path::new("/h/.claude/projects/-v/s/subagents/agent-1.jsonl"));
    assert!(place("claude-code", "/backup/s.jsonl", "/w/my.app", "/v").is_err());
    let qwen = place("qwen", "/h/.qwen/projects/-w/chats/s.jsonl", "/w", "/v").unwrap();
    assert_eq!(qwen, Path::new("/h/.qwen/projects/-v/chats/s.jsonl"));
    let aider = place("aider", "/w/.aider.chat.history.md", "/w", "/v").unwrap();
    assert_eq!(aider, Path::new("/v/.aider.chat.history.md"));
    let codex = place("codex", "/h/.codex/sessions/r.jsonl", "/w", "/v").unwrap();
    assert_eq!(codex, Path::new("/h/.codex/sessions/r.jsonl"));
    let error = place("droid", "/h/.factory/sessions/-w/s.jsonl", "/w", "/v").unwrap_err();
    assert!(error.to_string().ends_with("original folder: /w"), "{error}");
}

#[test]
fn a_name_that_is_cut_is_found_by_its_beginning() {
    let temp = tempfile::tempdir().unwrap();
    let long = format!("/{}", "x".repeat(250));
    let old = temp.path().join(format!("-{}-1a2b", "x".repeat(199)));
    let file = old.join("s.jsonl");
    let claude = resume_command("claude-code").unwrap();
    let to = format!("/{}", "y".repeat(250));
    let moved = SessionFolderMove { from: Some(Path::new(&long)), to: Path::new(&to) };
    assert!(matches!(
        claude.locate_file(&file, moved),
        Err(ResumeLocationError::NoSessionsYet { .. })
    ));
    let new = temp.path().join(format!("-{}-3c4d", "y".repeat(199)));
    fs::create_dir(&new).unwrap();
    assert_eq!(claude.locate_file(&file, moved).unwrap(), new.join("s.jsonl"));
}

#[test]
fn gemini_names_the_owner_of_a_folder_in_a_file() {
    let temp = tempfile::tempdir().unwrap();
    let file = temp.path().join("app/chats/session-1.jsonl");
    let gemini = resume_command("gemini").unwrap();
    let moved = SessionFolderMove { from: None, to: Path::new("/v/app") };
    assert!(matches!(
        gemini.locate_file(&file, moved),
        Err(ResumeLocationError::NoSessionsYet { .. })
    ));
    let new = temp.path().join("app-1");
    fs::create_dir(&new).unwrap();
    fs::write(new.join(PROJECT_ROOT_FILE), "/v/app\n").unwrap();
    assert_eq!(gemini.locate_file(&file, moved).unwrap(), new.join("chats/session-1.jsonl"));
    let marker = temp.path().join("app").join(PROJECT_ROOT_FILE);
    assert_eq!(gemini.locate_file(&marker, moved).unwrap(), new.join(PROJECT_ROOT_FILE));
}

//! Real session files of many agents, compared with counts made by hand.
//!
//! The files are not part of the repository: `STENO_FIXTURES` names the folder that holds them, one folder per agent
//! with an `expected.json`. Without it these tests only say so.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};
use steno_agents::inspect::{SessionInspection, inspect_session};
use steno_model::{SessionId, Usage};
use steno_store::format;
use steno_store::transcript::ReadTranscript;
use steno_vault::Vault;

/// What `expected.json` and we both state.
const KEYS: [&str; 13] = [
    "sessions",
    "user_prompts",
    "assistant_messages",
    "tool_calls",
    "tool_results",
    "tokens",
    "models",
    "first_timestamp",
    "last_timestamp",
    "compactions",
    "subagent_files",
    "bad_lines",
    "title",
];

/// Counts that we hold to be wrong on the other side, with the reason.
const DISPUTED: [(&str, &str, &str); 2] = [
    ("cursor/large.jsonl", "user_prompts", "records 3 and 7 hold nothing but a tool's result"),
    ("cursor/schema_drift.jsonl", "user_prompts", "record 3 holds nothing but a tool's result"),
];

/// Compares all files of one agent.
fn check(agent: &str) {
    let Some(fixtures) = std::env::var_os("STENO_FIXTURES") else {
        eprintln!("STENO_FIXTURES is not set: {agent} is not compared");
        return;
    };
    let folder = PathBuf::from(fixtures).join(agent);
    let expected = std::fs::read(folder.join("expected.json")).unwrap();
    let expected: Map<String, Value> = serde_json::from_slice(&expected).unwrap();
    let mut differences = Vec::new();
    for (name, wanted) in &expected {
        match wanted.get("sessions") {
            Some(Value::Object(sessions)) => {
                for (key, wanted) in sessions {
                    compare(agent, &folder.join(name), Some(key), wanted, &mut differences);
                }
            }
            _ => compare(agent, &folder.join(name), None, wanted, &mut differences),
        }
    }
    let files = expected.len();
    assert!(differences.is_empty(), "{agent}: {files} files\n{}", differences.join("\n"));
}

fn compare(
    agent: &str,
    path: &Path,
    key: Option<&str>,
    wanted: &Value,
    differences: &mut Vec<String>,
) {
    let place =
        format!("{}{}", path.display(), key.map(|key| format!(" [{key}]")).unwrap_or_default());
    let got = match counted(path, key) {
        Ok(got) => got,
        Err(reason) => return differences.push(format!("{place}: {reason}")),
    };
    for name in KEYS {
        let Some(wanted) =
            wanted.get(name).filter(|wanted| !wanted.is_object() || name == "tokens")
        else {
            continue;
        };
        if DISPUTED.iter().any(|(file, key, _)| path.ends_with(file) && *key == name) {
            continue;
        }
        let wanted = if name == "tokens" { normalised(agent, wanted) } else { sorted(wanted) };
        let got = if name == "tokens" { numbers(&got[name], &wanted) } else { sorted(&got[name]) };
        if !same(name, &got, &wanted) {
            differences.push(format!("{place}: {name}: got {got}, expected {wanted}"));
        }
    }
}

fn counted(path: &Path, key: Option<&str>) -> Result<Value, String> {
    let found = format::find_sessions(path).map_err(|error| error.to_string())?;
    let mut inspections: Vec<SessionInspection> = Vec::new();
    for found in &found {
        inspections.push(inspect_session(found).map_err(|error| error.to_string())?);
    }
    let mut wanted = inspections.iter().filter(|inspection| {
        key.is_none_or(|key| {
            [inspection.key.as_deref(), inspection.session_id.as_deref()].contains(&Some(key))
        })
    });
    let Some(inspection) = wanted.next() else { return Err("not recognised".to_owned()) };
    let mut counts = serde_json::to_value(inspection).unwrap();
    // The prompts of a file are counted over all of its sessions, unless those are named.
    if key.is_none() && inspection.key.is_some() {
        let all = std::iter::once(inspection).chain(wanted);
        counts["user_prompts"] = all.map(|inspection| inspection.user_prompts).sum::<u64>().into();
        counts["sessions"] = inspections.len().into();
    }
    Ok(counts)
}

fn sorted(value: &Value) -> Value {
    let Value::Array(items) = value else { return value.clone() };
    let mut texts: Vec<_> = items.iter().map(ToString::to_string).collect();
    texts.sort();
    Value::from(texts)
}

fn same(name: &str, got: &Value, wanted: &Value) -> bool {
    if !name.ends_with("timestamp") {
        return got == wanted;
    }
    let instant = |value: &Value| {
        let text = value.as_str()?;
        Some(text.parse::<steno_model::Timestamp>().ok()?.instant().as_millisecond())
    };
    // The publisher removed some times, which cannot be compared.
    (wanted.is_string() && instant(wanted).is_none()) || instant(got) == instant(wanted)
}

/// Our counts of the kinds that the other side states.
fn numbers(tokens: &Value, wanted: &Value) -> Value {
    let Value::Object(wanted) = wanted else { return tokens.clone() };
    wanted.keys().map(|name| (name.clone(), tokens[name].clone())).collect::<Map<_, _>>().into()
}

/// The vendor's token counts in our names: `input` is what no cache served, `output` includes reasoning.
fn normalised(agent: &str, tokens: &Value) -> Value {
    if tokens.is_null() {
        return json!({});
    }
    let count = |name: &str| tokens.get(name).and_then(Value::as_u64).unwrap_or(0);
    let usage = match agent {
        "codex" => Usage {
            input: count("input") - count("cached_input") - count("cache_write_input"),
            cache_read: count("cached_input"),
            cache_write: count("cache_write_input"),
            output: count("output"),
            reasoning: count("reasoning_output"),
            ..Usage::default()
        },
        "gemini-cli" => Usage {
            input: count("input") - count("cached") + count("tool"),
            cache_read: count("cached"),
            output: count("output") + count("thoughts"),
            reasoning: count("thoughts"),
            ..Usage::default()
        },
        "qwen-code" => Usage {
            input: count("promptTokenCount") - count("cachedContentTokenCount"),
            cache_read: count("cachedContentTokenCount"),
            output: match count("totalTokenCount").checked_sub(count("promptTokenCount")) {
                Some(output) => output,
                None => count("candidatesTokenCount") + count("thoughtsTokenCount"),
            },
            reasoning: count("thoughtsTokenCount"),
            ..Usage::default()
        },
        "opencode" => Usage {
            input: count("input"),
            cache_read: count("cache_read"),
            cache_write: count("cache_write"),
            output: count("output") + count("reasoning"),
            reasoning: count("reasoning"),
            ..Usage::default()
        },
        "pi" => Usage {
            input: count("input"),
            cache_read: count("cacheRead"),
            cache_write: count("cacheWrite"),
            output: count("output"),
            ..Usage::default()
        },
        "zed" => Usage {
            input: count("input_tokens"),
            cache_read: count("cache_read_input_tokens"),
            cache_write: count("cache_creation_input_tokens"),
            output: count("output_tokens"),
            ..Usage::default()
        },
        _ => Usage {
            input: count("input"),
            cache_read: count("cache_read"),
            cache_write: count("cache_write"),
            cache_write_5m: count("cache_write_5m"),
            cache_write_1h: count("cache_write_1h"),
            output: count("output"),
            reasoning: count("reasoning"),
        },
    };
    serde_json::to_value(usage).unwrap()
}

#[test]
fn aider() {
    check("aider");
}

#[test]
fn amp() {
    check("amp");
}

#[test]
fn claude_code() {
    check("claude-code");
}

#[test]
fn codex() {
    check("codex");
}

#[test]
fn copilot_cli() {
    check("copilot-cli");
}

#[test]
fn crush() {
    check("crush");
}

#[test]
fn cursor() {
    check("cursor");
}

#[test]
fn factory_droid() {
    check("factory-droid");
}

#[test]
fn gemini_cli() {
    check("gemini-cli");
}

#[test]
fn goose() {
    check("goose");
}

#[test]
fn opencode() {
    check("opencode");
}

#[test]
fn pi() {
    check("pi");
}

#[test]
fn qwen_code() {
    check("qwen-code");
}

#[test]
fn swe_agent() {
    check("swe-agent");
}

#[test]
fn vscode_copilot() {
    check("vscode-copilot");
}

#[test]
fn zed() {
    check("zed");
}

/// Several sessions in one file read the same from the vault after the file is gone.
#[test]
fn kept_sessions_outlive_their_files() {
    let Some(fixtures) = std::env::var_os("STENO_FIXTURES") else { return };
    let temp = tempfile::tempdir().unwrap();
    let vault = Vault::new(temp.path().join("vault"));
    for agent in ["crush", "goose", "zed", "cursor", "opencode"] {
        let copy = temp.path().join(agent);
        copy_all(&PathBuf::from(&fixtures).join(agent), &copy);
        let mut kept = Vec::new();
        for found in format::find_sessions(&copy).unwrap() {
            // Some are there twice, once exported; those would have one folder.
            let before = found.read_transcript().unwrap();
            let id = SessionId::for_native(agent, &format!("{}", kept.len()));
            let dir = vault.session_dir(&agent.parse().unwrap(), &id);
            dir.keep_session(&found.bundle).unwrap();
            kept.push((dir, found.reader.agent, before));
        }
        std::fs::remove_dir_all(&copy).unwrap();
        assert!(!kept.is_empty(), "{agent}");
        for (dir, reader, before) in kept.iter().filter(|(_, reader, _)| *reader == agent) {
            let after = dir.read_transcript().unwrap();
            assert_eq!(after.entries, before.entries, "{reader} {}", before.session.id);
            assert_eq!(after.problems, before.problems);
            assert_eq!(after.session.totals, before.session.totals);
        }
    }
    assert_eq!(vault.verify(&mut |_| ()).unwrap().damage, []);
}

fn copy_all(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for item in std::fs::read_dir(from).unwrap().flatten() {
        if item.path().is_dir() {
            copy_all(&item.path(), &to.join(item.file_name()));
        } else {
            std::fs::copy(item.path(), to.join(item.file_name())).unwrap();
        }
    }
}

//! Tests how `steno exec` routes each agent to the gateway.

use std::os::unix::fs::PermissionsExt;

use serde_json::{Value, json};

use crate::harness::{Home, Output};

/// Prints its arguments and the variables that agents read, one per line.
const SCRIPT: &str = r#"#!/bin/sh
for word in "$@"; do echo "argument $word"; done
for name in OPENAI_BASE_URL ANTHROPIC_BASE_URL CODE_ASSIST_ENDPOINT CODEX_CONFIG OPENCODE_CONFIG_CONTENT; do
    eval "echo \"$name \$$name\""
done
"#;

/// Runs a program with this name under `steno exec`; the gateway's address becomes `GATEWAY`.
fn exec(home: &Home, words: &[&str], variables: &[(&str, &str)]) -> Output {
    let program = home.file(&format!("bin/{}", words[0]), SCRIPT);
    std::fs::set_permissions(&program, std::fs::Permissions::from_mode(0o755)).unwrap();
    let mut args = vec!["exec", "-q", "--", program.to_str().unwrap()];
    args.extend(&words[1..]);
    let mut command = home.command(&args);
    command.envs(variables.iter().copied());
    let mut output = home.finish(command, b"");
    assert_eq!(output.code, 0, "{output}");
    let address = output.stdout.split("http://127.0.0.1:").nth(1).unwrap();
    let port: String = address.chars().take_while(char::is_ascii_digit).collect();
    output.stdout = output.stdout.replace(&format!("http://127.0.0.1:{port}"), "GATEWAY");
    output
}

fn arguments(output: &Output) -> Vec<&str> {
    output.stdout.lines().filter_map(|line| line.strip_prefix("argument ")).collect()
}

fn variable<'a>(output: &'a Output, name: &str) -> &'a str {
    let prefix = format!("{name} ");
    output.stdout.lines().find_map(|line| line.strip_prefix(&prefix)).unwrap()
}

#[test]
fn codex_gets_a_setting_that_wins_over_its_file() {
    let home = Home::new();
    let launched = exec(&home, &["codex", "exec", "Hi"], &[]);
    assert_eq!(arguments(&launched), ["-c", "openai_base_url=\"GATEWAY/openai/v1\"", "exec", "Hi"]);
    assert_eq!(variable(&launched, "CODEX_CONFIG"), r#"{"openai_base_url":"GATEWAY/openai/v1"}"#);

    home.file(".codex/auth.json", r#"{"auth_mode":"chatgpt","tokens":{"access_token":"x"}}"#);
    let launched = exec(&home, &["codex"], &[]);
    let chatgpt = "openai_base_url=\"GATEWAY/chatgpt/backend-api/codex\"";
    assert_eq!(arguments(&launched), ["-c", chatgpt]);
    let launched = exec(&home, &["codex"], &[("CODEX_API_KEY", "x")]);
    assert_eq!(arguments(&launched), ["-c", "openai_base_url=\"GATEWAY/openai/v1\""]);

    let settings =
        "model_provider = \"own\"\n[model_providers.own]\nbase_url = \"http://llm.example/a/v1\"\n";
    home.file(".codex/config.toml", settings);
    let launched = exec(&home, &["codex"], &[]);
    let own = "model_providers.own.base_url=\"GATEWAY/openai-2/a/v1\"";
    assert_eq!(arguments(&launched), ["-c", own]);
}

#[test]
fn a_flag_of_the_user_is_replaced_and_its_server_asked() {
    let home = Home::new();
    let words =
        ["codex", "exec", "-c", "openai_base_url='https://llm.example/v1'", "-c", "model=m"];
    let launched = exec(&home, &words, &[]);
    let replaced = "openai_base_url=\"GATEWAY/openai-2/v1\"";
    assert_eq!(arguments(&launched), ["exec", "-c", replaced, "-c", "model=m"]);
    // Text after `--` is a prompt.
    let launched = exec(&home, &["codex", "exec", "--", "-c", "openai_base_url=x"], &[]);
    assert_eq!(arguments(&launched)[..3], ["-c", "openai_base_url=\"GATEWAY/openai/v1\"", "exec"]);
    assert_eq!(arguments(&launched)[3..], ["--", "-c", "openai_base_url=x"]);
    for (given, launched) in [
        (
            vec!["--openai-base-url", "https://q.example/v1"],
            vec!["--openai-base-url", "GATEWAY/qwen/v1"],
        ),
        (vec!["--openai-base-url=https://q.example/v1"], vec!["--openai-base-url=GATEWAY/qwen/v1"]),
    ] {
        let words = [vec!["qwen"], given].concat();
        assert_eq!(arguments(&exec(&home, &words, &[])), launched);
    }
}

#[test]
fn codex_for_editors_reads_a_variable() {
    let home = Home::new();
    let launched = exec(&home, &["codex-acp"], &[("CODEX_CONFIG", r#"{"model":"m"}"#)]);
    assert!(arguments(&launched).is_empty(), "{launched}");
    let config: Value = serde_json::from_str(variable(&launched, "CODEX_CONFIG")).unwrap();
    assert_eq!(config, json!({"model": "m", "openai_base_url": "GATEWAY/openai/v1"}));
}

#[test]
fn providers_of_opencode_keep_their_servers() {
    let home = Home::new();
    home.file(
        ".config/opencode/opencode.jsonc",
        r#"{ // mine
            "provider": {"own": {"options": {"baseURL": "{env:OWN}/v1", "apiKey": "x"}}, "plain": {}}}"#,
    );
    let variables =
        [("OWN", "http://llm.example"), ("OPENCODE_CONFIG_CONTENT", r#"{"model":"own/m"}"#)];
    let launched = exec(&home, &["opencode", "run", "Hi"], &variables);
    let content: Value =
        serde_json::from_str(variable(&launched, "OPENCODE_CONFIG_CONTENT")).unwrap();
    let options = |address: &str| json!({"options": {"baseURL": address}});
    let providers = json!({"own": options("GATEWAY/own/v1"),
        "opencode": options("GATEWAY/opencode/zen/v1"),
        "openrouter": options("GATEWAY/openrouter/api/v1")});
    assert_eq!(content, json!({"model": "own/m", "provider": providers}));
    assert_eq!(arguments(&launched), ["run", "Hi"]);
}

#[test]
fn settings_that_win_over_variables_are_overridden() {
    let home = Home::new();
    let launched = exec(&home, &["claude", "-p", "Hi"], &[]);
    assert_eq!(arguments(&launched), ["-p", "Hi"]);
    assert_eq!(variable(&launched, "ANTHROPIC_BASE_URL"), "GATEWAY/anthropic");
    assert_eq!(variable(&launched, "CODE_ASSIST_ENDPOINT"), "GATEWAY/code-assist");
    home.file(".claude/settings.json", r#"{"env":{"ANTHROPIC_BASE_URL":"https://llm.example/a"}}"#);
    let launched = exec(&home, &["claude", "-p", "Hi"], &[]);
    let settings = r#"{"env":{"ANTHROPIC_BASE_URL":"GATEWAY/anthropic-2/a"}}"#;
    assert_eq!(arguments(&launched), ["--settings", settings, "-p", "Hi"]);
}

#[test]
fn servers_in_files_are_those_that_are_asked() {
    let home = Home::new();
    let base_url = |home: &Home, program: &str| {
        variable(&exec(home, &[program], &[]), "OPENAI_BASE_URL").to_owned()
    };
    assert_eq!(base_url(&home, "tool"), "GATEWAY/openai/v1");
    home.file(
        ".qwen/settings.json",
        r#"{"security":{"auth":{"baseUrl":"https://q.example/b/v1"}}}"#,
    );
    assert_eq!(base_url(&home, "qwen"), "GATEWAY/openai/b/v1");
    assert_eq!(base_url(&home, "tool"), "GATEWAY/openai/v1");
    home.file(".env", "OPENAI_BASE_URL=https://env.example/c/v1\n");
    assert_eq!(base_url(&home, "tool"), "GATEWAY/openai/c/v1");
}

#[test]
fn a_program_from_which_nothing_came_is_explained() {
    let home = Home::new();
    let hint = |program: &str| exec(&home, &[program], &[]).stderr;
    insta::assert_snapshot!(hint("tool"), @r"
    warning: no requests reached the gateway; nothing was recorded
    hint: the program may not read OPENAI_BASE_URL, ANTHROPIC_BASE_URL or GOOGLE_GEMINI_BASE_URL: give it one of these as its API address, or record it with `steno exec --proxy`
    ");
    insta::assert_snapshot!(hint("copilot"), @r"
    warning: no requests reached the gateway; nothing was recorded
    hint: copilot accepts no other API address; record it with `steno exec --proxy`
    ");
}

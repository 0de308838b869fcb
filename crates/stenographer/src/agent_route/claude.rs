//! Routes Claude Code. A URL in the `env` of its settings files takes precedence over the environment; only
//! `--settings` overrides the files.

use serde_json::json;

use super::settings_file::{read_json, text_at};
use super::{AgentRoute, LaunchWord, program_name};
use crate::process_environment::ProcessEnvironment;

const BASE_URL_VARIABLE: &str = "ANTHROPIC_BASE_URL";

pub(super) fn apply_claude_settings(
    route: &mut AgentRoute,
    env: &ProcessEnvironment,
    program: usize,
) {
    let home = ProcessEnvironment::variable("CLAUDE_CONFIG_DIR")
        .map_or_else(|| env.home.join(".claude"), |folder| env.cwd.join(folder));
    let project = env.cwd.join(".claude");
    let files = [
        project.join("settings.local.json"),
        project.join("settings.json"),
        home.join("settings.json"),
    ];
    let mut configured = files.iter().filter_map(|file| {
        text_at(&read_json(file), &["env", BASE_URL_VARIABLE]).map(str::to_owned)
    });
    let has_flag = route
        .user_arguments(program)
        .any(|(_, word)| word == "--settings" || word.starts_with("--settings="));
    let Some(path) =
        configured.next().and_then(|address| route.environment.route_to("anthropic", &address))
    else {
        return;
    };
    let LaunchWord::Plain(name) = &route.words[program] else { return };
    // The ACP adapter has no such flag. Claude Code uses only the last of two.
    if has_flag || program_name(name).ends_with("-acp") {
        return;
    }
    let settings = json!({"env": {BASE_URL_VARIABLE: "\u{0}"}}).to_string();
    let (before, after) = settings.split_once("\\u0000").expect("it was just written");
    let words =
        [LaunchWord::Plain("--settings".into()), LaunchWord::with_address(before, &path, after)];
    route.words.splice(program + 1..program + 1, words);
}

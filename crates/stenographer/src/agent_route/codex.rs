//! Routes Codex. Codex reads its URL from `openai_base_url`, or from the provider that its settings select; `-c`
//! overrides the file. Its ACP adapter reads the same settings as JSON from `CODEX_CONFIG`.
//!
//! A login with ChatGPT uses another server than an API key; `auth.json` shows which login it is.

use std::path::PathBuf;

use serde_json::{Value, json};
use toml_edit::{Document, Item};

use super::settings_file::{parse_json, read_json};
use super::{AgentRoute, LaunchWord, program_name};
use crate::process_environment::ProcessEnvironment;

const CONFIG_VARIABLE: &str = "CODEX_CONFIG";
const CHATGPT_URL: &str = "https://chatgpt.com/backend-api/codex";
const OPENAI_URL: &str = "https://api.openai.com/v1";

pub(super) fn apply_codex_config(route: &mut AgentRoute, env: &ProcessEnvironment, program: usize) {
    let settings = CodexSettings::read(route, env, program);
    let Some((key, address)) = settings.base_url() else { return };
    let environment = &mut route.environment;
    let path = match address.as_str() {
        CHATGPT_URL => environment.route_to_vendor("chatgpt", CHATGPT_URL),
        OPENAI_URL => environment.route_to_vendor("openai", OPENAI_URL),
        other => environment.route_to("openai", other),
    };
    let Some(path) = path else { return };
    set_flag(route, &settings, &CodexConfigChange { key: &key, path: &path, program });
    let mut config = settings.adapter_config;
    config[&key] = json!("\u{1}");
    let text = config.to_string();
    let pieces: Vec<_> = text.split("\\u0001").collect();
    let [before, after] = pieces[..] else { return };
    route
        .variables
        .push((CONFIG_VARIABLE.to_owned(), LaunchWord::with_address(before, &path, after)));
}

/// Sets the gateway's address with the highest precedence.
fn set_flag(route: &mut AgentRoute, settings: &CodexSettings, place: &CodexConfigChange<'_>) {
    let CodexConfigChange { key, path, program } = *place;
    if let LaunchWord::Plain(name) = &route.words[program]
        && program_name(name).ends_with("-acp")
    {
        // The adapter reads the variable only.
        return;
    }
    let given = settings.overrides.iter().rev().find(|given| given.key == key);
    match given {
        // The user's own flag would override ours, so its value is replaced.
        Some(given) => {
            let before = format!("{}{key}=\"", given.flag_prefix);
            route.words[given.word_index] = LaunchWord::with_address(&before, path, "\"");
        }
        None => {
            let word = LaunchWord::with_address(&format!("{key}=\""), path, "\"");
            let words = [LaunchWord::Plain("-c".into()), word];
            route.words.splice(program + 1..program + 1, words);
        }
    }
}

/// The setting to change, the gateway path for its value, and the index of the word `codex`.
#[derive(Clone, Copy)]
struct CodexConfigChange<'a> {
    key: &'a str,
    path: &'a str,
    program: usize,
}

/// One `-c KEY=VALUE` of the command line.
struct CodexConfigFlag {
    key: String,
    value: String,
    /// Index of the word, and the text in that word before the key.
    word_index: usize,
    flag_prefix: String,
}

/// The settings that select Codex's server.
struct CodexSettings {
    file: Option<Document<String>>,
    overrides: Vec<CodexConfigFlag>,
    adapter_config: Value,
    is_chatgpt: bool,
}

impl CodexSettings {
    fn read(route: &AgentRoute, env: &ProcessEnvironment, program: usize) -> Self {
        let home = ProcessEnvironment::variable("CODEX_HOME")
            .map_or_else(|| env.home.join(".codex"), |folder| env.cwd.join(folder));
        let text = std::fs::read_to_string(home.join("config.toml")).unwrap_or_default();
        let config =
            ProcessEnvironment::variable(CONFIG_VARIABLE).and_then(|text| text.into_string().ok());
        let config = config.as_deref().map(parse_json).filter(Value::is_object);
        Self {
            file: Document::parse(text).ok(),
            overrides: parse_overrides(route, program),
            adapter_config: config.unwrap_or_else(|| json!({})),
            is_chatgpt: is_chatgpt_login(&home),
        }
    }

    /// Returns the key that sets the base URL, and its current value.
    fn base_url(&self) -> Option<(String, String)> {
        let provider = self.find_value("model_provider").unwrap_or_else(|| "openai".to_owned());
        if provider != "openai" {
            let key = format!("model_providers.{provider}.base_url");
            return self.find_value(&key).map(|address| (key, address));
        }
        let key = "openai_base_url".to_owned();
        let default = if self.is_chatgpt { CHATGPT_URL } else { OPENAI_URL };
        Some((key.clone(), self.find_value(&key).unwrap_or_else(|| default.to_owned())))
    }

    fn find_value(&self, key: &str) -> Option<String> {
        let given = self.overrides.iter().rev().find(|given| given.key == key);
        if let Some(given) = given {
            return Some(given.value.clone());
        }
        if let Some(value) = self.adapter_config.get(key).and_then(Value::as_str) {
            return Some(value.to_owned());
        }
        let file = self.file.as_ref()?;
        let mut parts = key.split('.');
        let first = file.as_table().get(parts.next()?);
        let found = parts.try_fold(first?, |item: &Item, part| item.get(part))?;
        found.as_str().map(str::to_owned)
    }
}

/// Parses the `-c` and `--config` flags of a command line.
fn parse_overrides(route: &AgentRoute, program: usize) -> Vec<CodexConfigFlag> {
    let mut found = Vec::new();
    let mut is_value = false;
    for (word_index, word) in route.user_arguments(program) {
        if word == "--" {
            break;
        }
        let flag = ["--config=", "-c="].iter().find(|flag| word.starts_with(**flag));
        let before = match flag {
            Some(flag) => Some(*flag),
            None if is_value => Some(""),
            None => None,
        };
        is_value = word == "-c" || word == "--config";
        let configured =
            before.and_then(|before| Some((before, word[before.len()..].split_once('=')?)));
        if let Some((before, (key, value))) = configured {
            let (key, value) = (key.trim().to_owned(), unquote_toml(value));
            found.push(CodexConfigFlag { key, value, word_index, flag_prefix: before.to_owned() });
        }
    }
    found
}

/// Removes the quotes of a TOML string; quotes may be missing.
fn unquote_toml(value: &str) -> String {
    let value = value.trim();
    let quoted =
        ['"', '\''].iter().find_map(|quote| value.strip_prefix(*quote)?.strip_suffix(*quote));
    quoted.unwrap_or(value).to_owned()
}

/// Returns whether Codex uses a ChatGPT login.
fn is_chatgpt_login(home: &std::path::Path) -> bool {
    if ProcessEnvironment::variable("CODEX_API_KEY").is_some() {
        return false;
    }
    let auth = read_json(&PathBuf::from(home).join("auth.json"));
    match auth.get("auth_mode").and_then(Value::as_str) {
        Some(mode) => mode.to_ascii_lowercase().starts_with("chatgpt"),
        None => {
            auth.get("tokens").is_some_and(Value::is_object)
                && !auth.get("OPENAI_API_KEY").is_some_and(Value::is_string)
        }
    }
}

//! OpenCode reads the SDKs' variables for the vendors' own providers; those of its settings are given another address in
//! `OPENCODE_CONFIG_CONTENT`, which wins over all files.

use std::path::PathBuf;

use serde_json::{Map, Value, json};

use super::settings_file::{parse_json, read_json, text_at};
use super::{AgentRoute, LaunchWord};
use crate::process_environment::ProcessEnvironment;

const CONTENT_VARIABLE: &str = "OPENCODE_CONFIG_CONTENT";

/// Stands for the gateway's address until that is known: no JSON text has it.
const ADDRESS_MARK: char = '\u{1}';

/// Providers that OpenCode offers without any settings.
const BUILT_IN_PROVIDERS: [(&str, &str); 2] =
    [("opencode", "https://opencode.ai/zen/v1"), ("openrouter", "https://openrouter.ai/api/v1")];

pub(super) fn apply_opencode_config(route: &mut AgentRoute, env: &ProcessEnvironment) {
    let own =
        ProcessEnvironment::variable(CONTENT_VARIABLE).and_then(|text| text.into_string().ok());
    let mut content = own.as_deref().map(parse_json).unwrap_or_default();
    let mut addresses: Vec<(String, String)> = Vec::new();
    let files = config_files(env).into_iter().map(|file| read_json(&file));
    for config in files.chain([content.clone()]) {
        for (id, address) in read_providers(&config) {
            addresses.retain(|(known, _)| *known != id);
            addresses.push((id, address));
        }
    }
    if !content.is_object() {
        content = json!({});
    }
    let stated = |id: &str| addresses.iter().any(|(known, _)| known == id);
    for (id, address) in BUILT_IN_PROVIDERS.into_iter().filter(|(id, _)| !stated(id)) {
        if let Some(path) = route.environment.route_to_vendor(id, address) {
            set_base_url(&mut content, id, &format!("{ADDRESS_MARK}{path}"));
        }
    }
    for (id, address) in addresses {
        if let Some(path) = route.environment.route_to(&id, &address) {
            set_base_url(&mut content, &id, &format!("{ADDRESS_MARK}{path}"));
        }
    }
    let text = content.to_string();
    // JSON escapes control characters.
    let pieces = text.split("\\u0001").map(str::to_owned).collect();
    route.variables.push((CONTENT_VARIABLE.to_owned(), LaunchWord::WithAddress(pieces)));
}

/// The settings files, those that win last.
fn config_files(env: &ProcessEnvironment) -> Vec<PathBuf> {
    let config = ProcessEnvironment::variable("XDG_CONFIG_HOME")
        .map_or_else(|| env.home.join(".config"), PathBuf::from)
        .join("opencode");
    let mut files: Vec<PathBuf> =
        ["config.json", "opencode.json", "opencode.jsonc"].map(|name| config.join(name)).into();
    files.extend(ProcessEnvironment::variable("OPENCODE_CONFIG").map(|file| env.cwd.join(file)));
    let mut folders: Vec<_> = env.cwd.ancestors().collect();
    folders.reverse();
    for folder in folders {
        files.extend(["opencode.json", "opencode.jsonc"].map(|name| folder.join(name)));
    }
    files
}

/// The providers with an address of their own.
fn read_providers(config: &Value) -> Vec<(String, String)> {
    let providers = config.get("provider").and_then(Value::as_object);
    let stated = providers.into_iter().flatten().filter_map(|(id, provider)| {
        let address = text_at(provider, &["options", "baseURL"])?;
        Some((id.clone(), expand_variables(address)))
    });
    stated.collect()
}

/// Puts in the variables that `{env:NAME}` names.
fn expand_variables(text: &str) -> String {
    let mut expanded = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once("{env:") {
        let Some((name, after)) = after.split_once('}') else { break };
        let value = ProcessEnvironment::variable(name).and_then(|value| value.into_string().ok());
        expanded += before;
        expanded += &value.unwrap_or_default();
        rest = after;
    }
    expanded + rest
}

fn set_base_url(content: &mut Value, id: &str, address: &str) {
    let mut place = content;
    for field in ["provider", id, "options"] {
        let Value::Object(fields) = place else { return };
        place = fields.entry(field).or_insert_with(|| Value::Object(Map::new()));
    }
    if let Value::Object(options) = place {
        options.insert("baseURL".to_owned(), address.into());
    }
}

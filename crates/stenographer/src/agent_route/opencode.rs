//! Routes OpenCode. It reads the SDKs' variables for the vendors' own providers. The other providers get their URL
//! from `OPENCODE_CONFIG_CONTENT`, which overrides all files.

use std::path::PathBuf;

use serde_json::{Map, Value, json};

use super::settings_file::{parse_json, read_json, text_at};
use super::{AgentRoute, LaunchWord};
use crate::process_environment::ProcessEnvironment;

const CONTENT_VARIABLE: &str = "OPENCODE_CONFIG_CONTENT";

/// Placeholder for the gateway's address until it is known. No JSON text contains it.
const ADDRESS_MARK: char = '\u{1}';

/// Providers that OpenCode offers without settings.
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
    let configured = |id: &str| addresses.iter().any(|(known, _)| known == id);
    for (id, address) in BUILT_IN_PROVIDERS.into_iter().filter(|(id, _)| !configured(id)) {
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

/// Returns the settings files, lowest precedence first.
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

/// Returns the providers with their own base URL.
fn read_providers(config: &Value) -> Vec<(String, String)> {
    let providers = config.get("provider").and_then(Value::as_object);
    let configured = providers.into_iter().flatten().filter_map(|(id, provider)| {
        let address = text_at(provider, &["options", "baseURL"])?;
        Some((id.clone(), expand_variables(address)))
    });
    configured.collect()
}

/// Replaces each `{env:NAME}` with the variable's value.
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
    let mut target = content;
    for field in ["provider", id, "options"] {
        let Value::Object(fields) = target else { return };
        target = fields.entry(field).or_insert_with(|| Value::Object(Map::new()));
    }
    if let Value::Object(options) = target {
        options.insert("baseURL".to_owned(), address.into());
    }
}

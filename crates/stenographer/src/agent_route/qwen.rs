//! Qwen Code reads `OPENAI_BASE_URL`, but its flag wins over that, and its settings name the server where no variable does.

use super::dotenv::stated_variables;
use super::settings_file::{read_json, text_at};
use super::{AgentRoute, LaunchWord};
use crate::scene::Scene;

const FLAG: &str = "--openai-base-url";

/// The server that its settings name.
pub(super) fn stated_base_url(scene: &Scene) -> Option<String> {
    let folders = [scene.cwd.join(".qwen"), scene.home.join(".qwen")];
    let in_env = |folder: &std::path::PathBuf| stated_variables(folder).remove("OPENAI_BASE_URL");
    let in_settings = |folder: &std::path::PathBuf| {
        let settings = read_json(&folder.join("settings.json"));
        text_at(&settings, &["security", "auth", "baseUrl"]).map(str::to_owned)
    };
    folders.iter().find_map(in_env).or_else(|| folders.iter().find_map(in_settings))
}

pub(super) fn apply(route: &mut AgentRoute) {
    let stated = route.arguments(0).find_map(|(at, word)| match word.strip_prefix(FLAG) {
        Some("") => Some((at + 1, String::new())),
        Some(rest) => Some((at, rest.strip_prefix('=')?.to_owned())),
        None => None,
    });
    let Some((at, inline)) = stated.filter(|(at, _)| *at < route.words.len()) else { return };
    let address = match &route.words[at] {
        LaunchWord::Plain(word) if inline.is_empty() => word.to_string_lossy().into_owned(),
        _ => inline.clone(),
    };
    if let Some(path) = route.environment.route_to("qwen", &address) {
        let before = if inline.is_empty() { String::new() } else { format!("{FLAG}=") };
        route.words[at] = LaunchWord::around(&before, &path, "");
    }
}

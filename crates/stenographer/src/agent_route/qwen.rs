//! Routes Qwen Code. It reads `OPENAI_BASE_URL`; its flag overrides the variable, and its settings apply if the
//! variable is not set.

use super::dotenv::read_dotenv;
use super::settings_file::{read_json, text_at};
use super::{AgentRoute, LaunchWord};
use crate::process_environment::ProcessEnvironment;

const BASE_URL_FLAG: &str = "--openai-base-url";

/// Returns the base URL in Qwen Code's settings.
pub(super) fn read_base_url(env: &ProcessEnvironment) -> Option<String> {
    let folders = [env.cwd.join(".qwen"), env.home.join(".qwen")];
    let in_env = |folder: &std::path::PathBuf| read_dotenv(folder).remove("OPENAI_BASE_URL");
    let in_settings = |folder: &std::path::PathBuf| {
        let settings = read_json(&folder.join("settings.json"));
        text_at(&settings, &["security", "auth", "baseUrl"]).map(str::to_owned)
    };
    folders.iter().find_map(in_env).or_else(|| folders.iter().find_map(in_settings))
}

pub(super) fn apply_qwen_flag(route: &mut AgentRoute) {
    let configured =
        route.user_arguments(0).find_map(|(at, word)| match word.strip_prefix(BASE_URL_FLAG) {
            Some("") => Some((at + 1, String::new())),
            Some(rest) => Some((at, rest.strip_prefix('=')?.to_owned())),
            None => None,
        });
    let Some((at, inline)) = configured.filter(|(at, _)| *at < route.words.len()) else { return };
    let address = match &route.words[at] {
        LaunchWord::Plain(word) if inline.is_empty() => word.to_string_lossy().into_owned(),
        _ => inline.clone(),
    };
    if let Some(path) = route.environment.route_to("qwen", &address) {
        let before = if inline.is_empty() { String::new() } else { format!("{BASE_URL_FLAG}=") };
        route.words[at] = LaunchWord::with_address(&before, &path, "");
    }
}

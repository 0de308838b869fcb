//! The model that a user has chosen for OpenCode. A session without a valid model cannot be continued without a terminal.

use std::fs;
use std::path::{Path, PathBuf};

use crate::agent::user_folders::UserFolders;
use steno_model::json::Value;

/// Names of the settings file.
const SETTINGS_FILES: [&str; 3] = ["opencode.json", "opencode.jsonc", "config.json"];

/// A model of a provider.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct OpenCodeModel {
    pub(super) provider: String,
    pub(super) model: String,
}

/// The model in the settings of the project or the user, or else the one used last. If there is none, OpenCode's own
/// free model.
pub(super) fn find_user_model(user: &UserFolders<'_>, project: &Path) -> OpenCodeModel {
    let config = user.folder_or_default("XDG_CONFIG_HOME", ".config").join("opencode");
    let named = user.path_variable("OPENCODE_CONFIG").into_iter();
    let in_folder = |folder: &Path| SETTINGS_FILES.map(|name| folder.join(name));
    let above = project.ancestors().flat_map(|folder| in_folder(folder).into_iter().take(2));
    let mut files = above.chain(named).chain(in_folder(&config));
    let state = user.folder_or_default("XDG_STATE_HOME", ".local/state");
    files
        .find_map(|file| model_in_settings(&file))
        .or_else(|| last_used_model(&state.join("opencode/model.json")))
        .unwrap_or_else(|| OpenCodeModel::new("opencode", "big-pickle"))
}

impl OpenCodeModel {
    fn new(provider: &str, model: &str) -> Self {
        Self { provider: provider.to_owned(), model: model.to_owned() }
    }
}

fn model_in_settings(file: &PathBuf) -> Option<OpenCodeModel> {
    let text = fs::read_to_string(file).ok()?;
    let settings: Value = serde_json::from_str(&without_comment_lines(&text)).ok()?;
    let (provider, model) = settings.get("model")?.as_str()?.split_once('/')?;
    Some(OpenCodeModel::new(provider, model))
}

/// JSON without lines that are comments.
fn without_comment_lines(text: &str) -> String {
    let lines = text.lines().filter(|line| !line.trim_start().starts_with("//"));
    lines.collect::<Vec<_>>().join("\n")
}

fn last_used_model(file: &Path) -> Option<OpenCodeModel> {
    let state: Value = serde_json::from_slice(&fs::read(file).ok()?).ok()?;
    let model = state.get("recent")?.get(0)?;
    Some(OpenCodeModel::new(model.get("providerID")?.as_str()?, model.get("modelID")?.as_str()?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_nearest_settings_decide() {
        let dir = tempfile::tempdir().unwrap();
        let (home, project) = (dir.path().join("home"), dir.path().join("home/code/shop"));
        fs::create_dir_all(&project).unwrap();
        let user = UserFolders { home: &home, variable: &|_| None };
        let found = || {
            let OpenCodeModel { provider, model } = find_user_model(&user, &project);
            format!("{provider} {model}")
        };
        assert_eq!(found(), "opencode big-pickle");
        let write = |file: &str, text: &str| {
            let path = home.join(file);
            fs::create_dir_all(path.parent().unwrap()).unwrap();
            fs::write(path, text).unwrap();
        };
        write(
            ".local/state/opencode/model.json",
            r#"{"recent":[{"providerID":"a","modelID":"1"}]}"#,
        );
        assert_eq!(found(), "a 1");
        write(".config/opencode/opencode.jsonc", "{\n  // mine\n  \"model\": \"b/2/x\"}");
        assert_eq!(found(), "b 2/x");
        write("code/opencode.json", r#"{"model":"c/3"}"#);
        assert_eq!(found(), "c 3");
    }
}

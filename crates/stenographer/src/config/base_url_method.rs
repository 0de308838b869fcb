//! The setting `base_url` of `[agents]`: how an agent gets the URL of the gateway. [`crate::agent_route`] applies it.

/// How an agent gets the base URL of its API.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BaseUrlMethod {
    /// The variables that SDKs read.
    Variables,
    /// Claude Code's `--settings` if its settings files name a server, else variables.
    ClaudeSettings,
    /// Codex's `-c`, and `CODEX_CONFIG` for its adapter.
    CodexConfig,
    /// `OPENCODE_CONFIG_CONTENT` for the providers in OpenCode's settings, else variables.
    OpenCodeConfig,
    /// Variables, with the server from Qwen Code's settings as upstream.
    QwenSettings,
    /// None: only `--proxy` records it.
    None,
}

const METHOD_NAMES: [(&str, BaseUrlMethod); 6] = [
    ("variables", BaseUrlMethod::Variables),
    ("claude-settings", BaseUrlMethod::ClaudeSettings),
    ("codex-config", BaseUrlMethod::CodexConfig),
    ("opencode-config", BaseUrlMethod::OpenCodeConfig),
    ("qwen-settings", BaseUrlMethod::QwenSettings),
    ("none", BaseUrlMethod::None),
];

impl BaseUrlMethod {
    /// Parses a name in a settings file.
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        METHOD_NAMES.iter().find(|(known, _)| *known == name).map(|(_, method)| *method)
    }

    /// Returns all names.
    pub(crate) fn names() -> Vec<&'static str> {
        METHOD_NAMES.iter().map(|(name, _)| *name).collect()
    }
}

//! The setting `base_url` of `[agents]`: how an agent is given the URL of the gateway. [`crate::agent_route`] applies it.

/// How `steno exec` gives an agent the base URL of its API.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum BaseUrlMethod {
    /// By the variables that SDKs read.
    Variables,
    /// By Claude Code's `--settings`, where its settings files name a server; else by variables.
    ClaudeSettings,
    /// By Codex's `-c`, and by `CODEX_CONFIG` for its adapter.
    CodexConfig,
    /// By `OPENCODE_CONFIG_CONTENT` for the providers that OpenCode's settings name; else by variables.
    OpenCodeConfig,
    /// By variables, after looking into Qwen Code's settings for the server.
    QwenSettings,
    /// Not at all: only `--proxy` records it.
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
    /// The method of a name in a settings file.
    pub(crate) fn from_name(name: &str) -> Option<Self> {
        METHOD_NAMES.iter().find(|(known, _)| *known == name).map(|(_, method)| *method)
    }

    /// All names.
    pub(crate) fn names() -> Vec<&'static str> {
        METHOD_NAMES.iter().map(|(name, _)| *name).collect()
    }
}

//! How Steno runs an agent, and routes its requests to the gateway.

/// How `steno run` and `steno exec` start an agent.
#[derive(Debug)]
pub struct AgentLaunch {
    /// The name for `steno run --agent`.
    pub name: &'static str,
    /// The position in which `steno run` looks for an installed agent, lowest first. Equal ones are tried in the
    /// order of the registry.
    pub run_order: u8,
    /// The program that speaks the Agent Client Protocol, and its arguments.
    pub command: &'static [&'static str],
    /// The command that installs it.
    pub install: &'static str,
    /// The program names that `steno exec` recognises.
    pub programs: &'static [&'static str],
    /// How it gets the base URL of its API.
    pub base_url: BaseUrlMethod,
}

/// How an agent gets the base URL of its API.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BaseUrlMethod {
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
    pub fn from_name(name: &str) -> Option<Self> {
        METHOD_NAMES.iter().find(|(known, _)| *known == name).map(|(_, method)| *method)
    }

    /// All names.
    pub fn names() -> Vec<&'static str> {
        METHOD_NAMES.iter().map(|(name, _)| *name).collect()
    }
}

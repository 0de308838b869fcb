//! Routes an agent's requests to the gateway: by the variables that SDKs read, or by the agent's own flags and
//! settings.
//!
//! If an agent's settings name another server than the vendor's, that server becomes an upstream of the gateway, so
//! the agent still reaches it.

mod claude;
mod codex;
mod dotenv;
mod opencode;
mod qwen;
mod settings_file;

use std::ffi::OsString;
use std::path::Path;

use steno_agents::agent::launch::BaseUrlMethod;
use steno_gateway::Upstreams;
use steno_gateway::sdk::SdkEnvironment;

use crate::config::AgentSetting;
use crate::process_environment::ProcessEnvironment;

/// A word of a command line or the value of a variable. Some contain the gateway's address, which is known only once
/// the gateway listens.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum LaunchWord {
    /// A word as the user typed it.
    Plain(OsString),
    /// Pieces of text, joined by the gateway's address.
    WithAddress(Vec<String>),
}

impl LaunchWord {
    /// Builds a word from `before`, the gateway's address with `path`, and `after`.
    fn with_address(before: &str, path: &str, after: &str) -> Self {
        Self::WithAddress(vec![before.to_owned(), format!("{path}{after}")])
    }

    fn resolve(&self, address: &str) -> OsString {
        match self {
            Self::Plain(word) => word.clone(),
            Self::WithAddress(pieces) => pieces.join(address).into(),
        }
    }
}

/// The command line and variables that send a program's requests through the gateway.
#[derive(Debug)]
pub(crate) struct AgentRoute {
    environment: SdkEnvironment,
    words: Vec<LaunchWord>,
    variables: Vec<(String, LaunchWord)>,
    /// The agent, if the program is a known one.
    agent: Option<KnownAgent>,
}

#[derive(Clone, Debug)]
struct KnownAgent {
    name: String,
    method: BaseUrlMethod,
}

impl AgentRoute {
    /// Detects the agent by the program's name, and finds the servers it is configured for.
    pub(crate) fn for_program(
        env: &ProcessEnvironment,
        agents: &[AgentSetting],
        command: &[OsString],
        upstreams: Upstreams,
    ) -> Self {
        let program = program_position(command);
        let found = agents.iter().find(|agent| {
            let name = program_name(&command[program]);
            agent.programs.contains(&name)
        });
        let method = found.map_or(BaseUrlMethod::Variables, |agent| agent.base_url);
        let configured = dotenv::read_dotenv(&env.cwd);
        let qwen = (method == BaseUrlMethod::QwenSettings).then(|| qwen::read_base_url(env));
        let variable = |name: &str| {
            let exported =
                ProcessEnvironment::variable(name).and_then(|value| value.into_string().ok());
            let own = || qwen.clone().flatten().filter(|_| name == "OPENAI_BASE_URL");
            exported.or_else(|| configured.get(name).cloned()).or_else(own)
        };
        let agent =
            found.map(|agent| KnownAgent { name: agent.name.clone(), method: agent.base_url });
        let mut route = Self {
            environment: SdkEnvironment::new(upstreams, variable),
            words: command.iter().cloned().map(LaunchWord::Plain).collect(),
            variables: Vec::new(),
            agent,
        };
        match method {
            BaseUrlMethod::ClaudeSettings => {
                claude::apply_claude_settings(&mut route, env, program)
            }
            BaseUrlMethod::CodexConfig => codex::apply_codex_config(&mut route, env, program),
            BaseUrlMethod::OpenCodeConfig => opencode::apply_opencode_config(&mut route, env),
            BaseUrlMethod::QwenSettings => qwen::apply_qwen_flag(&mut route),
            BaseUrlMethod::Variables | BaseUrlMethod::None => {}
        }
        route
    }

    /// Returns the upstreams of the program's requests.
    pub(crate) fn upstreams(&self) -> &Upstreams {
        &self.environment.upstreams
    }

    /// Builds the command line for a gateway at `address`.
    pub(crate) fn command(&self, address: &str) -> Vec<OsString> {
        self.words.iter().map(|word| word.resolve(address)).collect()
    }

    /// Builds the variables for a gateway at `address`.
    pub(crate) fn variables(&self, address: &str) -> Vec<(String, OsString)> {
        let shared = self.environment.variables(address).into_iter();
        let shared = shared.map(|(name, value)| (name.to_owned(), value.into()));
        let own = self.variables.iter();
        shared.chain(own.map(|(name, word)| (name.clone(), word.resolve(address)))).collect()
    }

    /// Returns a hint for a run without any recorded request.
    pub(crate) fn no_request_hint(&self) -> String {
        match &self.agent {
            Some(agent) if agent.method == BaseUrlMethod::None => format!(
                "{} accepts no other API address; record it with `steno exec --proxy`",
                agent.name
            ),
            Some(agent) => format!(
                "{} sent no requests to the gateway; if it called a model, use `steno exec --proxy`",
                agent.name
            ),
            None => "the program may not read OPENAI_BASE_URL, ANTHROPIC_BASE_URL or GOOGLE_GEMINI_BASE_URL: give it \
                     one of these as its API address, or record it with `steno exec --proxy`"
                .to_owned(),
        }
    }

    /// Iterates over the user's arguments, each with its index among the words.
    fn user_arguments(&self, program: usize) -> impl Iterator<Item = (usize, &str)> {
        let words = self.words.iter().enumerate().skip(program + 1);
        words.filter_map(|(at, word)| match word {
            LaunchWord::Plain(word) => Some((at, word.to_str()?)),
            LaunchWord::WithAddress(_) => None,
        })
    }
}

/// Returns the index of the program in a command. `npx` and similar runners, and their flags, are skipped.
fn program_position(command: &[OsString]) -> usize {
    let runners = ["npx", "bunx", "pnpx"];
    if !runners.contains(&program_name(&command[0]).as_str()) {
        return 0;
    }
    let is_flag = |word: &OsString| word.to_string_lossy().starts_with('-');
    command.iter().skip(1).position(|word| !is_flag(word)).map_or(0, |at| at + 1)
}

/// Returns a program's name without folder, version and extension: `codex` for `@openai/codex@latest`.
fn program_name(program: &OsString) -> String {
    let name = Path::new(program).file_name().unwrap_or_default().to_string_lossy().into_owned();
    let name = name
        .split_once('@')
        .filter(|(name, _)| !name.is_empty())
        .map_or(name.as_str(), |(name, _)| name);
    let extensions = [".js", ".mjs", ".exe", ".cmd"];
    let plain = extensions.iter().find_map(|extension| name.strip_suffix(extension));
    plain.unwrap_or(name).to_owned()
}

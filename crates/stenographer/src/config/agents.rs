//! `[agents]` and `[run]`: the agents and how to run them. The built-in agents are those of the registry.

use std::time::Duration;

use steno_acp::client::ContextLimits;
use steno_agents::agent::launch::{AgentLaunch, BaseUrlMethod};
use steno_agents::registry;
use toml_edit::{Item, Table, TableLike};

use super::Config;
use crate::error::CommandError;

/// Settings of an agent.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct AgentSetting {
    pub(crate) name: String,
    /// Program and arguments.
    pub(crate) command: Vec<String>,
    /// Command that installs it.
    pub(crate) install: Option<String>,
    /// Program names that `steno exec` recognizes.
    pub(crate) programs: Vec<String>,
    /// How it gets the URL of the gateway.
    pub(crate) base_url: BaseUrlMethod,
}

/// Default timeout for opening a session: an agent that `npx` first installs takes a minute.
const DEFAULT_ANSWER_TIMEOUT: Duration = Duration::from_secs(120);

/// Settings of `steno run`.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct RunSettings {
    /// Default agent.
    pub(crate) agent: Option<String>,
    /// When the agent gets the thread's context again.
    pub(crate) limits: ContextLimits,
    /// Timeout for opening a session.
    pub(crate) answer_timeout: Duration,
}

impl Default for RunSettings {
    fn default() -> Self {
        Self {
            agent: None,
            limits: ContextLimits::default(),
            answer_timeout: DEFAULT_ANSWER_TIMEOUT,
        }
    }
}

impl Config {
    /// Returns the user's agents, then the built-in ones.
    pub(crate) fn agents(&self) -> Result<Vec<AgentSetting>, CommandError> {
        let settings = self.parse_toml()?;
        let mut agents = self.parse_agents(&settings).map_err(|error| {
            error.hint(
                "define an agent by its command: [agents.NAME] command = [\"program\", \"argument\"]",
            )
        })?;
        for agent in built_in_agents() {
            if !agents.iter().any(|known| known.name == agent.name) {
                agents.push(agent);
            }
        }
        Ok(agents)
    }

    /// Returns the settings of `[run]`.
    pub(crate) fn run_settings(&self) -> Result<RunSettings, CommandError> {
        let settings = self.parse_toml()?;
        let mut run = RunSettings::default();
        for (name, item) in self.table_entries(&settings, "run")? {
            let unfit = |what: &str| self.error_at(item.span(), &format!("{name} is not {what}"));
            let count = || item.as_integer().and_then(|number| u64::try_from(number).ok());
            match name {
                "agent" => {
                    let agent = item.as_str().ok_or_else(|| unfit("an agent's name"))?;
                    run.agent = Some(agent.to_owned());
                }
                "context_share" => {
                    let share = item.as_float().filter(|share| (0.0..=1.0).contains(share));
                    run.limits.share = share.ok_or_else(|| unfit("a number between 0 and 1"))?;
                }
                "context_tokens" => {
                    run.limits.tokens = count().ok_or_else(|| unfit("a number of tokens"))?;
                }
                "context_rounds" => {
                    run.limits.rounds = count().ok_or_else(|| unfit("a number of prompts"))?;
                }
                "answer_timeout" => {
                    let seconds = count().filter(|seconds| *seconds > 0);
                    let seconds = seconds.ok_or_else(|| unfit("a number of seconds above 0"))?;
                    run.answer_timeout = Duration::from_secs(seconds);
                }
                _ => {
                    let known =
                        "agent, answer_timeout, context_share, context_tokens, context_rounds";
                    let reason = format!("unknown setting {name}; one of: {known}");
                    return Err(self.error_at(item.span(), &reason));
                }
            }
        }
        Ok(run)
    }

    fn parse_agents(&self, settings: &Table) -> Result<Vec<AgentSetting>, CommandError> {
        let mut agents = Vec::new();
        for (name, item) in self.table_entries(settings, "agents")? {
            let table = item.as_table_like().ok_or_else(|| {
                self.error_at(item.span(), &format!("agent {name} is not a table"))
            })?;
            agents.push(self.parse_agent(name, item, table)?);
        }
        Ok(agents)
    }

    fn parse_agent(
        &self,
        name: &str,
        item: &Item,
        table: &dyn TableLike,
    ) -> Result<AgentSetting, CommandError> {
        let known = ["command", "install", "programs", "base_url"];
        if let Some((key, item)) = table.iter().find(|(key, _)| !known.contains(key)) {
            let reason = format!("unknown setting {key} of agent {name}");
            return Err(self.error_at(item.span(), &reason));
        }
        let unfit = |key: &str, what: &str| {
            self.error_at(item.span(), &format!("{key} of agent {name} is not {what}"))
        };
        let command = table.get("command").and_then(parse_words).filter(|words| !words.is_empty());
        let command = command.ok_or_else(|| unfit("command", "a list of words"))?;
        let programs = match table.get("programs") {
            Some(item) => parse_words(item).ok_or_else(|| unfit("programs", "a list of words"))?,
            None => Vec::new(),
        };
        let base_url = match table.get("base_url") {
            Some(item) => {
                let method = item.as_str().and_then(BaseUrlMethod::from_name);
                method.ok_or_else(|| unfit("base_url", &BaseUrlMethod::names().join(" or ")))?
            }
            None => BaseUrlMethod::Variables,
        };
        let install = table.get("install").and_then(Item::as_str).map(str::to_owned);
        Ok(AgentSetting { name: name.to_owned(), command, install, programs, base_url })
    }
}

/// Returns the agents in the registry that can be run, in the order in which `steno run` tries them.
pub(crate) fn built_in_agents() -> Vec<AgentSetting> {
    let mut launches: Vec<_> =
        registry::all_agents().filter_map(|agent| agent.launch.as_ref()).collect();
    launches.sort_by_key(|launch| launch.run_order);
    let words = |words: &[&str]| words.iter().map(|word| (*word).to_owned()).collect();
    let setting = |launch: &AgentLaunch| AgentSetting {
        name: launch.name.to_owned(),
        command: words(launch.command),
        install: Some(launch.install.to_owned()),
        programs: words(launch.programs),
        base_url: launch.base_url,
    };
    launches.into_iter().map(setting).collect()
}

/// Parses a list of words; `None` if it is not one.
fn parse_words(item: &Item) -> Option<Vec<String>> {
    item.as_array()?.iter().map(|word| Some(word.as_str()?.to_owned())).collect()
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;

    fn config(text: &str) -> Config {
        Config { path: PathBuf::from("config.toml"), text: text.to_owned() }
    }

    #[test]
    fn the_users_agents_come_first() {
        let agents = config("[agents.gemini]\ncommand = [\"g\", \"--x\"]\n").agents().unwrap();
        let names: Vec<_> = agents.iter().map(|agent| agent.name.as_str()).collect();
        assert_eq!(names[..6], ["gemini", "claude", "codex", "opencode", "qwen", "copilot"]);
        assert_eq!(agents[0].command, ["g", "--x"]);
    }

    #[test]
    fn errors_name_the_line() {
        let wrong = |text: &str| config(text).agents().unwrap_err().error.to_string();
        assert_eq!(
            wrong("[agents.x]\ncommand = \"y\"\n"),
            "config.toml:1: command of agent x is not a list of words"
        );
        let run = |text: &str| config(text).run_settings().unwrap_err().error.to_string();
        assert_eq!(
            run("\n[run]\ncontext_share = 90.0\n"),
            "config.toml:3: context_share is not a number between 0 and 1"
        );
        assert_eq!(
            run("[run]\nanswer_timeout = 0\n"),
            "config.toml:2: answer_timeout is not a number of seconds above 0"
        );
        assert!(run("[run]\nagents = 1\n").starts_with("config.toml:2: unknown setting agents"));
    }
}

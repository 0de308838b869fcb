//! `steno run`: runs an agent on a task in a thread, and records the session.

pub(crate) mod conversation;
mod report;
mod run_display;
mod run_gateway;
pub(crate) mod thread_work;

use std::io::Read;

use steno_acp::client::PermissionPolicy;
use steno_acp::replay::REHEARSAL;

use self::conversation::AgentConversation;
use self::thread_work::ThreadWork;
use crate::config::{Config, built_in_agents};
use crate::error::{CommandError, CommandExit};
use crate::process_environment::ProcessEnvironment;
use crate::runnable_agent::RunnableAgent;
use crate::ui::Ui;

/// Run an agent on a task and record the session.
///
/// The agent gets the context of its thread: the paths of its assets and of those of referenced threads, and waiting
/// messages. All bytes are recorded. The thread gets a transcript of each prompt at the end of its turn, and a status
/// at the end of the run; after a kill, the next command on threads completes both. Only one process can work in a
/// thread at a time. Ctrl-C cancels the turn; a second Ctrl-C ends the agent. `steno resume THREAD` continues. An
/// agent that does not respond within two minutes while its session opens is ended; `[run] answer_timeout` in
/// `config.toml` sets another number of seconds.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Task for the agent; `-` reads standard input. Further prompts follow in the same session.
    #[arg(value_name = "PROMPT", required = true)]
    prompts: Vec<String>,
    #[arg(long, value_name = "NAME", help = agent_help())]
    agent: Option<String>,
    /// Work in this thread [default: a new one].
    #[arg(long, value_name = "ID")]
    thread: Option<String>,
    /// Work in a new thread of this objective [default: a new one].
    #[arg(long, value_name = "ID", conflicts_with = "thread")]
    objective: Option<String>,
    /// Add a reference to another thread; may be repeated.
    #[arg(long = "ref", value_name = "THREAD")]
    references: Vec<String>,
    #[command(flatten)]
    options: RunOptions,
}

/// Options of a run.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct RunOptions {
    /// Mode of the agent, such as plan.
    #[arg(long, value_name = "MODE")]
    pub(crate) mode: Option<String>,
    /// Who decides on the agent's permission requests [default: ask on a terminal, else deny].
    #[arg(long, value_enum, value_name = "WHO")]
    pub(crate) permission: Option<PermissionMode>,
    /// Do not record API traffic: the agent calls its model directly.
    #[arg(long)]
    pub(crate) no_gateway: bool,
    /// Wait while another process works in the thread, instead of failing.
    #[arg(long)]
    pub(crate) wait: bool,
    /// Print JSON Lines: each event, and the result.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Who decides on permission requests.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum PermissionMode {
    /// Ask the user.
    Ask,
    /// Allow everything.
    Allow,
    /// Deny everything that needs permission.
    Deny,
}

impl RunOptions {
    /// Returns the permission policy. By default a terminal asks, and everything else denies.
    pub(crate) fn policy(&self, ui: &Ui) -> PermissionPolicy {
        match self.permission {
            Some(PermissionMode::Ask) => PermissionPolicy::Ask,
            Some(PermissionMode::Allow) => PermissionPolicy::Allow,
            Some(PermissionMode::Deny) => PermissionPolicy::Deny,
            None if ui.is_interactive() => PermissionPolicy::Ask,
            None => PermissionPolicy::Deny,
        }
    }
}

/// Help for `--agent`, with the names of the built-in agents.
fn agent_help() -> String {
    let names: Vec<_> = built_in_agents().into_iter().map(|agent| agent.name).collect();
    format!(
        "Agent: {}, {REHEARSAL}, one from `config.toml`, or a command [default: the first that is installed]",
        names.join(", ")
    )
}

/// Runs the command.
pub(crate) fn run(
    ui: &mut Ui,
    env: &ProcessEnvironment,
    args: &Args,
) -> Result<CommandExit, CommandError> {
    let config = Config::load(env)?;
    let agent = RunnableAgent::find(&config, args.agent.as_deref())?;
    let prompts = read_prompts(&args.prompts)?;
    let work = ThreadWork::begin(ui, env, args, &prompts[0])?;
    if agent.is_rehearsal() && args.agent.is_none() {
        ui.print_note("no agent is installed; running a rehearsal without a model");
    }
    let settings = config.run_settings()?;
    let conversation = AgentConversation { env, agent, work, options: &args.options, settings };
    conversation.run(ui, prompts, None)
}

/// Reads the prompts; `-` reads standard input.
fn read_prompts(given: &[String]) -> Result<Vec<String>, CommandError> {
    let mut prompts = given.to_vec();
    for prompt in prompts.iter_mut().filter(|prompt| *prompt == "-") {
        prompt.clear();
        std::io::stdin().read_to_string(prompt)?;
    }
    match prompts.iter().any(|prompt| prompt.trim().is_empty()) {
        true => Err(CommandError::usage("the prompt is empty")
            .hint("give the task in quotes: steno run 'Fix the test'")),
        false => Ok(prompts),
    }
}

//! `steno run`: runs an agent on a task, in a thread of work, and records the session.

pub(crate) mod conversation;
mod report;
mod run_display;
mod run_gateway;
pub(crate) mod thread_work;

use std::io::Read;

use steno_acp::client::PermissionPolicy;

use self::conversation::AgentConversation;
use self::thread_work::ThreadWork;
use crate::config::Config;
use crate::error::{CommandError, CommandExit};
use crate::process_environment::ProcessEnvironment;
use crate::runnable_agent::RunnableAgent;
use crate::ui::Ui;

/// Run an agent on a task and record the session.
///
/// The agent is told of its thread: the assets of the thread and of those that it refers to, as paths, and what waits for it.
/// Each byte that is said is kept. The thread gets a transcript of each prompt when its turn has ended, and a status when the
/// agent has; what a kill leaves unfinished, the next command on threads finishes. One process works in a thread at a time.
/// Ctrl-C cancels the turn; a second one ends the agent. `steno resume THREAD` goes on. An agent that says nothing for two
/// minutes while its session is opened is ended; `[run] answer_timeout` in `config.toml` sets other seconds.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// What to do; `-` reads it from standard input. Further ones follow in the same session.
    #[arg(value_name = "PROMPT", required = true)]
    prompts: Vec<String>,
    /// The agent: claude, codex, gemini, opencode, qwen, copilot, rehearsal, one of `config.toml`, or a command [default: the
    /// first that is installed].
    #[arg(long, value_name = "NAME")]
    agent: Option<String>,
    /// Work in this thread [default: a new one].
    #[arg(long, value_name = "ID")]
    thread: Option<String>,
    /// Work in a new thread of this objective [default: a new one].
    #[arg(long, value_name = "ID", conflicts_with = "thread")]
    objective: Option<String>,
    /// Have the thread refer to another; may be given several times.
    #[arg(long = "ref", value_name = "THREAD")]
    references: Vec<String>,
    #[command(flatten)]
    options: RunOptions,
}

/// How an agent is run.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct RunOptions {
    /// The mode to work in, such as plan; one that the agent has.
    #[arg(long, value_name = "MODE")]
    pub(crate) mode: Option<String>,
    /// Who decides what the agent may do [default: ask on a terminal, else deny].
    #[arg(long, value_enum, value_name = "WHO")]
    pub(crate) permission: Option<PermissionMode>,
    /// Let the agent ask its model directly: what it asks is then known only from its own account.
    #[arg(long)]
    pub(crate) no_gateway: bool,
    /// Wait while another process works in the thread, instead of failing.
    #[arg(long)]
    pub(crate) wait: bool,
    /// Print JSON Lines: each thing as the agent tells it, and what came of it.
    #[arg(long)]
    pub(crate) json: bool,
}

/// Who decides what an agent may do.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub(crate) enum PermissionMode {
    /// You are asked.
    Ask,
    /// It may do everything.
    Allow,
    /// It may do nothing that it has to ask for.
    Deny,
}

impl RunOptions {
    /// Who decides, if nobody says: a person where one is there.
    pub(crate) fn policy(&self, ui: &Ui) -> PermissionPolicy {
        match self.permission {
            Some(PermissionMode::Ask) => Policy::Ask,
            Some(PermissionMode::Allow) => Policy::Allow,
            Some(PermissionMode::Deny) => Policy::Deny,
            None if ui.is_interactive() => Policy::Ask,
            None => Policy::Deny,
        }
    }
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
        ui.print_note("no agent is installed: this is a rehearsal, in which no model is asked");
    }
    let settings = config.run_settings()?;
    let conversation = AgentConversation { env, agent, work, options: &args.options, settings };
    conversation.run(ui, prompts, None)
}

/// The prompts; one of them may come from standard input.
fn read_prompts(given: &[String]) -> Result<Vec<String>, CommandError> {
    let mut prompts = given.to_vec();
    for prompt in prompts.iter_mut().filter(|prompt| *prompt == "-") {
        prompt.clear();
        std::io::stdin().read_to_string(prompt)?;
    }
    match prompts.iter().any(|prompt| prompt.trim().is_empty()) {
        true => Err(CommandError::usage("the prompt is empty")),
        false => Ok(prompts),
    }
}

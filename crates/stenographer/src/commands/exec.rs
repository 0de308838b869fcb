//! `steno exec`: runs a program and records its API traffic.

mod child;
mod proxied;
#[cfg(unix)]
mod startable;

use std::ffi::OsString;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::ExitStatus;

use steno_gateway::{ForwardProxy, Upstreams};
use steno_model::{SessionId, SessionStatus};
use steno_vault::AgentName;
use steno_vault::record::RecordingClosing;

use self::proxied::ProxiedLaunch;
use crate::agent_route::AgentRoute;
use crate::byte_size::ByteSize;
use crate::config::Config;
use crate::error::{CommandError, CommandExit};
use crate::process_environment::ProcessEnvironment;
use crate::recording_gateway::{
    GatewaySettings, RecordedTraffic, RecordingGateway, RecordingTarget,
};
use crate::recording_session::RequestedSession;
use crate::runnable_agent;
use crate::session_store::SessionStore;
use crate::ui::Ui;

/// Run a program and record its requests to model APIs.
///
/// Sets the base URL variables of the SDKs of OpenAI, Anthropic, Gemini, LiteLLM and others to a gateway on this
/// machine. The gateway forwards everything unchanged and records it without keys and cookies. If a variable already
/// names a server, requests still go to that server. Forwards signals and returns the program's exit code.
///
/// Claude Code, Codex and OpenCode send their session id with each request: unless --session or --name is given,
/// their traffic is recorded into that session. Traffic of other agents joins their session once `steno sync` finds
/// the same responses in it.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Session to begin or continue: its full id, or `latest` [default: a new one].
    #[arg(long, value_name = "ID")]
    session: Option<SessionId>,
    /// Agent name of the recording [default: the program's name].
    #[arg(long, value_name = "NAME")]
    name: Option<AgentName>,
    /// Record each further conversation (subagents, forks) as a source of its own. By default all entries have the
    /// source `primary`.
    #[arg(long)]
    subagents: bool,
    /// Maximum number of bytes recorded per request or response body, such as `64 MiB`; of the rest only length and
    /// hash are recorded [default: body_limit in config.toml, else 256 MiB].
    #[arg(long, value_name = "SIZE")]
    body_limit: Option<ByteSize>,
    /// Record through an HTTPS proxy, instead of changing the API's base URL.
    ///
    /// For programs without a setting for the base URL. They are set to use the proxy and to trust a certificate made
    /// for this run; its key is never written to disk. Requests to known model APIs and configured upstreams are
    /// recorded; all other connections are forwarded unread.
    #[arg(long)]
    proxy: bool,
    /// With --proxy: also record this host, such as llm.example.com or *.example.com. May be repeated.
    #[arg(long, value_name = "HOST", requires = "proxy")]
    proxy_host: Vec<String>,
    /// Also write chibi's `requests.jsonl` and `response_meta.jsonl` to this folder.
    #[arg(long, value_name = "DIR")]
    debug_files: Option<PathBuf>,
    /// Program and its arguments.
    #[arg(
        required = true,
        trailing_var_arg = true,
        allow_hyphen_values = true,
        value_name = "COMMAND"
    )]
    command: Vec<OsString>,
}

/// Runs the command.
pub(crate) fn run(
    ui: &mut Ui,
    env: &ProcessEnvironment,
    args: &Args,
) -> Result<CommandExit, CommandError> {
    let config = Config::load_or_default(ui, env)?;
    let body_limit = args.body_limit.map_or_else(|| config.body_limit(), |size| Ok(size.0))?;
    let plan = LaunchPlan::new(env, &config, args)?;
    let default_agent = agent_name_of_program(&args.command[0]);
    let (agent, session) = (args.name.as_ref(), args.session.as_ref());
    let requested = RequestedSession { agent, session, agent_flag: "--name", default_agent };
    let dir = requested.open_dir_or_new(ui, &SessionStore::new(env))?;
    let settings = GatewaySettings {
        listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
        upstreams: plan.upstreams(&config)?,
        subagents: args.subagents,
        body_limit,
        debug_files: args.debug_files.clone(),
        forward: plan.forward_proxy(),
    };
    // With an explicit session or agent, all traffic goes there.
    let is_routed = agent.is_none() && session.is_none();
    let target = RecordingTarget { dir: dir.clone(), is_routed };
    let gateway = RecordingGateway::start(env, target, settings)?;
    gateway.report_changes(ui);
    let (words, variables) = plan.build_launch(args, &gateway.address());
    let ended = run_program(&words, variables);
    let recorded = gateway.finish(ui, &closing_status(&ended));
    let status = ended.map_err(|error| {
        let program = args.command[0].to_string_lossy();
        let error = CommandError::user(format!("could not run {program}: {error}"));
        error.hint("check the program's name, or give its path")
    })?;
    report_recording(ui, &recorded, &plan);
    Ok(CommandExit::from_status(status))
}

/// Runs a program to its end with these variables.
fn run_program(words: &[OsString], variables: LaunchVariables) -> io::Result<ExitStatus> {
    // The launcher could report it only by its exit code.
    #[cfg(unix)]
    startable::check_startable(Path::new(&words[0]))?;
    let launcher =
        runnable_agent::child_launcher().map_err(|error| io::Error::other(error.error))?;
    let (mut command, group) = child::prepare_command(&launcher, words);
    command.envs(variables);
    child::run(&launcher, command, group)
}

/// Names and values of variables.
type LaunchVariables = Vec<(String, OsString)>;

/// How the program's requests reach the gateway.
enum LaunchPlan {
    /// By another base URL.
    Address(Box<AgentRoute>),
    /// Through the forward proxy.
    Proxy(ProxiedLaunch),
}

impl LaunchPlan {
    fn new(env: &ProcessEnvironment, config: &Config, args: &Args) -> Result<Self, CommandError> {
        let upstreams = config.upstreams()?;
        if args.proxy {
            let hosts = [config.proxy_hosts()?, args.proxy_host.clone()].concat();
            return Ok(Self::Proxy(ProxiedLaunch::prepare(&upstreams, hosts)?));
        }
        let route = AgentRoute::for_program(env, &config.agents()?, &args.command, upstreams);
        Ok(Self::Address(Box::new(route)))
    }

    fn upstreams(&self, config: &Config) -> Result<Upstreams, CommandError> {
        match self {
            Self::Address(route) => Ok(route.upstreams().clone()),
            Self::Proxy(_) => config.upstreams(),
        }
    }

    fn forward_proxy(&self) -> Option<ForwardProxy> {
        match self {
            Self::Address(_) => None,
            Self::Proxy(launch) => Some(launch.forward.clone()),
        }
    }

    /// Returns the command line and the variables of the program.
    fn build_launch(&self, args: &Args, address: &str) -> (Vec<OsString>, LaunchVariables) {
        match self {
            Self::Address(route) => (route.command(address), route.variables(address)),
            Self::Proxy(launch) => (args.command.clone(), launch.variables(address)),
        }
    }

    fn no_request_hint(&self) -> String {
        match self {
            Self::Address(route) => route.no_request_hint(),
            Self::Proxy(launch) => launch.no_request_hint(),
        }
    }
}

/// Reports the recorded sessions, or that there are none.
fn report_recording(ui: &mut Ui, recorded: &RecordedTraffic, plan: &LaunchPlan) {
    for dir in &recorded.sessions {
        let (id, path) = (dir.id(), dir.path().display());
        ui.status(format_args!("recorded as {id} in {path}; see `steno show {id}`"));
    }
    if recorded.sessions.is_empty() && recorded.is_closed && !recorded.has_gap {
        ui.warning("no requests reached the gateway; nothing was recorded");
        ui.print_note(format_args!("hint: {}", plan.no_request_hint()));
    }
}

fn closing_status(ended: &std::io::Result<ExitStatus>) -> RecordingClosing {
    match ended {
        Ok(status) if status.success() => {
            RecordingClosing { status: SessionStatus::Completed, reason: None }
        }
        Ok(status) => {
            RecordingClosing { status: SessionStatus::Failed, reason: Some(status.to_string()) }
        }
        Err(error) => {
            RecordingClosing { status: SessionStatus::Failed, reason: Some(error.to_string()) }
        }
    }
}

/// Returns the program's name, reduced to characters that a folder name allows.
pub(crate) fn agent_name_of_program(program: &OsString) -> AgentName {
    let stem = Path::new(program).file_stem().map(|stem| stem.to_string_lossy().into_owned());
    let fits = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    let name: String = stem.unwrap_or_default().chars().filter(|c| fits(*c)).take(64).collect();
    name.parse().unwrap_or_else(|_| "exec".parse().expect("a plain word"))
}

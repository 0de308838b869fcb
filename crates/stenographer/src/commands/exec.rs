//! `steno exec`: runs a program and records what it asks of models.

mod child;
mod proxied;

use std::ffi::OsString;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::process::ExitStatus;

use steno_core::vault::AgentName;
use steno_core::vault::record::Closing;
use steno_core::{SessionId, Status};
use steno_gateway::{ForwardProxy, Upstreams};

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

/// Run a program and record every model that it asks.
///
/// The program is told, by the variables that the SDKs of OpenAI, Anthropic, Gemini, LiteLLM and others know, to ask a
/// gateway on this machine. Whatever passes there goes on unchanged, and is kept without keys and cookies. Servers that
/// the variables already name stay those that are asked. Signals and the exit code are the program's own.
///
/// Claude Code, Codex and OpenCode name their session in each request: unless --session or --name is given, they are
/// recorded into that one, beside the files that they write themselves. What other agents have asked joins their own
/// session once `steno sync` finds the same answers in it.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The session to begin or to go on with: its whole id, or `latest` [default: a new one].
    #[arg(long, value_name = "ID")]
    session: Option<SessionId>,
    /// Who is being recorded [default: the command's name].
    #[arg(long, value_name = "NAME")]
    name: Option<AgentName>,
    /// Tell subagents and forks apart: each conversation beside the first becomes a source of its own. Without it all
    /// stands in `primary`, each prompt with its answer.
    #[arg(long)]
    subagents: bool,
    /// How many bytes of a request or an answer are recorded, such as `64 MiB`; of the rest, length and hash are
    /// [default: body_limit in config.toml, else 256 MiB].
    #[arg(long, value_name = "SIZE")]
    body_limit: Option<ByteSize>,
    /// Record through a proxy for HTTPS, instead of telling the program another address of its API.
    ///
    /// For programs that cannot be told. They are told to use the proxy and to trust a certificate that is made for this
    /// run; its key is never written. Requests to the hosts of known model APIs and of configured upstreams are recorded,
    /// all other connections are passed on unread.
    #[arg(long)]
    proxy: bool,
    /// With --proxy: record this host too, such as llm.example.com or *.example.com. May be given several times.
    #[arg(long, value_name = "HOST", requires = "proxy")]
    proxy_host: Vec<String>,
    /// Write `requests.jsonl` and `response_meta.jsonl` there too, as chibi does.
    #[arg(long, value_name = "DIR")]
    debug_files: Option<PathBuf>,
    /// The program and its arguments.
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
    let recording = GatewaySettings {
        listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
        upstreams: plan.upstreams(&config)?,
        subagents: args.subagents,
        body_limit,
        debug_files: args.debug_files.clone(),
        forward: plan.forward_proxy(),
    };
    // Whoever names a session or an agent wants all of it there.
    let is_routed = agent.is_none() && session.is_none();
    let target = RecordingTarget { dir: dir.clone(), is_routed };
    let traffic = RecordingGateway::start(env, target, recording)?;
    traffic.report_changes(ui);
    let (words, variables) = plan.build_launch(args, &traffic.address());
    let ended = run_program(&words, variables);
    let recorded = traffic.finish(ui, &closing_status(&ended));
    let status = ended.map_err(|error| {
        let program = args.command[0].to_string_lossy();
        CommandError::user(format!("could not run {program}: {error}"))
    })?;
    report_recording(ui, &recorded, &plan);
    Ok(CommandExit::from_status(status))
}

/// Runs a program to its end, with these variables.
fn run_program(words: &[OsString], variables: LaunchVariables) -> io::Result<ExitStatus> {
    // The launcher could only tell by its exit code.
    let is_missing = |program: &str| cfg!(unix) && !runnable_agent::is_program_installed(program);
    if words[0].to_str().is_some_and(is_missing) {
        return Err(io::Error::new(io::ErrorKind::NotFound, "no such program"));
    }
    let launcher =
        runnable_agent::child_launcher().map_err(|error| io::Error::other(error.error))?;
    let (mut command, group) = child::prepare_command(&launcher, words);
    command.envs(variables);
    child::run(&launcher, (command, group))
}

/// Names and values of variables.
type LaunchVariables = Vec<(String, OsString)>;

/// How the program is led to the gateway.
enum LaunchPlan {
    /// It is told another address of its API.
    Address(Box<AgentRoute>),
    /// It is told to use a proxy.
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

    /// The words and the variables with which the program is started.
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

/// Says where the record is, or that there is none.
fn report_recording(ui: &mut Ui, recorded: &RecordedTraffic, plan: &LaunchPlan) {
    for dir in &recorded.sessions {
        let (id, path) = (dir.id(), dir.path().display());
        ui.status(format_args!("recorded as {id} in {path}; see `steno show {id}`"));
    }
    if recorded.sessions.is_empty() && recorded.is_closed && !recorded.has_gap {
        ui.warning("no request came through the gateway, so nothing was recorded");
        ui.print_note(format_args!("hint: {}", plan.no_request_hint()));
    }
}

fn closing_status(ended: &std::io::Result<ExitStatus>) -> Closing {
    match ended {
        Ok(status) if status.success() => Closing { status: Status::Completed, reason: None },
        Ok(status) => Closing { status: Status::Failed, reason: Some(status.to_string()) },
        Err(error) => Closing { status: Status::Failed, reason: Some(error.to_string()) },
    }
}

/// The command's name, as far as it can be a folder's.
pub(crate) fn agent_name_of_program(program: &OsString) -> AgentName {
    let stem = Path::new(program).file_stem().map(|stem| stem.to_string_lossy().into_owned());
    let fits = |c: char| c.is_ascii_alphanumeric() || "._-".contains(c);
    let name: String = stem.unwrap_or_default().chars().filter(|c| fits(*c)).take(64).collect();
    name.parse().unwrap_or_else(|_| "exec".parse().expect("a plain word"))
}

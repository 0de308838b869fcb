//! `steno gateway`: a recording gateway for any program on this machine.

use std::net::SocketAddr;
use std::path::PathBuf;

use steno_gateway::{Upstream, Upstreams};
use steno_model::{SessionId, SessionStatus};
use steno_vault::AgentName;
use steno_vault::record::RecordingClosing;

use crate::byte_size::ByteSize;
use crate::config::Config;
use crate::error::{CommandError, CommandExit};
use crate::process_environment::ProcessEnvironment;
use crate::recording_gateway::{
    self, GatewayEvent, GatewaySettings, RecordingGateway, RecordingTarget,
};
use crate::recording_session::RequestedSession;
use crate::session_store::SessionStore;
use crate::ui::Ui;
use crate::value_parsers::parse_socket_address;

/// Record requests to model APIs through a gateway on this machine.
///
/// To record a program, set its base URL to the printed address followed by the name of an upstream: `/openai/v1`,
/// `/anthropic`, `/gemini`, or one given with --upstream. Stop with Ctrl-C.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Address to listen on. With an address other than loopback, other machines can use the gateway.
    #[arg(
        long,
        value_name = "ADDRESS:PORT",
        default_value = "127.0.0.1:4180",
        value_parser = parse_socket_address
    )]
    listen: SocketAddr,
    /// Add an upstream, or change the address of one.
    #[arg(long = "upstream", value_name = "NAME=URL", value_parser = parse_upstream)]
    upstreams: Vec<Upstream>,
    /// Session to begin or continue: its full id, or `latest` [default: a new one].
    #[arg(long, value_name = "ID")]
    session: Option<SessionId>,
    /// Agent name of the recording [default: gateway].
    #[arg(long, value_name = "NAME")]
    name: Option<AgentName>,
    /// Maximum number of bytes recorded per request or response body, such as `64 MiB`; of the rest only length and
    /// hash are recorded [default: body_limit in config.toml, else 256 MiB].
    #[arg(long, value_name = "SIZE")]
    body_limit: Option<ByteSize>,
    /// Also write chibi's `requests.jsonl` and `response_meta.jsonl` to this folder.
    #[arg(long, value_name = "DIR")]
    debug_files: Option<PathBuf>,
}

/// Runs the command.
pub(crate) fn run(
    ui: &mut Ui,
    env: &ProcessEnvironment,
    args: Args,
) -> Result<CommandExit, CommandError> {
    let config = Config::load(env)?;
    let mut upstreams = config.upstreams()?;
    let body_limit = args.body_limit.map_or_else(|| config.body_limit(), |size| Ok(size.0))?;
    args.upstreams.into_iter().for_each(|upstream| upstreams.set(upstream));
    let default_agent = steno_agents::protocols::traffic::AGENT_NAME.parse()?;
    let (agent, session) = (args.name.as_ref(), args.session.as_ref());
    let requested = RequestedSession { agent, session, agent_flag: "--name", default_agent };
    let dir = requested.open_dir_or_new(ui, &SessionStore::new(env))?;
    let names = join_upstream_names(&upstreams);
    let settings = GatewaySettings {
        listen: args.listen,
        upstreams,
        subagents: true,
        body_limit,
        debug_files: args.debug_files,
        forward: None,
    };
    let is_routed = agent.is_none() && session.is_none();
    let target = RecordingTarget { dir: dir.clone(), is_routed };
    let gateway = RecordingGateway::start(env, target, settings)?;
    gateway.report_changes(ui);
    let stop = gateway.events.0.clone();
    ctrlc::set_handler(move || drop(stop.send(GatewayEvent::Stop))).map_err(CommandError::user)?;
    if !args.listen.ip().is_loopback() {
        ui.warning("other machines can use this gateway");
    }
    writeln!(ui.out(), "{}", gateway.address())?;
    ui.flush()?;
    ui.status(format_args!("recording into {}; upstreams: {names}", dir.id()));
    while let Ok(GatewayEvent::Recording(change)) = gateway.events.1.recv() {
        recording_gateway::report_change(ui, &change);
    }
    let recorded =
        gateway.finish(ui, &RecordingClosing { status: SessionStatus::Completed, reason: None });
    if !recorded.is_closed {
        return Ok(CommandExit::Failed);
    }
    for dir in &recorded.sessions {
        ui.status(format_args!("recorded as {id}; see `steno show {id}`", id = dir.id()));
    }
    Ok(CommandExit::Done)
}

fn join_upstream_names(upstreams: &Upstreams) -> String {
    let names: Vec<_> = upstreams.iter().map(|upstream| upstream.name.as_str()).collect();
    names.join(", ")
}

fn parse_upstream(text: &str) -> Result<Upstream, String> {
    let (name, address) = text.split_once('=').ok_or("expected NAME=URL")?;
    Upstream::new(name, address).map_err(|error| error.to_string())
}

//! `steno gateway`: a recording proxy for whatever asks models on this machine.

use std::net::SocketAddr;
use std::path::PathBuf;

use steno_core::vault::AgentName;
use steno_core::vault::record::Closing;
use steno_core::{SessionId, Status};
use steno_gateway::{Upstream, Upstreams};

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

/// Record whatever programs ask of models through a proxy on this machine.
///
/// A program is recorded once its base URL is the printed address followed by the name of an upstream: `/openai/v1`,
/// `/anthropic`, `/gemini`, or one that was given. Ends with Ctrl-C.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Where to listen. An address of another network than loopback lets other machines in.
    #[arg(long, value_name = "ADDRESS:PORT", default_value = "127.0.0.1:4180")]
    listen: SocketAddr,
    /// Another upstream, or another address for one.
    #[arg(long = "upstream", value_name = "NAME=URL", value_parser = parse_upstream)]
    upstreams: Vec<Upstream>,
    /// The session to begin or to go on with: its whole id, or `latest` [default: a new one].
    #[arg(long, value_name = "ID")]
    session: Option<SessionId>,
    /// Who is being recorded [default: gateway].
    #[arg(long, value_name = "NAME")]
    name: Option<AgentName>,
    /// How many bytes of a request or an answer are recorded, such as `64 MiB`; of the rest, length and hash are
    /// [default: body_limit in config.toml, else 256 MiB].
    #[arg(long, value_name = "SIZE")]
    body_limit: Option<ByteSize>,
    /// Write `requests.jsonl` and `response_meta.jsonl` there too, as chibi does.
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
    let default_agent = steno_core::traffic::AGENT.parse()?;
    let (agent, session) = (args.name.as_ref(), args.session.as_ref());
    let requested = RequestedSession { agent, session, agent_flag: "--name", default_agent };
    let dir = requested.open_dir_or_new(ui, &SessionStore::new(env))?;
    let names = join_upstream_names(&upstreams);
    let recording = GatewaySettings {
        listen: args.listen,
        upstreams,
        subagents: true,
        body_limit,
        debug_files: args.debug_files,
        forward: None,
    };
    let is_routed = agent.is_none() && session.is_none();
    let target = RecordingTarget { dir: dir.clone(), is_routed };
    let traffic = RecordingGateway::start(env, target, recording)?;
    traffic.report_changes(ui);
    let stop = traffic.events.0.clone();
    ctrlc::set_handler(move || drop(stop.send(GatewayEvent::Stop))).map_err(CommandError::user)?;
    if !args.listen.ip().is_loopback() {
        ui.warning("other machines can use this gateway");
    }
    writeln!(ui.out(), "{}", traffic.address())?;
    ui.flush()?;
    ui.status(format_args!("recording into {}; upstreams: {names}", dir.id()));
    while let Ok(GatewayEvent::Recording(change)) = traffic.events.1.recv() {
        recording_gateway::report_change(ui, &change);
    }
    let recorded = traffic.finish(ui, &Closing { status: Status::Completed, reason: None });
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
    let (name, address) = text.split_once('=').ok_or("write it as NAME=URL")?;
    Upstream::new(name, address).map_err(|error| error.to_string())
}

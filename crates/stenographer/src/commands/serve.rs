//! `steno serve`: serves the local web page.

mod launch;
mod team;

use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr};
use std::path::PathBuf;
use std::sync::Arc;

use steno_web::{BudgetReader, ConnectionLimits, ResumeAction, ServerOptions, WebError, WebServer};

use self::team::{TeamRequest, team_options};
use super::mcp::{current_project, history_options};
use super::resume;
use crate::automatic_sync::AutomaticSyncFlag;
use crate::config::Config;
use crate::error::{CommandError, CommandExit};
use crate::process_environment::ProcessEnvironment;
use crate::session_store::SessionStore;
use crate::ui::Ui;
use crate::value_parsers::parse_ip_address;

/// Port to try first.
const DEFAULT_PORT: u16 = 7473;

/// Read, search and replay sessions in the browser.
///
/// By default only this machine can connect; the printed address contains a token that grants access. The page
/// loads nothing from other hosts. Stop with Ctrl-C.
///
/// With `--from`, it is the page of a team: people, their sessions and what they cost, without notes and actions. The address
/// shows what your own role sees; members sign in by a token of their own or through a reverse proxy (`[serve]`), and see only
/// what is for them.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Port [default: 7473, or a free one].
    #[arg(long, value_name = "N")]
    port: Option<u16>,
    /// Listen on this address, so that other machines with the token can connect.
    #[arg(
        long,
        value_name = "ADDRESS",
        default_value_t = IpAddr::V4(Ipv4Addr::LOCALHOST),
        value_parser = parse_ip_address
    )]
    host: IpAddr,
    /// Open the page in the browser.
    #[arg(long)]
    open: bool,
    /// Allow no changes: no notes, and no restoring of files to resume a session.
    #[arg(long)]
    read_only: bool,
    /// Print the address as JSON.
    #[arg(long)]
    json: bool,
    /// Serve the team's sessions in this remote instead of this machine's.
    #[arg(long, value_name = "REMOTE")]
    from: Option<String>,
    /// With --from: a file with `NAME TOKEN` on each line, for members who open the page with `?token=TOKEN`.
    #[arg(long, value_name = "FILE", requires = "from")]
    token_file: Option<PathBuf>,
    #[command(flatten)]
    pub(crate) sync: AutomaticSyncFlag,
}

/// Runs the command.
pub(crate) fn run(
    ui: &mut Ui,
    env: &ProcessEnvironment,
    args: &Args,
) -> Result<CommandExit, CommandError> {
    let mut server = bind_server(ui, env, args)?;
    let url = server.url();
    match args.json {
        true => writeln!(ui.out(), "{}", serde_json::json!({ "url": url.to_string() }))?,
        false => writeln!(ui.out(), "{url}")?,
    }
    ui.flush()?;
    // The page lists the sessions as they come.
    let _sync = args.from.is_none().then(|| args.sync.start_if_due(ui, env));
    if !args.host.is_loopback() {
        ui.warning("anyone with this address who can reach this machine can read all sessions");
    }
    if args.open
        && let Err(error) = launch::open_page(&mut server)
    {
        ui.warning(format_args!("could not open a browser: {error}"));
    }
    server.run()?;
    Ok(CommandExit::Done)
}

fn bind_server(
    ui: &mut Ui,
    env: &ProcessEnvironment,
    args: &Args,
) -> Result<WebServer, CommandError> {
    let config = Config::load(env)?;
    let options = ServerOptions {
        store: env.store.clone(),
        zone: env.zone.clone(),
        clock: env.clock.clone(),
        prices: config.prices()?,
        budgets: Some(budget_reader(env, &config)?),
        boot: ProcessEnvironment::boot_id(),
        address: SocketAddr::new(args.host, args.port.unwrap_or(DEFAULT_PORT)),
        history: Some(history_options(env, current_project(env), args.sync.no_sync)?),
        resume: (!args.read_only).then(|| resume_handler(env)),
        team: None,
        limits: ConnectionLimits::default(),
    };
    let options = match &args.from {
        Some(remote) => {
            let request = TeamRequest { remote, token_file: args.token_file.as_deref() };
            team_options(ui, env, &request, options)?
        }
        None => options,
    };
    match WebServer::bind(options.clone()) {
        Err(WebError::Listen { reason, .. }) if args.port.is_none() && is_port_taken(&reason) => {
            let free = SocketAddr::new(args.host, 0);
            WebServer::bind(ServerOptions { address: free, ..options }).map_err(add_bind_hint)
        }
        bound => bound.map_err(add_bind_hint),
    }
}

/// Adds a hint to the error of an address that cannot be used.
fn add_bind_hint(error: WebError) -> CommandError {
    let hint = match &error {
        WebError::Listen { reason, .. } if is_port_taken(reason) => {
            Some("leave out --port to use a free one")
        }
        WebError::Listen { .. } => Some("leave out --host to listen on this machine only"),
        _ => None,
    };
    hint.into_iter().fold(CommandError::user(error), CommandError::hint)
}

/// Returns whether the port is the cause.
fn is_port_taken(reason: &io::Error) -> bool {
    matches!(reason.kind(), io::ErrorKind::AddrInUse | io::ErrorKind::PermissionDenied)
}

/// Reads the budgets again for each page, so that a change needs no restart. A mistake that is there now is an error.
fn budget_reader(env: &ProcessEnvironment, config: &Config) -> Result<BudgetReader, CommandError> {
    config.budgets()?;
    let env = env.clone();
    Ok(Arc::new(move || {
        let read = || Config::load(&env)?.budgets();
        read().map_err(|error: CommandError| error.to_line())
    }))
}

fn resume_handler(env: &ProcessEnvironment) -> ResumeAction {
    let env = env.clone();
    Arc::new(move |agent, id| {
        let prepared = || -> Result<String, CommandError> {
            let session = SessionStore::new(&env).vault.session_dir(&agent.parse()?, &id.parse()?);
            resume::prepare_resume(&env, session)
        };
        prepared().map_err(|error| error.to_line())
    })
}

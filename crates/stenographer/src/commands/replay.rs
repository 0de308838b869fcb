//! `steno replay`: replays a session on the terminal, as an agent, or as the API that the agent called.

mod api;
mod player;
mod terminal_replay;

use std::io::{self, BufReader};
use std::net::SocketAddr;
use std::time::Duration;

use steno_acp::replay::{self, REHEARSAL, ReplayPace, ReplayScript, ReplaySettings};
use steno_gateway::replay::ReplayOptions;
use steno_model::Transcript;

use self::terminal_replay::TerminalReplay;
use crate::error::{CommandError, CommandExit};
use crate::process_environment::ProcessEnvironment;
use crate::session_store::SessionStore;
use crate::ui::Ui;
use crate::value_parsers::{parse_count, parse_socket_address};

/// Replay a session.
///
/// On a terminal it keeps the original pauses: Space pauses, Enter or n steps, e jumps to the next error, t to the
/// next tool call, + and - change the speed, q quits. Elsewhere it prints without pauses, unless --speed is given.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Session: id, unique prefix, `latest`, or a path; `rehearsal` is built in.
    #[arg(value_name = "ID")]
    session: String,
    /// Speed factor [default: 1].
    #[arg(long, value_name = "X", value_parser = parse_speed, allow_negative_numbers = true)]
    speed: Option<f64>,
    /// Longest pause in seconds.
    #[arg(long, value_name = "SECONDS", default_value = "3", value_parser = parse_seconds, allow_negative_numbers = true)]
    max_pause: Duration,
    /// First entry to show, counted from 0 as in search hits.
    #[arg(long, value_name = "N", default_value_t = 0, conflicts_with = "ReplayMode", value_parser = parse_count, allow_negative_numbers = true)]
    from: usize,
    #[command(flatten)]
    mode: ReplayMode,
    /// Fail on a prompt or request that was not recorded.
    #[arg(long, requires = "ReplayMode")]
    strict: bool,
    /// Address of the API [default: a free port].
    #[arg(
        long,
        value_name = "ADDRESS:PORT",
        default_value = "127.0.0.1:0",
        hide_default_value = true,
        value_parser = parse_socket_address,
        requires = "as_api"
    )]
    listen: SocketAddr,
    /// Print JSON Lines: the entries, or with --as-api the address.
    #[arg(long, conflicts_with = "as_agent")]
    json: bool,
}

/// What to replay the session as, if not on the terminal.
#[derive(Debug, clap::Args)]
#[group(multiple = false)]
struct ReplayMode {
    /// Act as an agent that speaks the Agent Client Protocol on standard input and output.
    #[arg(long)]
    as_agent: bool,
    /// Act as the recorded API of a session of `steno exec` or `steno gateway`, with its original pauses. Requests
    /// are matched by their new messages, then by their order. Stop with Ctrl-C.
    #[arg(long)]
    as_api: bool,
}

/// Runs the command.
pub(crate) fn run(
    ui: &mut Ui,
    env: &ProcessEnvironment,
    args: &Args,
) -> Result<CommandExit, CommandError> {
    if args.mode.as_api {
        let options = ReplayOptions { listen: args.listen, strict: args.strict };
        return api::serve_api(ui, env, args, options);
    }
    let transcript = match args.session.as_str() {
        REHEARSAL => replay::rehearsal_session(),
        name => SessionStore::new(env).transcript(name)?,
    };
    if args.mode.as_agent {
        return serve_agent(env, &transcript, args);
    }
    ui.report_problems(&transcript.problems);
    if args.from >= transcript.entries.len().max(1) {
        let last = transcript.entries.len().saturating_sub(1);
        let error = CommandError::user(format!("no such entry: {}", args.from));
        return Err(error.hint(format!("the last entry is {last}")));
    }
    let pace = ReplayPace { speed: args.speed.unwrap_or(1.0), max_pause: args.max_pause };
    let is_timed = args.speed.is_some() || (ui.is_interactive() && !args.json);
    TerminalReplay { transcript: &transcript, zone: &env.zone, is_timed, is_json: args.json }
        .play(ui, args.from, pace)?;
    Ok(CommandExit::Done)
}

/// Serves recorded responses until the client closes the connection.
fn serve_agent(
    env: &ProcessEnvironment,
    transcript: &Transcript,
    args: &Args,
) -> Result<CommandExit, CommandError> {
    let is_rehearsal = args.session == REHEARSAL;
    let playing = ReplaySettings {
        name: if is_rehearsal { REHEARSAL } else { "replay" }.to_owned(),
        is_strict: args.strict,
        is_endless: is_rehearsal,
        pace: args.speed.map(|speed| ReplayPace { speed, max_pause: args.max_pause }),
        clock: env.clock.clone(),
    };
    let script = ReplayScript::from_transcript(transcript);
    let is_same =
        replay::serve_script(&script, &playing, BufReader::new(io::stdin()), io::stdout())?;
    Ok(if is_same { CommandExit::Done } else { CommandExit::Failed })
}

fn parse_speed(text: &str) -> Result<f64, String> {
    let speed = text.parse().ok().filter(|speed: &f64| speed.is_finite() && *speed > 0.0);
    speed.ok_or_else(|| "not a number above 0".to_owned())
}

fn parse_seconds(text: &str) -> Result<Duration, String> {
    let seconds = text.parse().ok().and_then(|seconds| Duration::try_from_secs_f64(seconds).ok());
    seconds.ok_or_else(|| "not a number of seconds".to_owned())
}

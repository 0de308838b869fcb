//! `steno replay ID --as-api`: serves the recorded responses of a session.

use steno_gateway::replay::{ReplayOptions, ReplayServer};

use super::Args;
use crate::error::{CommandError, CommandExit};
use crate::process_environment::ProcessEnvironment;
use crate::session_store::SessionStore;
use crate::ui::{Ui, count_noun};
use steno_store::transcript::{RecordedExchanges, read_exchanges};

/// Serves until Ctrl-C.
pub(super) fn serve_api(
    ui: &mut Ui,
    env: &ProcessEnvironment,
    args: &Args,
    options: ReplayOptions,
) -> Result<CommandExit, CommandError> {
    let session = args.session.as_str();
    let RecordedExchanges { exchanges, problems } =
        read_exchanges(&SessionStore::new(env).find_session(session)?)?;
    ui.report_problems(&problems);
    if exchanges.is_empty() {
        let error = CommandError::user(format!("no API traffic in session: {session}"));
        return Err(error.hint("record one with `steno exec` or `steno gateway`"));
    }
    let known = count_noun(exchanges.len() as u64, "exchange");
    let replay = ReplayServer::start(options, exchanges)?;
    let (sender, stopped) = std::sync::mpsc::channel();
    let stop = move || {
        let _ = sender.send(());
    };
    ctrlc::set_handler(stop).map_err(CommandError::user)?;
    let url = format!("http://{}", replay.address());
    match args.json {
        true => writeln!(ui.out(), "{}", serde_json::json!({ "url": url }))?,
        false => writeln!(ui.out(), "{url}")?,
    }
    ui.flush()?;
    ui.status(format_args!("serving {known}"));
    let _ = stopped.recv();
    replay.stop();
    Ok(CommandExit::Done)
}

//! `steno replay ID --as-api`: answers as the models did that a session has recorded.

use steno_gateway::replay::{ReplayOptions, ReplayServer};

use crate::error::{CommandError, Exit};
use crate::scene::Scene;
use crate::store::Store;
use crate::ui::{Ui, count};

/// Answers until Ctrl-C.
pub(super) fn serve(
    ui: &mut Ui,
    scene: &Scene,
    session: &str,
    options: ReplayOptions,
) -> Result<Exit, CommandError> {
    let exchanges = Store::new(scene).kept(session)?.exchanges()?;
    if exchanges.is_empty() {
        let error = CommandError::user(format!("no API traffic in session: {session}"));
        return Err(error.hint("record one with `steno exec` or `steno gateway`"));
    }
    let known = count(exchanges.len() as u64, "exchange");
    let replay = ReplayServer::start(options, exchanges)?;
    let (sender, stopped) = std::sync::mpsc::channel();
    let stop = move || {
        let _ = sender.send(());
    };
    ctrlc::set_handler(stop).map_err(CommandError::user)?;
    writeln!(ui.out(), "http://{}", replay.address())?;
    ui.flush()?;
    ui.status(format_args!("answering with {known}"));
    let _ = stopped.recv();
    replay.stop();
    Ok(Exit::Done)
}

//! `steno replay ID --as-api`: answers as the models did that a session has recorded.

use std::net::SocketAddr;

use steno_gateway::replay::{Options, Replay};

use crate::error::{CommandError, Exit};
use crate::scene::Scene;
use crate::store::Store;
use crate::ui::{Ui, count};

/// Run a recorded agent again without its models.
///
/// Requests are answered as they were when `steno exec` or `steno gateway` recorded them, with the pauses that the
/// answers had. They are told by what is new in them, then by their order. Whatever is not in the record gets an error as
/// its vendor would give it. Ends with Ctrl-C.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// The session: its id, the beginning of one, or `latest`.
    #[arg(value_name = "ID")]
    session: String,
    /// Be the API that the session asked.
    #[arg(long, required = true)]
    as_api: bool,
    /// Where to listen [default: a free port].
    #[arg(
        long,
        value_name = "ADDRESS:PORT",
        default_value = "127.0.0.1:0",
        hide_default_value = true
    )]
    listen: SocketAddr,
    /// Answer only requests whose new messages were recorded, each as often as it was.
    #[arg(long)]
    strict: bool,
}

/// Runs the command.
pub(crate) fn run(ui: &mut Ui, scene: &Scene, args: &Args) -> Result<Exit, CommandError> {
    let exchanges = Store::new(scene).kept(&args.session)?.exchanges()?;
    if exchanges.is_empty() {
        let error = CommandError::user(format!("no API traffic in session: {}", args.session));
        return Err(error.hint("record one with `steno exec` or `steno gateway`"));
    }
    let known = count(exchanges.len() as u64, "exchange");
    let options = Options { listen: args.listen, strict: args.strict };
    let replay = Replay::start(options, exchanges)?;
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

//! The proxy: stands between an editor and an agent, passes every byte on, and has it taken down.

mod collect;
mod pass;
mod tap;
mod tray;

use std::io;
use std::process::{ExitStatus, Stdio};
use std::thread::{self, JoinHandle};
use std::time::Duration;

use steno_core::Status;
use steno_core::vault::record::Closing;

use self::collect::Collecting;
use self::pass::Passing;
use crate::leash::{self, Leash, Signals};
use crate::scribe::{Assignment, Kept};

/// How long an agent's last words may take that others of its programs still hold back.
const QUIET: Duration = Duration::from_millis(500);

/// Runs the agent of `assignment` between our standard input and output, until it ends; gives how it ended, and the sessions
/// that were taken down.
pub fn run(assignment: Assignment, leash: &Leash) -> io::Result<(ExitStatus, Vec<Kept>)> {
    let signals = Signals::caught()?;
    let (from_editor, to_editor) = (leash::stdin()?, leash::stdout()?);
    let mut leashed = leash.command(&assignment.command);
    let mut agent = leashed.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    signals.pass_on_to(&agent);
    let passing = Passing::default();
    let (collecting, [client, words]) =
        Collecting::start(assignment, [Passing::default(), passing.clone()]);
    if let Some(input) = agent.stdin.take().map(leash::plain) {
        // Ends with the process: an editor may keep its end open.
        passing_on(move || {
            client.pass(&from_editor, &input);
            drop((from_editor, input));
            leash::close_stdin();
        })?;
    }
    let passed = agent.stdout.take().map(leash::plain).map(|output| {
        passing_on(move || {
            words.pass(&output, &to_editor);
            drop((output, to_editor));
            leash::close_stdout();
        })
    });
    let passed = passed.transpose()?;
    let status = agent.wait()?;
    passing.ended();
    if let Some(passed) = passed {
        // A program that the agent has left behind may hold its output open.
        while !passed.is_finished() && !passing.is_idle_for(QUIET) {
            thread::sleep(Duration::from_millis(1));
        }
    }
    Ok((status, collecting.finish(closing(status))))
}

/// A thread that is told from others by its name.
fn passing_on(work: impl FnOnce() + Send + 'static) -> io::Result<JoinHandle<()>> {
    thread::Builder::new().name("passing".to_owned()).spawn(work)
}

/// How a connection ended.
fn closing(status: ExitStatus) -> Closing {
    if status.success() {
        return Closing { status: Status::Completed, reason: None };
    }
    let reason = Some(format!("the agent ended with {status}"));
    Closing { status: Status::Failed, reason }
}

//! The proxy: stands between an editor and an agent, passes every byte on, and has it taken down.

mod pass;

use std::io;
use std::process::{ExitStatus, Stdio};
use std::thread;
use std::time::Duration;

use steno_core::Status;
use steno_core::agent::acp::wire::Side;
use steno_core::vault::record::Closing;

use self::pass::Passing;
use crate::leash::{self, Leash, Signals};
use crate::scribe::{Assignment, Kept, Scribe};

/// How long an agent's last words may take that others of its programs still hold back.
const QUIET: Duration = Duration::from_millis(500);

/// How long the end may take. What is not finished then is finished by the next recorder.
const PATIENCE: Duration = Duration::from_secs(5);

/// Runs the agent of `assignment` between our standard input and output, until it ends; gives how it ended, and the sessions
/// that were taken down.
pub fn run(assignment: Assignment, leash: &Leash) -> io::Result<(ExitStatus, Vec<Kept>)> {
    let signals = Signals::caught()?;
    let mut leashed = leash.command(&assignment.command);
    let mut agent = leashed.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    signals.pass_on_to(&agent);
    let scribe = Scribe::start(assignment);
    let (client, words) = (scribe.ear(Side::Client), scribe.ear(Side::Agent));
    if let Some(input) = agent.stdin.take() {
        // Ends with the process: an editor may keep its end open.
        thread::spawn(move || {
            pass::pass(io::stdin(), input, &Passing::default(), &client);
            leash::close_stdin();
        });
    }
    let passing = Passing::default();
    let passed = agent.stdout.take().map(|output| {
        let passing = passing.clone();
        thread::spawn(move || {
            pass::pass(output, io::stdout(), &passing, &words);
            leash::close_stdout();
        })
    });
    let status = agent.wait()?;
    passing.ended();
    if let Some(passed) = passed {
        // A program that the agent has left behind may hold its output open.
        while !passed.is_finished() && !passing.is_idle_for(QUIET) {
            thread::sleep(Duration::from_millis(1));
        }
    }
    Ok((status, scribe.finish(closing(status), PATIENCE)))
}

/// How a connection ended.
fn closing(status: ExitStatus) -> Closing {
    if status.success() {
        return Closing { status: Status::Completed, reason: None };
    }
    let reason = Some(format!("the agent ended with {status}"));
    Closing { status: Status::Failed, reason }
}

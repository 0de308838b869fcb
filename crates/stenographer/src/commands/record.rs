//! `steno record`: records JSON Lines from standard input.

mod pretty_document;

use std::collections::HashSet;
use std::io::{self, BufRead, BufReader, Stdin};
use std::path::{Path, PathBuf};

use steno_agents::interchange::openai;
use steno_model::lines::{InputLine, LineReader};
use steno_model::{Problem, SessionId, SessionStatus};
use steno_store::transcript::record_reader::RECORD_DECODER;
use steno_vault::record::{RecordingClosing, RecordingOpening};
use steno_vault::recorder::{KeptRecord, Recorder};
use steno_vault::{AgentName, SessionDir};

use crate::error::{CommandError, CommandExit};
use crate::process_environment::ProcessEnvironment;
use crate::recording_session::RequestedSession;
use crate::session_store::SessionStore;
use crate::ui::Ui;
use steno_store::keep::indexer::Indexer;

/// Record JSON Lines from standard input.
///
/// With `--ack`, each line is on disk before its number is printed.
///
/// A line may be an entry of Steno, weakincentives, chibi, devflow or OpenAI (chat messages, items of the Responses
/// API, lists of either, requests and responses), or a line of an agent's own session file, such as those of Claude
/// Code, Codex and Gemini CLI: `steno show` then shows what it shows of that file. The format is detected from the
/// content, and the bytes are kept as they are; a JSON document over several lines is kept as one line. A line that
/// cannot be parsed is kept too and reported; an unknown field of a message is reported once.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Agent name of the recording [default: that of the session, or "unknown"].
    #[arg(long, value_name = "NAME")]
    agent: Option<AgentName>,
    /// Session to begin or continue: its full id, or `latest` [default: a new one].
    #[arg(long, value_name = "ID")]
    session: Option<SessionId>,
    /// Project folder of the session [default: the working folder].
    #[arg(long, value_name = "DIR")]
    project: Option<PathBuf>,
    /// Print the sequence number of each entry once it is on disk; the session id goes to stderr.
    #[arg(long)]
    ack: bool,
}

/// Runs the command.
pub(crate) fn run(
    ui: &mut Ui,
    env: &ProcessEnvironment,
    args: Args,
) -> Result<CommandExit, CommandError> {
    let default_agent = "unknown".parse()?;
    let (agent, session) = (args.agent.as_ref(), args.session.as_ref());
    let requested = RequestedSession { agent, session, agent_flag: "--agent", default_agent };
    let dir = requested.open_dir(&SessionStore::new(env))?;
    let id = dir.id().clone();
    if args.ack {
        ui.print_note(&id);
    }
    let mut input = BufReader::with_capacity(1 << 20, io::stdin());
    // Without input no session is created; an empty one would appear in all lists.
    if input.fill_buf()?.is_empty() {
        ui.warning("standard input was empty; nothing was recorded");
        return Ok(CommandExit::Done);
    }
    let opening = session_opening(env, &args, &dir);
    let mut indexer = Indexer::new(&env.store_location());
    let marker = indexer.mark(&dir);
    let recorder = Recorder::open(dir.clone(), &opening, env.clock.clone(), RECORD_DECODER)?;
    if recorder.bytes_cut() > 0 {
        ui.warning(format_args!(
            "removed {} bytes of an incomplete record that a killed recorder left",
            recorder.bytes_cut()
        ));
    }
    let recording = StdinRecording {
        ui,
        recorder: &recorder,
        acknowledges: args.ack,
        unacknowledged: Vec::new(),
        reported_fields: HashSet::new(),
        exit: CommandExit::Done,
    };
    let exit = recording.run(input)?;
    recorder.close(&RecordingClosing { status: SessionStatus::Completed, reason: None })?;
    indexer.add_from_vault(&dir, marker);
    if let Err(error) = indexer.flush() {
        ui.warning(format_args!("recorded, but not yet in the index: {error}"));
    }
    if !args.ack {
        writeln!(ui.out(), "{id}")?;
    }
    Ok(exit)
}

fn session_opening(env: &ProcessEnvironment, args: &Args, dir: &SessionDir) -> RecordingOpening {
    let project = match &args.project {
        Some(project) => Some(env.cwd.join(project)),
        None => (!dir.exists()).then(|| env.cwd.clone()),
    };
    RecordingOpening {
        agent: dir.agent().to_owned(),
        project: project.map(|project| project.to_string_lossy().into_owned()),
        ..RecordingOpening::default()
    }
}

struct StdinRecording<'a> {
    ui: &'a mut Ui,
    recorder: &'a Recorder,
    acknowledges: bool,
    /// Sequence numbers of entries that are in the log but not yet synced to disk.
    unacknowledged: Vec<u64>,
    /// Unknown message fields that were already reported.
    reported_fields: HashSet<String>,
    exit: CommandExit,
}

/// Lines of standard input.
type InputLines = LineReader<BufReader<Stdin>>;

impl StdinRecording<'_> {
    fn run(mut self, input: BufReader<Stdin>) -> Result<CommandExit, CommandError> {
        let mut lines = LineReader::new(input);
        if let Some(first) = lines.read_line()? {
            for line in pretty_document::read_document(first, &mut lines)? {
                self.record_line(&line, &lines)?;
            }
        }
        while let Some(line) = lines.read_line()? {
            self.record_line(&line, &lines)?;
        }
        self.commit()?;
        Ok(self.exit)
    }

    /// Records a line; reports parse errors and unknown fields.
    fn record_line(&mut self, line: &InputLine, lines: &InputLines) -> Result<(), CommandError> {
        if let Some(recorded) = self.append_line(line)? {
            match recorded.entries {
                Ok(entries) => {
                    for name in openai::unknown_fields(&entries) {
                        if self.reported_fields.insert(name.to_owned()) {
                            let reason = openai::unknown_field_reason(name);
                            self.ui.warning(Problem::at_line(
                                Path::new("<stdin>"),
                                line.number,
                                reason,
                            ));
                        }
                    }
                    self.unacknowledged.extend(entries.iter().map(|entry| entry.sequence));
                }
                Err(_) if line.is_continuation => {}
                Err(error) => {
                    self.ui.warning(Problem::at_line(Path::new("<stdin>"), line.number, error));
                    self.exit = CommandExit::Failed;
                }
            }
        }
        // One sync for all lines in the buffer.
        if !lines.get_ref().buffer().contains(&b'\n') {
            self.commit()?;
        }
        Ok(())
    }

    fn append_line(&self, line: &InputLine) -> Result<Option<KeptRecord>, CommandError> {
        if !line.is_whole() {
            return Ok(Some(
                self.recorder.append_bad_bytes(&line.bytes, "line too long to be a record")?,
            ));
        }
        if line.bytes.trim_ascii().is_empty() {
            return Ok(None);
        }
        Ok(Some(self.recorder.append_line(&line.bytes)?))
    }

    fn commit(&mut self) -> Result<(), CommandError> {
        self.recorder.commit()?;
        if self.acknowledges && self.acknowledge().is_err() {
            // The reader has closed the pipe; recording continues.
            self.acknowledges = false;
            self.ui.warning("the reader of acknowledgements has gone; recording continues");
        }
        self.unacknowledged.clear();
        Ok(())
    }

    fn acknowledge(&mut self) -> io::Result<()> {
        for sequence in self.unacknowledged.drain(..) {
            writeln!(self.ui.out(), "{sequence}")?;
        }
        self.ui.flush()
    }
}

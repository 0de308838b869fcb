//! A gateway and the sessions it records into, from start to indexing.

use std::fs::File;
use std::io::Write;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use steno_agents::agent_session::AgentSession;
use steno_agents::protocols::traffic::TrafficPiece;
use steno_gateway::gateway::{ChangeCallback, PieceListener, StoppedGateway, StoppedRecording};
use steno_gateway::{
    BoundAddress, ForwardProxy, Gateway, GatewayOptions, OpenSession, OutboundProxies,
    RecordingChange, TrafficRouting, TrafficSession, Upstreams,
};
use steno_model::{Clock, Timestamp, durable};
use steno_seeds::chibi::{ChibiDebugFile, DebugLineEncoder};
use steno_store::index::attribution::MillisecondSpan;
use steno_store::index::pending_sessions::{PendingMarker, PendingSessions};
use steno_store::keep::indexer::Indexer;
use steno_store::transcript::record_reader::RECORD_DECODER;
use steno_vault::record::{API_PROTOCOL, RecordingClosing, RecordingOpening};
use steno_vault::resumable::{RecordedSession, ResumableRecorder, UnclosedRecordingError};
use steno_vault::{SessionDir, Vault};

use crate::error::CommandError;
use crate::process_environment::ProcessEnvironment;
use crate::session_store::SessionStore;
use crate::ui::{Ui, count_noun};

/// Event for a command that waits on its gateway.
pub(crate) enum GatewayEvent {
    /// Recording has paused or resumed.
    Recording(RecordingChange),
    /// The program should end.
    Stop,
}

/// Settings of a recording gateway.
pub(crate) struct GatewaySettings {
    /// Address to listen on.
    pub(crate) listen: SocketAddr,
    /// Upstreams of requests.
    pub(crate) upstreams: Upstreams,
    /// Whether further conversations get sources of their own.
    pub(crate) subagents: bool,
    /// Maximum number of bytes recorded per body.
    pub(crate) body_limit: u64,
    /// Folder of chibi's debug files.
    pub(crate) debug_files: Option<PathBuf>,
    /// Forward proxy of the gateway, if any.
    pub(crate) forward: Option<ForwardProxy>,
}

/// A gateway that records into one or more sessions.
pub(crate) struct RecordingGateway {
    vault: Vault,
    /// Start of the gateway.
    started_at: Timestamp,
    indexer: Indexer,
    opened_sessions: OpenedSessions,
    gateway: Gateway,
    debug_writer: Option<JoinHandle<()>>,
    /// Channel of events.
    pub(crate) events: (Sender<GatewayEvent>, Receiver<GatewayEvent>),
}

/// Opened sessions, each with its marker.
type OpenedSessions = Arc<Mutex<Vec<(SessionDir, Option<PendingMarker>)>>>;

/// Result of a recording.
pub(crate) struct RecordedTraffic {
    /// Sessions with requests.
    pub(crate) sessions: Vec<SessionDir>,
    /// Whether recording paused and resumed.
    pub(crate) has_gap: bool,
    /// Whether all recordings were closed. If not, their ends are missing.
    pub(crate) is_closed: bool,
}

impl RecordingGateway {
    /// Starts the gateway. If the store cannot be written, prints a warning and starts recording once it can.
    pub(crate) fn start(
        env: &ProcessEnvironment,
        target: RecordingTarget,
        settings: GatewaySettings,
    ) -> Result<Self, CommandError> {
        let bound = BoundAddress::bind(settings.listen).map_err(|error| {
            let error = CommandError::user(error);
            error.hint("use an address of this machine, such as 127.0.0.1, and a free port")
        })?;
        bound.check_upstreams(&settings.upstreams)?;
        let (sender, receiver) = mpsc::channel();
        let (listener, debug_writer) = match &settings.debug_files {
            Some(folder) => start_debug_writer(&env.cwd.join(folder))?,
            None => (None, None),
        };
        let changed = sender.clone();
        let on_change: ChangeCallback =
            Arc::new(move |change| drop(changed.send(GatewayEvent::Recording(change))));
        let opened_sessions = OpenedSessions::default();
        let is_routed = target.is_routed;
        let opener = SessionOpener {
            target,
            vault: SessionStore::new(env).vault,
            project: env.cwd.to_string_lossy().into_owned(),
            clock: env.clock.clone(),
            subagents: settings.subagents,
            opened_sessions: Arc::clone(&opened_sessions),
            pending: PendingSessions::new(&env.store),
            on_change: Arc::clone(&on_change),
        };
        let open: OpenSession = Box::new(move |session| opener.open_session(session));
        let routing = if is_routed {
            TrafficRouting::ByAgentSession(open)
        } else {
            TrafficRouting::OneSession(open)
        };
        let options = GatewayOptions {
            upstreams: settings.upstreams,
            proxies: system_proxies(),
            body_limit: settings.body_limit,
            forward: settings.forward,
            clock: env.clock.clone(),
            on_change,
            listener,
        };
        let gateway = bound.start(options, routing);
        let indexer = Indexer::new(&env.store_location());
        let (vault, started_at) = (SessionStore::new(env).vault, env.clock.now());
        let events = (sender, receiver);
        Ok(Self { vault, started_at, indexer, opened_sessions, gateway, debug_writer, events })
    }

    /// Returns the gateway's address, such as `http://127.0.0.1:4180`.
    pub(crate) fn address(&self) -> String {
        format!("http://{}", self.gateway.address())
    }

    /// Prints the changes of the recording so far.
    pub(crate) fn report_changes(&self, ui: &mut Ui) {
        for event in self.events.1.try_iter() {
            if let GatewayEvent::Recording(change) = event {
                report_change(ui, &change);
            }
        }
    }

    /// Stops the gateway and closes its sessions. Failed writes are warnings, not errors, since the recorded program
    /// has its own exit status.
    pub(crate) fn finish(mut self, ui: &mut Ui, closing: &RecordingClosing) -> RecordedTraffic {
        let StoppedGateway { recordings } = self.gateway.stop();
        let (mut has_gap, mut is_closed) = (false, true);
        for event in self.events.1.try_iter() {
            if let GatewayEvent::Recording(change) = event {
                has_gap |= matches!(change, RecordingChange::Resumed(_));
                report_change(ui, &change);
            }
        }
        if let Some(debug) = self.debug_writer.take() {
            let _ = debug.join();
        }
        let mut sessions = Vec::new();
        for StoppedRecording { recorder, requests } in recordings {
            let (dir, was_paused) = (recorder.dir().clone(), recorder.is_paused());
            match recorder.close(closing) {
                Ok(gap) => {
                    has_gap |= gap.is_some();
                    gap.into_iter()
                        .for_each(|gap| report_change(ui, &RecordingChange::Resumed(gap)));
                    self.indexer.add_from_vault(&dir, take_marker(&self.opened_sessions, &dir));
                }
                Err(unclosed) => {
                    report_unclosed(ui, &unclosed, was_paused);
                    is_closed = false;
                }
            }
            sessions.extend((requests > 0).then_some(dir));
        }
        let mut indexed = self.indexer.flush();
        if indexed.is_ok() && !sessions.is_empty() {
            let span =
                MillisecondSpan { from: self.started_at.instant().as_millisecond(), to: i64::MAX };
            indexed = self.indexer.attribute_traffic(&self.vault, span);
        }
        if let Err(error) = indexed {
            ui.warning(format_args!("recorded, but not yet in the index: {error}"));
        }
        RecordedTraffic { sessions, has_gap, is_closed }
    }
}

fn take_marker(opened: &OpenedSessions, dir: &SessionDir) -> Option<PendingMarker> {
    let mut opened = opened.lock().unwrap_or_else(PoisonError::into_inner);
    let at = opened.iter().position(|(known, _)| known == dir)?;
    opened.swap_remove(at).1
}

/// Destination of recorded traffic.
pub(crate) struct RecordingTarget {
    /// The session of the run.
    pub(crate) dir: SessionDir,
    /// Whether exchanges with a session id go to that session instead.
    pub(crate) is_routed: bool,
}

/// Opens a session at its first exchange.
struct SessionOpener {
    target: RecordingTarget,
    vault: Vault,
    project: String,
    clock: Clock,
    subagents: bool,
    opened_sessions: OpenedSessions,
    pending: PendingSessions,
    on_change: ChangeCallback,
}

impl SessionOpener {
    fn open_session(&self, session: Option<&AgentSession>) -> TrafficSession {
        let (dir, native_id) = match session {
            Some(session) => {
                let agent = session.agent.parse().expect("the name of a reader");
                (
                    self.vault.session_dir(&agent, &session.session_id()),
                    Some(session.native_id.clone()),
                )
            }
            None => (self.target.dir.clone(), None),
        };
        // A failure to mark is ignored.
        let marker = self.pending.mark_session(&dir).ok();
        self.opened_sessions
            .lock()
            .unwrap_or_else(PoisonError::into_inner)
            .push((dir.clone(), marker));
        let opening = RecordingOpening {
            agent: dir.agent().to_owned(),
            project: (!dir.exists()).then(|| self.project.clone()),
            protocol: native_id.is_some().then(|| API_PROTOCOL.to_owned()),
            native_id,
            ..RecordingOpening::default()
        };
        let clock = self.clock.clone();
        let recorded =
            RecordedSession { dir, opening, clock, decoder: RECORD_DECODER, unit: "exchange" };
        let (recorder, failure) = ResumableRecorder::open(recorded);
        failure.into_iter().for_each(|error| (self.on_change)(RecordingChange::Paused(error)));
        TrafficSession { recorder, subagents: self.subagents }
    }
}

/// Reports that recording paused or resumed.
pub(crate) fn report_change(ui: &mut Ui, change: &RecordingChange) {
    match change {
        RecordingChange::Paused(error) => ui.warning(format_args!(
            "recording paused, requests are still forwarded: {error}: {}",
            error.source
        )),
        RecordingChange::Resumed(gap) => {
            let loss = gap
                .describe_loss()
                .map(|loss| format!("; {loss} not recorded"))
                .unwrap_or_default();
            ui.print_note(format_args!("recording resumed{loss}"));
        }
    }
}

/// Reports that a recording was not closed. A pause was already reported.
fn report_unclosed(ui: &mut Ui, unclosed: &UnclosedRecordingError, was_paused: bool) {
    if was_paused {
        let lost = count_noun(unclosed.lost, "exchange");
        ui.status(format_args!("recording did not resume; {lost} not recorded"));
    } else {
        let error = &unclosed.error;
        ui.warning(format_args!("{unclosed}: {error}: {}", error.source));
    }
}

/// Returns the system's proxies.
fn system_proxies() -> OutboundProxies {
    let first = |names: &[&str]| {
        names.iter().find_map(|name| ProcessEnvironment::variable(name)?.into_string().ok())
    };
    OutboundProxies {
        https: first(&["HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"]),
        unproxied: first(&["NO_PROXY", "no_proxy"]),
    }
}

type DebugWriter = (Option<PieceListener>, Option<JoinHandle<()>>);

/// Writes debug files on a thread of its own. Write errors are ignored, like chibi does.
fn start_debug_writer(folder: &Path) -> Result<DebugWriter, CommandError> {
    durable::create_private_dir(folder)?;
    let open = |file: ChibiDebugFile| -> Result<File, CommandError> {
        let path = folder.join(file.file_name());
        let mut options = durable::private_options();
        let opened = options.create(true).append(true).open(&path);
        opened.map_err(|error| {
            CommandError::user(format!("could not open {}: {error}", path.display()))
        })
    };
    let mut files = Vec::new();
    for file in ChibiDebugFile::ALL {
        files.push((file, open(file)?));
    }
    let (sender, receiver) = mpsc::channel::<Vec<u8>>();
    let thread = std::thread::spawn(move || {
        let mut lines = DebugLineEncoder::default();
        for piece in receiver {
            let written = TrafficPiece::parse(&piece).map(|piece| lines.push_piece(piece));
            for (file, line) in written.into_iter().flatten() {
                if let Some((_, out)) = files.iter_mut().find(|(known, _)| *known == file) {
                    let _ = out.write_all(line.as_bytes());
                }
            }
        }
    });
    let listener: PieceListener = Box::new(move |piece| drop(sender.send(piece.to_line())));
    Ok((Some(listener), Some(thread)))
}

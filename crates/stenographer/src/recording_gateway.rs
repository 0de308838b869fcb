//! A session into which a gateway records, from its beginning to its place in the index.

use std::fs::File;
use std::io::Write;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver, Sender};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;

use steno_core::durable;
use steno_core::index::attribution::TimeSpan;
use steno_core::index::pending::{Marker, Pending};
use steno_core::traffic::debug::{DebugFile, DebugLines};
use steno_core::traffic::{AgentSession, PROTOCOL, Piece};
use steno_core::vault::record::{Closing, Opening};
use steno_core::vault::resumable::{RecordedSession, ResumableRecorder, UnclosedRecording};
use steno_core::vault::{SessionDir, Vault};
use steno_core::{Clock, Timestamp};
use steno_gateway::gateway::{ChangeCallback, PieceListener, StoppedGateway, StoppedRecording};
use steno_gateway::{
    BoundAddress, ForwardProxy, Gateway, GatewayOptions, OpenSession, OutboundProxies,
    RecordingChange, TrafficRouting, TrafficSession, Upstreams,
};

use crate::error::CommandError;
use crate::indexer::Indexer;
use crate::process_environment::ProcessEnvironment;
use crate::session_store::SessionStore;
use crate::ui::{Ui, count_noun};

/// What wakes a command that waits while its gateway works.
pub(crate) enum GatewayEvent {
    /// Recording has paused or resumed.
    Recording(RecordingChange),
    /// Somebody wants the program to end.
    Stop,
}

/// How traffic is to be recorded.
pub(crate) struct GatewaySettings {
    /// Where the gateway listens.
    pub(crate) listen: SocketAddr,
    /// Where requests go.
    pub(crate) upstreams: Upstreams,
    /// Whether conversations beside the first have sources of their own.
    pub(crate) subagents: bool,
    /// How many bytes of a body are recorded.
    pub(crate) body_limit: u64,
    /// Where chibi's debug files go.
    pub(crate) debug_files: Option<PathBuf>,
    /// What makes the gateway a forward proxy too.
    pub(crate) forward: Option<ForwardProxy>,
}

/// A gateway that records into one session or several.
pub(crate) struct RecordingGateway {
    vault: Vault,
    /// When the gateway was started.
    started_at: Timestamp,
    indexer: Indexer,
    opened_sessions: OpenedSessions,
    gateway: Gateway,
    debug_writer: Option<JoinHandle<()>>,
    /// Sends and brings what happens meanwhile.
    pub(crate) events: (Sender<GatewayEvent>, Receiver<GatewayEvent>),
}

/// The sessions that were opened, each with its marker.
type OpenedSessions = Arc<Mutex<Vec<(SessionDir, Option<Marker>)>>>;

/// What was recorded.
pub(crate) struct RecordedTraffic {
    /// The sessions that have requests in their record.
    pub(crate) sessions: Vec<SessionDir>,
    /// Whether recording paused and resumed.
    pub(crate) has_gap: bool,
    /// Whether all records were closed. If not, their ends are missing.
    pub(crate) is_closed: bool,
}

impl RecordingGateway {
    /// Starts the gateway. If the store cannot be written, a warning is printed and recording begins once it can.
    pub(crate) fn start(
        env: &ProcessEnvironment,
        target: RecordingTarget,
        recording: GatewaySettings,
    ) -> Result<Self, CommandError> {
        let bound = BoundAddress::bind(recording.listen)?;
        bound.check_upstreams(&recording.upstreams)?;
        let (sender, receiver) = mpsc::channel();
        let (listener, debug) = match &recording.debug_files {
            Some(folder) => start_debug_writer(&env.cwd.join(folder))?,
            None => (None, None),
        };
        let changed = sender.clone();
        let on_change: OnChange =
            Arc::new(move |change| drop(changed.send(GatewayEvent::Recording(change))));
        let opened = OpenedSessions::default();
        let is_routed = target.is_routed;
        let opener = SessionOpener {
            target,
            vault: SessionStore::new(env).vault,
            project: env.cwd.to_string_lossy().into_owned(),
            clock: env.clock.clone(),
            subagents: recording.subagents,
            opened: Arc::clone(&opened),
            pending: Pending::new(&env.store),
            on_change: Arc::clone(&on_change),
        };
        let open: OpenSession = Box::new(move |session| opener.open_session(session));
        let routing = if is_routed {
            TrafficRouting::ByAgentSession(open)
        } else {
            TrafficRouting::OneSession(open)
        };
        let options = GatewayOptions {
            upstreams: recording.upstreams,
            proxies: system_proxies(),
            body_limit: recording.body_limit,
            forward: recording.forward,
            clock: env.clock.clone(),
            on_change,
            listener,
        };
        let gateway = bound.start(options, routing);
        let indexer = Indexer::new(&env.store);
        let (vault, began) = (SessionStore::new(env).vault, env.clock.now());
        let events = (sender, receiver);
        Ok(Self {
            vault,
            started_at: began,
            indexer,
            opened_sessions: opened,
            gateway,
            debug_writer: debug,
            events,
        })
    }

    /// The gateway's address, such as `http://127.0.0.1:4180`.
    pub(crate) fn address(&self) -> String {
        format!("http://{}", self.gateway.address())
    }

    /// Prints what has happened to the recording so far.
    pub(crate) fn report_changes(&self, ui: &mut Ui) {
        for event in self.events.1.try_iter() {
            if let GatewayEvent::Recording(change) = event {
                report_change(ui, &change);
            }
        }
    }

    /// Ends the gateway and its sessions. What cannot be written any more is warned of, and never an error: the program
    /// that was recorded has ended in its own way.
    pub(crate) fn finish(mut self, ui: &mut Ui, closing: &Closing) -> RecordedTraffic {
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
            let span = TimeSpan { from: self.started_at.instant().as_millisecond(), to: i64::MAX };
            indexed = self.indexer.attribute_traffic(&self.vault, span);
        }
        if let Err(error) = indexed {
            ui.warning(format_args!("recorded, but not yet in the index: {}", error.error));
        }
        RecordedTraffic { sessions, has_gap, is_closed }
    }
}

fn take_marker(opened: &OpenedSessions, dir: &SessionDir) -> Option<Marker> {
    let mut opened = opened.lock().unwrap_or_else(PoisonError::into_inner);
    let at = opened.iter().position(|(known, _)| known == dir)?;
    opened.swap_remove(at).1
}

/// Where traffic is recorded.
pub(crate) struct RecordingTarget {
    /// The session of the run.
    pub(crate) dir: SessionDir,
    /// Whether exchanges of agents that name their session go there instead.
    pub(crate) is_routed: bool,
}

/// Opens sessions as their first exchanges come.
struct SessionOpener {
    target: RecordingTarget,
    vault: Vault,
    project: String,
    clock: Clock,
    subagents: bool,
    opened: OpenedSessions,
    pending: Pending,
    on_change: ChangeCallback,
}

impl SessionOpener {
    fn open_session(&self, session: Option<&AgentSession>) -> TrafficSession {
        let (dir, native_id) = match session {
            Some(session) => {
                let agent = session.agent.parse().expect("the name of a reader");
                (self.vault.session(&agent, &session.id()), Some(session.native_id.clone()))
            }
            None => (self.target.dir.clone(), None),
        };
        // That it cannot be marked is no reason not to record it.
        let marker = self.pending.mark(&dir).ok();
        self.opened.lock().unwrap_or_else(PoisonError::into_inner).push((dir.clone(), marker));
        let opening = Opening {
            agent: dir.agent().to_owned(),
            project: (!dir.exists()).then(|| self.project.clone()),
            protocol: native_id.is_some().then(|| PROTOCOL.to_owned()),
            native_id,
            ..Opening::default()
        };
        let clock = self.clock.clone();
        let recorded = RecordedSession { dir, opening, clock, unit: "exchange" };
        let (recorder, failure) = ResumableRecorder::open(recorded);
        failure.into_iter().for_each(|error| (self.on_change)(RecordingChange::Paused(error)));
        TrafficSession { recorder, subagents: self.subagents }
    }
}

/// Says that recording has paused or resumed.
pub(crate) fn report_change(ui: &mut Ui, change: &RecordingChange) {
    match change {
        RecordingChange::Paused(error) => ui.warning(format_args!(
            "recording paused, requests are still passed on: {error}: {}",
            error.source
        )),
        RecordingChange::Resumed(gap) => {
            let loss = gap.loss().map(|loss| format!("; {loss} not recorded")).unwrap_or_default();
            ui.print_note(format_args!("recording resumed{loss}"));
        }
    }
}

/// Says that the record has no end. That it had paused was said before.
fn report_unclosed(ui: &mut Ui, unclosed: &UnclosedRecording, was_paused: bool) {
    if was_paused {
        let lost = count_noun(unclosed.lost, "exchange");
        ui.status(format_args!("recording did not resume; {lost} not recorded"));
    } else {
        let error = &unclosed.error;
        ui.warning(format_args!("{unclosed}: {error}: {}", error.source));
    }
}

/// The proxies that programs of this machine use.
fn system_proxies() -> Proxies {
    let first = |names: &[&str]| {
        names.iter().find_map(|name| ProcessEnvironment::variable(name)?.into_string().ok())
    };
    Proxies {
        https: first(&["HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"]),
        unproxied: first(&["NO_PROXY", "no_proxy"]),
    }
}

type DebugWriter = (Option<Listener>, Option<JoinHandle<()>>);

/// Writes debug files on a thread of its own; what cannot be written is left out, as chibi does.
fn start_debug_writer(folder: &Path) -> Result<DebugWriter, CommandError> {
    durable::create_private_dir(folder)?;
    let open = |file: DebugFile| -> Result<File, CommandError> {
        let path = folder.join(file.name());
        let mut options = durable::private_options();
        let opened = options.create(true).append(true).open(&path);
        opened.map_err(|error| {
            CommandError::user(format!("could not open {}: {error}", path.display()))
        })
    };
    let mut files = Vec::new();
    for file in DebugFile::ALL {
        files.push((file, open(file)?));
    }
    let (sender, receiver) = mpsc::channel::<Vec<u8>>();
    let thread = std::thread::spawn(move || {
        let mut lines = DebugLines::default();
        for piece in receiver {
            let written = Piece::of(&piece).map(|piece| lines.take(piece));
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

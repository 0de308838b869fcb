//! A session into which a gateway records, from its beginning to its place in the index.

use std::fs::File;
use std::io::Write;
use std::net::SocketAddr;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver, Sender};
use std::thread::JoinHandle;

use steno_core::durable;
use steno_core::index::pending::Marker;
use steno_core::traffic::Piece;
use steno_core::traffic::debug::{DebugFile, DebugLines};
use steno_core::vault::SessionDir;
use steno_core::vault::record::{Closing, Opening};
use steno_core::vault::recorder::Recorder;
use steno_gateway::gateway::Listener;
use steno_gateway::{Bound, Gateway, Options, Proxies, Upstreams};

use crate::error::CommandError;
use crate::indexer::Indexer;
use crate::scene::Scene;
use crate::ui::Ui;

/// What wakes a command that waits while its gateway works.
pub(crate) enum Event {
    /// The recording has failed, and why.
    Failed(String),
    /// Somebody wants the program to end.
    Stop,
}

/// How traffic is to be recorded.
pub(crate) struct Recording {
    /// Where the gateway listens.
    pub(crate) listen: SocketAddr,
    /// Where requests go.
    pub(crate) upstreams: Upstreams,
    /// Whether conversations beside the first have sources of their own.
    pub(crate) subagents: bool,
    /// Where chibi's debug files go.
    pub(crate) debug_files: Option<PathBuf>,
}

/// A gateway that records into a session.
pub(crate) struct Traffic {
    dir: SessionDir,
    indexer: Indexer,
    marker: Option<Marker>,
    gateway: Gateway,
    debug: Option<JoinHandle<()>>,
    /// Sends and brings what happens meanwhile.
    pub(crate) events: (Sender<Event>, Receiver<Event>),
}

impl Traffic {
    /// Opens the session and starts the gateway.
    pub(crate) fn start(
        scene: &Scene,
        dir: SessionDir,
        recording: Recording,
    ) -> Result<Self, CommandError> {
        let bound = Bound::new(recording.listen)?;
        bound.check(&recording.upstreams)?;
        let indexer = Indexer::new(&scene.store);
        let marker = indexer.mark(&dir);
        let project = (!dir.exists()).then(|| scene.cwd.to_string_lossy().into_owned());
        let opening = Opening { agent: dir.agent().to_owned(), project, ..Opening::default() };
        let (sender, receiver) = mpsc::channel();
        let failed = sender.clone();
        let (listener, debug) = match &recording.debug_files {
            Some(folder) => debug_files(&scene.cwd.join(folder))?,
            None => (None, None),
        };
        let recorder = Recorder::open(dir.clone(), &opening, scene.clock.clone())?;
        recorder.append_traffic(&[Piece::settings(recording.subagents)])?;
        let options = Options {
            upstreams: recording.upstreams,
            proxies: proxies(),
            clock: scene.clock.clone(),
            on_failure: Box::new(move |reason| drop(failed.send(Event::Failed(reason)))),
            listener,
        };
        let gateway = bound.start(options, recorder);
        Ok(Self { dir, indexer, marker, gateway, debug, events: (sender, receiver) })
    }

    /// The gateway's address, such as `http://127.0.0.1:4180`.
    pub(crate) fn address(&self) -> String {
        format!("http://{}", self.gateway.address())
    }

    /// Ends the gateway and the session.
    pub(crate) fn finish(mut self, ui: &mut Ui, closing: &Closing) -> Result<(), CommandError> {
        let recorder = self.gateway.stop();
        for event in self.events.1.try_iter() {
            if let Event::Failed(reason) = event {
                ui.warning(reason);
            }
        }
        if let Some(debug) = self.debug {
            let _ = debug.join();
        }
        recorder.close(closing)?;
        self.indexer.add_kept(&self.dir, self.marker);
        if let Err(error) = self.indexer.flush() {
            ui.warning(format_args!("recorded, but not yet in the index: {}", error.error));
        }
        Ok(())
    }
}

/// The proxies that programs of this machine use.
fn proxies() -> Proxies {
    let first =
        |names: &[&str]| names.iter().find_map(|name| Scene::variable(name)?.into_string().ok());
    Proxies {
        https: first(&["HTTPS_PROXY", "https_proxy", "ALL_PROXY", "all_proxy"]),
        unproxied: first(&["NO_PROXY", "no_proxy"]),
    }
}

type Debugging = (Option<Listener>, Option<JoinHandle<()>>);

/// Writes debug files on a thread of its own; what cannot be written is left out, as chibi does.
fn debug_files(folder: &Path) -> Result<Debugging, CommandError> {
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
            let Some((file, line)) = Piece::of(&piece).and_then(|piece| lines.take(piece)) else {
                continue;
            };
            if let Some((_, out)) = files.iter_mut().find(|(known, _)| *known == file) {
                let _ = out.write_all(line.as_bytes());
            }
        }
    });
    let listener: Listener = Box::new(move |piece| drop(sender.send(piece.to_line())));
    Ok((Some(listener), Some(thread)))
}

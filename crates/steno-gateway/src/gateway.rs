//! A gateway under way, for callers that are not asynchronous.

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use steno_core::Clock;
use steno_core::vault::resumable::ResumableRecorder;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;

use crate::connector::OutboundProxies;
use crate::exchange::ExchangeContext;
use crate::forward_proxy::ForwardProxy;
use crate::gateway_handler::GatewayHandler;
use crate::guard::OriginGuard;
use crate::locking::lock_unpoisoned;
use crate::recording::RecordingHandle;
pub use crate::recording::{Listener, OnChange, RecordingChange, TrafficSession};
use crate::server;
use crate::sessions::{SessionRecorders, SharedHandles, TrafficRouting};
use crate::upstream::Upstreams;
use crate::upstream_clients::UpstreamClients;

/// How many bytes of a body are recorded unless something else is said.
pub const DEFAULT_BODY_LIMIT: u64 = 256 << 20;

/// What a gateway is to do.
pub struct Options {
    /// Where requests go.
    pub upstreams: Upstreams,
    /// What is in the way to them.
    pub proxies: OutboundProxies,
    /// How many bytes of a body are recorded.
    pub body_limit: u64,
    /// What makes it a forward proxy too.
    pub forward: Option<ForwardProxy>,
    /// What time it is.
    pub clock: Clock,
    /// Is called when recording pauses or resumes; the traffic goes on in either case.
    pub on_change: OnChange,
    /// Takes every piece that was recorded.
    pub listener: Option<Listener>,
}

/// A gateway that could not be started.
#[derive(Debug, thiserror::Error)]
pub enum GatewayError {
    /// The address could not be taken.
    #[error("could not listen on {0}")]
    Bind(SocketAddr, #[source] io::Error),
    /// The system gave no threads.
    #[error("could not start the gateway's threads")]
    Runtime(#[source] io::Error),
    /// Requests would go round in a circle.
    #[error("the upstream {0} is the gateway itself: {1}")]
    Circle(String, String),
}

/// A gateway under way.
#[derive(Debug)]
pub struct Gateway {
    address: SocketAddr,
    runtime: Runtime,
    handles: SharedHandles,
}

/// What is left of a gateway that has ended.
#[derive(Debug)]
pub struct StoppedGateway {
    /// What was recorded into each session, to be closed.
    pub recordings: Vec<StoppedRecording>,
}

/// What was recorded into one session.
#[derive(Debug)]
pub struct StoppedRecording {
    /// The recorder, to be closed.
    pub recorder: ResumableRecorder,
    /// How many requests were recorded.
    pub requests: u64,
}

/// An address that was taken, before anything is recorded.
#[derive(Debug)]
pub struct Bound {
    pub(crate) runtime: Runtime,
    pub(crate) listener: TcpListener,
    pub(crate) address: SocketAddr,
}

impl Bound {
    /// Takes an address.
    pub fn new(listen: SocketAddr) -> Result<Self, GatewayError> {
        let runtime = runtime().map_err(GatewayError::Runtime)?;
        let bound = runtime.block_on(server::bind(listen));
        let (listener, address) = bound.map_err(|error| GatewayError::Bind(listen, error))?;
        Ok(Self { runtime, listener, address })
    }

    /// Makes sure that no upstream is the gateway itself.
    pub fn check(&self, upstreams: &Upstreams) -> Result<(), GatewayError> {
        let own = format!("http://{}", self.address);
        match upstreams.iter().find(|upstream| upstream.origin == own) {
            Some(upstream) => Err(GatewayError::Circle(upstream.name.clone(), own)),
            None => Ok(()),
        }
    }

    /// Starts to pass requests on, and to record them.
    pub fn start(self, options: Options, routing: TrafficRouting) -> Gateway {
        let listener = options.listener.map(|listener| Arc::new(Mutex::new(listener)));
        let sessions = SessionRecorders::new(routing, options.on_change, listener);
        let handles = sessions.handles();
        let handler = {
            // The clients' timers need a runtime.
            let _entered = self.runtime.enter();
            let clients = UpstreamClients::new(&options.proxies);
            let Options { upstreams, clock, body_limit, forward, .. } = options;
            let context = Arc::new(ExchangeContext { clients, sessions, clock, body_limit });
            let guard = OriginGuard::new(self.address);
            GatewayHandler { context, upstreams, guard, forward }
        };
        self.runtime.spawn(server::serve(self.listener, Arc::new(handler)));
        Gateway { address: self.address, runtime: self.runtime, handles }
    }
}

impl Gateway {
    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Ends it. What is still being passed on is cut, and recorded so.
    pub fn stop(self) -> StoppedGateway {
        self.runtime.shutdown_timeout(Duration::from_secs(5));
        let handles = std::mem::take(&mut *lock_unpoisoned(&self.handles));
        StoppedGateway { recordings: handles.into_iter().map(stop_recording).collect() }
    }
}

fn stop_recording(handle: RecordingHandle) -> StoppedRecording {
    let RecordingHandle { recorder, requests, syncing } = handle;
    // The last piece has gone with the runtime, and with it the thread that syncs.
    let _ = syncing.join();
    let recorder = Arc::into_inner(recorder).expect("nobody records any more");
    StoppedRecording { recorder, requests: requests.load(Ordering::Relaxed) }
}

/// Two threads are enough for one machine's agents, and leave the rest to them.
fn runtime() -> io::Result<Runtime> {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .thread_name("steno-gateway")
        .enable_all()
        .build()
}

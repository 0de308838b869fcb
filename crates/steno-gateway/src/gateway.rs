//! A running gateway, with a blocking interface.

use std::io;
use std::net::SocketAddr;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use steno_model::Clock;
use steno_vault::resumable::ResumableRecorder;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;

use crate::connector::OutboundProxies;
use crate::exchange::ExchangeContext;
use crate::forward_proxy::ForwardProxy;
use crate::gateway_handler::GatewayHandler;
use crate::guard::OriginGuard;
use crate::locking::lock_unpoisoned;
use crate::recording::RecordingHandle;
pub use crate::recording::{ChangeCallback, PieceListener, RecordingChange, TrafficSession};
use crate::server;
use crate::sessions::{SessionRecorders, SharedHandles, TrafficRouting};
use crate::upstream::Upstreams;
use crate::upstream_clients::UpstreamClients;

/// How many bytes of a body are recorded by default.
pub const DEFAULT_BODY_LIMIT: u64 = 256 << 20;

/// Options of a gateway.
pub struct GatewayOptions {
    /// Where requests are forwarded to.
    pub upstreams: Upstreams,
    /// The proxies between this machine and the upstreams.
    pub proxies: OutboundProxies,
    /// How many bytes of a body are recorded.
    pub body_limit: u64,
    /// Makes the gateway a forward proxy too.
    pub forward: Option<ForwardProxy>,
    /// The current time.
    pub clock: Clock,
    /// Called when recording pauses or resumes. Requests are forwarded in either case.
    pub on_change: ChangeCallback,
    /// Called with every recorded piece.
    pub listener: Option<PieceListener>,
}

/// Why starting a gateway failed.
#[derive(Debug, thiserror::Error)]
pub enum GatewayError {
    /// Binding the address failed.
    #[error("could not listen on {0}")]
    Bind(SocketAddr, #[source] io::Error),
    /// The system could not start threads.
    #[error("could not start the gateway's threads")]
    Runtime(#[source] io::Error),
    /// An upstream is the gateway itself, so requests would loop.
    #[error("the upstream {0} is the gateway itself: {1}")]
    SelfUpstream(String, String),
}

/// A running gateway.
#[derive(Debug)]
pub struct Gateway {
    address: SocketAddr,
    runtime: Runtime,
    handles: SharedHandles,
}

/// The recordings of a stopped gateway.
#[derive(Debug)]
pub struct StoppedGateway {
    /// The recording of each session, not yet closed.
    pub recordings: Vec<StoppedRecording>,
}

/// The recording of one session.
#[derive(Debug)]
pub struct StoppedRecording {
    /// The recorder, which the caller closes.
    pub recorder: ResumableRecorder,
    /// How many requests were recorded.
    pub requests: u64,
}

/// A bound address. Nothing is recorded before [`start`](Self::start).
#[derive(Debug)]
pub struct BoundAddress {
    pub(crate) runtime: Runtime,
    pub(crate) listener: TcpListener,
    pub(crate) address: SocketAddr,
}

impl BoundAddress {
    /// Binds an address.
    pub fn bind(listen: SocketAddr) -> Result<Self, GatewayError> {
        let runtime = build_runtime().map_err(GatewayError::Runtime)?;
        let bound = runtime.block_on(server::bind_listener(listen));
        let (listener, address) = bound.map_err(|error| GatewayError::Bind(listen, error))?;
        Ok(Self { runtime, listener, address })
    }

    /// Checks that no upstream is the gateway itself.
    pub fn check_upstreams(&self, upstreams: &Upstreams) -> Result<(), GatewayError> {
        let own = format!("http://{}", self.address);
        match upstreams.iter().find(|upstream| upstream.origin == own) {
            Some(upstream) => Err(GatewayError::SelfUpstream(upstream.name.clone(), own)),
            None => Ok(()),
        }
    }

    /// Starts to forward and record requests.
    pub fn start(self, options: GatewayOptions, routing: TrafficRouting) -> Gateway {
        let listener = options.listener.map(|listener| Arc::new(Mutex::new(listener)));
        let sessions = SessionRecorders::new(routing, options.on_change, listener);
        let handles = sessions.handles();
        let handler = {
            // The clients' timers need a runtime.
            let _entered = self.runtime.enter();
            let clients = UpstreamClients::new(&options.proxies);
            let GatewayOptions { upstreams, clock, body_limit, forward, .. } = options;
            let context = Arc::new(ExchangeContext { clients, sessions, clock, body_limit });
            let guard = OriginGuard::new(self.address);
            GatewayHandler { context, upstreams, guard, forward }
        };
        self.runtime.spawn(server::serve_listener(self.listener, Arc::new(handler)));
        Gateway { address: self.address, runtime: self.runtime, handles }
    }
}

impl Gateway {
    /// The address that the gateway listens on.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Stops the gateway. Exchanges under way are cut, and recorded as cut.
    pub fn stop(self) -> StoppedGateway {
        self.runtime.shutdown_timeout(Duration::from_secs(5));
        let handles = std::mem::take(&mut *lock_unpoisoned(&self.handles));
        StoppedGateway { recordings: handles.into_iter().map(stop_recording).collect() }
    }
}

fn stop_recording(handle: RecordingHandle) -> StoppedRecording {
    let RecordingHandle { recorder, requests, syncing } = handle;
    // The runtime held the last senders, so the sync thread has ended too.
    let _ = syncing.join();
    let recorder = Arc::into_inner(recorder).expect("nobody records any more");
    StoppedRecording { recorder, requests: requests.load(Ordering::Relaxed) }
}

/// Two threads are enough for the agents of one machine, and leave the other cores to them.
fn build_runtime() -> io::Result<Runtime> {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .thread_name("steno-gateway")
        .enable_all()
        .build()
}

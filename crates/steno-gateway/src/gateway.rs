//! A gateway under way, for callers that are not asynchronous.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::thread::JoinHandle;
use std::time::Duration;

use steno_core::Clock;
use steno_core::vault::recorder::Recorder;
use tokio::runtime::Runtime;

use crate::guard::Guard;
use crate::log::Log;
pub use crate::log::{Listener, OnFailure};
use crate::proxy::Proxy;
use crate::server;
use crate::upstream::Upstreams;

/// What a gateway is to do.
pub struct Options {
    /// Where it listens.
    pub listen: SocketAddr,
    /// Where requests go.
    pub upstreams: Upstreams,
    /// What time it is.
    pub clock: Clock,
    /// Told once, when the recording has failed; the traffic goes on.
    pub on_failure: OnFailure,
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
    recorder: Arc<Recorder>,
    syncing: JoinHandle<()>,
}

impl Gateway {
    /// Starts a gateway that records into `recorder`.
    pub fn start(options: Options, recorder: Recorder) -> Result<Self, GatewayError> {
        let runtime = runtime().map_err(GatewayError::Runtime)?;
        let (listener, address) = runtime
            .block_on(server::bind(options.listen))
            .map_err(|error| GatewayError::Bind(options.listen, error))?;
        let own = format!("http://{address}");
        if let Some(upstream) = options.upstreams.iter().find(|upstream| upstream.origin == own) {
            return Err(GatewayError::Circle(upstream.name.clone(), own));
        }
        let recorder = Arc::new(recorder);
        let (log, syncing) = Log::new(Arc::clone(&recorder), options.on_failure, options.listener);
        let guard = Guard::new(address);
        let proxy = {
            // The client's timers belong to the runtime.
            let _entered = runtime.enter();
            Proxy::new(options.upstreams, guard, Arc::new(log), options.clock)
        };
        runtime.spawn(server::serve(listener, Arc::new(proxy)));
        Ok(Self { address, runtime, recorder, syncing })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Ends it. What is still being passed on is cut, and recorded so.
    pub fn stop(self) -> Recorder {
        self.runtime.shutdown_timeout(Duration::from_secs(5));
        // The last piece has gone with the runtime, and with it the thread that syncs.
        let _ = self.syncing.join();
        Arc::into_inner(self.recorder).expect("nobody records any more")
    }
}

/// Two threads are enough for one machine's agents, and leave the rest to them.
pub(crate) fn runtime() -> io::Result<Runtime> {
    tokio::runtime::Builder::new_multi_thread()
        .worker_threads(2)
        .thread_name("steno-gateway")
        .enable_all()
        .build()
}

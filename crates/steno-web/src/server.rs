//! The server: binds an address, and serves requests until the program ends.

use std::net::SocketAddr;
use std::sync::Arc;

use tokio::net::TcpListener;
use tokio::runtime::{Builder, Runtime};
use uuid::Uuid;

use crate::app::WebApp;
use crate::connections::serve_connections;
use crate::error::WebError;
use crate::guard::{FirstVisit, LAUNCH_PATH, TokenGuard};
use crate::library_set::LibrarySet;
use crate::options::ServerOptions;
use crate::routes;

/// How many requests read files at once.
const MAX_BLOCKING_THREADS: usize = 4;

/// A server with a bound address.
pub struct WebServer {
    runtime: Runtime,
    listener: TcpListener,
    address: SocketAddr,
    guard: Arc<TokenGuard>,
    options: ServerOptions,
}

impl WebServer {
    /// Binds the address; port 0 chooses a free port.
    pub fn bind(options: ServerOptions) -> Result<Self, WebError> {
        let failed = |reason| WebError::Listen { address: options.address, reason };
        let runtime = Builder::new_multi_thread()
            .worker_threads(2)
            .max_blocking_threads(MAX_BLOCKING_THREADS)
            .enable_all()
            .build();
        let runtime = runtime.map_err(failed)?;
        let listener = runtime.block_on(TcpListener::bind(options.address)).map_err(failed)?;
        let address = listener.local_addr().map_err(failed)?;
        let guard = Arc::new(TokenGuard {
            token: format!("{}{}", Uuid::new_v4().simple(), Uuid::new_v4().simple()),
            hosts: own_hosts(address),
            is_unspecified: address.ip().is_unspecified(),
            cookie: format!("steno-{}", address.port()),
            first_visit: FirstVisit::default(),
            team: options.team.clone(),
        });
        Ok(Self { runtime, listener, address, guard, options })
    }

    /// The address to open in a browser, with the token.
    pub fn url(&self) -> String {
        format!("http://{}/?token={}", self.address, self.guard.token)
    }

    /// The address for a local launch file. It works although the browser comes from a file.
    pub fn launch_url(&self) -> String {
        format!("http://{}{LAUNCH_PATH}?token={}", self.address, self.guard.token)
    }

    /// Calls `action` when the token is used for the first time.
    pub fn on_first_visit(&mut self, action: Box<dyn FnOnce() + Send>) {
        self.guard.first_visit.set(action);
    }

    /// Serves requests until the program ends.
    pub fn run(self) -> Result<(), WebError> {
        let ServerOptions { resume, history, limits, .. } = self.options.clone();
        let app = WebApp::new(LibrarySet::new(self.options), resume, &limits);
        let router = routes::build_router(app, self.guard, history);
        let served = self.runtime.spawn(serve_connections(self.listener, router, limits));
        self.runtime.block_on(served).map_err(|error| WebError::Stopped(error.into()))
    }
}

/// The names of this server for a browser on this machine.
fn own_hosts(address: SocketAddr) -> Vec<String> {
    let port = address.port();
    let mut hosts = vec![address.to_string()];
    if address.ip().is_loopback() {
        hosts.extend(["127.0.0.1", "localhost", "[::1]"].map(|name| format!("{name}:{port}")));
    }
    hosts
}

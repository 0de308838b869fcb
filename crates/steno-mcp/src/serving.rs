//! Connects the server with clients: over standard input and output, or over HTTP.

use std::io;
use std::sync::Arc;

use rmcp::ServiceExt;
use rmcp::transport::streamable_http_server::session::never::NeverSessionManager;
use rmcp::transport::streamable_http_server::{StreamableHttpServerConfig, StreamableHttpService};
use tokio::runtime::Builder;

use crate::agent_history::AgentHistory;
use crate::history_server::HistoryServer;

/// How many calls are answered at the same time.
const MAX_CALL_THREADS: usize = 4;

/// How many threads wait for standard input and output.
const STDIO_THREADS: usize = 2;

/// A server for HTTP (Streamable HTTP). It keeps no sessions: each request is answered by one JSON document.
pub type HttpHistoryService = StreamableHttpService<HistoryServer, NeverSessionManager>;

impl HistoryServer {
    /// The server for HTTP. The caller checks host, origin and token of requests first.
    pub fn into_http_service(self, max_body_bytes: usize) -> HttpHistoryService {
        let config = StreamableHttpServerConfig::default()
            .with_legacy_session_mode(false)
            .with_json_response(true)
            .with_max_request_body_bytes(max_body_bytes)
            .disable_allowed_hosts();
        StreamableHttpService::new(
            move || Ok(self.clone()),
            Arc::new(NeverSessionManager::default()),
            config,
        )
    }
}

/// Serves a client on standard input and output until it closes the input.
pub fn serve_stdio(history: AgentHistory) -> io::Result<()> {
    let threads = MAX_CALL_THREADS + STDIO_THREADS;
    let runtime =
        Builder::new_current_thread().max_blocking_threads(threads).enable_all().build()?;
    runtime.block_on(async {
        let server = HistoryServer::new(Arc::new(history));
        match server.serve(rmcp::transport::stdio()).await {
            Ok(running) => running.waiting().await.map(drop).map_err(io::Error::other),
            // The client left before it said anything.
            Err(rmcp::service::ServerInitializeError::ConnectionClosed(_)) => Ok(()),
            Err(error) => Err(io::Error::other(error)),
        }
    })?;
    // A thread may still wait for input.
    runtime.shutdown_background();
    Ok(())
}

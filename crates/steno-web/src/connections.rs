//! Accepts connections, and limits their number, time and memory.
//!
//! A connection is unverified until one of its requests has the token. If there are too many unverified connections, a
//! new one replaces the oldest. So a client with the token can always connect.

use std::collections::BTreeMap;
use std::convert::Infallible;
use std::future::poll_fn;
use std::net::IpAddr;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::Poll;
use std::time::Duration;

use axum::Router;
use hyper::Request;
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Notify, Semaphore};
use tower_service::Service;

use crate::write_timeout::WriteTimeoutStream;

/// How long to wait after accepting failed, most likely for lack of file descriptors.
const ACCEPT_RETRY_DELAY: Duration = Duration::from_millis(10);

/// Limits for the clients of a server.
#[derive(Clone, Debug)]
pub struct ConnectionLimits {
    /// How many connections without the token are open at once.
    pub unverified_connections: usize,
    /// How many connections with the token are open at once.
    pub verified_connections: usize,
    /// How many event streams are open at once.
    pub event_streams: usize,
    /// How long the headers of a request may take, from when the connection opens or becomes idle.
    pub header_timeout: Duration,
    /// How long the body of a request may take.
    pub body_timeout: Duration,
    /// How long a client may read nothing while the server writes.
    pub write_timeout: Duration,
    /// How long an event stream stays open; browsers then open a new one.
    pub event_stream_lifetime: Duration,
    /// The size of a request's headers, in bytes.
    pub header_bytes: usize,
    /// The size of a request's body, in bytes.
    pub body_bytes: usize,
}

impl Default for ConnectionLimits {
    /// Far more than browsers need, and low enough for a limit of 256 open files.
    fn default() -> Self {
        Self {
            unverified_connections: 64,
            verified_connections: 96,
            event_streams: 32,
            header_timeout: Duration::from_secs(10),
            body_timeout: Duration::from_secs(10),
            write_timeout: Duration::from_secs(30),
            event_stream_lifetime: Duration::from_secs(15 * 60),
            header_bytes: 64 << 10,
            body_bytes: 1 << 20,
        }
    }
}

/// Accepts connections and serves each in a task of its own; never returns.
pub(crate) async fn serve_connections(
    listener: TcpListener,
    router: Router,
    limits: ConnectionLimits,
) {
    let open_sockets =
        Arc::new(Semaphore::new(limits.unverified_connections + limits.verified_connections));
    let table = Arc::new(ConnectionTable { limits, state: Mutex::default() });
    loop {
        let Ok((stream, peer)) = listener.accept().await else {
            table.lock().evict_oldest();
            tokio::time::sleep(ACCEPT_RETRY_DELAY).await;
            continue;
        };
        let slot = Arc::new(table.admit());
        // An evicted connection returns its permit as soon as its task runs.
        let Ok(permit) = Arc::clone(&open_sockets).acquire_owned().await else { return };
        let router = router.clone();
        tokio::spawn(async move {
            serve_connection(stream, router, slot, PeerAddress(peer.ip())).await;
            drop(permit);
        });
    }
}

/// Serves one connection until it ends, times out or is evicted.
async fn serve_connection(
    stream: TcpStream,
    router: Router,
    slot: Arc<ConnectionSlot>,
    peer: PeerAddress,
) {
    let _ = stream.set_nodelay(true);
    let limits = &slot.table.limits;
    let service = service_fn(|mut request: Request<Incoming>| {
        request.extensions_mut().insert(Arc::clone(&slot));
        request.extensions_mut().insert(peer);
        let mut router = router.clone();
        async move { Ok::<_, Infallible>(router.call(request).await.unwrap_or_else(|e| match e {})) }
    });
    let stream = WriteTimeoutStream::new(stream, limits.write_timeout);
    let connection = http1::Builder::new()
        .timer(TokioTimer::new())
        .header_read_timeout(limits.header_timeout)
        .max_buf_size(limits.header_bytes)
        .serve_connection(TokioIo::new(stream), service);
    let mut connection = pin!(connection);
    let mut evicted = pin!(slot.evicted.notified());
    poll_fn(|context| {
        let is_over = evicted.as_mut().poll(context).is_ready()
            || connection.as_mut().poll(context).is_ready();
        if is_over { Poll::Ready(()) } else { Poll::Pending }
    })
    .await;
}

/// The address that a request comes from.
#[derive(Clone, Copy, Debug)]
pub(crate) struct PeerAddress(pub(crate) IpAddr);

/// All open connections.
#[derive(Debug)]
struct ConnectionTable {
    limits: ConnectionLimits,
    state: Mutex<TableState>,
}

#[derive(Debug, Default)]
struct TableState {
    next_number: u64,
    /// By number, so that the first one is the oldest.
    unverified: BTreeMap<u64, Arc<Notify>>,
    verified: usize,
}

impl TableState {
    fn evict_oldest(&mut self) {
        if let Some((_, evicted)) = self.unverified.pop_first() {
            evicted.notify_one();
        }
    }
}

impl ConnectionTable {
    fn lock(&self) -> MutexGuard<'_, TableState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Adds a connection. If the table is full, evicts the oldest unverified ones.
    fn admit(self: &Arc<Self>) -> ConnectionSlot {
        let mut state = self.lock();
        while state.unverified.len() >= self.limits.unverified_connections.max(1) {
            state.evict_oldest();
        }
        let number = state.next_number;
        state.next_number += 1;
        let evicted = Arc::new(Notify::new());
        state.unverified.insert(number, Arc::clone(&evicted));
        ConnectionSlot { table: Arc::clone(self), number, evicted, is_verified: Mutex::new(false) }
    }
}

/// The table entry of one connection; every request of the connection carries it.
#[derive(Debug)]
pub(crate) struct ConnectionSlot {
    table: Arc<ConnectionTable>,
    number: u64,
    evicted: Arc<Notify>,
    is_verified: Mutex<bool>,
}

impl ConnectionSlot {
    /// Marks the connection as verified, so that it is not evicted. Returns whether there was room for it.
    pub(crate) fn verify(&self) -> bool {
        let mut is_verified = self.is_verified.lock().unwrap_or_else(PoisonError::into_inner);
        if *is_verified {
            return true;
        }
        let mut state = self.table.lock();
        let has_room = state.verified < self.table.limits.verified_connections;
        if has_room && state.unverified.remove(&self.number).is_some() {
            state.verified += 1;
            *is_verified = true;
        }
        *is_verified
    }
}

impl Drop for ConnectionSlot {
    fn drop(&mut self) {
        let is_verified = *self.is_verified.lock().unwrap_or_else(PoisonError::into_inner);
        let mut state = self.table.lock();
        if is_verified {
            state.verified -= 1;
        } else {
            state.unverified.remove(&self.number);
        }
    }
}

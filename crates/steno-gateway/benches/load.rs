//! Measures many streams at once: directly from the upstream, through a plain proxy, and through the gateway.
//!
//! The upstream sends the first chunk at once and the others in steps. The benchmark compares the time until the first
//! byte of the body, and checks that no bytes are lost. Everything runs on the same cores, upstream and clients
//! included.

#![expect(clippy::unwrap_used, reason = "a benchmark may panic")]

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use bytes::Bytes;
use http_body_util::BodyExt;
use http_body_util::combinators::UnsyncBoxBody;
use hyper::body::{Body, Frame, Incoming};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper::{Request, Response};
use hyper_util::client::legacy::Client;
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use steno_gateway::{
    BoundAddress, GatewayOptions, OpenSession, OutboundProxies, TrafficRouting, TrafficSession,
    Upstream, Upstreams,
};
use steno_model::{Clock, SessionStatus};
use steno_store::transcript::record_reader::RECORD_DECODER;
use steno_vault::Vault;
use steno_vault::record::{RecordingClosing, RecordingOpening};
use steno_vault::resumable::{RecordedSession, ResumableRecorder};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;

const STREAMS: usize = 200;
const CHUNKS: usize = 20;
const STEP: Duration = Duration::from_millis(20);
const ROUNDS: usize = 8;

type Boxed = UnsyncBoxBody<Bytes, hyper::Error>;

/// The body of a response: the first chunk at once, the others in steps.
struct Steps {
    next: usize,
    sleep: std::pin::Pin<Box<tokio::time::Sleep>>,
}

impl Body for Steps {
    type Data = Bytes;
    type Error = hyper::Error;

    fn poll_frame(
        mut self: std::pin::Pin<&mut Self>,
        context: &mut std::task::Context<'_>,
    ) -> std::task::Poll<Option<Result<Frame<Bytes>, hyper::Error>>> {
        use std::task::Poll;
        if self.next == CHUNKS {
            return Poll::Ready(None);
        }
        if self.next > 0 && self.sleep.as_mut().poll(context).is_pending() {
            return Poll::Pending;
        }
        self.sleep = Box::pin(tokio::time::sleep(STEP));
        let chunk =
            format!("data: {{\"n\":{},\"text\":\"{}\"}}\n\n", self.next, "word ".repeat(20));
        self.next += 1;
        Poll::Ready(Some(Ok(Frame::data(Bytes::from(chunk)))))
    }
}

/// Serves each request with one function.
async fn serve<F, R>(listener: TcpListener, answer: F)
where
    F: Fn(Request<Incoming>) -> R + Clone + Send + 'static,
    R: Future<Output = Response<Boxed>> + Send + 'static,
{
    loop {
        let (stream, _) = listener.accept().await.unwrap();
        stream.set_nodelay(true).unwrap();
        let answer = answer.clone();
        tokio::spawn(async move {
            let service = service_fn(move |request| {
                let answer = answer(request);
                async move { Ok::<_, Infallible>(answer.await) }
            });
            let io = TokioIo::new(stream);
            let _ =
                http1::Builder::new().timer(TokioTimer::new()).serve_connection(io, service).await;
        });
    }
}

fn start_upstream(runtime: &Runtime) -> SocketAddr {
    let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
    let address = listener.local_addr().unwrap();
    runtime.spawn(serve(listener, |request: Request<Incoming>| async move {
        let _ = request.into_body().collect().await;
        let steps = Steps { next: 0, sleep: Box::pin(tokio::time::sleep(Duration::ZERO)) };
        Response::new(steps.boxed_unsync())
    }));
    address
}

/// Forwards requests with hyper, and does nothing else.
fn start_plain_proxy(runtime: &Runtime, upstream: SocketAddr) -> SocketAddr {
    let _entered = runtime.enter();
    let client: Client<_, Boxed> = Client::builder(TokioExecutor::new()).build_http();
    let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
    let address = listener.local_addr().unwrap();
    runtime.spawn(serve(listener, move |request: Request<Incoming>| {
        let client = client.clone();
        async move {
            let (mut parts, body) = request.into_parts();
            parts.uri = format!("http://{upstream}{}", parts.uri.path()).parse().unwrap();
            let answer =
                client.request(Request::from_parts(parts, body.boxed_unsync())).await.unwrap();
            answer.map(|body| body.boxed_unsync())
        }
    }));
    address
}

/// Reads one stream; returns the time until its first chunk, and the number of chunks.
async fn stream(address: SocketAddr, n: usize) -> (Duration, usize) {
    let body =
        format!(r#"{{"model":"m","stream":true,"messages":[{{"role":"user","content":"{n}"}}]}}"#);
    let request = format!(
        "POST /v1/chat/completions HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n{body}",
        body.len()
    );
    let mut connection = TcpStream::connect(address).await.unwrap();
    let began = Instant::now();
    connection.write_all(request.as_bytes()).await.unwrap();
    let (mut answer, mut first) = (Vec::new(), None);
    let mut buffer = [0; 4096];
    loop {
        let count = connection.read(&mut buffer).await.unwrap();
        if count == 0 {
            break;
        }
        answer.extend_from_slice(&buffer[..count]);
        if first.is_none() && answer.windows(6).any(|window| window == b"data: ") {
            first = Some(began.elapsed());
        }
    }
    let data = answer.windows(6).filter(|window| window == b"data: ").count();
    (first.unwrap(), data)
}

/// Runs all streams, one millisecond apart; returns the median time until the first chunk.
fn round(runtime: &Runtime, address: SocketAddr) -> Duration {
    let streams = (0..STREAMS).map(|n| {
        runtime.spawn(async move {
            tokio::time::sleep(Duration::from_micros(1000 * n as u64)).await;
            stream(address, n).await
        })
    });
    let streams: Vec<_> = streams.collect();
    let mut firsts: Vec<_> = streams
        .into_iter()
        .map(|stream| {
            let (first, data) = runtime.block_on(stream).unwrap();
            assert_eq!(data, CHUNKS, "a stream has lost chunks");
            first
        })
        .collect();
    firsts.sort();
    firsts[STREAMS / 2]
}

fn resident() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
    line.and_then(|line| line.trim().split(' ').next()?.parse().ok()).unwrap_or_default()
}

fn main() {
    let folder = tempfile::tempdir().unwrap();
    let dir =
        Vault::new(folder.path()).session_dir(&"load".parse().unwrap(), &"s".parse().unwrap());
    let clock = Clock::system();
    let opening = RecordingOpening { agent: "load".to_owned(), ..RecordingOpening::default() };
    let session = RecordedSession {
        dir: dir.clone(),
        opening,
        clock: clock.clone(),
        decoder: RECORD_DECODER,
        unit: "exchange",
    };
    let open: OpenSession = Box::new(move |_| {
        let (recorder, failure) = ResumableRecorder::open(session.clone());
        assert!(failure.is_none(), "{failure:?}");
        TrafficSession { recorder, subagents: true }
    });
    let runtime =
        tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap();
    let upstream = start_upstream(&runtime);
    let plain = start_plain_proxy(&runtime, upstream);
    let mut upstreams = Upstreams::default();
    upstreams.set(Upstream::new("openai", &format!("http://{upstream}")).unwrap());
    let options = GatewayOptions {
        upstreams,
        proxies: OutboundProxies::default(),
        body_limit: steno_gateway::DEFAULT_BODY_LIMIT,
        forward: None,
        clock,
        on_change: Arc::new(|change| panic!("{change:?}")),
        listener: None,
    };
    let gateway = BoundAddress::bind("127.0.0.1:0".parse().unwrap())
        .unwrap()
        .start(options, TrafficRouting::OneSession(open));
    let ways = [("direct", upstream), ("plain proxy", plain), ("gateway", gateway.address())];
    let mut medians = [const { Vec::new() }; 3];
    let mut memory = Vec::new();
    for _ in 0..ROUNDS {
        for (at, (_, address)) in ways.iter().enumerate() {
            medians[at].push(round(&runtime, *address));
        }
        memory.push(resident());
    }
    println!(
        "{STREAMS} streams of {CHUNKS} chunks, {ROUNDS} rounds; median until the first chunk:"
    );
    let all = medians.map(|mut all| {
        all.sort();
        all[ROUNDS / 2]
    });
    for ((name, _), median) in ways.iter().zip(all) {
        println!("  {name:12} {:8.3} ms", median.as_secs_f64() * 1e3);
    }
    let over = |than: Duration| (all[2].as_secs_f64() - than.as_secs_f64()) * 1e3;
    println!(
        "  the gateway adds {:.3} ms to direct, {:.3} ms to a plain proxy",
        over(all[0]),
        over(all[1])
    );
    println!(
        "  memory of all three after each round, MB: {:?}",
        memory.iter().map(|kb| kb / 1024).collect::<Vec<_>>()
    );
    drop(runtime);
    for recording in gateway.stop().recordings {
        recording
            .recorder
            .close(&RecordingClosing { status: SessionStatus::Completed, reason: None })
            .unwrap();
    }
    check(&dir);
}

/// Checks that every exchange and chunk is in the vault.
fn check(dir: &steno_vault::SessionDir) {
    let exchanges = steno_store::transcript::read_exchanges(dir).unwrap().exchanges;
    assert_eq!(exchanges.len(), STREAMS * ROUNDS, "an exchange is missing");
    for exchange in &exchanges {
        let data =
            exchange.decoded_response().windows(6).filter(|window| window == b"data: ").count();
        assert_eq!(data, CHUNKS, "the record has lost chunks");
        assert!(exchange.end.as_ref().is_some_and(|end| end.error.is_none()), "an end is missing");
    }
    println!(
        "  all {} exchanges are in the vault, with every chunk and their ends",
        exchanges.len()
    );
}

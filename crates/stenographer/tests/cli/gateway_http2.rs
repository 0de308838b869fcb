//! HTTP/2 from clients and from upstreams.

use std::sync::Arc;

use bytes::Bytes;
use http_body_util::{BodyExt, Full};
use hyper::body::Incoming;
use hyper::service::service_fn;
use hyper::{Request, Response, Version};
use hyper_util::rt::{TokioExecutor, TokioIo, TokioTimer};
use rustls::ServerConfig;
use rustls::pki_types::PrivateKeyDer;
use serde_json::{Value, json};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Runtime;
use tokio::sync::Semaphore;
use tokio_rustls::TlsAcceptor;

use crate::gateway::{Server, said};
use crate::harness::Home;
use crate::model::{Model, post};

pub(crate) fn runtime() -> Runtime {
    tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build().unwrap()
}

pub(crate) fn question(text: &str) -> Value {
    json!({"model": "m", "messages": [{"role": "user", "content": text}]})
}

fn completion(text: &str) -> Value {
    json!({"id": format!("c-{text}"), "object": "chat.completion", "model": "m-1", "choices": [
        {"index": 0, "message": {"role": "assistant", "content": text}, "finish_reason": "stop"}]})
}

/// Sends a request over HTTP/2. Returns status, a header and the body.
pub(crate) async fn ask_http2<S>(
    stream: S,
    uri: &str,
    question: &Value,
) -> (u16, Option<String>, String)
where
    S: AsyncRead + AsyncWrite + Unpin + Send + 'static,
{
    let handshake =
        hyper::client::conn::http2::handshake(TokioExecutor::new(), TokioIo::new(stream));
    let (mut sender, connection) = handshake.await.unwrap();
    tokio::spawn(connection);
    let body = Full::new(Bytes::from(question.to_string()));
    let request = Request::post(uri).header("content-type", "application/json").body(body).unwrap();
    let answer = sender.send_request(request).await.unwrap();
    assert_eq!(answer.version(), Version::HTTP_2);
    let header = answer.headers().get("x-request-id");
    let header = header.map(|value| value.to_str().unwrap().to_owned());
    let status = answer.status().as_u16();
    let body = answer.into_body().collect().await.unwrap().to_bytes();
    (status, header, String::from_utf8(body.to_vec()).unwrap())
}

#[test]
fn a_client_may_begin_with_http2() {
    let home = Home::new();
    let model = Model::start(|_, reply| reply.json("200 OK", &completion("Three.")));
    let gateway = crate::gateway::gateway(&home, &model);
    let host = gateway.url.strip_prefix("http://").unwrap().to_owned();
    let (status, header, body) = runtime().block_on(async {
        let stream = TcpStream::connect(&host).await.unwrap();
        let uri = format!("{}/v1/chat/completions", gateway.url);
        ask_http2(stream, &uri, &question("Count")).await
    });
    assert_eq!((status, header.as_deref()), (200, Some("req_1")));
    assert_eq!(body, completion("Three.").to_string());
    let asked = model.asked.lock().unwrap()[0].clone();
    assert_eq!(asked.line, "POST /v1/chat/completions HTTP/1.1");
    assert_eq!(asked.header("host"), Some(model.address.to_string().as_str()));
    // Pages of other hosts are refused here too.
    let refused = runtime().block_on(async {
        let stream = TcpStream::connect(&host).await.unwrap();
        ask_http2(stream, "http://evil.example/v1/chat/completions", &question("x")).await.0
    });
    assert_eq!(refused, 403);
    gateway.stop();
    assert_eq!(said(&home, "s"), ["primary user: Count", "primary assistant: Three."]);
}

/// An upstream that speaks only HTTP/2 over TLS, and answers once `together` requests wait at once. It allows a
/// hundred streams per connection. Returns its port and certificate.
pub(crate) fn http2_upstream(runtime: &Runtime, together: usize) -> (u16, String) {
    let own = rcgen::generate_simple_self_signed(["localhost".to_owned()]).unwrap();
    let key = PrivateKeyDer::try_from(own.signing_key.serialize_der()).unwrap();
    let config = ServerConfig::builder().with_no_client_auth();
    let mut config = config.with_single_cert(vec![own.cert.der().clone()], key).unwrap();
    config.alpn_protocols = vec![b"h2".to_vec()];
    let acceptor = TlsAcceptor::from(Arc::new(config));
    let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
    let port = listener.local_addr().unwrap().port();
    let (arrived, enough) = (Arc::new(Semaphore::new(0)), Arc::new(Semaphore::new(0)));
    let all = (Arc::clone(&arrived), Arc::clone(&enough));
    runtime.spawn(async move {
        let permits = all.0.acquire_many(u32::try_from(together).unwrap()).await.unwrap();
        permits.forget();
        all.1.add_permits(100_000);
    });
    runtime.spawn(async move {
        loop {
            let (stream, _) = listener.accept().await.unwrap();
            let (acceptor, arrived, enough) =
                (acceptor.clone(), Arc::clone(&arrived), Arc::clone(&enough));
            tokio::spawn(async move {
                let stream = acceptor.accept(stream).await.unwrap();
                let service = service_fn(move |request: Request<Incoming>| {
                    let (arrived, enough) = (Arc::clone(&arrived), Arc::clone(&enough));
                    async move {
                        assert_eq!(request.version(), Version::HTTP_2);
                        let body = request.into_body().collect().await.unwrap().to_bytes();
                        let asked: Value = serde_json::from_slice(&body).unwrap();
                        arrived.add_permits(1);
                        enough.acquire().await.unwrap().forget();
                        let text = asked["messages"][0]["content"].as_str().unwrap();
                        let body = Full::new(Bytes::from(completion(text).to_string()));
                        let answer = Response::builder().header("content-type", "application/json");
                        Ok::<_, std::convert::Infallible>(answer.body(body).unwrap())
                    }
                });
                let connection = hyper::server::conn::http2::Builder::new(TokioExecutor::new())
                    .timer(TokioTimer::new())
                    .max_concurrent_streams(100)
                    .serve_connection(TokioIo::new(stream), service);
                let _ = connection.await;
            });
        }
    });
    (port, own.cert.pem())
}

/// A gateway to a TLS upstream.
fn gateway(home: &Home, port: u16, certificate: &str) -> Server {
    let upstream = format!("openai=https://localhost:{port}");
    let args =
        ["gateway", "--listen", "127.0.0.1:0", "--session", "s", "--upstream", upstream.as_str()];
    let mut command = home.command(&args);
    command.env("SSL_CERT_FILE", home.file("own.pem", certificate));
    Server::start(command)
}

#[test]
fn an_upstream_is_asked_in_http2_where_it_offers_that() {
    let runtime = runtime();
    let (port, certificate) = http2_upstream(&runtime, 1);
    let home = Home::new();
    let gateway = gateway(&home, port, &certificate);
    let url = format!("{}/v1/chat/completions", gateway.url);
    let answer = post(&url, &[("Connection", "close")], &question("Count")).whole();
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    assert!(answer.ends_with(&completion("Count").to_string()), "{answer}");
    gateway.stop();
    assert_eq!(said(&home, "s"), ["primary user: Count", "primary assistant: Count"]);
}

#[test]
fn no_limit_of_a_connection_holds_up_requests() {
    let runtime = runtime();
    let together = 150;
    let (port, certificate) = http2_upstream(&runtime, together);
    let home = Home::new();
    let gateway = gateway(&home, port, &certificate);
    let url = format!("{}/v1/chat/completions", gateway.url);
    let asking: Vec<_> = (0..together)
        .map(|number| {
            let (url, text) = (url.clone(), format!("n{number}"));
            std::thread::spawn(move || {
                post(&url, &[("Connection", "close")], &question(&text)).whole()
            })
        })
        .collect();
    for asked in asking {
        let answer = asked.join().unwrap();
        assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    }
    gateway.stop();
}

//! `steno gateway`, `exec` and `run` killed in the middle of a response: everything that their clients received is in
//! the vault. `scripts/kills` does the same more often; `acp` has its own test.

use std::fs;
use std::io::{Read, Write};
use std::net::TcpStream;
use std::process::Stdio;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use rustix::process::Pid;
use serde_json::{Value, json};

use crate::children::is_alive;
use crate::gateway::Server;
use crate::harness::{Dice, Home};
use crate::model::{Model, ModelRequest, Reply};

const KILLS: usize = 8;

/// File in which the client writes its id and what it receives.
const RECEIVED: &str = "received";
const CLIENT_ID: &str = "client.pid";

/// A model that counts until it is dropped.
struct CountingModel {
    model: Model,
    is_over: Arc<AtomicBool>,
}

impl CountingModel {
    fn start() -> Self {
        let is_over = Arc::<AtomicBool>::default();
        let over = Arc::clone(&is_over);
        let model = Model::start(move |_: &ModelRequest, reply: &mut Reply<'_>| {
            reply.begin();
            for number in 0_u64.. {
                if over.load(Ordering::Acquire) {
                    return;
                }
                let delta = json!({"content": format!("{number} ")});
                let event = json!({"id": "c1", "object": "chat.completion.chunk", "model": "m-1",
                    "choices": [{"index": 0, "delta": delta}]});
                reply.chunk(&format!("data: {event}\n\n"));
            }
        });
        Self { model, is_over }
    }
}

impl Drop for CountingModel {
    fn drop(&mut self) {
        self.is_over.store(true, Ordering::Release);
    }
}

/// Counts the numbers, from 0 on, in complete received events.
fn count_received(bytes: &[u8]) -> usize {
    let text = String::from_utf8_lossy(bytes);
    let whole = text.rfind("\n\n").map_or("", |end| &text[..end]);
    (0..).take_while(|number| whole.contains(&format!("\"content\":\"{number} \""))).count()
}

/// Counts the numbers, from 0 on, in the response of the only session.
fn count_kept(home: &Home) -> usize {
    home.steno(&["verify"]).ok();
    let shown = home.steno(&["show", "latest", "--json"]).ok();
    let entries = shown.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let answers = entries.filter(|entry| entry["role"] == "assistant" && entry["kind"] == "text");
    let answer: String =
        answers.map(|entry| entry["content"].as_str().unwrap().to_owned()).collect();
    answer
        .split_whitespace()
        .enumerate()
        .take_while(|(number, word)| *word == number.to_string())
        .count()
}

/// Requests an endless response from the model behind `base`.
fn ask(base: &str) -> TcpStream {
    let (host, path) = base.strip_prefix("http://").unwrap().split_once('/').unwrap();
    let body = json!({"model": "m", "stream": true,
        "messages": [{"role": "user", "content": "Count"}]});
    let body = body.to_string();
    let mut stream = TcpStream::connect(host).unwrap();
    write!(
        stream,
        "POST /{path}/chat/completions HTTP/1.1\r\nHost: {host}\r\nContent-Type: application/json\r\n\
         Content-Length: {}\r\n\r\n{body}",
        body.len()
    )
    .unwrap();
    stream
}

#[test]
fn a_killed_gateway_has_recorded_what_its_client_received() {
    let mut dice = Dice(0x5eed_6a7e);
    for kill in 0..KILLS {
        let (home, model) = (Home::new(), CountingModel::start());
        let upstream = format!("openai={}", model.model.url());
        let args = ["gateway", "--listen", "127.0.0.1:0", "--upstream", &upstream];
        let mut gateway = Server::start(home.command(&args));
        let mut answer = ask(&format!("{}/openai/v1", gateway.url));
        let (enough, mut received) = (dice.below(60_000) as usize, Vec::new());
        let mut buffer = [0; 4096];
        while received.len() <= enough {
            let count = answer.read(&mut buffer).unwrap();
            received.extend_from_slice(&buffer[..count]);
        }
        gateway.child.kill().unwrap();
        // The connection may be reset before everything is read.
        let _ = answer.read_to_end(&mut received);
        let (received, kept) = (count_received(&received), count_kept(&home));
        assert!(received > 0 && kept >= received, "kill {kill}: {received} received, {kept} kept");
    }
}

/// A client that records every byte; another test runs it with `steno exec`.
#[test]
#[ignore = "is run by another test, as a client"]
fn client() {
    fs::write(CLIENT_ID, std::process::id().to_string()).unwrap();
    let mut answer = ask(&std::env::var("OPENAI_BASE_URL").unwrap());
    let mut notes = fs::File::create(RECEIVED).unwrap();
    let mut buffer = [0; 4096];
    while let Ok(count @ 1..) = answer.read(&mut buffer) {
        notes.write_all(&buffer[..count]).unwrap();
    }
}

fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(60);
    while !is_so() {
        assert!(Instant::now() < end, "it never came: {what}");
        std::thread::sleep(Duration::from_millis(1));
    }
}

#[test]
fn a_killed_exec_has_recorded_what_its_program_received() {
    let mut dice = Dice(0x5eed_0e8e);
    let program = std::env::current_exe().unwrap().to_string_lossy().into_owned();
    for kill in 0..KILLS {
        let (home, model) = (Home::new(), CountingModel::start());
        let client = ["--exact", "stream_killed::client", "--ignored", "--nocapture"];
        let mut args = vec!["exec", "--", &program];
        args.extend(client);
        let mut exec = home.command(&args);
        exec.env("OPENAI_BASE_URL", format!("{}/v1", model.model.url()));
        let mut exec = exec.stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap();
        let enough = dice.below(60_000);
        let notes = home.path().join(RECEIVED);
        wait_until("an answer", || fs::metadata(&notes).is_ok_and(|file| file.len() > enough));
        exec.kill().unwrap();
        exec.wait().unwrap();
        let id = fs::read_to_string(home.path().join(CLIENT_ID)).unwrap();
        let id = Pid::from_raw(id.parse().unwrap()).unwrap();
        wait_until("the client's end", || !is_alive(id));
        let received = count_received(&fs::read(&notes).unwrap());
        let kept = count_kept(&home);
        assert!(kept >= received, "kill {kill}: {received} received, {kept} kept");
    }
}

/// An agent that counts until it is killed.
const COUNTING_AGENT: &str = r#"
say() { printf '%s\n' "$1"; }
read -r line; say '{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1,"agentInfo":{"name":"toy"}}}'
read -r line; say '{"jsonrpc":"2.0","id":1,"result":{"sessionId":"counted"}}'
read -r line; n=0
while say '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"counted","update":{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"'$n' "}}}}'
do n=$((n + 1)); done
"#;

#[test]
fn a_killed_run_has_recorded_what_it_showed() {
    let mut dice = Dice(0x5eed_0a00);
    for kill in 0..KILLS {
        let home = Home::new();
        home.file("agent.sh", COUNTING_AGENT);
        let mut run = home.command(&["run", "--agent", "sh agent.sh", "--json", "Count"]);
        let mut run = run.stdout(Stdio::piped()).stderr(Stdio::null()).spawn().unwrap();
        let mut output = run.stdout.take().unwrap();
        let (enough, mut shown) = (200 + dice.below(60_000) as usize, Vec::new());
        let mut buffer = [0; 4096];
        while shown.len() <= enough {
            let count = output.read(&mut buffer).unwrap();
            assert!(count > 0, "it ended by itself");
            shown.extend_from_slice(&buffer[..count]);
        }
        run.kill().unwrap();
        run.wait().unwrap();
        output.read_to_end(&mut shown).unwrap();
        let shown = String::from_utf8(shown).unwrap();
        let shown = shown.lines().filter(|line| line.contains("agent_message_chunk"));
        // The last line may be incomplete.
        let shown = shown.filter(|line| line.ends_with("}}")).count();
        let kept = count_kept(&home);
        assert!(shown > 0 && kept >= shown, "kill {kill}: {shown} shown, {kept} kept");
    }
}

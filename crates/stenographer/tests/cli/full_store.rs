//! A store that is full, read-only or not a folder: the recorded program continues, and recording resumes once it
//! can.

use std::fs::File;
use std::io::{BufRead, BufReader, Read, Write};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Resource, Rlimit, prlimit};
use serde_json::{Value, json};

use crate::harness::{Home, Output};
use crate::model::{Model, post};

/// A separate file system for the store; unmounted after the test.
struct SmallDisk {
    path: PathBuf,
}

impl SmallDisk {
    /// Mounts it; `None` if the system does not allow it, with a message.
    fn mount(home: &Home) -> Option<Self> {
        let path = home.path().join("store");
        std::fs::create_dir(&path).unwrap();
        let mut mount = Command::new("mount");
        mount.args(["-t", "tmpfs", "-o", "size=4m", "tmpfs"]).arg(&path).stderr(Stdio::null());
        if mount.status().is_ok_and(|status| status.success()) {
            return Some(Self { path });
        }
        println!("skipped: no file system can be mounted here");
        None
    }

    fn ballast(&self) -> PathBuf {
        self.path.join("ballast")
    }

    /// Fills all space.
    fn fill(&self) {
        let mut ballast = File::create(self.ballast()).unwrap();
        let block = [0; 4096];
        while ballast.write_all(&block).is_ok() {}
    }

    fn free(&self) {
        std::fs::remove_file(self.ballast()).unwrap();
    }

    fn make_read_only(&self) {
        let mut mount = Command::new("mount");
        mount.args(["-o", "remount,ro"]).arg(&self.path);
        assert!(mount.status().unwrap().success());
    }
}

impl Drop for SmallDisk {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg("-l").arg(&self.path).status();
    }
}

fn wait_for(log: &Path, text: &str) {
    let end = Instant::now() + Duration::from_secs(60);
    while !std::fs::read_to_string(log).unwrap().contains(text) {
        let said = std::fs::read_to_string(log).unwrap();
        assert!(Instant::now() < end, "no {text:?} in: {said}");
        std::thread::sleep(Duration::from_millis(20));
    }
}

/// A model that answers with the length of the request.
fn model() -> Model {
    Model::start(|asked, reply| {
        let asked = asked.json()["messages"][0]["content"].as_str().unwrap().to_owned();
        let word = asked.split_whitespace().next().unwrap();
        let message = json!({"role": "assistant", "content": format!("Answer to {word}")});
        reply.json(
            "200 OK",
            &json!({"id": word, "object": "chat.completion", "model": "m-1",
            "choices": [{"index": 0, "message": message, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": 10, "completion_tokens": 5}}),
        );
    })
}

/// Sends a request; the response must come.
fn ask(base: &str, word: &str) {
    // Larger than any remaining space in a block.
    let text = format!("{word} {}", "x".repeat(20_000));
    let request = json!({"model": "m", "messages": [{"role": "user", "content": text}]});
    let url = format!("{base}/openai/v1/chat/completions");
    let answer = post(&url, &[("Connection", "close")], &request).whole();
    assert!(answer.contains(&format!("Answer to {word}")), "{answer}");
}

/// Returns the kind and the first 30 characters of each entry of a session.
fn entry_starts(home: &Home, id: &str) -> Vec<String> {
    let shown = home.steno(&["show", id, "--json"]).ok();
    let entries = shown.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    entries
        .map(|entry| {
            let content = entry["content"].as_str().unwrap();
            let start: String = content.chars().take(30).collect();
            format!("{}: {}", entry["kind"].as_str().unwrap(), start)
        })
        .collect()
}

fn notice(home: &Home, id: &str) -> String {
    let shown = home.steno(&["show", id, "--json"]).ok();
    let mut entries = shown.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
    let notice = entries.find(|entry| entry["kind"] == "notice").unwrap();
    notice["content"].as_str().unwrap().to_owned()
}

struct RunningGateway {
    child: Child,
    base: String,
    log: PathBuf,
}

impl RunningGateway {
    fn start(home: &Home, model: &Model) -> Self {
        let log = home.path().join("gateway.log");
        let upstream = format!("openai={}", model.url());
        let mut args = vec!["gateway", "--listen", "127.0.0.1:0", "--session", "s"];
        args.extend(["--upstream", &upstream]);
        let mut command = home.command(&args);
        command.stdout(Stdio::piped()).stderr(File::create(&log).unwrap());
        let mut child = command.spawn().unwrap();
        let mut base = String::new();
        BufReader::new(child.stdout.take().unwrap()).read_line(&mut base).unwrap();
        Self { child, base: base.trim_end().to_owned(), log }
    }

    /// Stops it like Ctrl-C. Returns its log and exit code.
    fn stop(mut self) -> (String, Option<i32>) {
        let pid = Pid::from_child(&self.child);
        rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
        let status = self.child.wait().unwrap();
        (std::fs::read_to_string(&self.log).unwrap(), status.code())
    }
}

impl Drop for RunningGateway {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn a_gateway_records_again_once_there_is_room() {
    let (home, model) = (Home::new(), model());
    let Some(disk) = SmallDisk::mount(&home) else { return };
    let gateway = RunningGateway::start(&home, &model);
    ask(&gateway.base, "One");
    disk.fill();
    ask(&gateway.base, "Two");
    ask(&gateway.base, "Three");
    wait_for(&gateway.log, "recording paused");
    disk.free();
    wait_for(&gateway.log, "recording resumed; 2 exchanges not recorded");
    ask(&gateway.base, "Four");
    let (log, code) = gateway.stop();
    assert_eq!(code, Some(0), "{log}");
    assert_eq!(log.matches("recording paused").count(), 1, "{log}");
    assert_eq!(log.matches("recording resumed").count(), 1, "{log}");
    let starts = entry_starts(&home, "s");
    let kinds: Vec<_> = starts.iter().map(|line| line.trim_end_matches('x')).collect();
    let expected = [
        "text: One ",
        "text: Answer to One",
        "notice: recording paused from ",
        "text: Four ",
        "text: Answer to Four",
    ];
    assert_eq!(kinds.len(), expected.len(), "{starts:?}");
    assert!(
        kinds.iter().zip(expected).all(|(starts, start)| starts.starts_with(start)),
        "{starts:?}"
    );
    let notice = notice(&home, "s");
    assert!(notice.ends_with(": No space left on device; 2 exchanges not recorded"), "{notice}");
    let row: Value = serde_json::from_str(home.steno(&["list", "--json"]).ok().trim()).unwrap();
    assert_eq!(row["tokens"]["input"], json!(20));
    home.steno(&["verify"]).ok();
}

#[test]
fn an_incomplete_response_is_reported() {
    let (home, (got, goes_on)) = (Home::new(), std::sync::mpsc::channel::<()>());
    let goes_on = std::sync::Mutex::new(goes_on);
    let Some(disk) = SmallDisk::mount(&home) else { return };
    let part = |text: &str| {
        let chunk = json!({"id": "c1", "object": "chat.completion.chunk", "model": "m-1",
            "choices": [{"index": 0, "delta": {"content": text}}]});
        format!("data: {chunk}\n\n")
    };
    let model = Model::start(move |_, reply| {
        reply.begin();
        for text in ["Good ", &"y".repeat(20_000), "day"] {
            reply.chunk(&part(text));
            goes_on.lock().unwrap().recv().unwrap();
        }
        reply.chunk("data: [DONE]\n\n");
        reply.end();
    });
    let gateway = RunningGateway::start(&home, &model);
    let request =
        json!({"model": "m", "stream": true, "messages": [{"role": "user", "content": "Hi"}]});
    let url = format!("{}/openai/v1/chat/completions", gateway.base);
    let mut answer = post(&url, &[("Connection", "close")], &request);
    answer.until("Good ");
    disk.fill();
    got.send(()).unwrap();
    answer.until("yyy");
    wait_for(&gateway.log, "recording paused");
    disk.free();
    wait_for(&gateway.log, "recording resumed; 1 exchange not recorded");
    got.send(()).unwrap();
    got.send(()).unwrap();
    assert!(answer.whole().contains("[DONE]"));
    let (log, code) = gateway.stop();
    assert_eq!(code, Some(0), "{log}");
    let starts = entry_starts(&home, "s");
    assert_eq!((starts[0].as_str(), starts[2].as_str()), ("text: Hi", "text: Good "), "{starts:?}");
    assert!(starts[1].starts_with("notice: recording paused"), "{starts:?}");
    assert!(starts[3].starts_with("error: recording paused: the rest"), "{starts:?}");
}

/// Sends one request to the gateway from a plain shell, and exits with its own code.
const ASKING: &str = r#"
    host=${OPENAI_BASE_URL#http://}; port=${host#*:}; path=/${port#*/}; port=${port%%/*}
    body='{"model":"m","messages":[{"role":"user","content":"Hi there"}]}'
    exec 3<>/dev/tcp/127.0.0.1/$port
    printf 'POST %s/chat/completions HTTP/1.1\r\nHost: 127.0.0.1\r\nConnection: close\r\nContent-Length: %s\r\n\r\n%s' "$path" "${#body}" "$body" >&3
    cat <&3
    exit 7"#;

fn exec(home: &Home, model: &Model, flags: &[&str]) -> Output {
    let args = [&["exec"], flags, &["--", "bash", "-c", ASKING]].concat();
    let mut command = home.command(&args);
    command.env("OPENAI_BASE_URL", format!("{}/v1", model.url()));
    home.finish(command, b"")
}

#[track_caller]
fn assert_ran_unrecorded(output: &Output) {
    assert_eq!(output.code, 7, "{output}");
    assert!(output.stdout.contains("Answer to Hi"), "{output}");
    assert_eq!(output.stderr.matches("warning: ").count(), 1, "{output}");
    assert!(output.stderr.starts_with("warning: recording paused, requests"), "{output}");
    assert!(
        output.stderr.contains("recording did not resume; 1 exchange not recorded"),
        "{output}"
    );
    assert!(!output.stderr.contains("recorded as"), "{output}");
}

#[test]
fn a_program_runs_without_a_store() {
    let (home, model) = (Home::new(), model());
    home.file("store", "a file where a folder should be");
    assert_ran_unrecorded(&exec(&home, &model, &[]));
    assert_ran_unrecorded(&exec(&home, &model, &["--session", "s"]));
}

#[test]
fn a_program_runs_on_a_read_only_or_full_store() {
    let (home, model) = (Home::new(), model());
    let Some(disk) = SmallDisk::mount(&home) else { return };
    disk.fill();
    assert_ran_unrecorded(&exec(&home, &model, &[]));
    disk.free();
    disk.make_read_only();
    assert_ran_unrecorded(&exec(&home, &model, &["--session", "s"]));
}

#[test]
fn a_program_runs_when_the_settings_cannot_be_read() {
    let home = Home::new();
    // Reading a folder as a file fails for every user.
    std::fs::create_dir_all(home.path().join("store/config.toml")).unwrap();
    let model = model();
    let output = exec(&home, &model, &["--session", "s"]);
    assert_eq!(output.code, 7, "{output}");
    assert!(output.stderr.contains("; using default settings"), "{output}");
}

#[test]
fn a_gateway_that_starts_without_a_store_records_once_it_has_one() {
    let (home, model) = (Home::new(), model());
    let store = home.file("store", "a file where a folder should be");
    let gateway = RunningGateway::start(&home, &model);
    ask(&gateway.base, "One");
    wait_for(&gateway.log, "recording paused");
    std::fs::remove_file(store).unwrap();
    wait_for(&gateway.log, "recording resumed; 1 exchange not recorded");
    ask(&gateway.base, "Two");
    let (log, code) = gateway.stop();
    assert_eq!((code, log.matches("warning: ").count()), (Some(0), 1), "{log}");
    let starts = entry_starts(&home, "s");
    assert_eq!(starts.len(), 3, "{starts:?}");
    assert!(starts[0].starts_with("notice: recording paused"), "{starts:?}");
    assert_eq!(starts[2], "text: Answer to Two");
}

/// The recorder's file size is limited as on a full disk; then the limit is lifted.
#[test]
fn an_agent_is_recorded_again_once_there_is_room() {
    let home = Home::new();
    let log = home.path().join("acp.log");
    let script =
        format!("ulimit -S -f 64; trap '' XFSZ; exec {} acp -- cat", env!("CARGO_BIN_EXE_steno"));
    let mut command = home.program("sh", &["-c", &script]);
    command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(File::create(&log).unwrap());
    let mut steno = command.spawn().unwrap();
    let (mut input, output) = (steno.stdin.take().unwrap(), steno.stdout.take().unwrap());
    let mut output = BufReader::new(output);
    let mut say = |text: &str| {
        let line = format!(
            "{{\"jsonrpc\":\"2.0\",\"method\":\"x\",\"params\":{{\"sessionId\":\"sess-0001\",\"say\":\"{text}\"}}}}\n"
        );
        input.write_all(line.as_bytes()).unwrap();
        let mut heard = String::new();
        output.read_line(&mut heard).unwrap();
        assert_eq!(heard, line);
    };
    say("before");
    say(&"x".repeat(100_000));
    wait_for(&log, "recording paused, the agent continues: could not write ");
    say("meanwhile");
    let pid = Pid::from_child(&steno);
    prlimit(Some(pid), Resource::Fsize, Rlimit { current: None, maximum: None }).unwrap();
    wait_for(&log, "recording resumed; ");
    say("after");
    drop(input);
    let mut rest = String::new();
    output.read_to_string(&mut rest).unwrap();
    assert!(steno.wait().unwrap().success());
    let log = std::fs::read_to_string(log).unwrap();
    assert_eq!(log.lines().count(), 2, "{log}");
    let shown = home.steno(&["show", "sess-0001", "--json"]).ok();
    let at = |text: &str| shown.find(text).unwrap_or_else(|| panic!("no {text} in {shown}"));
    assert!(at("\"say\":\"before\"") < at("recording paused from "), "{shown}");
    assert!(at("recording paused from ") < at("\"say\":\"after\""), "{shown}");
    assert!(!shown.contains("meanwhile") && shown.contains("messages not recorded"), "{shown}");
}

#[test]
fn an_agent_is_run_without_a_store() {
    let home = crate::run::home();
    home.file("store", "a file where a folder should be");
    let output = crate::run::run(&home, &["--permission", "allow", "--json", "What is here?"]);
    assert_eq!(output.code, 0, "{output}");
    assert_eq!(output.stderr.matches("warning: ").count(), 1, "{output}");
    assert!(output.stderr.contains("warning: recording paused, the agent continues"), "{output}");
}

#[test]
fn what_cannot_be_written_is_not_acknowledged() {
    let home = Home::new();
    let Some(disk) = SmallDisk::mount(&home) else { return };
    let line = format!("{{\"role\":\"user\",\"content\":\"{}\"}}\n", "x".repeat(20_000));
    assert_eq!(
        home.steno_with(&["record", "--session", "s", "--ack"], line.as_bytes()).ok(),
        "0\n"
    );
    disk.fill();
    let output = home.steno_with(&["record", "--session", "s", "--ack"], line.as_bytes());
    assert_eq!((output.stdout.as_str(), output.code), ("", 1), "{output}");
    assert!(output.stderr.contains("caused by: No space left on device"), "{output}");
    disk.free();
    assert_eq!(
        home.steno_with(&["record", "--session", "s", "--ack"], line.as_bytes()).ok(),
        "1\n"
    );
}

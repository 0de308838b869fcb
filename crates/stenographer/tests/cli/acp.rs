//! Tests of `steno acp`.

mod draft;
mod history;
mod killed;
mod streams;

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal, kill_process, test_kill_process};
use steno_agents::protocols::acp::wire::{AcpSide, WireLine};

use crate::harness::{Dice, Home};

/// An agent that answers; `$1` is its name.
const AGENT_NAME: &str = r#"
say() { printf '%s\n' "$1"; }
update() { say '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"sess-0001","update":'"$1"'}}'; }
while read -r line; do
case "$line" in
*initialize*) say '{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":1,"agentInfo":{"name":"'"$1"'"}}}';;
*session/new*) say '{"jsonrpc":"2.0","id":1,"result":{"sessionId":"sess-0001"}}';;
*session/prompt*)
 update '{"sessionUpdate":"agent_thought_chunk","content":{"type":"text","text":"Let me"}}'
 update '{"sessionUpdate":"agent_thought_chunk","content":{"type":"text","text":" see"}}'
 update '{"sessionUpdate":"tool_call","toolCallId":"call-1","title":"ls","kind":"execute","status":"pending","rawInput":{"command":"ls"}}'
 say '{"jsonrpc":"2.0","id":0,"method":"session/request_permission","params":{"sessionId":"sess-0001","toolCall":{"toolCallId":"call-1"},"options":[{"optionId":"y","name":"Yes","kind":"allow_once"}]}}';;
*optionId*)
 update '{"sessionUpdate":"tool_call_update","toolCallId":"call-1","status":"completed","content":[{"type":"content","content":{"type":"text","text":"a.txt"}}]}'
 update '{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"One file."}}'
 say '{"jsonrpc":"2.0","id":2,"result":{"stopReason":"end_turn"}}';;
esac
done
exit 7
"#;

const INITIALIZE: &str =
    r#"{"jsonrpc":"2.0","id":0,"method":"initialize","params":{"protocolVersion":1}}"#;
const NEW: &str = r#"{"jsonrpc":"2.0","id":1,"method":"session/new","params":{"cwd":"/w","mcpServers":[{"name":"x","command":"y","args":[],"env":[{"name":"API_KEY","value":"sekret-sekret"}]}]}}"#;
const PROMPT: &str = r#"{"jsonrpc":"2.0","id":2,"method":"session/prompt","params":{"sessionId":"sess-0001","prompt":[{"type":"text","text":"what is here?"}]}}"#;
const ALLOW: &str =
    r#"{"jsonrpc":"2.0","id":0,"result":{"outcome":{"outcome":"selected","optionId":"y"}}}"#;

/// An editor that talks with an agent through `steno acp`.
struct Editor {
    steno: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
}

impl Editor {
    fn start(mut command: Command) -> Self {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut steno = command.spawn().unwrap();
        let input = steno.stdin.take().unwrap();
        let output = BufReader::new(steno.stdout.take().unwrap());
        Self { steno, input, output }
    }

    fn ask(&mut self, line: &str) -> String {
        writeln!(self.input, "{line}").unwrap();
        self.heard()
    }

    fn heard(&mut self) -> String {
        let mut line = String::new();
        self.output.read_line(&mut line).unwrap();
        line
    }

    fn id(&self) -> Pid {
        Pid::from_raw(self.steno.id() as i32).unwrap()
    }

    /// Runs a whole turn.
    fn converse(&mut self) {
        self.ask(INITIALIZE);
        self.ask(NEW);
        writeln!(self.input, "{PROMPT}").unwrap();
        while !self.heard().contains("request_permission") {}
        writeln!(self.input, "{ALLOW}").unwrap();
        while !self.heard().contains("stopReason") {}
    }

    /// Closes the agent's input and returns the exit code.
    fn leave(mut self) -> Option<i32> {
        drop(self.input);
        self.steno.wait().unwrap().code()
    }
}

fn agent(home: &Home, name: &str) -> Command {
    home.command(&["acp", "--", "sh", "-c", AGENT_NAME, "sh", name])
}

fn wait_until(mut what: impl FnMut() -> bool) {
    let end = Instant::now() + Duration::from_secs(60);
    while !what() {
        assert!(Instant::now() < end, "it never came");
        std::thread::sleep(Duration::from_millis(10));
    }
}

/// Returns all recorded lines of one side of a session.
fn kept(home: &Home, side: AcpSide) -> Vec<u8> {
    let mut bytes = Vec::new();
    for session in home.vault().list_sessions().unwrap() {
        let mut log = Vec::new();
        for file in std::fs::read_dir(session.path()).unwrap() {
            let path = file.unwrap().path();
            let name = path.file_name().unwrap().to_string_lossy().into_owned();
            if name == "record.jsonl.zst" {
                log = zstd::decode_all(std::fs::File::open(&path).unwrap()).unwrap();
            } else if name.starts_with("record.jsonl.live") && !name.ends_with("head") {
                log = std::fs::read(&path).unwrap();
            }
        }
        for line in whole_lines(&log).split(|byte| *byte == b'\n') {
            let Some(at) = memchr::memmem::find(line, b"\"raw\":") else { continue };
            let wire = WireLine::from_record(&line[at + 6..line.len() - 1]).unwrap();
            if wire.side == side {
                bytes.extend(wire.bytes);
            }
        }
    }
    bytes
}

/// Returns the complete lines: a kill may leave an incomplete one.
fn whole_lines(bytes: &[u8]) -> &[u8] {
    &bytes[..memchr::memrchr(b'\n', bytes).map_or(0, |at| at + 1)]
}

#[test]
fn a_conversation_is_taken_down_and_nothing_else_changes() {
    let home = Home::new();
    let mut editor = Editor::start(agent(&home, "toy"));
    editor.converse();
    assert_eq!(editor.leave(), Some(7));
    let shown = home.steno(&["show", "sess-0001", "--json"]).ok();
    assert_conversation(&shown, "a.txt");
    let listed = home.steno(&["list", "--json"]).ok();
    let row: serde_json::Value = serde_json::from_str(&listed).unwrap();
    assert_eq!((&row["agent"], &row["status"]), (&"toy".into(), &"failed".into()), "{listed}");
    assert_eq!((&row["project"], &row["entries"]), (&"/w".into(), &6.into()));
    assert!(home.steno(&["search", "what is here"]).ok().contains("sess-0001:0"));
    home.steno(&["verify"]).ok();
    let client = String::from_utf8(kept(&home, AcpSide::Client)).unwrap();
    assert!(client.contains(PROMPT) && !client.contains("sekret"), "{client}");
}

/// Checks that the shown entries are those of [`Editor::converse`].
fn assert_conversation(shown: &str, output: &str) -> Vec<serde_json::Value> {
    let entries: Vec<serde_json::Value> =
        shown.lines().map(|line| serde_json::from_str(line).unwrap()).collect();
    let printed: Vec<_> = entries
        .iter()
        .map(|entry| (entry["kind"].as_str().unwrap(), entry["content"].as_str().unwrap()))
        .collect();
    assert_eq!(
        printed,
        [
            ("text", "what is here?"),
            ("thinking", "Let me see"),
            ("tool_call", ""),
            ("notice", "allow once: Yes"),
            ("tool_result", output),
            ("text", "One file."),
        ]
    );
    entries
}

/// Lines that a parser would not forward unchanged.
fn hostile() -> Vec<Vec<u8>> {
    let long = [b"{\"long\":\"".as_slice(), &vec![b'x'; 5 << 20], b"\"}\n"].concat();
    let mut lines: Vec<Vec<u8>> = [
        b"{\"id\":1}\r\n".as_slice(),
        b"\n",
        b"\r\n",
        b"\r\r\n",
        b"{\"bytes\":\"\xff\xfe\"}\n",
        b"\x00\x01\x02\n",
        b"{\"a\":12345678901234567890123}\n",
        b"{\"a\":1,\"a\":2}\n",
        b"{\"id\":null,\"method\":\"x\",\"params\":null}\n",
        b"{\"e\":\"\\u00e9\"}\n",
        b"  {\"blank\":true}  \n",
        b"[{\"id\":1},{\"id\":2}]\n",
        b"[]\n",
        b"not json\n",
        b"{\"cut\"\n",
        b"\"\xe2\x80\xa8\"\n",
        b"\xef\xbb\xbf{}\n",
        b"1e999\n",
        b"{\"id\":{},\"result\":[]}\n",
        b"{\"method\":7}\n",
        b"{\"method\":\"session/update\",\"params\":{\"sessionId\":\"../../x\"}}\n",
    ]
    .map(<[u8]>::to_vec)
    .to_vec();
    lines.push(long);
    lines.push(b"no end".to_vec());
    lines
}

#[test]
fn hostile_lines_are_forwarded_and_recorded_byte_by_byte() {
    let home = Home::new();
    let lines = hostile().concat();
    // `cat` echoes, so each line goes both ways.
    let mut steno = home.command(&["acp", "--agent", "cat", "--", "cat"]);
    let mut steno = steno.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let mut input = steno.stdin.take().unwrap();
    let given = lines.clone();
    let feeder = std::thread::spawn(move || input.write_all(&given).unwrap());
    let mut heard = Vec::new();
    steno.stdout.take().unwrap().read_to_end(&mut heard).unwrap();
    feeder.join().unwrap();
    assert_eq!(steno.wait().unwrap().code(), Some(0));
    assert!(heard == lines, "{} bytes instead of {}", heard.len(), lines.len());
    for side in [AcpSide::Client, AcpSide::Agent] {
        let mut kept = kept(&home, side);
        let mut sent = lines.clone();
        // Each session has its own log.
        for bytes in [&mut kept, &mut sent] {
            let mut lines: Vec<&[u8]> = bytes.split(|byte| *byte == b'\n').collect();
            lines.sort_unstable();
            *bytes = lines.concat();
        }
        assert!(kept == sent, "{side:?}: {} bytes instead of {}", kept.len(), sent.len());
    }
    home.steno(&["verify"]).ok();
}

#[test]
fn any_bytes_go_through() {
    let home = Home::new();
    let mut dice = Dice(0x9e37_79b9_7f4a_7c15);
    for _ in 0..8 {
        let length = dice.below(300_000);
        let mut byte = || [b'\n', b'{', b'"', dice.below(256) as u8][dice.below(4) as usize];
        let input: Vec<u8> = (0..length).map(|_| byte()).collect();
        let mut child = home.command(&["acp", "--", "cat"]);
        let child = child.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::null());
        let mut child = child.spawn().unwrap();
        let mut stdin = child.stdin.take().unwrap();
        let given = input.clone();
        let feeder = std::thread::spawn(move || stdin.write_all(&given).unwrap());
        let output = child.wait_with_output().unwrap();
        feeder.join().unwrap();
        assert!(output.stdout == input, "{length} bytes");
    }
}

#[test]
fn a_signal_reaches_the_agent_and_the_end_reaches_the_editor() {
    let home = Home::new();
    for (signal, code) in [(Signal::TERM, 43), (Signal::INT, 42), (Signal::HUP, 41)] {
        let script = "trap 'exit 43' TERM; trap 'exit 42' INT; trap 'exit 41' HUP; echo ready; \
            while :; do sleep 0.05; done";
        let mut editor = Editor::start(home.command(&["acp", "--", "sh", "-c", script]));
        assert_eq!(editor.heard(), "ready\n");
        kill_process(editor.id(), signal).unwrap();
        assert_eq!(editor.steno.wait().unwrap().code(), Some(code));
    }
}

#[test]
fn one_that_is_killed_by_a_signal_looks_so() {
    use std::os::unix::process::ExitStatusExt;
    let home = Home::new();
    for signal in [Signal::TERM, Signal::KILL, Signal::SEGV, Signal::ABORT, Signal::PIPE] {
        let script = format!("kill -{} $$", signal.as_raw());
        let mut steno = home.command(&["acp", "--", "sh", "-c", &script]);
        let status = steno.stdin(Stdio::null()).status().unwrap();
        assert_eq!(status.signal(), Some(signal.as_raw()));
    }
}

#[cfg(target_os = "linux")]
#[test]
fn an_agent_ends_with_steno_and_its_messages_are_recorded() {
    let home = Home::new();
    let script = format!("echo $$ >&2; {AGENT_NAME}");
    let mut editor = Editor::start(home.command(&["acp", "--", "sh", "-c", &script, "sh", "toy"]));
    let mut pid = String::new();
    BufReader::new(editor.steno.stderr.take().unwrap()).read_line(&mut pid).unwrap();
    let pid = Pid::from_raw(pid.trim().parse().unwrap()).unwrap();
    editor.converse();
    wait_until(|| kept(&home, AcpSide::Agent).ends_with(b"\"stopReason\":\"end_turn\"}}\n"));
    test_kill_process(pid).unwrap();
    kill_process(editor.id(), Signal::KILL).unwrap();
    editor.steno.wait().unwrap();
    wait_until(|| test_kill_process(pid).is_err());
    let shown = home.steno(&["show", "sess-0001", "--json"]).ok();
    assert_eq!(shown.lines().count(), 6, "{shown}");
    assert!(home.steno(&["list", "--json"]).ok().contains("\"status\":\"failed\""));
}

#[test]
fn a_killed_editor_ends_the_agent_and_all_messages_are_recorded() {
    for signal in [Signal::KILL, Signal::TERM] {
        let home = Home::new();
        home.file("lines", [INITIALIZE, NEW, PROMPT, ALLOW].join("\n") + "\n");
        // An editor that writes everything and then waits.
        let mut editor = home.program("sh", &["-c", "cat lines; exec sleep 60"]);
        let mut editor = editor.stdout(Stdio::piped()).spawn().unwrap();
        let mut steno = agent(&home, "toy");
        let steno = steno.stdin(editor.stdout.take().unwrap()).stdout(Stdio::piped());
        let mut steno = steno.spawn().unwrap();
        let mut heard = BufReader::new(steno.stdout.take().unwrap()).lines();
        assert!(heard.any(|line| line.unwrap().contains("stopReason")));
        kill_process(Pid::from_raw(editor.id() as i32).unwrap(), signal).unwrap();
        editor.wait().unwrap();
        assert_eq!(steno.wait().unwrap().code(), Some(7));
        let shown = home.steno(&["show", "sess-0001", "--json"]).ok();
        assert_eq!(shown.lines().count(), 6, "{shown}");
    }
}

#[test]
fn an_agent_that_no_longer_reads_or_speaks_is_noticed() {
    let home = Home::new();
    let mut editor =
        Editor::start(home.command(&["acp", "--", "sh", "-c", "exec <&- >&-; sleep 60"]));
    let mut rest = Vec::new();
    editor.output.read_to_end(&mut rest).unwrap();
    wait_until(|| editor.input.write_all(b"x\n").is_err());
    kill_process(editor.id(), Signal::TERM).unwrap();
    editor.steno.wait().unwrap();
}

#[test]
fn a_broken_store_does_not_disturb_the_agent() {
    let home = Home::new();
    home.file("store", "not a folder");
    let mut editor = Editor::start(agent(&home, "toy"));
    editor.converse();
    let mut stderr = editor.steno.stderr.take().unwrap();
    assert_eq!(editor.leave(), Some(7));
    let mut said = String::new();
    stderr.read_to_string(&mut said).unwrap();
    assert_eq!(said.lines().count(), 1, "{said}");
    assert!(said.starts_with("warning: recording paused, the agent continues: "), "{said}");
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_store_does_not_disturb_the_agent() {
    let home = Home::new();
    // The file size limit acts like a full disk.
    let script =
        format!("ulimit -f 2048; trap '' XFSZ; exec {} acp -- cat", env!("CARGO_BIN_EXE_steno"));
    let steno = home.program("sh", &["-c", &script]);
    let input: String = (0..4000)
        .map(|n| format!("{{\"id\":{n},\"method\":\"x\",\"params\":{{\"sessionId\":\"s\"}}}}\n"))
        .collect();
    let output = home.finish(steno, input.as_bytes());
    assert_eq!((output.code, output.stdout == input), (0, true), "{}", output.stderr);
    assert!(output.stderr.contains("recording paused"), "{}", output.stderr);
    let listed = home.steno(&["show", "s", "--json"]);
    assert!(listed.stdout.lines().count() > 10, "{listed}");
}

#[test]
fn what_the_agent_wrote_itself_is_joined() {
    let home = Home::new();
    let line = |kind: &str, n: u32, message: &str| {
        format!(
            "{{\"type\":\"{kind}\",\"uuid\":\"u{n}\",\"sessionId\":\"sess-0001\",\"cwd\":\"/w\",\
             \"timestamp\":\"2026-01-05T09:15:3{n}.000Z\",\"message\":{message}}}\n"
        )
    };
    let own = line("user", 0, r#"{"role":"user","content":"what is here?"}"#)
        + &line(
            "assistant",
            1,
            r#"{"id":"msg_1","role":"assistant","model":"m","content":[{"type":"tool_use","id":"call-1","name":"Bash","input":{"command":"ls"}}],"usage":{"input_tokens":3,"output_tokens":2}}"#,
        )
        + &line(
            "user",
            2,
            r#"{"role":"user","content":[{"type":"tool_result","tool_use_id":"call-1","content":"a.txt and more"}]}"#,
        )
        + &line(
            "assistant",
            3,
            r#"{"id":"msg_2","role":"assistant","model":"m","content":[{"type":"text","text":"One file."}],"usage":{"input_tokens":4,"output_tokens":2}}"#,
        );
    home.file(".claude/projects/-w/sess-0001.jsonl", own);
    let mut editor = Editor::start(agent(&home, "claude-agent-acp"));
    editor.converse();
    assert_eq!(editor.leave(), Some(7));
    let shown = || home.steno(&["show", "sess-0001", "--json"]).ok();
    wait_until(|| shown().contains("a.txt and more"));
    let shown = shown();
    let entries = assert_conversation(&shown, "a.txt and more");
    assert_eq!(entries[2]["tool_name"], "Bash");
    assert_eq!(home.vault().list_sessions().unwrap().len(), 1);
    let sequences: Vec<_> = entries.iter().map(|entry| entry["sequence"].as_u64()).collect();
    assert_eq!(sequences, (0..6).map(Some).collect::<Vec<_>>());
    wait_until(|| {
        // A session is listed only after its recorder has released it.
        let listed = home.steno(&["list", "--json"]).ok();
        let row: serde_json::Value = serde_json::from_str(&listed).unwrap_or_default();
        row["entries"] == 6 && row["tokens"]["input"] == 7
    });
    home.steno(&["sync"]).ok();
    assert_eq!(home.vault().list_sessions().unwrap().len(), 1, "it is one session");
    home.steno(&["verify"]).ok();
}

//! Threads survive their runs: after a kill, a crash or a refusal each unit has exactly one transcript, and the next
//! command on threads finishes the rest.

use std::collections::BTreeMap;
use std::fs;
use std::path::PathBuf;
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use serde_json::Value;

use crate::harness::{Dice, Home, Output};
use crate::run::{end, wait_for};

mod busy;
mod killed;
mod recalled;
mod units;

/// An agent that appends each prompt to `heard` and obeys the last word of the prompt.
const AGENT_NAME: &str = r#"#!/bin/sh
say() { printf '%s\n' "$1"; }
update() { say '{"jsonrpc":"2.0","method":"session/update","params":{"sessionId":"'"$session"'","update":'"$1"'}}'; }
text() { update '{"sessionUpdate":"agent_message_chunk","content":{"type":"text","text":"'"$1"'"}}'; }
stop() { say '{"jsonrpc":"2.0","id":'"$id"',"result":{"stopReason":"'"$1"'"}}'; }
result() { say '{"jsonrpc":"2.0","id":'"$id"',"result":'"$1"'}'; }
session=${SESSION:-chat-$$}
# Writes its session down as Claude Code does, a little later than the wire had it.
own() {
 [ -n "$OWN" ] || return
 mkdir -p "$HOME/.claude/projects/-w"; count=$((count + 1))
 say '{"type":"'"$1"'","uuid":"'"$$-$count"'","sessionId":"'"$session"'","cwd":"/w","timestamp":"'"$(date -u +%Y-%m-%dT%H:%M:%S.999Z)"'","message":{"role":"'"$1"'","content":"'"$2"'"}}' >> "$HOME/.claude/projects/-w/$session.jsonl"
}
while read -r line; do
case "$line" in *'"id":'*) id=${line#*'"id":'}; id=${id%%,*};; esac
case "$line" in
*'"initialize"'*) result '{"protocolVersion":1,"agentInfo":{"name":"'"${NAME:-toy}"'"},"agentCapabilities":{"loadSession":'"${LOADS:-false}"'}}';;
*'"session/new"'*) result '{"sessionId":"'"$session"'","modes":{"currentModeId":"agent","availableModes":[{"id":"agent","name":"A"},{"id":"plan","name":"P"}]}}';;
*'"session/load"'*) session=${line#*'"sessionId":"'}; session=${session%%\"*}; result '{}';;
*'"session/set_mode"'*) result '{}';;
*'"session/prompt"'*)
 printf '%s\n' "$line" >> heard
 prompt=${line#*'"text":"'}; own user "${prompt%%'"}'*}"
 case "$line" in
 *'crash"'*) text 'Going down.'; exit 3;;
 *'sleep"'*) text 'Asleep.'; echo x >> asleep; sleep 60; stop end_turn;;
 *'nap"'*) echo x >> napping; sleep 0.4; text 'Awake.'; stop end_turn;;
 *'refuse"'*) text 'No.'; stop refusal;;
 *'silent"'*) stop end_turn;;
 *'fail"'*) say '{"jsonrpc":"2.0","id":'"$id"',"error":{"code":-32603,"message":"out of quota"}}';;
 *'tool"'*)
  update '{"sessionUpdate":"tool_call","toolCallId":"c1","title":"List the files","name":"list_files","kind":"read","status":"completed","rawInput":{"path":"."},"content":[{"type":"content","content":{"type":"text","text":"a.txt"}}]}'
  update '{"sessionUpdate":"tool_call","toolCallId":"c2","title":"Look","kind":"search","status":"completed"}'
  text 'Done.'; stop end_turn;;
 *) text 'Well '; sleep 0.03; text 'done.'; own assistant 'Well done.'; stop end_turn;;
 esac;;
esac
done
"#;

/// A project with that agent.
struct Project {
    home: Home,
}

impl Project {
    fn new() -> Self {
        let home = Home::new();
        home.file("agent.sh", AGENT_NAME);
        Self { home }
    }

    fn command(&self, args: &[&str]) -> Command {
        self.home.command(args)
    }

    fn steno(&self, args: &[&str]) -> Output {
        self.home.finish(self.command(args), b"")
    }

    fn run(&self, args: &[&str]) -> Output {
        self.steno(&[&["run", "--agent", "sh agent.sh", "--json"], args].concat())
    }

    /// Starts a run in the background.
    fn start(&self, args: &[&str]) -> Child {
        let mut command =
            self.command(&[&["run", "--agent", "sh agent.sh", "--json"], args].concat());
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    }

    /// Returns the prompts that the agent received. An incomplete line does not count.
    fn heard(&self) -> Vec<String> {
        let lines = fs::read_to_string(self.home.path().join("heard")).unwrap_or_default();
        let text = |line: &str| {
            let message: Value = serde_json::from_str(line).ok()?;
            Some(message["params"]["prompt"][0]["text"].as_str().unwrap().to_owned())
        };
        lines.lines().filter_map(text).collect()
    }

    /// Reads the thread from the store, without a command that would finish a run.
    fn stored_thread(&self) -> Value {
        let path = self.home.path().join(".leslie/thread_relations.json");
        let relations: Value = serde_json::from_slice(&fs::read(path).unwrap()).unwrap();
        relations["threads"].as_object().unwrap().values().next().unwrap().clone()
    }

    fn thread_id(&self) -> String {
        self.stored_thread()["id"].as_str().unwrap().to_owned()
    }

    /// Returns the transcripts of a thread by name.
    fn transcripts(&self, thread: &str) -> BTreeMap<String, String> {
        let folder = self.home.path().join(".leslie/threads").join(thread);
        let files = fs::read_dir(folder.join(".meta/transcripts")).unwrap();
        let paths = files.map(|item| item.unwrap().path());
        let named = |path: PathBuf| {
            let name = path.file_name().unwrap().to_str().unwrap().to_owned();
            (name, fs::read_to_string(path).unwrap())
        };
        paths.map(named).collect()
    }

    /// Returns the only transcript with this name suffix.
    #[track_caller]
    fn transcript(&self, thread: &str, end: &str) -> String {
        let all = self.transcripts(thread);
        let mut named: Vec<_> = all.iter().filter(|(name, _)| name[14..] == *end).collect();
        assert_eq!(named.len(), 1, "{end}: {all:#?}");
        named.pop().unwrap().1.clone()
    }
}

fn kill(child: &mut Child) {
    kill_process(Pid::from_raw(child.id() as i32).unwrap(), Signal::KILL).unwrap();
    child.wait().unwrap();
}

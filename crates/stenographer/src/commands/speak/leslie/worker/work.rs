//! One agent at work on a thread: `steno run` runs it, is answered by leslie's rules, and tells how it went.

use std::collections::HashMap;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, Stdio};
use std::thread as threads;
use std::time::Instant;

use serde_json::{Value, json};
use steno_core::durable;
use steno_core::thread::Thread;

use super::super::answer::Failure;
use super::policy::{Decision, Rules};
use super::runtime::{Runtime, failed};
use super::{Desk, approval, log_path, program};
use crate::scene::Scene;

/// Has all that an agent says written to a log, too.
const LOGGED: &str = "LESLIE_LOG_SDK";

/// What a run told of itself.
#[derive(Default)]
pub(super) struct Report {
    /// What the agent said.
    pub(super) said: String,
    /// The last event, which sums up.
    pub(super) end: Value,
    /// How often the model was asked: at first, and again after tools had answered.
    pub(super) turns: u64,
    /// Why it did not end well, if it did not.
    pub(super) failure: Option<String>,
    pub(super) milliseconds: u64,
    /// What it says at the moment.
    message: String,
    /// Whether a tool has answered since the model last spoke.
    is_answered: bool,
}

/// Lets an agent work on the thread, and notes when it began and how it ended.
pub(super) fn work(
    desk: &mut Desk<'_>,
    thread: &Thread,
    runtime: Option<&Runtime>,
) -> Result<Report, Failure> {
    log(desk, thread, runtime, ("worker_started", json!({})))?;
    let begun = Instant::now();
    let mut report = Work::begin(desk, thread, runtime)?.follow()?;
    report.milliseconds = u64::try_from(begun.elapsed().as_millis()).unwrap_or(u64::MAX);
    let success = report.failure.is_none();
    if let Some(runtime) = runtime {
        runtime.note(desk, thread, "worker_exit", json!({ "success": success }))?;
    }
    let session = desk.store.thread(thread.id.as_str())?.session_id;
    let told = match &report.failure {
        None => json!({
            "success": true,
            "session_id": session,
            "duration_ms": report.milliseconds,
            "cost_usd": report.end["cost"],
            "num_turns": report.turns,
            "errors": [],
        }),
        Some(error) => json!({ "success": false, "errors": [error] }),
    };
    let kind = if success { "worker_finished" } else { "worker_failed" };
    log(desk, thread, runtime, (kind, told))?;
    Ok(report)
}

/// A run while it goes on.
struct Work<'a, 'b> {
    desk: &'a mut Desk<'b>,
    thread: &'a Thread,
    runtime: Option<&'a Runtime>,
    rules: Rules,
    agent: Child,
    answers: Option<ChildStdin>,
    /// What was told of each tool.
    calls: HashMap<String, Value>,
    is_logged: bool,
}

impl<'a, 'b> Work<'a, 'b> {
    fn begin(
        desk: &'a mut Desk<'b>,
        thread: &'a Thread,
        runtime: Option<&'a Runtime>,
    ) -> Result<Self, Failure> {
        let (rules, problems) = Rules::of(desk.store.root());
        problems.into_iter().for_each(|problem| desk.ui.warning(problem));
        let mut command = program(desk)?;
        let id = thread.id.as_str();
        // An agent that has worked in the thread goes on where it stopped, and is not given the task again.
        match desk.store.thread(id)?.session_id {
            Some(_) => command.args(["resume", "--json", "--permission", "ask", id]),
            None => {
                let args = ["run", "--json", "--permission", "ask", "--thread", id, "--"];
                command.args(args).arg(&thread.title)
            }
        };
        command.envs(runtime.map(Runtime::variable));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut agent = command.spawn().map_err(unstarted)?;
        let answers = agent.stdin.take();
        let named = desk.variables.iter().rev().find(|(name, _)| name == LOGGED);
        let is_logged = match named {
            Some((_, value)) => value == "1",
            None => Scene::variable(LOGGED).is_some_and(|value| value == "1"),
        };
        Ok(Self { desk, thread, runtime, rules, agent, answers, calls: HashMap::new(), is_logged })
    }

    /// Follows it to its end.
    fn follow(mut self) -> Result<Report, Failure> {
        let complaints = self.agent.stderr.take().map(|mut stderr| {
            threads::spawn(move || {
                let mut text = String::new();
                let _ = stderr.read_to_string(&mut text);
                text
            })
        });
        let mut report = Report { turns: 1, ..Report::default() };
        let lines =
            self.agent.stdout.take().map(BufReader::new).into_iter().flat_map(BufRead::lines);
        for line in lines.map_while(Result::ok) {
            self.log_raw(&line)?;
            let Ok(event) = serde_json::from_str::<Value>(&line) else { continue };
            self.heard(&event, &mut report)?;
        }
        drop(self.answers.take());
        let status = self.agent.wait().map_err(unstarted)?;
        let said = complaints.and_then(|reading| reading.join().ok()).unwrap_or_default();
        report.failure = (!status.success()).then(|| {
            let mut errors = said.lines().filter_map(|line| line.strip_prefix("error: "));
            errors.next_back().map_or_else(|| status.to_string(), str::to_owned)
        });
        Ok(report)
    }

    fn heard(&mut self, event: &Value, report: &mut Report) -> Result<(), Failure> {
        let message = match event["event"].as_str() {
            Some("update") => {
                self.learn(&event["update"]);
                report.take(&event["update"])
            }
            Some("asks") => {
                self.answer(&event["request"])?;
                None
            }
            Some("end") => {
                report.end = event.clone();
                report.end_message()
            }
            _ => None,
        };
        match (message, self.runtime) {
            (Some(text), Some(runtime)) => {
                runtime.note(self.desk, self.thread, "assistant_text", json!({ "text": text }))
            }
            _ => Ok(()),
        }
    }

    /// Notes what is told of a tool: a question may tell less.
    fn learn(&mut self, call: &Value) -> Option<Value> {
        let known = self.calls.entry(call["toolCallId"].as_str()?.to_owned()).or_default();
        for (name, value) in call.as_object()?.iter().filter(|(_, value)| !value.is_null()) {
            known[name] = value.clone();
        }
        Some(known.clone())
    }

    fn answer(&mut self, request: &Value) -> Result<(), Failure> {
        let told = &request["toolCall"];
        let call = self.learn(told).unwrap_or_else(|| told.clone());
        let is_allowed = match (self.rules.decide(&call), self.runtime) {
            (Decision::Allow, _) => true,
            (Decision::Deny, _) => false,
            (Decision::Confirm, Some(runtime)) => {
                approval::ask(self.desk, runtime, self.thread, &call)?
            }
            (Decision::Confirm, None) => {
                let input = &call["rawInput"];
                let question = format!("thread {} wants to: {input}", self.thread.id);
                approval::ask_here(self.desk, &question)
            }
        };
        if let Some(answers) = &mut self.answers {
            // One that has ended needs no answer.
            let _ = answers.write_all(if is_allowed { b"y\n" } else { b"n\n" });
        }
        Ok(())
    }

    fn log_raw(&self, line: &str) -> Result<(), Failure> {
        if !self.is_logged {
            return Ok(());
        }
        let name = format!(".leslie/logs/sdk/{}.ndjson", self.thread.id);
        let path = self.desk.store.root().join(name);
        durable::create_private_dir(durable::parent(&path))
            .and_then(|()| durable::append_lines(&path, format!("{line}\n").as_bytes()))
            .map_err(failed)
    }
}

impl Report {
    /// Takes an update; gives a message of the agent's that has ended with it.
    fn take(&mut self, update: &Value) -> Option<String> {
        let kind = update["sessionUpdate"].as_str().unwrap_or_default();
        let is_model = matches!(kind, "agent_message_chunk" | "agent_thought_chunk" | "tool_call");
        if is_model && std::mem::take(&mut self.is_answered) {
            self.turns += 1;
        }
        self.is_answered |= matches!(update["status"].as_str(), Some("completed" | "failed"));
        if kind == "agent_message_chunk" {
            let text = update["content"]["text"].as_str().unwrap_or_default();
            self.said.push_str(text);
            self.message.push_str(text);
            return None;
        }
        if kind == "tool_call" { self.end_message() } else { None }
    }

    fn end_message(&mut self) -> Option<String> {
        Some(std::mem::take(&mut self.message)).filter(|text| !text.is_empty())
    }
}

/// Adds a line to the log of a thread's workers.
fn log(
    desk: &Desk<'_>,
    thread: &Thread,
    runtime: Option<&Runtime>,
    (kind, fields): (&str, Value),
) -> Result<(), Failure> {
    let mut event = json!({ "event": kind, "thread_id": thread.id, "timestamp": desk.now() });
    if let Some(runtime) = runtime {
        event["runtime_dir"] = json!(runtime.folder);
    }
    for (name, value) in fields.as_object().into_iter().flatten() {
        event[name] = value.clone();
    }
    let path = log_path(desk, thread);
    durable::create_private_dir(durable::parent(&path))
        .and_then(|()| durable::append_lines(&path, format!("{event}\n").as_bytes()))
        .map_err(failed)
}

fn unstarted(error: io::Error) -> Failure {
    Failure::unknown(format!("No agent started: {error}"))
}

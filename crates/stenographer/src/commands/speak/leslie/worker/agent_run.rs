//! Runs one agent on a thread: starts `steno run`, answers permission requests by leslie's rules, and reports the
//! result.

use std::collections::HashMap;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStdin, Stdio};
use std::thread as threads;
use std::time::Instant;

use serde_json::{Value, json};
use steno_model::durable;
use steno_seeds::thread::Thread;

use super::super::response::LeslieFailure;
use super::policy::{CommandRules, ToolDecision};
use super::runtime::{RuntimeFolder, to_failure};
use super::{LeslieContext, approval, log_path, steno_command};
use crate::process_environment::ProcessEnvironment;

/// Variable that enables the log of all agent output.
const LOG_VARIABLE: &str = "LESLIE_LOG_SDK";

/// Result of a run.
#[derive(Default)]
pub(super) struct AgentReport {
    /// All text of the agent.
    pub(super) text: String,
    /// The last event, with the totals.
    pub(super) end: Value,
    /// Number of model turns: the first, and one after each tool result.
    pub(super) turns: u64,
    /// Error of the run.
    pub(super) failure: Option<String>,
    pub(super) milliseconds: u64,
    /// Buffer for the current message.
    message: String,
    /// Whether a tool result came since the model's last output.
    has_tool_result: bool,
}

/// Runs an agent on the thread; logs its start and end.
pub(super) fn run_agent(
    context: &mut LeslieContext<'_>,
    thread: &Thread,
    runtime: Option<&RuntimeFolder>,
) -> Result<AgentReport, LeslieFailure> {
    append_log(context, thread, runtime, LogEvent { kind: "worker_started", fields: json!({}) })?;
    let started = Instant::now();
    let mut report = AgentRun::start(context, thread, runtime)?.read_to_end()?;
    report.milliseconds = u64::try_from(started.elapsed().as_millis()).unwrap_or(u64::MAX);
    let success = report.failure.is_none();
    if let Some(runtime) = runtime {
        runtime.append_event(context, thread, "worker_exit", json!({ "success": success }))?;
    }
    let session = context.store.thread(thread.id.as_str())?.session_id;
    let fields = match &report.failure {
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
    append_log(context, thread, runtime, LogEvent { kind, fields })?;
    Ok(report)
}

/// A running agent.
struct AgentRun<'a, 'b> {
    context: &'a mut LeslieContext<'b>,
    thread: &'a Thread,
    runtime: Option<&'a RuntimeFolder>,
    rules: CommandRules,
    agent: Child,
    stdin: Option<ChildStdin>,
    /// Known fields of each tool call, by id.
    tool_calls: HashMap<String, Value>,
    is_logged: bool,
}

impl<'a, 'b> AgentRun<'a, 'b> {
    fn start(
        context: &'a mut LeslieContext<'b>,
        thread: &'a Thread,
        runtime: Option<&'a RuntimeFolder>,
    ) -> Result<Self, LeslieFailure> {
        let (rules, problems) = CommandRules::for_project(context.store.root());
        problems.into_iter().for_each(|problem| context.ui.warning(problem));
        let mut command = steno_command(context)?;
        let id = thread.id.as_str();
        // An agent that has already worked in the thread resumes; it does not get the task again.
        match context.store.thread(id)?.session_id {
            Some(_) => command.args(["resume", "--json", "--permission", "ask", id]),
            None => {
                let args = ["run", "--json", "--permission", "ask", "--thread", id, "--"];
                command.args(args).arg(&thread.title)
            }
        };
        command.envs(runtime.map(RuntimeFolder::environment_variable));
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut agent = command.spawn().map_err(start_error)?;
        let stdin = agent.stdin.take();
        let named = context.variables.iter().rev().find(|(name, _)| name == LOG_VARIABLE);
        let is_logged = match named {
            Some((_, value)) => value == "1",
            None => ProcessEnvironment::variable(LOG_VARIABLE).is_some_and(|value| value == "1"),
        };
        Ok(Self {
            context,
            thread,
            runtime,
            rules,
            agent,
            stdin,
            tool_calls: HashMap::new(),
            is_logged,
        })
    }

    /// Reads events until the agent ends.
    fn read_to_end(mut self) -> Result<AgentReport, LeslieFailure> {
        let complaints = self.agent.stderr.take().map(|mut stderr| {
            threads::spawn(move || {
                let mut text = String::new();
                let _ = stderr.read_to_string(&mut text);
                text
            })
        });
        let mut report = AgentReport { turns: 1, ..AgentReport::default() };
        let lines =
            self.agent.stdout.take().map(BufReader::new).into_iter().flat_map(BufRead::lines);
        for line in lines.map_while(Result::ok) {
            self.log_raw(&line)?;
            let Ok(event) = serde_json::from_str::<Value>(&line) else { continue };
            self.handle_event(&event, &mut report)?;
        }
        drop(self.stdin.take());
        let status = self.agent.wait().map_err(start_error)?;
        let stderr = complaints.and_then(|reading| reading.join().ok()).unwrap_or_default();
        report.failure = (!status.success()).then(|| {
            let mut errors = stderr.lines().filter_map(|line| line.strip_prefix("error: "));
            errors.next_back().map_or_else(|| status.to_string(), str::to_owned)
        });
        Ok(report)
    }

    fn handle_event(
        &mut self,
        event: &Value,
        report: &mut AgentReport,
    ) -> Result<(), LeslieFailure> {
        let message = match event["event"].as_str() {
            Some("update") => {
                self.merge_tool_call(&event["update"]);
                report.apply_update(&event["update"])
            }
            Some("asks") => {
                self.answer_request(&event["request"])?;
                None
            }
            Some("end") => {
                report.end = event.clone();
                report.end_message()
            }
            _ => None,
        };
        match (message, self.runtime) {
            (Some(text), Some(runtime)) => runtime.append_event(
                self.context,
                self.thread,
                "assistant_text",
                json!({ "text": text }),
            ),
            _ => Ok(()),
        }
    }

    /// Merges the fields of a tool call, as a permission request may contain fewer. Returns all known fields.
    fn merge_tool_call(&mut self, call: &Value) -> Option<Value> {
        let known = self.tool_calls.entry(call["toolCallId"].as_str()?.to_owned()).or_default();
        for (name, value) in call.as_object()?.iter().filter(|(_, value)| !value.is_null()) {
            known[name] = value.clone();
        }
        Some(known.clone())
    }

    fn answer_request(&mut self, request: &Value) -> Result<(), LeslieFailure> {
        let fields = &request["toolCall"];
        let call = self.merge_tool_call(fields).unwrap_or_else(|| fields.clone());
        let is_allowed = match (self.rules.decide(&call), self.runtime) {
            (ToolDecision::Allow, _) => true,
            (ToolDecision::Deny, _) => false,
            (ToolDecision::Confirm, Some(runtime)) => {
                approval::request_approval(self.context, runtime, self.thread, &call)?
            }
            (ToolDecision::Confirm, None) => {
                let input = &call["rawInput"];
                let question = format!("thread {} wants to: {input}", self.thread.id);
                approval::ask_on_terminal(self.context, &question)
            }
        };
        if let Some(answers) = &mut self.stdin {
            // An agent that has ended needs no answer.
            let _ = answers.write_all(if is_allowed { b"y\n" } else { b"n\n" });
        }
        Ok(())
    }

    fn log_raw(&self, line: &str) -> Result<(), LeslieFailure> {
        if !self.is_logged {
            return Ok(());
        }
        let name = format!(".leslie/logs/sdk/{}.ndjson", self.thread.id);
        let path = self.context.store.root().join(name);
        durable::create_private_dir(durable::parent_folder(&path))
            .and_then(|()| durable::append_lines(&path, format!("{line}\n").as_bytes()))
            .map_err(to_failure)
    }
}

impl AgentReport {
    /// Applies an update. Returns the message that it completes.
    fn apply_update(&mut self, update: &Value) -> Option<String> {
        let kind = update["sessionUpdate"].as_str().unwrap_or_default();
        let is_model = matches!(kind, "agent_message_chunk" | "agent_thought_chunk" | "tool_call");
        if is_model && std::mem::take(&mut self.has_tool_result) {
            self.turns += 1;
        }
        self.has_tool_result |= matches!(update["status"].as_str(), Some("completed" | "failed"));
        if kind == "agent_message_chunk" {
            let text = update["content"]["text"].as_str().unwrap_or_default();
            self.text.push_str(text);
            self.message.push_str(text);
            return None;
        }
        if kind == "tool_call" { self.end_message() } else { None }
    }

    fn end_message(&mut self) -> Option<String> {
        Some(std::mem::take(&mut self.message)).filter(|text| !text.is_empty())
    }
}

/// An event in the log of a thread's workers.
struct LogEvent<'a> {
    kind: &'a str,
    fields: Value,
}

/// Appends a line to the log of a thread's workers.
fn append_log(
    context: &LeslieContext<'_>,
    thread: &Thread,
    runtime: Option<&RuntimeFolder>,
    event: LogEvent<'_>,
) -> Result<(), LeslieFailure> {
    let LogEvent { kind, fields } = event;
    let mut event = json!({ "event": kind, "thread_id": thread.id, "timestamp": context.now() });
    if let Some(runtime) = runtime {
        event["runtime_dir"] = json!(runtime.folder);
    }
    for (name, value) in fields.as_object().into_iter().flatten() {
        event[name] = value.clone();
    }
    let path = log_path(context, thread);
    durable::create_private_dir(durable::parent_folder(&path))
        .and_then(|()| durable::append_lines(&path, format!("{event}\n").as_bytes()))
        .map_err(to_failure)
}

fn start_error(error: io::Error) -> LeslieFailure {
    LeslieFailure::without_code(format!("No agent started: {error}"))
}

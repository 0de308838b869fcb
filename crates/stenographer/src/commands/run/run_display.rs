//! Shows an agent at work: messages on stdout, everything else on stderr; or all events as JSON Lines.

use std::collections::HashMap;
use std::thread;

use serde_json::{Value, json};
use steno_acp::client::{ClientEvent, ClientHandle};
use steno_agents::protocols::acp;
use steno_model::json::Object;

use crate::ui::{Ui, escape_control};

/// Maximum number of lines shown of a tool's output.
const MAX_OUTPUT_LINES: usize = 8;

/// Maximum number of lines shown of a diff.
const MAX_DIFF_LINES: usize = 40;

/// Shows the events of a run.
pub(super) struct RunDisplay<'a> {
    ui: &'a mut Ui,
    voice: ClientHandle,
    json: bool,
    /// Agent name that the user gave.
    agent: &'a str,
    /// Whether the last message ended without a newline.
    is_within_line: bool,
    /// Buffer for the current thought.
    thought: String,
    /// Titles of tool calls by id.
    tools: HashMap<String, String>,
}

impl<'a> RunDisplay<'a> {
    pub(super) fn new(ui: &'a mut Ui, voice: ClientHandle, json: bool, agent: &'a str) -> Self {
        let (thought, tools) = (String::new(), HashMap::new());
        Self { ui, voice, json, agent, is_within_line: false, thought, tools }
    }

    pub(super) fn ui(&mut self) -> &mut Ui {
        self.ui
    }

    /// Shows the start of a session.
    pub(super) fn show_begin(&mut self, thread: &str, session: &str) {
        let agent = self.agent;
        if self.json {
            let begin =
                json!({ "event": "begin", "thread": thread, "agent": agent, "session": session });
            return self.print_json_line(&begin);
        }
        self.ui.status(format_args!("{thread} · {agent} · {session}"));
    }

    /// Shows an event.
    pub(super) fn show_event(&mut self, event: &ClientEvent<'_>) {
        if self.json {
            return self.print_json_event(event);
        }
        match event {
            ClientEvent::Update(update) => self.show_update(update),
            ClientEvent::PermissionRequested(request) => self.ask_permission(request),
            ClientEvent::PermissionDecided(request, choice) => {
                let tool = self.tool_title(request.get("toolCall"));
                self.show_status(&format!("{tool}: {}", choice.name));
            }
            ClientEvent::Cancelling => {
                self.show_status("cancelling; press Ctrl-C again to end the agent")
            }
            ClientEvent::AwaitingResponse(method) => {
                let agent = self.agent;
                self.ui.print_note(format_args!(
                    "still waiting for {agent} to answer {method}; press Ctrl-C to stop"
                ));
            }
        }
    }

    /// Ends the output of a turn.
    pub(super) fn end_turn(&mut self) {
        self.end_output();
    }

    /// Prints an event as JSON.
    fn print_json_event(&mut self, event: &ClientEvent<'_>) {
        match event {
            ClientEvent::Update(update) => {
                self.print_json_line(&json!({ "event": "update", "update": update }))
            }
            ClientEvent::PermissionRequested(request) => {
                self.print_json_line(&json!({ "event": "asks", "request": request }));
                self.read_decision();
            }
            ClientEvent::PermissionDecided(request, choice) => {
                let tool = request.get("toolCall");
                self.print_json_line(
                    &json!({ "event": "decided", "tool": tool, "choice": choice.name }),
                );
            }
            ClientEvent::Cancelling => self.print_json_line(&json!({ "event": "cancelling" })),
            ClientEvent::AwaitingResponse(method) => {
                self.print_json_line(&json!({ "event": "waiting", "method": method }));
            }
        }
    }

    fn print_json_line(&mut self, value: &Value) {
        // A closed pipe is reported at the end of the command.
        let _ = writeln!(self.ui.out(), "{value}").and_then(|()| self.ui.flush());
    }

    fn show_update(&mut self, update: &Object) {
        let text = || update.get("content").map(acp::blocks_text).unwrap_or_default();
        match update.get("sessionUpdate").and_then(Value::as_str).unwrap_or_default() {
            "agent_message_chunk" => self.show_message(&text()),
            "agent_thought_chunk" => {
                let thought = text();
                self.end_line();
                self.thought.push_str(&thought);
            }
            "tool_call" | "tool_call_update" => self.show_tool(update),
            "plan" => self.show_plan(update),
            "notice" => {
                let texts = ["title", "description"].map(|name| text_field(update, name));
                let texts: Vec<_> = texts.into_iter().filter(|text| !text.is_empty()).collect();
                self.show_status(&texts.join(": "));
            }
            "compaction_update" => self.show_status("the agent compacted its context"),
            _ => {}
        }
    }

    /// Prints a part of the agent's message.
    fn show_message(&mut self, text: &str) {
        self.show_thought();
        let _ = self.ui.transcript_text(text).and_then(|()| self.ui.flush());
        if !text.is_empty() {
            self.is_within_line = !text.ends_with('\n');
        }
    }

    fn show_tool(&mut self, update: &Object) {
        let id = text_field(update, "toolCallId").to_owned();
        let title = text_field(update, "title");
        if !title.is_empty() && !self.tools.contains_key(&id) {
            self.show_status(&format!("> {title}"));
            self.tools.insert(id.clone(), title.to_owned());
        }
        let content = update.get("content").and_then(Value::as_array).into_iter().flatten();
        let content: Vec<&Object> = content.filter_map(Value::as_object).collect();
        for change in content.iter().filter(|part| text_field(part, "type") == "diff") {
            self.show_indented(&acp::diff_text(change), MAX_DIFF_LINES);
        }
        match text_field(update, "status") {
            "completed" => {
                let output = content.iter().filter(|part| text_field(part, "type") == "content");
                let output: String =
                    output.filter_map(|part| part.get("content")).map(acp::blocks_text).collect();
                self.show_indented(&output, MAX_OUTPUT_LINES);
            }
            "failed" => {
                let name = self.tools.get(&id).cloned().unwrap_or(id);
                self.show_status(&format!("{name} failed"));
            }
            _ => {}
        }
    }

    fn show_plan(&mut self, update: &Object) {
        let steps = update.get("entries").and_then(Value::as_array).into_iter().flatten();
        let lines: Vec<String> = steps
            .filter_map(Value::as_object)
            .map(|step| {
                let mark = match text_field(step, "status") {
                    "completed" => "[x]",
                    "in_progress" => "[>]",
                    _ => "[ ]",
                };
                format!("{mark} {}", text_field(step, "content"))
            })
            .collect();
        self.show_indented(&lines.join("\n"), MAX_DIFF_LINES);
    }

    /// Prints a question; a thread reads the answer.
    fn ask_permission(&mut self, request: &Object) {
        let tool = self.tool_title(request.get("toolCall"));
        self.end_output();
        let mut question = format!("Allow {tool}?\n");
        let options = request.get("options").and_then(Value::as_array).into_iter().flatten();
        for (at, option) in options.filter_map(Value::as_object).enumerate() {
            question.push_str(&format!("  {} {}\n", at + 1, text_field(option, "name")));
        }
        self.ui.print_note(format_args!("{question}Number, y or n:"));
        self.read_decision();
    }

    fn read_decision(&self) {
        let voice = self.voice.clone();
        thread::spawn(move || {
            let mut line = String::new();
            let _ = std::io::stdin().read_line(&mut line);
            voice.send_line(line);
        });
    }

    fn tool_title(&self, call: Option<&Value>) -> String {
        let call = call.and_then(Value::as_object);
        let title = call.map_or("", |call| text_field(call, "title"));
        let id = call.map_or("", |call| text_field(call, "toolCallId"));
        let known = self.tools.get(id).map_or("a tool", String::as_str);
        if title.is_empty() { known.to_owned() } else { title.to_owned() }
    }

    /// Prints a status on its own line.
    fn show_status(&mut self, text: &str) {
        self.end_output();
        self.ui.status(escape_control(text));
    }

    fn show_indented(&mut self, text: &str, limit: usize) {
        let lines: Vec<_> = text.lines().collect();
        let shown = lines.iter().take(limit).map(|line| format!("  {line}"));
        let more = lines.len().saturating_sub(limit);
        let more = (more > 0).then(|| format!("  and {more} more lines"));
        let shown: Vec<_> = shown.chain(more).collect();
        if !shown.is_empty() {
            self.show_status(&shown.join("\n"));
        }
    }

    /// Ends an open thought and an open line.
    fn end_output(&mut self) {
        self.show_thought();
        self.end_line();
    }

    fn show_thought(&mut self) {
        let thought = std::mem::take(&mut self.thought);
        if !thought.trim().is_empty() {
            self.end_line();
            self.ui.status(escape_control(&format!("({})", thought.trim())));
        }
    }

    fn end_line(&mut self) {
        if std::mem::take(&mut self.is_within_line) {
            let _ = writeln!(self.ui.out()).and_then(|()| self.ui.flush());
        }
    }
}

fn text_field<'a>(object: &'a Object, name: &str) -> &'a str {
    object.get(name).and_then(Value::as_str).unwrap_or_default()
}

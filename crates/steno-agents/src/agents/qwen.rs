//! Reads Qwen Code's sessions: logs with one record per line, linked by `parentUuid`. Older versions wrote chats in
//! Gemini CLI's format.
//!
//! All records are read, including branches that a rewind abandoned. Subagents have files of their own.

mod continue_session;
mod subagents;

use std::path::PathBuf;

use super::claude_code;
use super::gemini;
use crate::agent::Agent;
use crate::agent::continuation::ContinuationRule;
use crate::agent::hooks::{AgentHooks, HookShape};
use crate::agent::launch::{AgentLaunch, BaseUrlMethod};
use crate::agent::mcp_client::{McpClient, McpClientLocation, McpServerShape};
use crate::agent::nearby::NearbyRules;
use crate::agent::record_format::RecordFormat;
use crate::agent::resume::{FolderRule, ResumeRule};
use crate::agent::user_folders::UserFolders;
use crate::decoding::file_head::FileHead;
use crate::decoding::json_lines::for_each_object;
use crate::decoding::message_ids::UniqueMessageIds;
use crate::decoding::session_emitter::SessionEmitter;
use crate::decoding::{entries, json_fields, json_records};
use crate::protocols::gemini_parts;
use crate::reader::file_tree::FileTree;
use crate::reader::{FormatError, FormatReader, ItemSink};
use steno_model::durable::FileError;
use steno_model::entry::{Entry, EntryKind, PRIMARY_SOURCE, Role, Usage};
use steno_model::json::{Object, Value};
use steno_model::problem::Problem;
use steno_model::session::Session;
use steno_vault::{SessionBundle, SessionFile};

/// The agent's name.
pub const AGENT_NAME: &str = "qwen";

/// Finds and reads its sessions.
pub const READER: FormatReader =
    FormatReader { agent: AGENT_NAME, find: find_sessions, read: read_session };

/// What is known about Qwen Code.
pub(crate) const AGENT: Agent = Agent {
    locations: |user| {
        let data = data_folder(user);
        vec![data.join("projects"), data.join("tmp")]
    },
    nearby: NearbyRules {
        part_folders: &[subagents::SUBAGENTS_FOLDER],
        shared_folders: &["chats"],
        ..NearbyRules::NONE
    },
    lines: Some(RecordFormat::by_head(recognises)),
    document: Some(RecordFormat::by_head(|head| {
        recognises(head) && gemini::has_message_list(head)
    })),
    resume: Some(ResumeRule {
        program: "qwen",
        arguments: &["--resume", "{id}"],
        folder: FolderRule::Named { limit: usize::MAX },
    }),
    continuation: Some(ContinuationRule {
        tested_versions: &["0.24.4"],
        context_tokens: 256_000,
        write: continue_session::write_session,
        import_arguments: None,
        prompt_arguments: &["--prompt-interactive", "{prompt}"],
    }),
    hooks: Some(AgentHooks {
        settings_folders: |user| vec![user.folder_or_default("QWEN_HOME", ".qwen")],
        settings_file: "settings.json",
        shape: HookShape::Groups,
        events: &claude_code::HOOK_EVENTS,
        has_plugin: |_| false,
    }),
    mcp_client: Some(McpClient {
        locations: |user| {
            vec![McpClientLocation::in_folder(
                user.folder_or_default("QWEN_HOME", ".qwen"),
                "settings.json",
            )]
        },
        shape: McpServerShape::PLAIN_SERVERS,
    }),
    launch: Some(AgentLaunch {
        name: "qwen",
        run_order: 4,
        command: &["qwen", "--acp"],
        install: "npm install -g @qwen-code/qwen-code",
        programs: &["qwen", "qwen-code"],
        base_url: BaseUrlMethod::QwenSettings,
    }),
    acp_word: Some("qwen"),
    ..Agent::new("Qwen Code", &READER)
};

fn data_folder(user: &UserFolders<'_>) -> PathBuf {
    user.first_folder_or_default(&["QWEN_RUNTIME_DIR", "QWEN_HOME"], ".qwen")
}

/// How many records of a file are parsed to recognize it.
const PROBED_RECORDS: usize = 20;

fn find_sessions(tree: &FileTree) -> Result<Vec<SessionBundle>, FileError> {
    let mut bundles =
        subagents::group_subagents(json_records::find_candidates(tree, is_qwen_log)?)?;
    bundles.extend(gemini::find_chats(tree, is_old_chat)?);
    Ok(bundles)
}

/// Whether a file starts as a session does, of any version.
pub fn recognises(head: &FileHead) -> bool {
    is_qwen_log(head) || is_old_chat(head)
}

fn is_qwen_log(head: &FileHead) -> bool {
    let is_cut_off = has_record_fields(&head.scalar_fields()) && head.contains_json(r#""parts":["#);
    is_cut_off || head.line_objects().take(PROBED_RECORDS).any(|object| is_qwen_record(&object))
}

fn is_old_chat(head: &FileHead) -> bool {
    gemini::is_chat(head) && head.contains_json(r#""type":"qwen""#)
}

/// Whether a record is Qwen Code's. Claude Code's records have the same fields except `parts` and `systemPayload`.
fn is_qwen_record(object: &Object) -> bool {
    let message = json_fields::object_field(object, "message");
    let has_parts = message.is_some_and(|message| message.contains_key("parts"));
    has_record_fields(object) && (has_parts || object.contains_key("systemPayload"))
}

fn has_record_fields(object: &Object) -> bool {
    ["uuid", "sessionId", "type"].iter().all(|field| object.contains_key(*field))
}

fn read_session(bundle: &SessionBundle, emit: ItemSink<'_>) -> Result<Session, FormatError> {
    let (agents, own): (Vec<_>, Vec<_>) =
        bundle.files.iter().partition(|source| subagents::is_subagent_file(source));
    let Some(source) = own.first() else {
        return Err(FormatError::Invalid(Problem::for_file(&bundle.root, "no session in it")));
    };
    let head = FileHead::read(source)?;
    if !is_qwen_log(&head) && is_old_chat(&head) {
        return gemini::read_chat_as(AGENT_NAME, bundle, emit);
    }
    let id_of = |object: Object| json_fields::text_field(&object, "sessionId").map(str::to_owned);
    let record_id = id_of(head.scalar_fields()).or_else(|| head.line_objects().find_map(id_of));
    let is_agent = json_fields::text_field(&head.scalar_fields(), "agentId").is_some();
    let id =
        record_id.as_deref().filter(|_| !is_agent).unwrap_or(json_records::session_stem(source));
    let mut log = QwenLogReader {
        emitter: SessionEmitter::new(AGENT_NAME, id, emit),
        ids: UniqueMessageIds::default(),
    };
    log.read_file(source)?;
    for source in agents {
        if let Some(agent) = subagents::subagent_id(source) {
            log.emitter.source = format!("subagent:{agent}");
            log.read_file(source)?;
            log.emitter.session.subagent_files += 1;
        }
    }
    let mut session = log.emitter.session;
    session.parent = record_id.filter(|_| is_agent).or(session.parent);
    Ok(session)
}

struct QwenLogReader<'a> {
    emitter: SessionEmitter<'a>,
    ids: UniqueMessageIds,
}

impl QwenLogReader<'_> {
    fn read_file(&mut self, source: &SessionFile) -> Result<(), FileError> {
        for_each_object(source, |object, _| match object {
            Ok(object) => self.decode_record(object),
            Err(problem) => self.emitter.emit_problem(problem),
        })
    }

    fn decode_record(&mut self, object: Object) {
        let at = json_fields::time_field(&object, "timestamp");
        self.emitter.note_time(at);
        if self.emitter.source == PRIMARY_SOURCE {
            self.apply_session_fields(&object);
        }
        let message_id =
            json_fields::text_field(&object, "uuid").map(|uuid| self.ids.make_unique(uuid));
        let parent = json_fields::text_field(&object, "parentUuid").map(str::to_owned);
        for mut entry in decode_entries(object) {
            entry.created_at = at;
            entry.message_id.clone_from(&message_id);
            entry.parent_id.clone_from(&parent);
            self.emitter.emit_entry(entry);
        }
    }

    /// Fills in the session's metadata from a record. Later records override earlier ones.
    fn apply_session_fields(&mut self, object: &Object) {
        let session = &mut self.emitter.session;
        let owned = |field| json_fields::text_field(object, field).map(str::to_owned);
        session.project = owned("cwd").or(session.project.take());
        session.branch = owned("gitBranch").or(session.branch.take());
        let payload = json_fields::object_field(object, "systemPayload");
        let text = |field| payload.and_then(|payload| json_fields::text_field(payload, field));
        match json_fields::text_field(object, "subtype") {
            Some("custom_title") => session.title = text("customTitle").map(str::to_owned),
            Some("parent_session") => session.parent = text("parentSessionId").map(str::to_owned),
            _ => {}
        }
        if let Some(origin) = json_fields::object_field(object, "forkedFrom") {
            session.parent = json_fields::text_field(origin, "sessionId").map(str::to_owned);
        }
    }
}

fn decode_entries(object: Object) -> Vec<Entry> {
    match (json_fields::text_field(&object, "type"), json_fields::text_field(&object, "subtype")) {
        (Some("user"), None) => decode_user(&object),
        (Some("user"), Some(_)) => decode_notices(&object, &Role::User),
        (Some("assistant"), _) => decode_assistant(&object),
        (Some("tool_result"), _) => decode_tool_results(&object),
        (Some("system"), Some("chat_compression")) => {
            let mut entry = Entry::new(Role::System, EntryKind::Compaction, "");
            entry.metadata = object.get("systemPayload").and_then(Value::as_object).cloned();
            vec![entry]
        }
        (Some("system"), Some("notification" | "cron")) => decode_notices(&object, &Role::System),
        _ => vec![entries::unknown_entry(object)],
    }
}

fn message_parts(object: &Object) -> &Value {
    let message = json_fields::object_field(object, "message");
    message.and_then(|message| message.get("parts")).unwrap_or(&Value::Null)
}

/// Decodes a prompt: the typed text, then notices for what hooks and referenced files added.
fn decode_user(object: &Object) -> Vec<Entry> {
    let provenance = json_fields::text_field(object, "provenance");
    if provenance.is_some_and(|provenance| provenance != "real_user") {
        return decode_notices(object, &Role::User);
    }
    let payload = json_fields::object_field(object, "systemPayload");
    let typed = payload.and_then(|payload| json_fields::text_field(payload, "displayText"));
    let mut entries = gemini_parts::decode_parts(message_parts(object), &Role::User);
    if let Some(typed) = typed {
        for entry in entries.iter_mut().filter(|entry| entry.kind == EntryKind::Text) {
            entry.kind = EntryKind::Notice;
        }
        entries.retain(|entry| entry.content != typed);
        entries.insert(0, Entry::new(Role::User, EntryKind::Text, typed));
    } else if entries.is_empty() {
        entries.push(Entry::new(Role::User, EntryKind::Text, ""));
    }
    entries
}

/// Decodes a record with content that `role` did not write, as notices.
fn decode_notices(object: &Object, role: &Role) -> Vec<Entry> {
    let mut entries = gemini_parts::decode_parts(message_parts(object), role);
    let payload = json_fields::object_field(object, "systemPayload");
    if let (true, Some(payload)) = (entries.is_empty(), payload) {
        let text = json_fields::text_field(payload, "displayText").unwrap_or_default();
        entries.push(Entry::new(role.clone(), EntryKind::Notice, text));
    }
    for entry in entries.iter_mut().filter(|entry| entry.kind == EntryKind::Text) {
        entry.kind = EntryKind::Notice;
    }
    entries
}

fn decode_assistant(object: &Object) -> Vec<Entry> {
    let mut entries = gemini_parts::decode_parts(message_parts(object), &Role::Assistant);
    if entries.is_empty() {
        entries.push(Entry::new(Role::Assistant, EntryKind::Text, ""));
    }
    for entry in &mut entries {
        entry.model = json_fields::text_field(object, "model").map(str::to_owned);
    }
    entries[0].usage = json_fields::object_field(object, "usageMetadata").map(parse_usage);
    entries
}

fn decode_tool_results(object: &Object) -> Vec<Entry> {
    let result = json_fields::object_field(object, "toolCallResult");
    let status = result.and_then(|result| json_fields::text_field(result, "status"));
    let mut entries = gemini_parts::decode_parts(message_parts(object), &Role::Tool);
    for entry in &mut entries {
        entry.role = Role::Tool;
        entry.kind = EntryKind::ToolResult;
        if matches!(status, Some("error" | "cancelled")) {
            let metadata = entry.metadata.get_or_insert_default();
            metadata.insert("is_error".to_owned(), Value::Bool(true));
        }
    }
    entries
}

/// Parses usage. Only some providers include thoughts in `candidatesTokenCount`, but the total always does.
fn parse_usage(tokens: &Object) -> Usage {
    let count = |field| json_fields::count_field(tokens, field);
    let (prompt, cached) = (count("promptTokenCount"), count("cachedContentTokenCount"));
    let reasoning = count("thoughtsTokenCount");
    let output = count("totalTokenCount").checked_sub(prompt);
    Usage {
        input: prompt.saturating_sub(cached),
        cache_read: cached,
        output: output.unwrap_or_else(|| count("candidatesTokenCount") + reasoning),
        reasoning,
        ..Usage::default()
    }
}

#[cfg(test)]
mod tests;

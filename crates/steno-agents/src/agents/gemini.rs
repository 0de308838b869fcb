//! Reads Gemini CLI's chats: one JSON document until 0.38, a log of messages to replay since 0.39.
//!
//! Rewound and replaced messages are not read. Subagents' chats are in a folder named after their session.

mod continue_session;
mod decode;
mod replay;

#[cfg(test)]
mod tests;

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use self::decode::GeminiMessageDecoder;
use self::replay::GeminiReplayPlan;
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
use crate::decoding::session_emitter::SessionEmitter;
use crate::decoding::{json_fields, json_records};
use crate::reader::file_tree::FileTree;
use crate::reader::{FormatError, FormatReader, ItemSink};
use steno_model::durable::FileError;
use steno_model::entry::PRIMARY_SOURCE;
use steno_model::json::Value;
use steno_model::name_hash::{CompactNameMap, NameHasher};
use steno_model::problem::Problem;
use steno_model::session::Session;
use steno_vault::{SessionBundle, SessionFile};

/// The agent's name.
pub const AGENT_NAME: &str = "gemini";

/// Finds and reads its sessions.
pub const READER: FormatReader = FormatReader {
    agent: AGENT_NAME,
    find: find_sessions,
    read: |bundle, emit| read_chat_as(AGENT_NAME, bundle, emit),
};

/// What is known about Gemini CLI.
pub(crate) const AGENT: Agent = Agent {
    locations: |user| vec![config_folder(user).join("tmp")],
    nearby: NearbyRules { shared_folders: &["chats"], ..NearbyRules::NONE },
    lines: Some(RecordFormat::by_head(recognises)),
    document: Some(RecordFormat::by_head(|head| recognises(head) && has_message_list(head))),
    resume: Some(ResumeRule {
        program: "gemini",
        arguments: &["--resume", "{id}"],
        folder: FolderRule::Marked { file: PROJECT_ROOT_FILE },
    }),
    continuation: Some(ContinuationRule {
        tested_versions: &["0.61.0"],
        context_tokens: 1_000_000,
        write: continue_session::write_session,
        import_arguments: None,
        prompt_arguments: &["--prompt-interactive", "{prompt}"],
    }),
    hooks: Some(AgentHooks {
        settings_folders: |user| vec![config_folder(user)],
        settings_file: "settings.json",
        shape: HookShape::Groups,
        events: &["SessionStart", "AfterAgent", "PreCompress", "SessionEnd"],
        has_plugin: |folder| folder.join("extensions/steno/gemini-extension.json").is_file(),
    }),
    mcp_client: Some(McpClient {
        locations: |user| vec![McpClientLocation::in_folder(config_folder(user), "settings.json")],
        shape: McpServerShape::PLAIN_SERVERS,
    }),
    launch: Some(AgentLaunch {
        name: "gemini",
        run_order: 2,
        command: &["gemini", "--acp"],
        install: "npm install -g @google/gemini-cli",
        programs: &["gemini", "gemini-cli"],
        base_url: BaseUrlMethod::Variables,
    }),
    acp_word: Some("gemini"),
    is_session_in_file_name: false,
    ..Agent::new("Gemini CLI", &READER)
};

/// The file in which Gemini CLI names the working folder.
pub(crate) const PROJECT_ROOT_FILE: &str = ".project_root";

fn config_folder(user: &UserFolders<'_>) -> PathBuf {
    user.folder_or_default("GEMINI_CLI_HOME", "").join(".gemini")
}

/// Whether a document of Gemini CLI or a fork of it has messages.
pub(super) fn has_message_list(head: &FileHead) -> bool {
    head.field_start("messages").is_some() || head.field_start("history").is_some()
}

fn find_sessions(tree: &FileTree) -> Result<Vec<SessionBundle>, FileError> {
    find_chats(tree, recognises)
}

/// Whether a file starts as a chat of Gemini CLI does.
pub fn recognises(head: &FileHead) -> bool {
    is_chat(head) && !head.contains_json(r#""type":"qwen""#)
}

/// Whether a file starts like a chat of Gemini CLI or one of its forks.
pub(super) fn is_chat(head: &FileHead) -> bool {
    let fields = head.scalar_fields();
    let is_chat = fields.contains_key("sessionId") && fields.contains_key("projectHash");
    is_chat || (fields.contains_key("history") && head.contains_json(r#""role":"user","parts":["#))
}

/// Finds the chats in `tree` that match `is_wanted`, each with its subagents' chats and its older document.
pub(super) fn find_chats(
    tree: &FileTree,
    is_wanted: impl Fn(&FileHead) -> bool,
) -> Result<Vec<SessionBundle>, FileError> {
    let mut files = json_records::find_candidates(tree, &is_wanted)?;
    if let [file] = files.as_slice()
        && file.root == tree.root()
        && let Some(folder) = subagents_folder(file)?
    {
        files.extend(json_records::find_candidates(&FileTree::open(&folder)?, &is_wanted)?);
    }
    let mut bundles = group_by_session(files)?;
    bundles.iter_mut().for_each(add_project_marker);
    Ok(bundles)
}

/// Adds the file that names the project folder of the chats.
fn add_project_marker(bundle: &mut SessionBundle) {
    let chats = bundle.root.parent().filter(|folder| folder.file_name() == Some("chats".as_ref()));
    let marker = chats
        .map(|chats| chats.with_file_name(PROJECT_ROOT_FILE))
        .filter(|marker| marker.is_file());
    bundle.files.extend(marker.map(|marker| SessionFile::on_disk(PROJECT_ROOT_FILE, marker)));
}

/// The folder of a chat's subagents, if it exists.
fn subagents_folder(chat: &SessionBundle) -> Result<Option<PathBuf>, FileError> {
    let name = session_id(&chat.files[0])?;
    let is_plain = !name.is_empty() && !name.contains(['/', '\\']) && !name.starts_with('.');
    let folder = chat.root.with_file_name(name);
    Ok(Some(folder).filter(|folder| is_plain && folder.is_dir()))
}

/// Groups the files by session: a log before the document that it continues, then subagents' files.
fn group_by_session(mut files: Vec<SessionBundle>) -> Result<Vec<SessionBundle>, FileError> {
    files.sort_by_key(|file| file.root.components().count());
    let mut known: HashMap<PathBuf, usize> = HashMap::new();
    let mut bundles: Vec<SessionBundle> = Vec::new();
    for file in files {
        let session = file.root.with_file_name(session_id(&file.files[0])?);
        let parent = file.root.parent().unwrap_or(Path::new(""));
        if let Some(at) = known.get(parent) {
            let folder = parent.file_name().unwrap_or_default().to_string_lossy();
            let name = format!("{folder}/{}", file.files[0].name());
            bundles[*at].files.push(SessionFile::on_disk(name, &file.root));
        } else if let Some(at) = known.get(&session) {
            json_records::put_log_first(&mut bundles[*at], file);
        } else {
            known.insert(session, bundles.len());
            bundles.push(file);
        }
    }
    Ok(bundles)
}

fn session_id(source: &SessionFile) -> Result<String, FileError> {
    let fields = FileHead::read(source)?.scalar_fields();
    Ok(json_fields::text_field(&fields, "sessionId")
        .unwrap_or(json_records::session_stem(source))
        .to_owned())
}

/// Reads a chat of `agent`, which is Gemini CLI or one of its forks.
pub(super) fn read_chat_as(
    agent: &str,
    bundle: &SessionBundle,
    emit: ItemSink<'_>,
) -> Result<Session, FormatError> {
    let files = bundle.files.iter().filter(|source| source.name() != PROJECT_ROOT_FILE);
    let (agents, chats): (Vec<_>, Vec<_>) = files.partition(|source| source.name().contains('/'));
    let chats = chat_files(chats);
    let Some(first) = chats.first() else {
        return Err(FormatError::Invalid(Problem::for_file(&bundle.root, "no file in it")));
    };
    let plan = GeminiReplayPlan::from_log(first)?;
    let id = json_fields::text_field(&plan.header, "sessionId")
        .unwrap_or(json_records::session_stem(first))
        .to_owned();
    let mut emitter = SessionEmitter::new(agent, &id, emit);
    apply_header(&mut emitter.session, &plan);
    emitter.session.project = read_project(bundle)?;
    let (mut messages, mut known, hasher) =
        (GeminiMessageDecoder::default(), CompactNameMap::default(), NameHasher::default());
    let (mut plan, has_several) = (Some(plan), chats.len() > 1);
    for (number, chat) in chats.into_iter().enumerate() {
        let plan = plan.take().map_or_else(|| GeminiReplayPlan::from_log(chat), Ok)?;
        plan.replay_messages(chat, &mut emitter, |emitter, message| {
            let id = json_fields::text_field(&message, "id").filter(|_| has_several);
            let first = id.and_then(|id| known.get_mut_or_insert(hasher.hash_short(id), number));
            // The log of a resumed chat begins with the messages of the log before.
            if first.is_none_or(|first| *first == number) {
                messages.decode_message(emitter, message);
            }
        })?;
    }
    emitter.session.subagent_files = agents.len() as u64;
    for source in agents {
        let plan = GeminiReplayPlan::from_log(source)?;
        let id = json_fields::text_field(&plan.header, "sessionId")
            .unwrap_or(json_records::session_stem(source));
        emitter.source = format!("subagent:{id}");
        replay_subagent(source, plan, &mut emitter)?;
    }
    emitter.source = PRIMARY_SOURCE.to_owned();
    Ok(emitter.session)
}

/// The files to read for the chat, in order: all logs, of which a resumed chat may have several, or else one document.
fn chat_files(chats: Vec<&SessionFile>) -> Vec<&SessionFile> {
    let is_log = |source: &&SessionFile| source.name().ends_with(".jsonl");
    let (mut logs, mut documents): (Vec<_>, Vec<_>) = chats.into_iter().partition(is_log);
    logs.sort_by_key(|source| source.name());
    documents.truncate(1);
    if logs.is_empty() { documents } else { logs }
}

fn replay_subagent(
    source: &SessionFile,
    plan: GeminiReplayPlan,
    emitter: &mut SessionEmitter<'_>,
) -> Result<(), FormatError> {
    let mut messages = GeminiMessageDecoder::default();
    plan.replay_messages(source, emitter, |emitter, message| {
        messages.decode_message(emitter, message)
    })?;
    Ok(())
}

fn read_project(bundle: &SessionBundle) -> Result<Option<String>, FileError> {
    let Some(marker) = bundle.file_named(PROJECT_ROOT_FILE) else { return Ok(None) };
    let folder = String::from_utf8_lossy(&marker.read_bytes()?).trim().to_owned();
    Ok(Some(folder).filter(|folder| !folder.is_empty()))
}

/// Fills in the session from the chat's header.
fn apply_header(session: &mut Session, plan: &GeminiReplayPlan) {
    session.title = json_fields::text_field(&plan.header, "summary").map(str::to_owned);
    for field in ["projectHash", "kind", "directories"] {
        if let Some(value) = plan.header.get(field).filter(|value| **value != Value::Null) {
            session.extra.insert(field.to_owned(), value.clone());
        }
    }
}

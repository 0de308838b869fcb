//! Resumes a thread: in its agent's session, or in a new session that gets the conversation so far.

use steno_model::Transcript;
use steno_seeds::leslie;
use steno_seeds::thread::Thread;
use steno_store::index::{Index, ListedSession, SessionFilter};
use steno_store::transcript::ReadTranscript;

use super::Args;
use super::recall::recall_conversation;
use crate::commands::run::conversation::{AgentConversation, PreviousSession};
use crate::commands::run::thread_work::ThreadWork;
use crate::config::Config;
use crate::error::{CommandError, CommandExit};
use crate::process_environment::ProcessEnvironment;
use crate::project_threads::ProjectThreads;
use crate::runnable_agent::RunnableAgent;
use crate::session_store::SessionStore;
use crate::thread_error::explain_thread_error;
use crate::thread_run::find_session;
use crate::ui::Ui;

/// Prompt for an agent that has stopped.
const CONTINUE_PROMPT: &str = "Go on where you stopped.";

/// Returns whether the id names a thread of the project rather than a session.
pub(super) fn is_thread(env: &ProcessEnvironment, id: &str) -> Result<bool, CommandError> {
    let threads = ProjectThreads::for_working_folder(env);
    if !threads.store.exists() {
        return Ok(false);
    }
    let is_known =
        threads.store.load_relations().map_err(explain_thread_error)?.threads.contains_key(id);
    Ok(is_known || id.starts_with("thread-"))
}

/// Runs the thread's agent again.
pub(super) fn resume_thread(
    ui: &mut Ui,
    env: &ProcessEnvironment,
    args: &Args,
) -> Result<CommandExit, CommandError> {
    let work = ThreadWork::open(ui, env, &args.session, args.options.wait)?;
    let config = Config::load(env)?;
    let agent =
        RunnableAgent::find(&config, args.agent.as_deref().or(work.previous_agent()?.as_deref()))?;
    let sessions = read_thread_sessions(ui, env, &work.thread)?;
    let was_asked =
        sessions.iter().any(|session| session.entries.iter().any(leslie::is_user_prompt));
    let prompts = match &args.prompts {
        given if !given.is_empty() => given.clone(),
        _ if was_asked => vec![CONTINUE_PROMPT.to_owned()],
        _ => vec![work.thread.title.clone()],
    };
    let history = if was_asked { recall_conversation(&sessions) } else { String::new() };
    let previous = work.thread.session_id.clone().map(|name| PreviousSession { name, history });
    let settings = config.run_settings()?;
    let conversation = AgentConversation { env, agent, work, options: &args.options, settings };
    conversation.run(ui, prompts, previous)
}

/// Reads all sessions of a thread, oldest first.
fn read_thread_sessions(
    ui: &mut Ui,
    env: &ProcessEnvironment,
    thread: &Thread,
) -> Result<Vec<Transcript>, CommandError> {
    let store = SessionStore::new(env);
    let ask = |index: &Index| {
        let mut own = Vec::new();
        index.each_session(
            &SessionFilter::default(),
            None,
            &mut |ListedSession { session, .. }| {
                if session.thread.as_deref() == Some(thread.id.as_str()) {
                    own.push((session.started.map(|at| at.instant()), session.agent, session.id));
                }
            },
        )?;
        Ok(own)
    };
    let mut own = store.query(ui, ask)?.1;
    own.sort();
    let mut dirs = Vec::new();
    for (_, agent, id) in own {
        dirs.push(store.vault.session_dir(&agent.parse()?, &id));
    }
    if let Some(name) = &thread.session_id
        && let Some(last) = find_session(env, &thread.id, name)?
        && !dirs.iter().any(|dir| dir.id() == last.id())
    {
        dirs.push(last);
    }
    dirs.iter().map(|dir| Ok(dir.read_transcript()?)).collect()
}

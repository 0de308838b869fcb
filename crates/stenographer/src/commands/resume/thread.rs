//! Goes on with a thread: in the session that its agent had, or in a new one that is told what was said.

use steno_core::Transcript;
use steno_core::format::leslie;
use steno_core::index::{Index, Listed};
use steno_core::thread::Thread;

use super::Args;
use super::recall::recall;
use crate::agents::Agent;
use crate::commands::run::conversation::{Conversation, Earlier};
use crate::commands::run::work::Work;
use crate::config::Config;
use crate::error::{CommandError, Exit};
use crate::scene::Scene;
use crate::store::Store;
use crate::thread_error::explain_thread_error;
use crate::thread_run::find_session;
use crate::threads::Threads;
use crate::ui::Ui;

/// What an agent is told that has stopped.
const GO_ON: &str = "Go on where you stopped.";

/// Whether a thread of the project is meant, and no session.
pub(super) fn is_one(scene: &Scene, id: &str) -> Result<bool, CommandError> {
    let threads = Threads::near(scene);
    if !threads.store.exists() {
        return Ok(false);
    }
    let is_known =
        threads.store.relations().map_err(explain_thread_error)?.threads.contains_key(id);
    Ok(is_known || id.starts_with("thread-"))
}

/// Runs the thread's agent again.
pub(super) fn go_on(ui: &mut Ui, scene: &Scene, args: &Args) -> Result<Exit, CommandError> {
    let work = Work::open(ui, scene, &args.session, args.manner.wait)?;
    let config = Config::load(scene)?;
    let agent = Agent::find(&config, args.agent.as_deref().or(work.agent()?.as_deref()))?;
    let sessions = sessions_of(ui, scene, &work.thread)?;
    let was_asked = sessions.iter().any(|session| session.entries.iter().any(leslie::asks));
    let prompts = match &args.prompts {
        given if !given.is_empty() => given.clone(),
        _ if was_asked => vec![GO_ON.to_owned()],
        _ => vec![work.thread.title.clone()],
    };
    let told = if was_asked { recall(&sessions) } else { String::new() };
    let earlier = work.thread.session_id.clone().map(|name| Earlier { name, told });
    let settings = config.run()?;
    let conversation = Conversation { scene, agent, work, manner: &args.manner, settings };
    conversation.hold(ui, prompts, earlier)
}

/// All that was said in a thread, session by session.
fn sessions_of(
    ui: &mut Ui,
    scene: &Scene,
    thread: &Thread,
) -> Result<Vec<Transcript>, CommandError> {
    let store = Store::new(scene);
    let ask = |index: &Index| {
        let mut own = Vec::new();
        index.each_session(None, None, &mut |Listed { session, .. }| {
            if session.thread.as_deref() == Some(thread.id.as_str()) {
                own.push((session.started.map(|at| at.instant()), session.agent, session.id));
            }
        })?;
        Ok(own)
    };
    let mut own = store.ask(ui, ask)?.1;
    own.sort();
    let mut dirs = Vec::new();
    for (_, agent, id) in own {
        dirs.push(store.vault.session(&agent.parse()?, &id));
    }
    if let Some(name) = &thread.session_id
        && let Some(last) = find_session(scene, &thread.id, name)?
        && !dirs.iter().any(|dir| dir.id() == last.id())
    {
        dirs.push(last);
    }
    dirs.iter().map(|dir| Ok(dir.read()?)).collect()
}

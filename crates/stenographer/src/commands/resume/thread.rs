//! Goes on with a thread: in the session that its agent had, or in a new one that is told what was said.

use steno_core::entry::{Kind, PRIMARY};
use steno_core::format::leslie;
use steno_core::vault::SessionDir;
use steno_core::{SessionId, Transcript};

use super::Args;
use crate::agents::Agent;
use crate::commands::run::conversation::{Conversation, Earlier};
use crate::commands::run::work::Work;
use crate::config::Config;
use crate::error::{CommandError, Exit};
use crate::scene::Scene;
use crate::store::Store;
use crate::threads::{Threads, told};
use crate::ui::Ui;

/// What an agent is told that has stopped.
const GO_ON: &str = "Go on where you stopped.";

/// Letters of an earlier conversation that are told to an agent that has forgotten it.
const TOLD: usize = 200_000;

/// Letters of one entry of it.
const ENTRY: usize = 4000;

/// Whether a thread of the project is meant, and no session.
pub(super) fn is_one(scene: &Scene, id: &str) -> Result<bool, CommandError> {
    let threads = Threads::near(scene);
    if !threads.store.exists() {
        return Ok(false);
    }
    let is_known = threads.store.relations().map_err(told)?.threads.contains_key(id);
    Ok(is_known || id.starts_with("thread-"))
}

/// Runs the thread's agent again.
pub(super) fn go_on(ui: &mut Ui, scene: &Scene, args: &Args) -> Result<Exit, CommandError> {
    let work = Work::resume(scene, &args.session)?;
    let earlier = match &work.thread.session_id {
        Some(name) => stored(scene, name)?.map(|dir| dir.read()).transpose()?,
        None => None,
    };
    let config = Config::load(scene)?;
    let agent = Agent::find(&config, args.agent.as_deref().or(work.agent()?.as_deref()))?;
    if let Some(torn) = earlier.clone().filter(|_| work.is_unsettled) {
        work.write_transcripts(torn, 1)?;
    }
    let prompts = match (&args.prompts, &earlier) {
        (given, _) if !given.is_empty() => given.clone(),
        (_, Some(_)) => vec![GO_ON.to_owned()],
        (_, None) => vec![work.thread.title.clone()],
    };
    let name = work.thread.session_id.clone();
    let earlier = name.zip(earlier).map(|(name, it)| Earlier { name, told: recalled(&it) });
    let limits = config.run()?.limits;
    let conversation = Conversation { scene, agent, work, manner: &args.manner, limits };
    conversation.hold(ui, prompts, earlier)
}

/// The kept session that has this name in the protocol.
fn stored(scene: &Scene, name: &str) -> Result<Option<SessionDir>, CommandError> {
    let sessions = Store::new(scene).vault.sessions()?;
    let is_it = |dir: &SessionDir| *dir.id() == SessionId::for_native(dir.agent(), name);
    Ok(sessions.into_iter().find(is_it))
}

/// What was said, for an agent that has forgotten it: the end of it, if it is long.
fn recalled(transcript: &Transcript) -> String {
    let mut parts = Vec::new();
    let mut letters = 0;
    let entries = transcript.entries.iter().rev().filter(|entry| entry.source == PRIMARY);
    let said = entries.filter(|entry| !matches!(entry.kind, Kind::Notice | Kind::Other));
    for entry in said {
        let input = entry.tool_input.as_ref().map(ToString::to_string).unwrap_or_default();
        let content = if entry.content.is_empty() { &input } else { &entry.content };
        let content = leslie::truncate(content, ENTRY);
        letters += content.len();
        if letters > TOLD {
            parts.push("(what was said before is left out)\n".to_owned());
            break;
        }
        parts.push(format!("{}:\n{}\n", entry.heading(), content.trim_end()));
    }
    parts.reverse();
    format!("<thread_conversation>\n{}</thread_conversation>\n\n", parts.join("\n"))
}

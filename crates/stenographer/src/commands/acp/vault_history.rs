//! The sessions of the store, for an editor that asks an agent without a history of its own.

use steno_acp::proxy::{HistorySession, LoadedSession, SessionHistory};
use steno_model::prompt::{CONTINUED_SESSION_TAG, continued_session_start};
use steno_store::index::{Index, ListedSession, SessionFilter};
use steno_store::transcript::ReadTranscript;

use crate::commands::resume::recall::recall_conversation;
use crate::process_environment::ProcessEnvironment;
use crate::session_store::SessionStore;

/// Maximum number of sessions in a list, the newest ones.
const MAX_SESSIONS: usize = 200;

/// The store of this process. What cannot be read is not offered.
pub(super) struct VaultHistory {
    env: ProcessEnvironment,
}

impl VaultHistory {
    pub(super) fn new(env: &ProcessEnvironment) -> Self {
        Self { env: env.clone() }
    }
}

impl SessionHistory for VaultHistory {
    fn list_sessions(&self, folder: Option<&str>) -> Vec<HistorySession> {
        let mut sessions = Vec::new();
        let Ok(index) = Index::open_read_only(&self.env.store) else { return sessions };
        let mut take = |ListedSession { session, .. }: ListedSession| {
            let project = session.project.unwrap_or_default();
            if project.is_empty() || folder.is_some_and(|folder| folder != project) {
                return;
            }
            if sessions.len() < MAX_SESSIONS {
                let updated_at =
                    session.ended.or(session.started).map(|at| at.instant().to_string());
                let (id, title) = (session.id.to_string(), session.title);
                sessions.push(HistorySession { id, folder: project, title, updated_at });
            }
        };
        // An index that cannot be read lists what was read before.
        let _ = index.each_session(&SessionFilter::default(), None, &mut take);
        sessions
    }

    fn load_session(&self, id: &str) -> Option<LoadedSession> {
        let session = SessionStore::new(&self.env).find_session(id).ok()?;
        let transcript = session.read_transcript().ok()?;
        let start = continued_session_start(session.agent(), session.id().as_str());
        let end = format!("</{CONTINUED_SESSION_TAG}>");
        let conversation = recall_conversation(std::slice::from_ref(&transcript));
        let conversation = conversation.replace(&end, &end.replace('<', "&lt;"));
        let context = format!(
            "{start}\nThis session continues. The conversation so far:\n{conversation}{end}\n\n"
        );
        Some(LoadedSession { transcript, context })
    }
}

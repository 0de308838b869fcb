//! Selects the session that `steno record`, `exec` and `gateway` record into: a new one, or one that the user names.

use steno_model::SessionId;
use steno_model::durable::FileError;
use steno_store::index::IndexError;
use steno_vault::{AgentName, SessionDir};

use crate::error::CommandError;
use crate::session_store::SessionStore;
use crate::ui::Ui;

/// The session that the command line requests.
pub(crate) struct RequestedSession<'a> {
    pub(crate) agent: Option<&'a AgentName>,
    pub(crate) session: Option<&'a SessionId>,
    /// Flag for the agent, used in a hint.
    pub(crate) agent_flag: &'static str,
    /// Agent of a new session, if none is given.
    pub(crate) default_agent: AgentName,
}

impl RequestedSession<'_> {
    /// Returns the folder of the session to begin or continue.
    pub(crate) fn open_dir(&self, store: &SessionStore) -> Result<SessionDir, CommandError> {
        let agent = self.agent.unwrap_or(&self.default_agent);
        let Some(id) = self.session else {
            return Ok(store.vault.session_dir(agent, &SessionId::new_unique(store.clock.now())));
        };
        let known = if id.as_str() == "latest" {
            Some(store.latest_session()?)
        } else {
            store.vault.list_sessions()?.into_iter().find(|session| session.id() == id)
        };
        let Some(known) = known else { return Ok(store.vault.session_dir(agent, id)) };
        if let Some(agent) = self.agent.filter(|agent| agent.as_str() != known.agent()) {
            let message =
                format!("session {id} belongs to agent {}, not {}", known.agent(), agent.as_str());
            let hint = format!("leave out {} to continue it", self.agent_flag);
            return Err(CommandError::user(message).hint(hint));
        }
        if known.is_imported()? {
            let id = known.id();
            let message =
                format!("session {id} was imported from files; nothing can be recorded into it");
            return Err(CommandError::user(message).hint("leave out --session to begin a new one"));
        }
        Ok(known)
    }

    /// Like [`Self::open_dir`], but a store that cannot be read does not prevent recording: returns the session with
    /// the requested id, or a new one with a warning.
    pub(crate) fn open_dir_or_new(
        &self,
        ui: &mut Ui,
        store: &SessionStore,
    ) -> Result<SessionDir, CommandError> {
        let error = match self.open_dir(store) {
            Err(error) if error.error.is::<FileError>() || error.error.is::<IndexError>() => error,
            result => return result,
        };
        let agent = self.agent.unwrap_or(&self.default_agent);
        match self.session.filter(|id| id.as_str() != "latest") {
            Some(id) => Ok(store.vault.session_dir(agent, id)),
            None => {
                ui.warning(format_args!("recording into a new session: {}", error.error));
                Ok(store.vault.session_dir(agent, &SessionId::new_unique(store.clock.now())))
            }
        }
    }
}

//! Decides whether a session is running now. Lists, the page and the browser ask here.
//!
//! A recording says when it has ended. The files of most agents do not, so a session without a recording is running
//! for some minutes after its last entry.

use jiff::{SignedDuration, Timestamp as Instant};

use crate::transcript::ReadTranscript;
use steno_model::{Session, SessionStatus, Timestamp};
use steno_vault::{SessionDir, Vault};

/// How long an agent may write nothing, as while it waits for a build, before its session counts as ended.
pub const ACTIVITY_PERIOD: SignedDuration = SignedDuration::from_mins(5);

/// Checks sessions at one time.
#[derive(Clone, Copy, Debug)]
pub struct StatusCheck<'a> {
    /// The vault of the sessions.
    pub vault: &'a Vault,
    /// The current time.
    pub now: Instant,
}

impl StatusCheck<'_> {
    /// A session of the index as it is now. A running recording is read again, because it may have ended.
    pub fn refresh_session(&self, session: Session) -> Session {
        if self.may_have_ended(&session) {
            let read = self.find_dir(&session).and_then(|dir| dir.read_transcript().ok());
            return read.map_or(session, |transcript| transcript.session);
        }
        let status = self.status_of(&session);
        Session { status, ..session }
    }

    /// Whether a session of the index is a running recording, which must be read again to know its status.
    pub fn may_have_ended(&self, session: &Session) -> bool {
        session.status == SessionStatus::Running
            && self
                .find_dir(session)
                .is_some_and(|dir| dir.is_imported().is_ok_and(|imported| !imported))
    }

    /// Whether a status of the index may differ from the present one.
    pub fn may_differ(&self, status: SessionStatus, ended: Option<Timestamp>) -> bool {
        status == SessionStatus::Running
            || status == SessionStatus::Completed && ended.is_some_and(|ended| self.is_now(ended))
    }

    fn is_now(&self, time: Timestamp) -> bool {
        self.now.duration_since(time.instant()).abs() < ACTIVITY_PERIOD
    }

    /// The status now of a session that was just read.
    pub fn status_of(&self, session: &Session) -> SessionStatus {
        let dir = self.is_recent(session).then(|| self.find_dir(session)).flatten();
        let is_running = dir.is_some_and(|dir| {
            let has_unstated_end =
                dir.is_imported().unwrap_or(false) && !dir.is_recorded().unwrap_or(true);
            has_unstated_end || dir.is_being_recorded().unwrap_or(false)
        });
        if is_running { SessionStatus::Running } else { session.status }
    }

    /// When a session stops to count as running if nothing is written; `None` if it does not depend on the time.
    /// A running recording has no end yet.
    pub fn status_expiry(session: &Session) -> Option<Instant> {
        let is_running = session.status == SessionStatus::Running;
        session.ended.filter(|_| is_running)?.instant().checked_add(ACTIVITY_PERIOD).ok()
    }

    /// Whether a session without a stated end was active just now.
    fn is_recent(&self, session: &Session) -> bool {
        let is_unstated =
            session.status == SessionStatus::Completed && session.stop_reason.is_none();
        is_unstated && session.ended.is_some_and(|ended| self.is_now(ended))
    }

    fn find_dir(&self, session: &Session) -> Option<SessionDir> {
        let dir = self.vault.session_dir(&session.agent.parse().ok()?, &session.id);
        Some(dir).filter(SessionDir::exists)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use steno_vault::SessionFile;

    /// An imported session whose last entry is from 10:00.
    fn imported(folder: &std::path::Path) -> (Vault, Session) {
        let vault = Vault::new(folder.join("vault"));
        let id: steno_model::SessionId = "one".parse().expect("the id is valid");
        let dir = vault.session_dir(&"codex".parse().expect("the name is valid"), &id);
        let path = folder.join("one.jsonl");
        std::fs::write(&path, "{}\n").expect("the folder can be written");
        dir.keep_file(&SessionFile::on_disk("main.jsonl", &path), &path).expect("it is kept");
        let mut session = Session::new(id, "codex");
        session.ended = "2026-01-05T10:00:00Z".parse().ok();
        (vault, session)
    }

    fn status_at(vault: &Vault, session: &Session, now: &str) -> SessionStatus {
        let now = now.parse().expect("the time is valid");
        StatusCheck { vault, now }.refresh_session(session.clone()).status
    }

    #[test]
    fn a_session_is_running_for_some_minutes_after_its_last_entry() {
        let folder = tempfile::tempdir().expect("a folder can be made");
        let (vault, session) = imported(folder.path());
        let statuses = ["2026-01-05T10:00:00Z", "2026-01-05T10:04:59Z", "2026-01-05T10:05:00Z"]
            .map(|now| status_at(&vault, &session, now));
        let (running, completed) = (SessionStatus::Running, SessionStatus::Completed);
        assert_eq!(statuses, [running, running, completed]);
        let shown = Session { status: running, ..session };
        assert_eq!(StatusCheck::status_expiry(&shown), "2026-01-05T10:05:00Z".parse().ok());
    }

    #[test]
    fn a_session_that_states_its_end_is_not_running() {
        let folder = tempfile::tempdir().expect("a folder can be made");
        let (vault, session) = imported(folder.path());
        let now = "2026-01-05T10:00:01Z";
        let stopped = Session { stop_reason: Some("routine".to_owned()), ..session.clone() };
        assert_eq!(status_at(&vault, &stopped, now), SessionStatus::Completed);
        let failed = Session { status: SessionStatus::Failed, ..session.clone() };
        assert_eq!(status_at(&vault, &failed, now), SessionStatus::Failed);
        let unknown = Session { agent: "pi".to_owned(), ..session };
        assert_eq!(status_at(&vault, &unknown, now), SessionStatus::Completed);
    }
}

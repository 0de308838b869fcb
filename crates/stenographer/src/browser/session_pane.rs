//! The list of sessions and its filter.

use steno_store::index::ListedSession;

use super::SessionName;
use super::list_selection::ListSelection;
use super::text_input::TextInput;

/// All sessions, newest first.
#[derive(Debug, Default)]
pub(crate) struct SessionPane {
    all: Vec<ListedSession>,
    /// Lower-case text that the filter searches, one per session.
    search_texts: Vec<String>,
    /// Indexes in `all` of the sessions that match the filter.
    matching: Vec<usize>,
    pub(crate) filter: TextInput,
    pub(crate) selection: ListSelection,
}

impl SessionPane {
    /// Replaces the list; the selected session stays selected.
    pub(crate) fn set_sessions(&mut self, all: Vec<ListedSession>) {
        let chosen = self.selected_session().map(SessionName::from_listed);
        self.search_texts = all.iter().map(search_text).collect();
        self.all = all;
        self.apply_filter();
        let position = |name: SessionName| {
            self.matching.iter().position(|at| SessionName::from_listed(&self.all[*at]) == name)
        };
        if let Some(at) = chosen.and_then(position) {
            self.selection.selected = at;
        }
    }

    /// Applies the filter to the list.
    pub(crate) fn apply_filter(&mut self) {
        let filter = self.filter.text().to_lowercase();
        let words: Vec<&str> = filter.split_whitespace().collect();
        let is_left = |at: &usize| words.iter().all(|word| self.search_texts[*at].contains(word));
        self.matching = (0..self.all.len()).filter(is_left).collect();
        self.selection = ListSelection::default();
    }

    /// Returns the number of matching sessions and of all sessions.
    pub(crate) fn counts(&self) -> (usize, usize) {
        (self.matching.len(), self.all.len())
    }

    pub(crate) fn selected_session(&self) -> Option<&ListedSession> {
        self.matching.get(self.selection.selected).map(|at| &self.all[*at])
    }

    /// Returns the visible sessions, each with whether it is selected.
    pub(crate) fn visible_sessions(
        &self,
        page: usize,
    ) -> impl Iterator<Item = (bool, &ListedSession)> {
        let indexes =
            self.matching.iter().enumerate().skip(self.selection.first_visible).take(page);
        indexes.map(|(at, position)| (at == self.selection.selected, &self.all[*position]))
    }
}

/// Returns the text that the filter searches for one session.
fn search_text(listed: &ListedSession) -> String {
    let session = &listed.session;
    let started = session.started.map(|at| at.wall().strftime("%Y-%m-%d").to_string());
    let mut words = vec![session.agent.as_str(), session.id.as_str(), session.status.as_str()];
    words.extend(session.title.as_deref());
    words.extend(session.project.as_deref());
    words.extend(session.branch.as_deref());
    words.extend(session.thread.as_deref());
    words.extend(started.as_deref());
    words.extend(session.models.iter().map(String::as_str));
    words.join(" ").to_lowercase()
}

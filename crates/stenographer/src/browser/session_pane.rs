//! The list of sessions, and which of them the filter leaves.

use steno_core::index::Listed;

use super::SessionName;
use super::list_selection::ListSelection;
use super::text_input::TextInput;

/// All sessions, newest first.
#[derive(Debug, Default)]
pub(crate) struct SessionPane {
    all: Vec<Listed>,
    /// What the filter looks at, in small letters, one for each session.
    search_texts: Vec<String>,
    /// Places in `all` of those that the filter leaves.
    matching: Vec<usize>,
    pub(crate) filter: TextInput,
    pub(crate) selection: ListSelection,
}

impl SessionPane {
    /// Takes a new list; the chosen session stays chosen.
    pub(crate) fn set_sessions(&mut self, all: Vec<Listed>) {
        let chosen = self.selected_session().map(SessionName::from_listed);
        self.search_texts = all.iter().map(search_text).collect();
        self.all = all;
        self.apply_filter();
        let place = |name: SessionName| {
            self.matching.iter().position(|at| SessionName::from_listed(&self.all[*at]) == name)
        };
        if let Some(at) = chosen.and_then(place) {
            self.selection.selected = at;
        }
    }

    /// Looks again at which sessions the filter leaves.
    pub(crate) fn apply_filter(&mut self) {
        let filter = self.filter.text().to_lowercase();
        let wanted: Vec<&str> = filter.split_whitespace().collect();
        let is_left = |at: &usize| wanted.iter().all(|word| self.search_texts[*at].contains(word));
        self.matching = (0..self.all.len()).filter(is_left).collect();
        self.selection = ListSelection::default();
    }

    /// How many there are, with and without the filter.
    pub(crate) fn counts(&self) -> (usize, usize) {
        (self.matching.len(), self.all.len())
    }

    pub(crate) fn selected_session(&self) -> Option<&Listed> {
        self.matching.get(self.selection.selected).map(|at| &self.all[*at])
    }

    /// Those on the page, each with whether it is chosen.
    pub(crate) fn visible_sessions(&self, page: usize) -> impl Iterator<Item = (bool, &Listed)> {
        let places = self.matching.iter().enumerate().skip(self.selection.first_visible).take(page);
        places.map(|(at, place)| (at == self.selection.selected, &self.all[*place]))
    }
}

/// Everything that a session may be known by.
fn search_text(listed: &Listed) -> String {
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

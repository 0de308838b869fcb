//! The list of sessions, and which of them the filter leaves.

use steno_core::index::Listed;

use super::Name;
use super::choice::Choice;
use super::line::Line;

/// All sessions, newest first.
#[derive(Debug, Default)]
pub(crate) struct Sessions {
    all: Vec<Listed>,
    /// What the filter looks at, in small letters, one for each session.
    words: Vec<String>,
    /// Places in `all` of those that the filter leaves.
    left: Vec<usize>,
    pub(crate) filter: Line,
    pub(crate) choice: Choice,
}

impl Sessions {
    /// Takes a new list; the chosen session stays chosen.
    pub(crate) fn set(&mut self, all: Vec<Listed>) {
        let chosen = self.chosen().map(Name::of);
        self.words = all.iter().map(words).collect();
        self.all = all;
        self.refilter();
        let place = |name: Name| self.left.iter().position(|at| Name::of(&self.all[*at]) == name);
        if let Some(at) = chosen.and_then(place) {
            self.choice.at = at;
        }
    }

    /// Looks again at which sessions the filter leaves.
    pub(crate) fn refilter(&mut self) {
        let filter = self.filter.text().to_lowercase();
        let wanted: Vec<&str> = filter.split_whitespace().collect();
        let is_left = |at: &usize| wanted.iter().all(|word| self.words[*at].contains(word));
        self.left = (0..self.all.len()).filter(is_left).collect();
        self.choice = Choice::default();
    }

    /// How many there are, with and without the filter.
    pub(crate) fn counts(&self) -> (usize, usize) {
        (self.left.len(), self.all.len())
    }

    pub(crate) fn chosen(&self) -> Option<&Listed> {
        self.left.get(self.choice.at).map(|at| &self.all[*at])
    }

    /// Those on the page, each with whether it is chosen.
    pub(crate) fn shown(&self, page: usize) -> impl Iterator<Item = (bool, &Listed)> {
        let places = self.left.iter().enumerate().skip(self.choice.top).take(page);
        places.map(|(at, place)| (at == self.choice.at, &self.all[*place]))
    }
}

/// Everything that a session may be known by.
fn words(listed: &Listed) -> String {
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

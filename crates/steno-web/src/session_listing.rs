//! The list of sessions with their costs, and the totals of some of them.

use std::collections::HashMap;
use std::time::SystemTime;

use steno_model::{Session, Usage};
use steno_store::amount::{format_cost, format_dollars};
use steno_store::cost::report::ChargeSum;
use steno_store::entry_filter::SelectedSessions;
use steno_store::index::{ListedSession, SharedEntries};

use crate::project_names::ProjectNames;

/// The state of the index: sizes and times of its files, and how many sessions this process has indexed. It changes
/// whenever the content does.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct IndexEdition {
    pub(crate) files: [Option<(u64, SystemTime)>; 2],
    pub(crate) indexed_sessions: usize,
    /// How often a session stopped to count as running because time passed.
    pub(crate) status_changes: usize,
}

/// All sessions, with their costs and failures.
pub(crate) struct SessionListing {
    /// The state of the index that they are from.
    pub(crate) edition: IndexEdition,
    pub(crate) sessions: Vec<ListedSession>,
    /// By agent and session id.
    pub(crate) costs: HashMap<(String, String), ChargeSum>,
    pub(crate) failures: HashMap<(String, String), u64>,
    /// How many entries each session has.
    pub(crate) entries: HashMap<(String, String), u64>,
    /// The entries that several sessions have.
    pub(crate) shared: SharedEntries,
    /// The short names of the projects.
    pub(crate) projects: ProjectNames,
}

/// The totals of some sessions, as `steno stats` and `steno cost` count them.
#[derive(Clone, Debug, Default)]
pub(crate) struct ListTotals {
    /// Sessions with entries.
    pub(crate) sessions: u64,
    pub(crate) empty_sessions: u64,
    /// Entries without copies.
    pub(crate) entries: u64,
    /// Entries that a session has from another one of them.
    pub(crate) copies: u64,
    pub(crate) usage: Usage,
    /// The known part of the cost, in dollars.
    pub(crate) cost: f64,
    pub(crate) has_unknown_cost: bool,
}

impl SessionListing {
    /// The known part of a session's cost, in dollars; `None` if none of it is known.
    pub(crate) fn known_cost(&self, session: &Session) -> Option<f64> {
        let key = (session.agent.clone(), session.id.to_string());
        let reported = || session.totals.cost.filter(|_| !Self::is_unpriced(session));
        self.costs.get(&key).map_or_else(reported, ChargeSum::cost)
    }

    /// A session's cost as text: `?` if it is unknown, empty if the session used no model.
    pub(crate) fn cost_text(&self, session: &Session) -> String {
        let key = (session.agent.clone(), session.id.to_string());
        let reported = || match Self::is_unpriced(session) {
            true => "?".to_owned(),
            false => session.totals.cost.map(format_dollars).unwrap_or_default(),
        };
        self.costs.get(&key).map_or_else(reported, format_cost)
    }

    /// Whether an agent reported tokens and no cost: without a price, it writes that they cost nothing.
    fn is_unpriced(session: &Session) -> bool {
        !session.totals.usage.is_empty() && session.totals.cost.unwrap_or(0.0) == 0.0
    }

    /// The totals of some sessions. A message or entry that several of them have counts once.
    pub(crate) fn sum_sessions<'a>(
        &self,
        sessions: impl Iterator<Item = &'a Session>,
    ) -> ListTotals {
        let mut totals = ListTotals::default();
        let mut selected = SelectedSessions::default();
        for Session { agent, id, totals: own, .. } in sessions {
            selected.insert(agent, id.as_str());
            totals.entries += own.entries;
            *(if own.entries > 0 { &mut totals.sessions } else { &mut totals.empty_sessions }) += 1;
            if let Some(sum) = self.costs.get(&(agent.clone(), id.to_string())) {
                totals.usage.add(&sum.tokens());
                totals.cost += sum.cost().unwrap_or(0.0);
                totals.has_unknown_cost |= !sum.unpriced.is_empty();
            }
        }
        totals.copies = self.shared.count_copies(|agent, id| selected.contains(agent, id));
        totals.entries = totals.entries.saturating_sub(totals.copies);
        totals
    }
}

//! The filters of the session list, and how many sessions each of their values would leave.

use std::collections::HashMap;

use jiff::civil::Date;
use serde::Deserialize;
use steno_model::moment::{self, DayEdge, LocalNow};
use steno_model::{Session, Timestamp};
use steno_store::index::ListedSession;

use crate::error::WebError;
use crate::filter_query::encode_query_text;
use crate::list_order::{SessionOrder, last_active};
use crate::session_listing::SessionListing;
use crate::session_person::session_person;

/// How many values of a facet are offered.
const MAX_FACET_VALUES: usize = 8;

/// The filters in a query; an empty field is no filter.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct ListFilter {
    /// Words that the title, agent, project, branch, model or id must contain.
    pub(crate) filter: String,
    pub(crate) agent: String,
    pub(crate) project: String,
    pub(crate) model: String,
    pub(crate) branch: String,
    pub(crate) status: String,
    /// The owner, on the page of a team.
    pub(crate) person: String,
    /// `true` for sessions with errors only.
    pub(crate) errors: String,
    pub(crate) since: String,
    pub(crate) until: String,
    /// The order, see [`SessionOrder`].
    pub(crate) sort: String,
    /// How many sessions to list.
    pub(crate) limit: Option<usize>,
}

/// A property that sessions can be filtered by.
pub(crate) struct ListFacet {
    /// The heading.
    pub(crate) title: &'static str,
    /// The query parameter.
    pub(crate) name: &'static str,
    values: fn(&Session) -> Vec<&str>,
}

/// The facets, in display order.
pub(crate) const LIST_FACETS: [ListFacet; 6] = [
    ListFacet {
        title: "Person",
        name: "person",
        values: |session| session_person(session).into_iter().collect(),
    },
    ListFacet { title: "Agent", name: "agent", values: |session| vec![&session.agent] },
    ListFacet {
        title: "Project",
        name: "project",
        values: |session| session.project.as_deref().into_iter().collect(),
    },
    ListFacet {
        title: "Model",
        name: "model",
        values: |session| session.models.iter().map(String::as_str).collect(),
    },
    ListFacet {
        title: "Branch",
        name: "branch",
        // A branch without a name is a detached head.
        values: |session| {
            session.branch.as_deref().into_iter().filter(|name| !name.is_empty()).collect()
        },
    },
    ListFacet { title: "Status", name: "status", values: |session| vec![session.status.as_str()] },
];

/// A value of a facet, and how many sessions have it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) struct FacetValue<'a> {
    pub(crate) value: &'a str,
    pub(crate) sessions: usize,
}

/// A filter that is ready to be applied.
pub(crate) struct ListMatcher<'a> {
    /// The chosen value of each facet.
    chosen: [&'a str; LIST_FACETS.len()],
    words: Vec<String>,
    since: Option<Timestamp>,
    until: Option<Timestamp>,
    needs_errors: bool,
    /// How many errors each session has, by agent and id; `None` if sessions are not filtered by them.
    failures: Option<&'a HashMap<(String, String), u64>>,
}

/// Which condition a matcher leaves out, to count what another value of it would leave.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum IgnoredCondition {
    Nothing,
    Dates,
    Errors,
    Facet(&'static str),
}

impl ListFilter {
    /// Parses the filter. Fails on a date that cannot be parsed.
    pub(crate) fn to_matcher(&self, now: &LocalNow<'_>) -> Result<ListMatcher<'_>, WebError> {
        let at = |text: &str, edge| {
            let text = Some(text.trim()).filter(|text| !text.is_empty());
            text.map(|text| moment::parse_moment(text, edge, now)).transpose()
        };
        Ok(ListMatcher {
            chosen: std::array::from_fn(|at| self.value(LIST_FACETS[at].name)),
            words: self.filter.split_whitespace().map(str::to_lowercase).collect(),
            since: at(&self.since, DayEdge::Begin)?,
            until: at(&self.until, DayEdge::End)?,
            needs_errors: !self.errors.is_empty(),
            failures: None,
        })
    }

    /// Whether no condition is set.
    pub(crate) fn is_empty(&self) -> bool {
        self.fields().iter().all(|(_, value)| value.trim().is_empty())
    }

    /// The value of a facet.
    pub(crate) fn value(&self, name: &str) -> &str {
        self.fields().into_iter().find(|(known, _)| *known == name).map_or("", |(_, value)| value)
    }

    /// The order of the list.
    pub(crate) fn order(&self) -> SessionOrder {
        SessionOrder::parse(&self.sort)
    }

    /// The address of the list with some conditions or the order changed.
    pub(crate) fn address_with(&self, changes: &[(&str, &str)]) -> String {
        let change = |name: &str| changes.iter().find(|(changed, _)| *changed == name);
        let order = self.order().to_parameter();
        let pairs =
            self.fields().into_iter().chain([("sort", order.as_str())]).map(|(name, value)| {
                change(name).map_or((name, value), |(_, value)| (name, *value))
            });
        let pairs = pairs.filter(|(_, value)| !value.is_empty());
        let query: Vec<_> =
            pairs.map(|(name, value)| format!("{name}={}", encode_query_text(value))).collect();
        if query.is_empty() { "/".to_owned() } else { format!("/?{}", query.join("&")) }
    }

    /// The conditions, by their query parameters.
    pub(crate) fn fields(&self) -> [(&'static str, &str); 10] {
        [
            ("filter", &self.filter),
            ("agent", &self.agent),
            ("project", &self.project),
            ("model", &self.model),
            ("branch", &self.branch),
            ("status", &self.status),
            ("person", &self.person),
            ("errors", &self.errors),
            ("since", &self.since),
            ("until", &self.until),
        ]
    }
}

impl<'a> ListMatcher<'a> {
    /// A matcher that knows how many errors each session has.
    pub(crate) fn with_failures(self, failures: &'a HashMap<(String, String), u64>) -> Self {
        Self { failures: Some(failures), ..self }
    }

    /// Whether a session has errors.
    pub(crate) fn has_errors(&self, session: &Session) -> bool {
        let key = || (session.agent.clone(), session.id.to_string());
        self.failures.is_some_and(|failures| failures.contains_key(&key()))
    }

    /// Whether a session fulfils all conditions but the ignored one.
    pub(crate) fn matches(&self, session: &Session, ignored: IgnoredCondition) -> bool {
        let has_facets = LIST_FACETS.iter().zip(self.chosen).all(|(facet, wanted)| {
            wanted.is_empty()
                || ignored == IgnoredCondition::Facet(facet.name)
                || (facet.values)(session).contains(&wanted)
        });
        has_facets
            && (ignored == IgnoredCondition::Dates || self.is_in_range(session))
            && self.has_words(session)
            && (ignored == IgnoredCondition::Errors
                || !self.needs_errors
                || self.has_errors(session))
    }

    /// The sessions that fulfil all conditions, in an order.
    pub(crate) fn sorted_sessions<'s>(
        &self,
        listing: &'s SessionListing,
        order: SessionOrder,
    ) -> Vec<&'s ListedSession> {
        let mut matching: Vec<&ListedSession> = listing
            .sessions
            .iter()
            .filter(|one| self.matches(&one.session, IgnoredCondition::Nothing))
            .collect();
        order.sort(&mut matching, listing);
        matching
    }

    /// Whether the session was last active between the dates.
    fn is_in_range(&self, session: &Session) -> bool {
        let last = last_active(session);
        self.since.is_none_or(|since| last.is_some_and(|last| last >= since.instant()))
            && self.until.is_none_or(|until| last.is_some_and(|last| last < until.instant()))
    }

    fn has_words(&self, session: &Session) -> bool {
        if self.words.is_empty() {
            return true;
        }
        let texts = [
            session.title.as_deref(),
            Some(session.agent.as_str()),
            session.project.as_deref(),
            session.branch.as_deref(),
            Some(session.id.as_str()),
            session_person(session),
        ];
        let texts = texts.into_iter().flatten().chain(session.models.iter().map(String::as_str));
        let all = texts.collect::<Vec<_>>().join("\n").to_lowercase();
        self.words.iter().all(|word| all.contains(word))
    }

    /// The most frequent values of a facet among the sessions that fulfil the other conditions.
    pub(crate) fn count_facet<'s>(
        &self,
        facet: &ListFacet,
        sessions: impl Iterator<Item = &'s Session>,
    ) -> Vec<FacetValue<'s>> {
        let mut counts: HashMap<&str, usize> = HashMap::new();
        for session in sessions.filter(|one| self.matches(one, IgnoredCondition::Facet(facet.name)))
        {
            (facet.values)(session)
                .into_iter()
                .for_each(|value| *counts.entry(value).or_default() += 1);
        }
        let mut all: Vec<_> =
            counts.into_iter().map(|(value, sessions)| FacetValue { value, sessions }).collect();
        let known = LIST_FACETS.iter().position(|other| other.name == facet.name);
        let chosen = known.map_or("", |at| self.chosen[at]);
        all.sort_by_key(|one| (one.value != chosen, std::cmp::Reverse(one.sessions), one.value));
        all.truncate(MAX_FACET_VALUES);
        all
    }
}

impl ListMatcher<'_> {
    /// How many of some sessions were last active in a period.
    pub(crate) fn count_in_period<'s>(
        period: &ListFilter,
        sessions: impl Iterator<Item = &'s Session>,
        now: &LocalNow<'_>,
    ) -> Result<usize, WebError> {
        let matcher = period.to_matcher(now)?;
        Ok(sessions.filter(|session| matcher.is_in_range(session)).count())
    }
}

/// The date ranges that the list offers: name, first day and last day.
pub(crate) fn date_ranges(today: Date) -> [(&'static str, Date, Date); 4] {
    let before = |days: i32| today.saturating_sub(jiff::Span::new().days(days));
    [
        ("Today", today, today),
        ("Yesterday", before(1), before(1)),
        ("Last 7 days", before(6), today),
        ("Last 30 days", before(29), today),
    ]
}

#[cfg(test)]
mod tests {
    use jiff::tz::TimeZone;
    use steno_model::SessionId;

    use super::*;

    fn session(agent: &str, branch: Option<&str>, day: &str) -> Session {
        let id = format!("{agent}-{day}").parse::<SessionId>().expect("the id is valid");
        let mut session = Session::new(id, agent);
        session.branch = branch.map(str::to_owned);
        session.title = Some("Fix the harbour light".to_owned());
        session.started = format!("{day}T09:00:00Z").parse().ok();
        session.ended = format!("{day}T10:00:00Z").parse().ok();
        session
    }

    fn count_matching(filter: &ListFilter, sessions: &[Session]) -> usize {
        let now = "2026-01-10T12:00:00Z".parse().expect("the time is valid");
        let now = LocalNow { now, zone: &TimeZone::UTC };
        let matcher = filter.to_matcher(&now).expect("the filter is valid");
        sessions.iter().filter(|one| matcher.matches(one, IgnoredCondition::Nothing)).count()
    }

    #[test]
    fn conditions_are_combined() {
        let all = [
            session("codex", Some("main"), "2026-01-05"),
            session("codex", None, "2026-01-06"),
            session("pi", Some("main"), "2026-01-07"),
        ];
        let filter = |change: fn(&mut ListFilter)| {
            let mut filter = ListFilter::default();
            change(&mut filter);
            count_matching(&filter, &all)
        };
        assert_eq!(filter(|_| {}), 3);
        assert_eq!(filter(|filter| filter.agent = "codex".to_owned()), 2);
        assert_eq!(filter(|filter| filter.branch = "main".to_owned()), 2);
        assert_eq!(filter(|filter| filter.filter = "HARBOUR pi".to_owned()), 1);
        assert_eq!(filter(|filter| filter.since = "2026-01-06".to_owned()), 2);
        assert_eq!(filter(|filter| filter.until = "2026-01-06".to_owned()), 2);
        assert_eq!(filter(|filter| filter.status = "failed".to_owned()), 0);
    }

    #[test]
    fn a_facet_counts_what_its_values_would_leave() {
        let all = [
            session("codex", Some("main"), "2026-01-05"),
            session("codex", None, "2026-01-06"),
            session("pi", Some("main"), "2026-01-07"),
        ];
        let filter = ListFilter {
            agent: "pi".to_owned(),
            branch: "main".to_owned(),
            ..ListFilter::default()
        };
        let now = LocalNow {
            now: "2026-01-10T12:00:00Z".parse().expect("the time is valid"),
            zone: &TimeZone::UTC,
        };
        let matcher = filter.to_matcher(&now).expect("the filter is valid");
        let facet = LIST_FACETS.iter().find(|facet| facet.name == "agent");
        let agents = matcher.count_facet(facet.expect("a facet of agents"), all.iter());
        let agents: Vec<_> = agents.iter().map(|one| (one.value, one.sessions)).collect();
        assert_eq!(agents, [("pi", 1), ("codex", 1)]);
    }

    #[test]
    fn a_branch_without_a_name_is_no_value_of_the_facet() {
        let all =
            [session("pi", Some(""), "2026-01-05"), session("pi", Some("main"), "2026-01-06")];
        let facet = LIST_FACETS.iter().find(|facet| facet.name == "branch");
        let filter = ListFilter::default();
        let now = LocalNow {
            now: "2026-01-10T12:00:00Z".parse().expect("the time is valid"),
            zone: &TimeZone::UTC,
        };
        let matcher = filter.to_matcher(&now).expect("the filter is valid");
        let counted = matcher.count_facet(facet.expect("the facet is known"), all.iter());
        assert_eq!(counted, [FacetValue { value: "main", sessions: 1 }]);
    }

    #[test]
    fn a_session_belongs_to_the_day_of_its_last_activity() {
        let mut long = session("codex", None, "2026-01-05");
        long.ended = "2026-01-07T10:00:00Z".parse().ok();
        let on = |day: &str| ListFilter {
            since: day.to_owned(),
            until: day.to_owned(),
            ..ListFilter::default()
        };
        let days = ["2026-01-05", "2026-01-06", "2026-01-07"];
        let counts = days.map(|day| count_matching(&on(day), std::slice::from_ref(&long)));
        assert_eq!(counts, [0, 0, 1]);
    }

    #[test]
    fn sessions_with_errors_are_found() {
        let all = [session("codex", None, "2026-01-05"), session("pi", None, "2026-01-06")];
        let failures = HashMap::from([(("pi".to_owned(), "pi-2026-01-06".to_owned()), 3)]);
        let filter = ListFilter { errors: "true".to_owned(), ..ListFilter::default() };
        let now = LocalNow {
            now: "2026-01-10T12:00:00Z".parse().expect("the time is valid"),
            zone: &TimeZone::UTC,
        };
        let matcher =
            filter.to_matcher(&now).expect("the filter is valid").with_failures(&failures);
        let count = |ignored| all.iter().filter(|one| matcher.matches(one, ignored)).count();
        assert_eq!(count(IgnoredCondition::Nothing), 1);
        assert_eq!(count(IgnoredCondition::Errors), 2);
    }

    #[test]
    fn an_address_contains_only_what_is_set() {
        let filter = ListFilter { agent: "a b".to_owned(), ..ListFilter::default() };
        assert_eq!(filter.address_with(&[("branch", "x&y")]), "/?agent=a%20b&branch=x%26y");
        assert_eq!(filter.address_with(&[("agent", "")]), "/");
    }

    #[test]
    fn a_bad_date_is_an_error() {
        let filter = ListFilter { since: "someday".to_owned(), ..ListFilter::default() };
        let now = LocalNow {
            now: "2026-01-10T12:00:00Z".parse().expect("the time is valid"),
            zone: &TimeZone::UTC,
        };
        assert!(filter.to_matcher(&now).is_err());
    }
}

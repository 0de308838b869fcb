//! The filters of the session list, and how many sessions each of their values would leave.

use std::collections::HashMap;

use jiff::civil::Date;
use serde::Deserialize;
use steno_model::moment::{self, DayEdge, LocalNow};
use steno_model::{Session, Timestamp};

use crate::error::WebError;
use crate::filter_query::encode_query_text;

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
    pub(crate) since: String,
    pub(crate) until: String,
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
pub(crate) const LIST_FACETS: [ListFacet; 5] = [
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
        values: |session| session.branch.as_deref().into_iter().collect(),
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
}

/// Which condition a matcher leaves out, to count what another value of it would leave.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(crate) enum IgnoredCondition {
    Nothing,
    Dates,
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

    /// The address of the list with some conditions changed.
    pub(crate) fn address_with(&self, changes: &[(&str, &str)]) -> String {
        let change = |name: &str| changes.iter().find(|(changed, _)| *changed == name);
        let pairs = self
            .fields()
            .into_iter()
            .map(|(name, value)| change(name).map_or((name, value), |(_, value)| (name, *value)));
        let pairs = pairs.filter(|(_, value)| !value.is_empty());
        let query: Vec<_> =
            pairs.map(|(name, value)| format!("{name}={}", encode_query_text(value))).collect();
        if query.is_empty() { "/".to_owned() } else { format!("/?{}", query.join("&")) }
    }

    /// The conditions, by their query parameters.
    pub(crate) fn fields(&self) -> [(&'static str, &str); 8] {
        [
            ("filter", &self.filter),
            ("agent", &self.agent),
            ("project", &self.project),
            ("model", &self.model),
            ("branch", &self.branch),
            ("status", &self.status),
            ("since", &self.since),
            ("until", &self.until),
        ]
    }
}

impl ListMatcher<'_> {
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
    }

    /// Whether a part of the session lies between the dates.
    fn is_in_range(&self, session: &Session) -> bool {
        let last = session.ended.or(session.started).map(|at| at.instant());
        let first = session.started.or(session.ended).map(|at| at.instant());
        self.since.is_none_or(|since| last.is_some_and(|last| last >= since.instant()))
            && self.until.is_none_or(|until| first.is_some_and(|first| first < until.instant()))
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
    /// How many of some sessions have a part in a period.
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
        let agents = matcher.count_facet(&LIST_FACETS[0], all.iter());
        let agents: Vec<_> = agents.iter().map(|one| (one.value, one.sessions)).collect();
        assert_eq!(agents, [("pi", 1), ("codex", 1)]);
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

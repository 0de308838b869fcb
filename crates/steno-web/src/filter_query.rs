//! The query parameters that search and cost share. They have the names of the commands' flags.

use jiff::ToSpan;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use serde::Deserialize;
use steno_model::moment::{self, DayEdge, LocalNow};
use steno_store::index::{
    CountedSearch, EntryFilter, SearchHit, SearchOrder, SearchQuery, SearchRequest,
};

pub(crate) use crate::addresses::encode_query_text;
use crate::error::WebError;
use crate::library::SessionLibrary;

/// The value of `period` for all days.
pub(crate) const ALL_DAYS: &str = "all";

/// How many days a report shows unless a period is chosen.
pub(crate) const DEFAULT_DAYS: i32 = 30;

/// The filters in a query; an empty field is no filter.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct FilterQuery {
    pub(crate) q: String,
    pub(crate) agent: String,
    pub(crate) project: String,
    pub(crate) model: String,
    pub(crate) role: String,
    pub(crate) tool: String,
    pub(crate) thread: String,
    pub(crate) person: String,
    pub(crate) since: String,
    pub(crate) until: String,
    pub(crate) errors: bool,
    pub(crate) sort: String,
    pub(crate) by: String,
    /// What the bars of the cost chart are divided by: `project`, `model` or `agent`.
    pub(crate) stack: String,
    /// `entries` for counts of words per 1,000 entries.
    pub(crate) per: String,
    /// How many rows a list leaves out at its begin.
    pub(crate) skip: Option<usize>,
    /// `all` for a report without a period; otherwise a report has a default one.
    pub(crate) period: String,
    pub(crate) limit: Option<usize>,
}

impl FilterQuery {
    /// Parses the fields into an index filter.
    pub(crate) fn to_filter(
        &self,
        library: &SessionLibrary,
        zone: &TimeZone,
    ) -> Result<EntryFilter, WebError> {
        let set = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
        let here = LocalNow { now: library.clock.now(), zone };
        let at = |text: &str, edge| {
            set(text).map(|text| moment::parse_moment(&text, edge, &here)).transpose()
        };
        Ok(EntryFilter {
            agent: set(&self.agent),
            project: set(self.project.trim_end_matches('/')),
            role: set(&self.role.to_lowercase()),
            tool: set(&self.tool),
            model: set(&self.model),
            thread: set(&self.thread),
            since: at(&self.since, DayEdge::Begin)?,
            until: at(&self.until, DayEdge::End)?,
            only_errors: self.errors,
            only: library.select_sessions(set(&self.person).as_deref()),
            ..EntryFilter::default()
        })
    }

    /// Searches the index; returns the parsed query and at most `limit` hits.
    pub(crate) fn search(
        &self,
        library: &SessionLibrary,
        zone: &TimeZone,
        limit: usize,
    ) -> Result<(SearchQuery, Vec<SearchHit>), WebError> {
        let query = SearchQuery::parse(&self.q)?;
        let search = self.search_request(library, zone, &query)?;
        let search = SearchRequest { limit, ..search };
        let hits = library.query_index(|index| index.search(&search))?;
        Ok((query, hits))
    }

    /// Searches the index; returns the parsed query, hits of at most `limit` sessions, and counts of all entries that
    /// match.
    pub(crate) fn search_and_count(
        &self,
        library: &SessionLibrary,
        zone: &TimeZone,
        limit: usize,
    ) -> Result<(SearchQuery, CountedSearch), WebError> {
        let query = SearchQuery::parse(&self.q)?;
        let search = self.search_request(library, zone, &query)?;
        let search = SearchRequest { limit, ..search };
        let found = library.query_index(|index| index.search_and_count(&search))?;
        Ok((query, found))
    }

    /// The request for the entries that match a query.
    pub(crate) fn search_request<'a>(
        &self,
        library: &SessionLibrary,
        zone: &TimeZone,
        query: &'a SearchQuery,
    ) -> Result<SearchRequest<'a>, WebError> {
        Ok(SearchRequest {
            query,
            filter: self.to_filter(library, zone)?,
            order: if self.sort == "time" { SearchOrder::Time } else { SearchOrder::Relevance },
            limit: 0,
            now: library.clock.now(),
        })
    }

    /// These filters with the last days as their period, unless they have one or are to have none.
    pub(crate) fn with_default_period(mut self, days: i32, today: Date) -> Self {
        if self.since.is_empty() && self.until.is_empty() && self.period != ALL_DAYS {
            self.since = today.saturating_sub((days - 1).days()).to_string();
        }
        self
    }

    /// The address of `page` with these filters.
    pub(crate) fn address_of(&self, page: &str) -> String {
        self.address_with(page, "", "")
    }

    /// The address of `page` with these filters, one of them changed.
    pub(crate) fn address_with(&self, page: &str, name: &str, value: &str) -> String {
        let all = [
            ("q", self.q.as_str()),
            ("agent", &self.agent),
            ("project", &self.project),
            ("model", &self.model),
            ("role", &self.role),
            ("tool", &self.tool),
            ("thread", &self.thread),
            ("person", &self.person),
            ("since", &self.since),
            ("until", &self.until),
            ("errors", if self.errors { "true" } else { "" }),
            ("sort", &self.sort),
            ("by", &self.by),
            ("stack", &self.stack),
            ("per", &self.per),
            ("period", &self.period),
        ];
        let pairs = all.map(|(known, text)| (known, if known == name { value } else { text }));
        let pairs = pairs.into_iter().filter(|(_, text)| !text.is_empty());
        let query: Vec<_> =
            pairs.map(|(name, text)| format!("{name}={}", encode_query_text(text))).collect();
        format!("{page}?{}", query.join("&"))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_report_has_a_default_period() {
        let since = |filters: FilterQuery| {
            filters.with_default_period(30, jiff::civil::date(2026, 1, 30)).since
        };
        assert_eq!(since(FilterQuery::default()), "2026-01-01");
        let period = ALL_DAYS.to_owned();
        assert_eq!(since(FilterQuery { period, ..FilterQuery::default() }), "");
        let until = "2026-01-05".to_owned();
        assert_eq!(since(FilterQuery { until, ..FilterQuery::default() }), "");
    }

    #[test]
    fn an_address_keeps_the_other_filters() {
        let filters = FilterQuery {
            q: "a b&c".to_owned(),
            role: "user".to_owned(),
            ..FilterQuery::default()
        };
        assert_eq!(
            filters.address_with("/search", "agent", "x"),
            "/search?q=a%20b%26c&agent=x&role=user"
        );
        assert_eq!(filters.address_with("/search", "role", ""), "/search?q=a%20b%26c");
    }
}

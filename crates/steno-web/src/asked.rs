//! What an address asks for: the filters that searching and counting share, by the names of the commands' flags.

use serde::Deserialize;
use steno_core::index::{Filter, Hit, Order, Query, Search};
use steno_core::moment::{self, Edge, Here};

use crate::error::WebError;
use crate::library::Library;

/// The filters of an address; one that is empty is none.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub(crate) struct Asked {
    pub(crate) q: String,
    pub(crate) agent: String,
    pub(crate) project: String,
    pub(crate) model: String,
    pub(crate) role: String,
    pub(crate) tool: String,
    pub(crate) thread: String,
    pub(crate) since: String,
    pub(crate) until: String,
    pub(crate) errors: bool,
    pub(crate) sort: String,
    pub(crate) by: String,
    pub(crate) limit: Option<usize>,
}

impl Asked {
    /// The filter that is meant.
    pub(crate) fn filter(&self, library: &Library) -> Result<Filter, WebError> {
        let set = |text: &str| Some(text.to_owned()).filter(|text| !text.is_empty());
        let here = Here { now: library.clock.now(), zone: &library.zone };
        let at =
            |text: &str, edge| set(text).map(|text| moment::parse(&text, edge, &here)).transpose();
        Ok(Filter {
            agent: set(&self.agent),
            project: set(self.project.trim_end_matches('/')),
            role: set(&self.role.to_lowercase()),
            tool: set(&self.tool),
            model: set(&self.model),
            thread: set(&self.thread),
            since: at(&self.since, Edge::Begin)?,
            until: at(&self.until, Edge::End)?,
            errors: self.errors,
            session: None,
        })
    }

    /// The question and what it finds, at most so many.
    pub(crate) fn hits(
        &self,
        library: &Library,
        limit: usize,
    ) -> Result<(Query, Vec<Hit>), WebError> {
        let query = Query::parse(&self.q)?;
        let search = Search {
            query: &query,
            filter: self.filter(library)?,
            order: if self.sort == "time" { Order::Time } else { Order::Relevance },
            limit,
            now: library.clock.now(),
        };
        let hits = library.ask(|index| index.search(&search))?;
        Ok((query, hits))
    }

    /// The address of `page` with one of the filters set to another value.
    pub(crate) fn with(&self, page: &str, name: &str, value: &str) -> String {
        let all = [
            ("q", self.q.as_str()),
            ("agent", &self.agent),
            ("project", &self.project),
            ("model", &self.model),
            ("role", &self.role),
            ("tool", &self.tool),
            ("thread", &self.thread),
            ("since", &self.since),
            ("until", &self.until),
            ("errors", if self.errors { "true" } else { "" }),
            ("sort", &self.sort),
            ("by", &self.by),
        ];
        let pairs = all.map(|(known, text)| (known, if known == name { value } else { text }));
        let pairs = pairs.into_iter().filter(|(_, text)| !text.is_empty());
        let query: Vec<_> = pairs.map(|(name, text)| format!("{name}={}", encoded(text))).collect();
        format!("{page}?{}", query.join("&"))
    }
}

/// A text as it stands in an address.
pub(crate) fn encoded(text: &str) -> String {
    let plain = |byte: &u8| byte.is_ascii_alphanumeric() || b"-._~".contains(byte);
    let code = |byte: u8| match plain(&byte) {
        true => char::from(byte).to_string(),
        false => format!("%{byte:02X}"),
    };
    text.bytes().map(code).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_address_keeps_what_else_was_asked() {
        let asked = Asked { q: "a b&c".to_owned(), role: "user".to_owned(), ..Asked::default() };
        assert_eq!(asked.with("/search", "agent", "x"), "/search?q=a%20b%26c&agent=x&role=user");
        assert_eq!(asked.with("/search", "role", ""), "/search?q=a%20b%26c");
    }
}

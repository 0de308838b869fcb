//! A query as terms, for a database that has the folded words of texts but no FTS5.

use super::query::SearchQuery;

/// A word or phrase of a query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WordTerm {
    /// Where it must be found.
    pub column: WordColumn,
    /// The words, before they are split and folded ([`super::word_tokens::WordTokenizer`]).
    pub text: String,
    /// Whether the last word is a prefix.
    pub is_prefix: bool,
}

/// Where a term is searched.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WordColumn {
    /// In the text or in the parts of its words.
    Any,
    /// In the text.
    Text,
    /// In the parts of words such as `parseLine`.
    Parts,
}

impl SearchQuery {
    /// Groups of terms. One term of each group must match.
    pub fn word_groups(&self) -> Vec<Vec<WordTerm>> {
        let terms = |group: &Vec<String>| group.iter().flat_map(|word| parse_terms(word)).collect();
        self.groups.iter().map(terms).collect()
    }

    /// Terms of which none may match.
    pub fn excluded_terms(&self) -> Vec<WordTerm> {
        self.excluded.iter().flat_map(|word| parse_terms(word)).collect()
    }

    /// Whether a text matches the regular expression, if the query has one.
    pub fn matches_regex(&self, text: &str) -> bool {
        self.regex.as_ref().is_none_or(|regex| regex.is_match(text))
    }
}

/// Parses an expression for one word: `"word"*`, `{text} : "a phrase"`, or alternatives between parentheses.
fn parse_terms(expression: &str) -> Vec<WordTerm> {
    let mut terms = Vec::new();
    let mut rest = expression;
    while let Some(start) = rest.find('"') {
        let column = match &rest[..start] {
            before if before.ends_with("{text} : ") => WordColumn::Text,
            before if before.ends_with("{parts} : ") => WordColumn::Parts,
            _ => WordColumn::Any,
        };
        let body = &rest[start + 1..];
        let Some(end) = body.find('"') else { break };
        rest = &body[end + 1..];
        let is_prefix = rest.starts_with('*');
        terms.push(WordTerm { column, text: body[..end].to_owned(), is_prefix });
    }
    terms
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_query_becomes_terms() {
        let query = SearchQuery::parse("parseLine snake_case pre* OR \"a b\" -not").unwrap();
        let term =
            |column, text: &str, is_prefix| WordTerm { column, text: text.to_owned(), is_prefix };
        use WordColumn::{Any, Parts, Text};
        assert_eq!(
            query.word_groups(),
            [
                vec![term(Any, "parseLine", false), term(Parts, "parse Line", false)],
                vec![term(Text, "snake_case", false)],
                vec![term(Any, "pre", true), term(Text, "a b", false)],
            ]
        );
        assert_eq!(query.excluded_terms(), [term(Any, "not", false)]);
    }
}

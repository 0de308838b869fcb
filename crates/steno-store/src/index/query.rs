//! Parses search queries: `words "a phrase" -not prefix* this OR that /regex/`.

use regex::{Regex, RegexBuilder};

use super::text_folding::{fold_query, is_cjk};

/// A parsed query.
#[derive(Clone, Debug)]
pub struct SearchQuery {
    /// The words as an FTS5 expression.
    pub(super) match_expression: Option<String>,
    /// Groups of required words. One word of each group must match.
    pub(super) groups: Vec<Vec<String>>,
    /// Excluded words.
    pub(super) excluded: Vec<String>,
    /// Whether an excluded word is a prefix.
    pub(super) excludes_prefix: bool,
    /// The regular expression that the text must match.
    pub(super) regex: Option<Regex>,
    /// Finds the text to mark.
    pub(super) mark_regex: Option<Regex>,
}

/// An invalid query.
#[derive(Debug, thiserror::Error)]
pub enum QueryError {
    /// It has no letter and no digit.
    #[error("nothing to search for: {0:?}")]
    Empty(String),
    /// A phrase lacks its closing quotation mark.
    #[error("a phrase without its closing quotation mark: {0}")]
    UnclosedPhrase(String),
    /// It only excludes words.
    #[error("the query only excludes words; add at least one to find: {0}")]
    OnlyExclusions(String),
    /// `OR` lacks a word on one side.
    #[error("OR needs a word on each side: {0}")]
    DanglingOr(String),
    /// It has more than one regular expression.
    #[error("only one /regex/ is allowed: {0}")]
    SecondRegex(String),
    /// The regular expression does not compile.
    #[error("invalid regular expression: {0}")]
    Regex(String),
}

/// One term of a query.
#[derive(Debug, PartialEq, Eq)]
enum QueryTerm {
    Text { text: String, phrase: bool, not: bool },
    Regex { pattern: String, any_case: bool },
    Or,
}

impl SearchQuery {
    /// Whether the query is a regular expression.
    pub fn is_regex(&self) -> bool {
        self.regex.is_some()
    }

    /// Parses a query. Fails on an `OR` without a word beside it, a second regular expression, and an invalid one.
    pub fn parse(text: &str) -> Result<Self, QueryError> {
        let mut groups: Vec<Vec<String>> = Vec::new();
        let (mut not, mut marks, mut regex) = (Vec::new(), Vec::new(), None);
        let mut joins = false;
        for term in parse_terms(text)? {
            match term {
                QueryTerm::Or if groups.is_empty() || joins => {
                    return Err(QueryError::DanglingOr(text.to_owned()));
                }
                QueryTerm::Or => joins = true,
                QueryTerm::Regex { .. } if regex.is_some() => {
                    return Err(QueryError::SecondRegex(text.to_owned()));
                }
                QueryTerm::Regex { pattern, any_case } => {
                    regex = Some(compile_regex(&pattern, any_case)?)
                }
                QueryTerm::Text { text: word, phrase, not: left_out } => {
                    let Some(expression) = word_expression(&word, phrase) else { continue };
                    if left_out {
                        not.push(expression);
                        continue;
                    }
                    marks.push(mark_pattern(&word, phrase));
                    match groups.last_mut().filter(|_| std::mem::take(&mut joins)) {
                        Some(group) => group.push(expression),
                        None => groups.push(vec![expression]),
                    }
                }
            }
        }
        if joins {
            return Err(QueryError::DanglingOr(text.to_owned()));
        }
        if groups.is_empty() && regex.is_none() {
            let error = if not.is_empty() { QueryError::Empty } else { QueryError::OnlyExclusions };
            return Err(error(text.to_owned()));
        }
        if groups.is_empty() && !not.is_empty() {
            return Err(QueryError::OnlyExclusions(text.to_owned()));
        }
        let marks = match &regex {
            Some(regex) => Some(regex.clone()),
            None => compile_regex(&marks.join("|"), true).ok(),
        };
        let has_open_not = not.iter().any(|word| is_prefix_expression(word));
        Ok(Self {
            match_expression: join_groups(&groups, &not),
            groups,
            excluded: not,
            excludes_prefix: has_open_not,
            regex,
            mark_regex: marks,
        })
    }
}

/// Joins groups and exclusions into one FTS5 expression.
fn join_groups(groups: &[Vec<String>], not: &[String]) -> Option<String> {
    let groups: Vec<_> = groups.iter().map(|group| format!("({})", group.join(" OR "))).collect();
    let words = Some(groups.join(" AND ")).filter(|words| !words.is_empty())?;
    Some(if not.is_empty() { words } else { format!("({words}) NOT ({})", not.join(" OR ")) })
}

fn parse_terms(text: &str) -> Result<Vec<QueryTerm>, QueryError> {
    let mut terms = Vec::new();
    let mut rest = text.trim_start();
    while !rest.is_empty() {
        let (term, left) = parse_term(rest)?;
        terms.push(term);
        rest = left.trim_start();
    }
    Ok(terms)
}

/// Parses the first term. Returns it and the rest.
fn parse_term(text: &str) -> Result<(QueryTerm, &str), QueryError> {
    if let Some((pattern, any_case, rest)) = parse_slashed_regex(text) {
        return Ok((QueryTerm::Regex { pattern: pattern.to_owned(), any_case }, rest));
    }
    let (not, body) = match text.strip_prefix('-') {
        Some(body) if !body.is_empty() && !body.starts_with([' ', '-']) => (true, body),
        _ => (false, text),
    };
    if let Some(quoted) = body.strip_prefix('"') {
        let end = quoted.find('"').ok_or_else(|| QueryError::UnclosedPhrase(text.to_owned()))?;
        let (phrase, mut rest) = (quoted[..end].to_owned(), &quoted[end + 1..]);
        let mut word = phrase;
        if let Some(left) = rest.strip_prefix('*') {
            word.push('*');
            rest = left;
        }
        return Ok((QueryTerm::Text { text: word, phrase: true, not }, rest));
    }
    let end = body.find(char::is_whitespace).unwrap_or(body.len());
    let (word, rest) = body.split_at(end);
    let term = match word {
        "OR" if !not => QueryTerm::Or,
        word => QueryTerm::Text { text: word.to_owned(), phrase: false, not },
    };
    Ok((term, rest))
}

/// Parses a regular expression between slashes. It ends at the first slash that ends a word.
fn parse_slashed_regex(text: &str) -> Option<(&str, bool, &str)> {
    let body = text.strip_prefix('/')?;
    for (at, _) in body.match_indices('/').filter(|(at, _)| *at > 0) {
        if body[..at].ends_with('\\') {
            continue;
        }
        let after = &body[at + 1..];
        let (any_case, rest) = match after.strip_prefix('i') {
            Some(rest) if rest.is_empty() || rest.starts_with(char::is_whitespace) => (true, rest),
            _ => (false, after),
        };
        if rest.is_empty() || rest.starts_with(char::is_whitespace) {
            return Some((&body[..at], any_case, rest));
        }
    }
    None
}

fn compile_regex(pattern: &str, any_case: bool) -> Result<Regex, QueryError> {
    let built = RegexBuilder::new(pattern).case_insensitive(any_case).multi_line(true).build();
    built.map_err(|error| {
        let text = error.to_string();
        QueryError::Regex(
            text.lines().last().unwrap_or(&text).trim_start_matches("error: ").to_owned(),
        )
    })
}

/// An FTS5 expression for a word or phrase, or `None` if it has no letters or digits.
fn word_expression(word: &str, phrase: bool) -> Option<String> {
    let (word, prefix) = match word.strip_suffix('*') {
        Some(word) => (word, true),
        None => (word, word.chars().count() == 1 && word.chars().all(is_cjk)),
    };
    if !word.chars().any(char::is_alphanumeric) {
        return None;
    }
    let (text, parts) = fold_query(word);
    let star = if prefix { "*" } else { "" };
    let single = word.chars().all(|c| c.is_alphanumeric() && !is_cjk(c));
    // The parts of two words do not make a phrase.
    let column = if single { "" } else { "{text} : " };
    let text = format!("{column}\"{}\"{star}", text.replace('"', " "));
    match parts.filter(|_| !phrase) {
        Some(parts) => Some(format!("({text} OR {{parts}} : \"{}\"{star})", parts.trim_end())),
        None => Some(text),
    }
}

/// Whether an FTS5 expression matches a prefix.
pub(super) fn is_prefix_expression(expression: &str) -> bool {
    expression.trim_end_matches(')').ends_with('*')
}

/// Whether an FTS5 expression is one word and not a phrase.
pub(super) fn is_single_word(expression: &str) -> bool {
    expression.starts_with('"')
}

/// Characters between words: punctuation, spaces, symbols. The full Unicode classes would take longer to compile than a
/// search takes.
const SEPARATOR_CHARS: &str =
    r"\x00-/:-@\[-`\{-\u{bf}\u{2000}-\u{2bff}\u{3000}-\u{303f}\u{1f000}-\u{1faff}";

/// A regular expression for the text to mark.
fn mark_pattern(word: &str, phrase: bool) -> String {
    let (word, prefix) = match word.strip_suffix('*') {
        Some(word) => (word, true),
        None => (word, false),
    };
    let between = |c: char| !c.is_alphanumeric();
    let pieces: Vec<_> = word.split(between).filter(|piece| !piece.is_empty()).collect();
    let pieces: Vec<_> = pieces.iter().map(|piece| regex::escape(piece)).collect();
    let gap = format!("[{SEPARATOR_CHARS}]{}", if phrase { "+" } else { "" });
    let rest = if prefix { format!("[^{SEPARATOR_CHARS}]*") } else { String::new() };
    format!("{}{rest}", pieces.join(&gap))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn words(text: &str) -> String {
        SearchQuery::parse(text).unwrap().match_expression.unwrap()
    }

    #[test]
    fn parses_words_phrases_and_exclusions() {
        assert_eq!(words("one two"), r#"("one") AND ("two")"#);
        assert_eq!(
            words(r#"one OR "two three" four"#),
            r#"("one" OR {text} : "two three") AND ("four")"#
        );
        assert_eq!(words("one -two pre*"), r#"(("one") AND ("pre"*)) NOT ("two")"#);
        assert_eq!(words("snake_case"), r#"({text} : "snake_case")"#);
        assert_eq!(words("parseLine"), r#"(("parseLine" OR {parts} : "parse Line"))"#);
        assert_eq!(words("src/a\"b.rs"), r#"({text} : "src/a b.rs")"#);
        assert_eq!(words("日本語 -> x"), r#"({text} : " 日本 本語") AND ("x")"#);
        assert_eq!(words("日"), r#"({text} : " 日"*)"#);
    }

    #[test]
    fn recognises_prefixes_and_single_words() {
        let test_words = |text, is: fn(&str) -> bool| {
            let words = SearchQuery::parse(text).unwrap().groups.concat();
            words.iter().map(|word| is(word)).collect::<Vec<_>>()
        };
        assert_eq!(test_words("one pre* -not*", is_prefix_expression), [false, true]);
        assert_eq!(test_words("parseLi* 日", is_prefix_expression), [true, true]);
        assert_eq!(test_words("one \"two *three\" 日本", is_prefix_expression), [false; 3]);
        let words = "one pre* \"two\" \"two three\" snake_case parseLine 日本";
        assert_eq!(
            test_words(words, is_single_word),
            [true, true, true, false, false, false, false]
        );
    }

    #[test]
    fn parses_regular_expressions_between_slashes() {
        let query = SearchQuery::parse(r"/a b\/c/i word").unwrap();
        assert!(query.regex.unwrap().is_match("A B/C"));
        assert_eq!(query.match_expression.unwrap(), r#"("word")"#);
        assert!(SearchQuery::parse("/usr/lib/x.rs").unwrap().regex.is_none());
    }

    #[test]
    fn rejects_invalid_queries() {
        let error = |text| SearchQuery::parse(text).unwrap_err().to_string();
        assert_eq!(error(" -> "), "nothing to search for: \" -> \"");
        assert_eq!(error("-x"), "the query only excludes words; add at least one to find: -x");
        assert_eq!(error("a \"b"), "a phrase without its closing quotation mark: \"b");
        assert_eq!(error("OR a"), "OR needs a word on each side: OR a");
        assert_eq!(error("a OR"), "OR needs a word on each side: a OR");
        assert_eq!(error("/a(/"), "invalid regular expression: unclosed group");
        assert_eq!(error("/a/ /b/"), "only one /regex/ is allowed: /a/ /b/");
    }
}

//! Parses the lines that aider prints about models, tokens and cost.

use steno_model::entry::Usage;

/// A line such as `Tokens: 12k sent, 3k cache hit, 456 received. Cost: $0.02 message, $0.10 session.`
#[derive(Debug, PartialEq)]
pub(super) struct AiderTokenReport {
    pub(super) text: String,
    pub(super) usage: Usage,
    /// The cost of the message in dollars.
    pub(super) cost: Option<f64>,
}

impl AiderTokenReport {
    pub(super) fn parse(text: &str) -> Option<Self> {
        let rest = text.strip_prefix("Tokens: ")?;
        let (tokens, cost) = match rest.split_once(". Cost: ") {
            Some((tokens, cost)) => (tokens, parse_message_cost(cost)),
            None => (rest.trim_end_matches('.'), None),
        };
        Some(Self { text: text.to_owned(), usage: parse_usage(tokens)?, cost })
    }
}

/// Parses the model in a line such as `Main model: gpt-4o with diff edit format`.
pub(super) fn parse_model(text: &str) -> Option<&str> {
    let rest = text.strip_prefix("Main model: ").or_else(|| text.strip_prefix("Model: "))?;
    let name = rest.split_once(" with ").map_or(rest, |(name, _)| name).trim();
    (!name.is_empty()).then_some(name)
}

/// Parses usage. The sent tokens include cache reads and writes.
fn parse_usage(text: &str) -> Option<Usage> {
    let mut usage = Usage::default();
    let mut sent = 0;
    for part in text.split(", ") {
        let (number, what) = part.split_once(' ')?;
        let count = parse_count(number)?;
        match what {
            "sent" => sent = count,
            "cache write" => usage.cache_write = count,
            "cache hit" => usage.cache_read = count,
            "received" => usage.output = count,
            _ => return None,
        }
    }
    usage.input = sent.saturating_sub(usage.cache_read).saturating_sub(usage.cache_write);
    Some(usage)
}

/// Parses a count such as `456`, `1.1k`, `12k` or `2M`.
fn parse_count(text: &str) -> Option<u64> {
    let (digits, unit) = match text.char_indices().next_back()? {
        (at, 'k') => (&text[..at], 1e3),
        (at, 'M') => (&text[..at], 1e6),
        _ => (text, 1.0),
    };
    let digits = digits.replace(',', "");
    let value: f64 = digits.parse().ok()?;
    (value.is_finite() && value >= 0.0).then(|| (value * unit).round() as u64)
}

/// Parses the first amount of `$0.02 message, $0.10 session.`
fn parse_message_cost(text: &str) -> Option<f64> {
    let dollars = text.strip_prefix('$')?.split_once(" message")?.0;
    dollars.replace(',', "").parse().ok().filter(|cost: &f64| cost.is_finite())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rounded_counts_are_read() {
        let tokens = "Tokens: 12k sent, 1.1k cache write, 3k cache hit, 456 received.";
        let text = format!("{tokens} Cost: $0.02 message, $0.10 session.");
        let report = AiderTokenReport::parse(&text).unwrap();
        let expected = Usage {
            input: 7900,
            cache_write: 1100,
            cache_read: 3000,
            output: 456,
            ..Usage::default()
        };
        assert_eq!(report.usage, expected);
        assert_eq!(report.cost, Some(0.02));
        let without_cost = AiderTokenReport::parse("Tokens: 1,234 sent, 2M received.").unwrap();
        assert_eq!((without_cost.usage.input, without_cost.usage.output), (1234, 2_000_000));
        assert_eq!(without_cost.cost, None);
    }

    #[test]
    fn other_lines_are_no_reports() {
        for text in ["Tokens: many", "Tokens: k sent", "Tokens: -1 sent", "Tokens: é sent"] {
            assert_eq!(AiderTokenReport::parse(text), None, "{text}");
        }
    }

    #[test]
    fn models_are_named() {
        assert_eq!(parse_model("Main model: gpt-4o with diff edit format"), Some("gpt-4o"));
        assert_eq!(parse_model("Model: o1"), Some("o1"));
        assert_eq!(parse_model("Weak model: gpt-4o-mini"), None);
    }
}

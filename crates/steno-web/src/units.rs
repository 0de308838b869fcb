//! Numbers with their units, as pages show them and explain them in tooltips.

use steno_model::Usage;

/// A whole number with separators: `1,234,567`.
pub(crate) fn exact_count(number: u64) -> String {
    let digits = number.to_string();
    let groups: Vec<&str> = digits
        .as_bytes()
        .rchunks(3)
        .rev()
        .map(|group| std::str::from_utf8(group).unwrap_or_default())
        .collect();
    groups.join(",")
}

/// A number and its noun: `1 session`, `1,234 sessions`.
pub(crate) fn count_of(number: u64, noun: &str) -> String {
    let plural = match (number, noun) {
        (1, _) => noun.to_owned(),
        (_, "entry") => "entries".to_owned(),
        (_, "retry") => "retries".to_owned(),
        _ => format!("{noun}s"),
    };
    format!("{} {plural}", exact_count(number))
}

/// A duration: `0.4 s`, `12 s`, `3 min 05 s`, `2 h 07 min`, `1 d 12 h`.
pub(crate) fn format_duration(milliseconds: i64) -> String {
    let seconds = milliseconds / 1000;
    match seconds {
        ..1 => format!("{:.1} s", milliseconds.max(0) as f64 / 1000.0),
        1..60 => format!("{seconds} s"),
        60..3600 => format!("{} min {:02} s", seconds / 60, seconds % 60),
        3600..86_400 => format!("{} h {:02} min", seconds / 3600, seconds / 60 % 60),
        _ => format!("{} d {} h", seconds / 86_400, seconds / 3600 % 24),
    }
}

/// Explains the tokens of some messages: input, what was cached of it, and output.
pub(crate) fn explain_tokens(usage: &Usage) -> String {
    format!(
        "{} tokens read by the model ({} of them from its cache, {} written to it), {} tokens written by the model",
        exact_count(usage.prompt_tokens()),
        exact_count(usage.cache_read),
        exact_count(usage.cache_write),
        exact_count(usage.output)
    )
}

/// The tooltip of a cost.
pub(crate) const COST_EXPLANATION: &str = "US dollars: as the agent reported, or calculated from tokens and list prices. \
     `?` means that the price of a model is unknown.";

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counts_have_separators_and_nouns() {
        assert_eq!([0, 999, 1000, 1_234_567].map(exact_count), ["0", "999", "1,000", "1,234,567"]);
        assert_eq!(count_of(1, "entry"), "1 entry");
        assert_eq!(count_of(2, "entry"), "2 entries");
        assert_eq!(count_of(1200, "session"), "1,200 sessions");
    }

    #[test]
    fn durations_have_two_units_at_most() {
        let all = [-5, 400, 12_000, 185_000, 7_620_000, 129_600_000];
        let shown = ["0.0 s", "0.4 s", "12 s", "3 min 05 s", "2 h 07 min", "1 d 12 h"];
        assert_eq!(all.map(format_duration), shown);
    }
}

//! Compares two runs.

use super::go_time::format_rounded;
use super::run::{DevflowRun, RunTurn};
use steno_model::timestamp::Timestamp;

/// Renders what two runs have in common and where they differ, turn by turn. Lengths are in bytes.
pub fn diff_runs(a: &DevflowRun, b: &DevflowRun, now: Timestamp) -> String {
    let (meta_a, meta_b) = (&a.metadata, &b.metadata);
    let mut out = format!(
        "Comparing transcripts:\n  A: {} ({})\n  B: {} ({})\n\nMetadata Comparison:\n",
        a.run_id, meta_a.status, b.run_id, meta_b.status
    );
    let counts = [
        ("Turns:      ", a.turns.len() as u64, b.turns.len() as u64),
        ("Tokens In:  ", meta_a.total_tokens_in, meta_b.total_tokens_in),
        ("Tokens Out: ", meta_a.total_tokens_out, meta_b.total_tokens_out),
    ];
    for (label, of_a, of_b) in counts {
        out += &format!("  {label}{of_a} vs {of_b}\n");
    }
    out += &format!(
        "  Cost:       ${:.2} vs ${:.2}\n  Duration:   {} vs {}\n\nTurn Comparison:\n",
        meta_a.total_cost,
        meta_b.total_cost,
        format_rounded(meta_a.duration(now)),
        format_rounded(meta_b.duration(now))
    );
    for at in 0..a.turns.len().max(b.turns.len()) {
        let verdict = compare_turns(a.turns.get(at), b.turns.get(at));
        out += &format!("  Turn {}: {verdict}\n", at + 1);
    }
    out
}

fn compare_turns(a: Option<&RunTurn>, b: Option<&RunTurn>) -> String {
    let alone = |turn: &RunTurn| format!("{} ({} chars)", turn.role, turn.content.len());
    match (a, b) {
        (Some(a), Some(b)) if a.role != b.role => {
            format!("{} vs {} (different roles)", a.role, b.role)
        }
        (Some(a), Some(b)) if a.content == b.content => {
            format!("{} - identical ({} chars)", a.role, a.content.len())
        }
        (Some(a), Some(b)) => {
            let lengths = (a.content.len(), b.content.len());
            format!("{} - different ({} vs {} chars)", a.role, lengths.0, lengths.1)
        }
        (Some(a), None) => format!("{} vs [missing]", alone(a)),
        (None, Some(b)) => format!("[missing] vs {}", alone(b)),
        (None, None) => String::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_verdict_has_its_line() {
        let mut a = DevflowRun::default();
        let mut b = DevflowRun::default();
        for (role, content) in [("user", "é"), ("user", "same"), ("user", "x"), ("user", "end")] {
            a.push_turn(RunTurn::new(role, content, 1));
        }
        for (role, content) in [("system", "é"), ("user", "same"), ("user", "xyz")] {
            b.push_turn(RunTurn::new(role, content, 1));
        }
        let at = "2025-01-15T10:30:00Z".parse().unwrap();
        a.metadata.started_at = Some(at);
        b.metadata.started_at = Some(at);
        let text = diff_runs(&a, &b, at);
        let (_, turns) = text.split_once("Turn Comparison:\n").unwrap();
        assert_eq!(
            turns,
            "  Turn 1: user vs system (different roles)\n  \
             Turn 2: user - identical (4 chars)\n  \
             Turn 3: user - different (1 vs 3 chars)\n  \
             Turn 4: user (3 chars) vs [missing]\n"
        );
        assert!(text.contains("  Tokens In:  4 vs 3\n  Tokens Out: 0 vs 0\n  Cost:       $0.00 vs $0.00\n  Duration:   0s vs 0s\n"));
        assert!(diff_runs(&b, &a, at).ends_with("  Turn 4: [missing] vs user (3 chars)\n"));
    }
}

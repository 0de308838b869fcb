//! Renders lists of runs and their totals as devflow's viewer does.

use super::run::RunMetadata;
use super::run_view::{byte_prefix, format_start};
use super::stats::RunStats;

/// Renders runs as a table of six columns.
pub fn render_run_table(runs: &[RunMetadata]) -> String {
    if runs.is_empty() {
        return "No runs found.\n".to_owned();
    }
    let mut out = table_row(["RUN ID", "STATUS", "STARTED", "TOKENS", "COST", "TURNS"]);
    out += &"-".repeat(100);
    out.push('\n');
    for run in runs {
        let started = format_start(run.started_at);
        out += &table_row([
            &shorten_id(&run.run_id),
            &run.status,
            &started[..started.len() - ":00".len()],
            &format!("{}/{}", run.total_tokens_in, run.total_tokens_out),
            &format!("${:.2}", run.total_cost),
            &run.turn_count.unwrap_or(0).to_string(),
        ]);
    }
    out + &format!("\nTotal: {} runs\n", runs.len())
}

/// Renders counts, tokens and cost.
pub fn render_stats(stats: &RunStats) -> String {
    let counts = [
        ("Total Runs:      ", stats.total_runs),
        ("  Completed:     ", stats.completed_runs),
        ("  Failed:        ", stats.failed_runs),
        ("  Canceled:      ", stats.canceled_runs),
        ("  Active:        ", stats.active_runs),
    ];
    let mut out = format!("Run Statistics:\n{}\n", "-".repeat(40));
    for (label, count) in counts {
        out += &format!("{label}{count}\n");
    }
    out + &format!(
        "\nTotal Tokens:    {} in / {} out\nAvg Tokens/Run:  {} in / {} out\n\n\
         Total Cost:      ${:.2}\nAvg Cost/Run:    ${:.2}\n",
        stats.total_tokens_in,
        stats.total_tokens_out,
        stats.average_tokens_in(),
        stats.average_tokens_out(),
        stats.total_cost,
        stats.average_cost()
    )
}

fn table_row([id, status, started, tokens, cost, turns]: [&str; 6]) -> String {
    format!("{id:<40} {status:<12} {started:<20} {tokens:>8} {cost:>8} {turns:>8}\n")
}

/// Truncates a name to forty bytes.
fn shorten_id(id: &str) -> String {
    if id.len() <= 40 {
        return id.to_owned();
    }
    byte_prefix(id, 37).to_owned() + "..."
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn lists_have_columns_and_a_total() {
        let run = RunMetadata {
            run_id: "2025-01-15-a-flow-with-a-very-long-name-TK421".to_owned(),
            status: "completed".to_owned(),
            started_at: Some("2025-01-15T10:30:59Z".parse().unwrap()),
            total_tokens_in: 1500,
            total_tokens_out: 2500,
            total_cost: 0.125,
            turn_count: Some(4),
            ..RunMetadata::default()
        };
        let text = render_run_table(&[run]);
        let lines: Vec<_> = text.lines().collect();
        assert_eq!(
            lines[0],
            "RUN ID                                   STATUS       STARTED                TOKENS     COST    TURNS"
        );
        assert_eq!(lines[1], "-".repeat(100));
        assert_eq!(
            lines[2],
            "2025-01-15-a-flow-with-a-very-long-na... completed    2025-01-15 10:30     1500/2500    $0.12        4"
        );
        assert_eq!(lines[3..], ["", "Total: 1 runs"]);
        assert_eq!(render_run_table(&[]), "No runs found.\n");
    }

    #[test]
    fn statistics_divide_by_at_least_one() {
        let text = render_stats(&RunStats::default());
        assert!(text.starts_with("Run Statistics:\n----"));
        assert!(text.ends_with("Avg Cost/Run:    $0.00\n"));
    }
}

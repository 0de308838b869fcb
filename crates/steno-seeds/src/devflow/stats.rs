//! Totals of a set of runs.

use super::run::RunMetadata;
use steno_model::session::SessionStatus;

/// Counts, tokens and cost of several runs.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct RunStats {
    /// All runs.
    pub total_runs: u64,
    /// Completed runs.
    pub completed_runs: u64,
    /// Failed runs.
    pub failed_runs: u64,
    /// Canceled runs.
    pub canceled_runs: u64,
    /// Running runs.
    pub active_runs: u64,
    /// Prompt tokens.
    pub total_tokens_in: u64,
    /// Output tokens.
    pub total_tokens_out: u64,
    /// Dollars.
    pub total_cost: f64,
}

impl RunStats {
    /// Adds up runs.
    pub fn from_runs<'a>(runs: impl IntoIterator<Item = &'a RunMetadata>) -> Self {
        let mut stats = Self::default();
        for run in runs {
            stats.total_runs += 1;
            match run.known_status() {
                SessionStatus::Completed => stats.completed_runs += 1,
                SessionStatus::Failed => stats.failed_runs += 1,
                SessionStatus::Canceled => stats.canceled_runs += 1,
                SessionStatus::Running => stats.active_runs += 1,
            }
            stats.total_tokens_in += run.total_tokens_in;
            stats.total_tokens_out += run.total_tokens_out;
            stats.total_cost += run.total_cost;
        }
        stats
    }

    /// Prompt tokens per run, rounded down.
    pub fn average_tokens_in(&self) -> u64 {
        self.total_tokens_in / self.total_runs.max(1)
    }

    /// Output tokens per run, rounded down.
    pub fn average_tokens_out(&self) -> u64 {
        self.total_tokens_out / self.total_runs.max(1)
    }

    /// Dollars per run.
    pub fn average_cost(&self) -> f64 {
        self.total_cost / self.total_runs.max(1) as f64
    }
}

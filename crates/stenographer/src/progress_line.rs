//! A line on the terminal that shows how far a command is: bytes, rate, and the time left.

use std::fmt::Display;
use std::io::{self, Write};
use std::ops::RangeInclusive;
use std::time::{Duration, Instant};

use steno_store::sync::OnSession;
use unicode_width::UnicodeWidthStr;

use crate::byte_size::ByteSize;
use crate::terminal_text::{count_noun, escape_control};
use crate::text_table::{fit_columns, fit_end};

/// The line appears after this time; shorter work needs none.
const FIRST_DELAY: Duration = Duration::from_millis(500);

/// Time between two updates.
const UPDATE_INTERVAL: Duration = Duration::from_millis(100);

/// Width of the bar in columns.
const BAR_COLUMNS: u64 = 20;

/// Smallest and largest width of the line in columns.
const LINE_COLUMNS: RangeInclusive<usize> = 20..=120;

/// The current step is left out if less than this is left for it.
const MIN_STEP_COLUMNS: usize = 12;

/// A progress line; `drop` removes it.
pub(crate) struct ProgressLine {
    is_shown: bool,
    /// Width of the terminal.
    columns: usize,
    state: ProgressState,
    started: Instant,
    last: Option<Instant>,
}

/// What was done, and what there is to do.
#[derive(Clone, Copy, Debug)]
struct ProgressState {
    verb: &'static str,
    /// Number of steps.
    count: u64,
    total_count: Option<u64>,
    bytes: u64,
    total_bytes: Option<u64>,
}

impl ProgressLine {
    /// Creates a line for a terminal of this width; without one, nothing is shown.
    pub(crate) fn new(verb: &'static str, columns: Option<usize>) -> Self {
        let state =
            ProgressState { verb, count: 0, total_count: None, bytes: 0, total_bytes: None };
        let (is_shown, columns) = (columns.is_some(), columns.unwrap_or(0));
        Self { is_shown, columns, state, started: Instant::now(), last: None }
    }

    /// Returns whether anybody sees the line.
    pub(crate) fn is_shown(&self) -> bool {
        self.is_shown
    }

    /// Sets how many bytes there are to read.
    pub(crate) fn set_total_bytes(&mut self, bytes: u64) {
        self.state.total_bytes = Some(bytes);
    }

    /// Counts one of `total` steps.
    pub(crate) fn step_of(&mut self, total: usize, what: impl Display) {
        self.state.total_count = Some(total as u64);
        self.step(what);
    }

    /// Counts one step.
    pub(crate) fn step(&mut self, what: impl Display) {
        self.state.count += 1;
        if !self.is_shown || self.started.elapsed() < FIRST_DELAY {
            return;
        }
        if self.last.is_none_or(|last| last.elapsed() > UPDATE_INTERVAL) {
            self.last = Some(Instant::now());
            let (elapsed, what) = (self.started.elapsed(), what.to_string());
            let line = self.state.render_line(elapsed, &what, self.columns);
            let _ = write!(io::stderr(), "\r\x1b[K{line}");
        }
    }

    /// Counts one step that was done, of so many bytes.
    pub(crate) fn add_bytes(&mut self, bytes: u64) {
        self.state.bytes += bytes;
        self.step("");
    }

    /// Counts one step per session of a sync.
    pub(crate) fn into_callback(mut self) -> OnSession {
        Box::new(move |path, bytes| {
            self.step(path.display());
            // The session is read after this call.
            self.state.bytes += bytes;
        })
    }
}

/// Removes the line.
impl Drop for ProgressLine {
    fn drop(&mut self) {
        if self.last.is_some() {
            let _ = write!(io::stderr(), "\r\x1b[K");
        }
    }
}

impl ProgressState {
    /// Renders the line after some time; `what` is the current step. If the terminal is too narrow for both, the
    /// beginning of `what` is left out, which is the folder of a path.
    fn render_line(&self, elapsed: Duration, what: &str, columns: usize) -> String {
        let progress = self.render_progress(elapsed);
        let what = escape_control(what).replace(['\n', '\t'], " ");
        // A terminal wraps after its last column.
        let width = (columns.saturating_sub(1)).clamp(*LINE_COLUMNS.start(), *LINE_COLUMNS.end());
        match width.checked_sub(progress.width() + 1) {
            Some(room @ MIN_STEP_COLUMNS..) => format!("{progress} {}", fit_end(&what, room)),
            _ => fit_columns(&progress, width),
        }
    }

    /// Renders what is done and what is left.
    fn render_progress(&self, elapsed: Duration) -> String {
        let seconds = elapsed.as_secs_f64().max(0.001);
        match (self.total_bytes, self.total_count) {
            (Some(total), _) if total > 0 => {
                let done = self.bytes.min(total);
                let rate = done as f64 / seconds;
                format!(
                    "{} {} {} of {}, {}/s, {}",
                    self.verb,
                    render_bar(done, total),
                    ByteSize(done),
                    ByteSize(total),
                    ByteSize(rate as u64),
                    format_time_left((total - done) as f64, rate),
                )
            }
            (_, Some(total)) if total > 0 => {
                let done = self.count.min(total);
                let rate = done as f64 / seconds;
                let left = format_time_left((total - done) as f64, rate);
                let bar = render_bar(done, total);
                format!("{} {bar} {done} of {total}, {rate:.0}/s, {left}", self.verb)
            }
            _ => format!("{} {}", self.verb, self.count),
        }
    }
}

fn render_bar(done: u64, total: u64) -> String {
    let filled = (u128::from(done) * u128::from(BAR_COLUMNS) / u128::from(total)) as usize;
    let empty = BAR_COLUMNS as usize - filled;
    format!("[{}{}]", "#".repeat(filled), "-".repeat(empty))
}

/// Formats the time that the rest takes at this rate.
fn format_time_left(rest: f64, rate: f64) -> String {
    if rate <= 0.0 {
        return "time left unknown".to_owned();
    }
    match (rest / rate).ceil() as u64 {
        seconds @ 0..100 => format!("{seconds} s left"),
        seconds => format!("{} left", count_noun(seconds.div_ceil(60), "minute")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(
        bytes: u64,
        total_bytes: Option<u64>,
        count: u64,
        total: Option<u64>,
    ) -> ProgressState {
        ProgressState { verb: "keeping", count, total_count: total, bytes, total_bytes }
    }

    #[test]
    fn bytes_rate_and_time_left_are_shown() {
        let line = |bytes, columns| {
            let path = "/home/me/.claude/projects/-home-me-shop/5f0c1d2e.jsonl";
            let known = state(bytes, Some(1_000_000_000), 7, None);
            known.render_line(Duration::from_secs(5), path, columns)
        };
        insta::assert_snapshot!([30, 60, 80, 200].map(|columns| line(250_000_000, columns)).join("\n"), @"
        keeping [#####--------------…
        keeping [#####---------------] 250 MB of 1.0 GB, 50.0 MB/s…
        keeping [#####---------------] 250 MB of 1.0 GB, 50.0 MB/s, 15 s left
        keeping [#####---------------] 250 MB of 1.0 GB, 50.0 MB/s, 15 s left …/me/.claude/projects/-home-me-shop/5f0c1d2e.jsonl
        ");
        insta::assert_snapshot!([90, 200].map(|columns| line(10_000_000, columns)).join("\n"), @"
        keeping [--------------------] 10.0 MB of 1.0 GB, 2.0 MB/s, 9 minutes left …f0c1d2e.jsonl
        keeping [--------------------] 10.0 MB of 1.0 GB, 2.0 MB/s, 9 minutes left …claude/projects/-home-me-shop/5f0c1d2e.jsonl
        ");
        assert!(line(0, 80).contains("0 B of 1.0 GB, 0 B/s, time left unknown"));
        assert!(line(2_000_000_000, 80).contains("[####################] 1.0 GB of 1.0 GB"));
    }

    #[test]
    fn steps_are_counted_where_bytes_are_unknown() {
        let elapsed = Duration::from_secs(2);
        assert_eq!(
            state(0, None, 10, Some(40)).render_line(elapsed, "x", 80),
            "keeping [#####---------------] 10 of 40, 5/s, 6 s left x"
        );
        assert_eq!(
            state(0, None, 10, None).render_line(elapsed, "a\nb\x1b", 80),
            "keeping 10 a b\\u{1b}"
        );
        assert_eq!(state(0, Some(0), 1, None).render_line(elapsed, "x", 80), "keeping 1 x");
    }
}

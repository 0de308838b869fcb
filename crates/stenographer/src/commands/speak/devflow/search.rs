//! `search`: finds turns that contain a text.

use std::str::FromStr;

use serde_json::json;
use steno_model::json::JsonStyle;
use steno_seeds::devflow::{
    RunFileShape, RunFilter, RunMetadata, RunQuery, RunSearchResult, TokenRange,
};

use super::DevflowStore;
use crate::error::{CommandError, CommandExit};
use crate::ui::Ui;

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Text to find, literally; without one, runs are selected by their tokens alone.
    #[arg(required_unless_present = "tokens")]
    query: Option<String>,
    /// Only runs with this number of tokens: MIN..MAX of input, or in:MIN..MAX and out:MIN..MAX; either end may be
    /// omitted.
    #[arg(long, value_name = "RANGE")]
    tokens: Vec<TokenCondition>,
    /// Match upper and lower case exactly.
    #[arg(long)]
    case_sensitive: bool,
    /// Print at most N turns.
    #[arg(long, value_name = "N")]
    max: Option<usize>,
    /// Print one JSON object per line.
    #[arg(long)]
    json: bool,
}

/// Allowed number of tokens of one kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
struct TokenCondition {
    is_output: bool,
    range: TokenRange,
}

impl FromStr for TokenCondition {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let expected =
            "expected MIN..MAX, in:MIN..MAX or out:MIN..MAX, such as 1000..5000 or out:500..";
        let (is_output, range) = match text.split_once(':') {
            Some(("in", range)) => (false, range),
            Some(("out", range)) => (true, range),
            Some(_) => return Err(expected),
            None => (false, text),
        };
        let (least, most) = range.split_once("..").ok_or(expected)?;
        let end = |text: &str| match text {
            "" => Ok(None),
            text => text.parse().map(Some).map_err(|_| expected),
        };
        Ok(Self { is_output, range: TokenRange { least: end(least)?, most: end(most)? } })
    }
}

/// Prints one line per matching turn, or per run without a text.
pub(super) fn run(
    ui: &mut Ui,
    devflow: &DevflowStore,
    args: Args,
) -> Result<CommandExit, CommandError> {
    let mut runs = RunFilter::default();
    for condition in &args.tokens {
        let range = if condition.is_output { &mut runs.tokens_out } else { &mut runs.tokens_in };
        *range = condition.range;
    }
    let Some(text) = args.query.clone() else {
        let found = devflow.list_runs(ui, &runs)?;
        return list_runs(ui, &found, &args);
    };
    if text.is_empty() {
        return Err(CommandError::usage("nothing to search for"));
    }
    let query = RunQuery { text, case_sensitive: args.case_sensitive, limit: args.max, runs };
    let RunSearchResult { hits, problems } = devflow.store.search_runs_with_problems(&query)?;
    ui.report_problems(&problems);
    for hit in &hits {
        let (run, turn, excerpt) = (&hit.run_id, hit.turn_id, &hit.excerpt);
        if args.json {
            let line = json!({
                "runId": run.as_str(), "turnId": turn, "role": hit.role, "content": excerpt
            });
            ui.transcript_text(&format!("{line}\n"))?;
        } else {
            ui.transcript_text(&format!("{run}: Turn {turn}: \"{excerpt}\"\n"))?;
        }
    }
    Ok(if hits.is_empty() { CommandExit::Failed } else { CommandExit::Done })
}

/// Prints one line per run.
fn list_runs(ui: &mut Ui, found: &[RunMetadata], args: &Args) -> Result<CommandExit, CommandError> {
    for run in found.iter().take(args.max.unwrap_or(usize::MAX)) {
        let (tokens_in, tokens_out) = (run.total_tokens_in, run.total_tokens_out);
        let line = if args.json {
            JsonStyle::COMPACT.print(&run.to_object(RunFileShape::Shipped))
        } else {
            format!("{}: {tokens_in} in / {tokens_out} out", run.run_id)
        };
        ui.transcript_text(&(line + "\n"))?;
    }
    Ok(if found.is_empty() { CommandExit::Failed } else { CommandExit::Done })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn token_ranges_have_open_ends() {
        let range = |text: &str| {
            text.parse::<TokenCondition>().map(|it| (it.is_output, it.range.least, it.range.most))
        };
        assert_eq!(range("10..20"), Ok((false, Some(10), Some(20))));
        assert_eq!(range("in:..5"), Ok((false, None, Some(5))));
        assert_eq!(range("out:7.."), Ok((true, Some(7), None)));
        for bad in ["", "5", "x:1..2", "1..b", "-1..2"] {
            assert!(range(bad).is_err(), "{bad}");
        }
    }
}

//! A devflow store: record two runs with turns, a tool call and an artifact, search them, and archive the old one.
//!
//! Run it with `cargo run -p steno-seeds --example devflow_store`.

use std::error::Error;
use std::io::Write;
use std::path::Path;

use serde_json::json;
use steno_model::Clock;
use steno_seeds::devflow::{
    CleanupOptions, NewRun, RetentionPolicy, RunFilter, RunId, RunQuery, RunStats, RunStore,
    RunTurn, RunView, RunViewStyle, TurnToolCall, render_stats,
};

fn main() -> Result<(), Box<dyn Error>> {
    let folder = tempfile::tempdir()?;
    run_example(folder.path(), &Clock::system(), &mut std::io::stdout())
}

/// Runs the example in `folder`.
pub(crate) fn run_example(
    folder: &Path,
    clock: &Clock,
    out: &mut dyn Write,
) -> Result<(), Box<dyn Error>> {
    let store = RunStore::open(&folder.join(".devflow"), clock.clone())?;
    let id = record_ticket(&store)?;
    let failed = store.start_run(&NewRun { flow: "review".to_owned(), ..NewRun::default() })?;
    store.record_turn(&failed, RunTurn::new("user", "Review the branch", 40))?;
    store.fail_run(&failed, "no such branch")?;

    let run = store.load_run(&id)?.run;
    let view = RunView { run: &run, now: clock.now(), style: RunViewStyle::default() };
    writeln!(out, "{}", view.render_summary())?;
    for hit in store.search_runs(&RunQuery { text: "HANDLER".to_owned(), ..RunQuery::default() })? {
        writeln!(out, "turn {} ({}): {}", hit.turn_id, hit.role, hit.excerpt)?;
    }
    for artifact in store.list_artifacts(&id)? {
        writeln!(out, "artifact {} ({}, {} bytes)", artifact.name, artifact.kind, artifact.size)?;
    }
    let failures = RunFilter { status: Some("failed".to_owned()), ..RunFilter::default() };
    for run in store.list_runs(&failures)? {
        writeln!(out, "failed {}: {}", run.flow_id, run.error)?;
    }
    writeln!(
        out,
        "{}",
        render_stats(&RunStats::from_runs(&store.list_runs(&RunFilter::default())?))
    )?;

    archive_old_runs(folder, clock, out)
}

/// Records a completed run. Each turn is on disk when `record_turn` returns.
fn record_ticket(store: &RunStore) -> Result<RunId, Box<dyn Error>> {
    let input = json!({ "ticketId": "TK-421" });
    let id = store.start_run(&NewRun {
        flow: "ticket-to-pr".to_owned(),
        identifier: Some("TK-421".to_owned()),
        node: Some("generate-spec".to_owned()),
        input: input.as_object().cloned().unwrap_or_default(),
    })?;
    store.record_turn(&id, RunTurn::new("system", "You are an expert software architect.", 500))?;
    store.record_turn(&id, RunTurn::new("user", "Generate a spec for TK-421.", 1200))?;
    store.record_turn(&id, RunTurn::new("assistant", "# Technical Specification", 2500))?;
    let input = json!({ "path": "api/handler.go" }).as_object().cloned();
    store.record_tool_call(&id, TurnToolCall::with_output("read_file", input, "package api"))?;
    store.add_cost(&id, 0.12)?;
    store.save_artifact(&id, "spec.md", b"# Technical Specification\n")?;
    store.complete_run(&id)?;
    Ok(id)
}

/// Cleans up as on a day ten days later: runs are archived after seven days, and failed runs are exempt.
fn archive_old_runs(
    folder: &Path,
    clock: &Clock,
    out: &mut dyn Write,
) -> Result<(), Box<dyn Error>> {
    let days = 10;
    let later = clock.now().unix_seconds() + days * 24 * 60 * 60;
    let later = steno_model::Timestamp::from_unix(later).ok_or("no such time")?;
    let store = RunStore::open(&folder.join(".devflow"), Clock::fixed(later))?;
    let policy = RetentionPolicy { keep_min_runs: 0, ..RetentionPolicy::default() };
    let dry_run = CleanupOptions { dry_run: true, ..CleanupOptions::default() };
    let planned = store.clean_up(&policy, dry_run)?;
    let report = store.clean_up(&policy, CleanupOptions::default())?;
    assert_eq!(planned.archived, report.archived);
    writeln!(out, "archived {}, kept {}", report.archived.len(), report.kept.len())?;
    let archived = store.list_archives()?;
    store.restore_run(&archived[0])?;
    writeln!(out, "restored {} turns", store.load_run(&archived[0])?.run.turns.len())?;
    Ok(())
}

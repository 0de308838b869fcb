//! `cleanup`: archives old runs; deletes only with `--delete`.

use steno_seeds::devflow::{CleanupOptions, CleanupReport, RetentionPolicy, RunId};

use super::{DevflowStore, pluralize};
use crate::error::{CommandError, CommandExit};
use crate::ui::Ui;

#[derive(Debug, clap::Args)]
pub(super) struct Args {
    /// Only print what would be done.
    #[arg(long)]
    pub(super) dry_run: bool,
    /// Delete runs and archives past their retention.
    #[arg(long)]
    delete: bool,
}

/// Cleans up, or prints what would be done.
pub(super) fn run(
    ui: &mut Ui,
    devflow: &DevflowStore,
    args: &Args,
) -> Result<CommandExit, CommandError> {
    let retention = RetentionPolicy::from_config(devflow.store.base())?;
    let options = CleanupOptions { dry_run: args.dry_run, delete: args.delete };
    let cleanup = devflow.store.clean_up(&retention, options)?;
    if !ui.is_quiet() {
        let text = if args.dry_run {
            describe_plan(&cleanup, &retention)
        } else {
            describe_result(&cleanup)
        };
        ui.transcript_text(&text)?;
    }
    for error in &cleanup.errors {
        ui.warning(error);
    }
    Ok(if cleanup.errors.is_empty() { CommandExit::Done } else { CommandExit::Failed })
}

fn describe_plan(cleanup: &CleanupReport, retention: &RetentionPolicy) -> String {
    let days = |days: u32| pluralize(days.into(), "day");
    let mut out = list_runs(
        &format!("archive (older than {})", days(retention.archive_after_days)),
        &cleanup.archived,
    );
    out += &list_runs(
        &format!("delete (older than {})", days(retention.retention_days)),
        &cleanup.deleted,
    );
    if !cleanup.archives_deleted.is_empty() {
        let age = days(retention.archive_retention_days);
        let count = pluralize(cleanup.archives_deleted.len() as u64, "archive");
        out += &format!("Would delete {count} (older than {age})\n\n");
    }
    out + &format!(
        "Would keep: {}\nSpace to be freed: {}\n",
        pluralize(cleanup.kept.len() as u64, "run"),
        format_size(cleanup.space_saved)
    )
}

fn list_runs(what: &str, ids: &[RunId]) -> String {
    if ids.is_empty() {
        return String::new();
    }
    let lines: String = ids.iter().map(|id| format!("  {id}\n")).collect();
    format!("Would {what}:\n{lines}\n")
}

fn describe_result(cleanup: &CleanupReport) -> String {
    let runs = |ids: &[RunId]| pluralize(ids.len() as u64, "run");
    let mut out =
        format!("Archived {}\nDeleted {}\n", runs(&cleanup.archived), runs(&cleanup.deleted));
    if !cleanup.archives_deleted.is_empty() {
        let count = pluralize(cleanup.archives_deleted.len() as u64, "archive");
        out += &format!("Deleted {count}\n");
    }
    out + &format!("Freed {}\n", format_size(cleanup.space_saved))
}

/// Formats bytes in the largest unit with a whole number: `234 MB`.
fn format_size(bytes: u64) -> String {
    let units = ["B", "KB", "MB", "GB", "TB"];
    let mut value = bytes;
    let mut unit = 0;
    while value >= 1024 && unit + 1 < units.len() {
        value /= 1024;
        unit += 1;
    }
    format!("{value} {}", units[unit])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_have_whole_numbers() {
        assert_eq!(format_size(0), "0 B");
        assert_eq!(format_size(1536), "1 KB");
        assert_eq!(format_size(234 << 20), "234 MB");
        assert_eq!(format_size(u64::MAX), "16777215 TB");
    }

    #[test]
    fn a_dry_run_lists_what_would_be_done() {
        let id = |text: &str| text.parse::<RunId>().unwrap();
        let cleanup = CleanupReport {
            archived: vec![id("2025-01-08-a"), id("2025-01-07-a")],
            deleted: vec![id("2024-12-15-a")],
            kept: vec![id("2025-01-15-a")],
            space_saved: 2048,
            ..CleanupReport::default()
        };
        assert_eq!(
            describe_plan(&cleanup, &RetentionPolicy::default()),
            "Would archive (older than 7 days):\n  2025-01-08-a\n  2025-01-07-a\n\n\
             Would delete (older than 30 days):\n  2024-12-15-a\n\n\
             Would keep: 1 run\nSpace to be freed: 2 KB\n"
        );
        assert_eq!(describe_result(&cleanup), "Archived 2 runs\nDeleted 1 run\nFreed 2 KB\n");
    }
}

//! Session files that Claude Code will delete: it removes those that have not changed for `cleanupPeriodDays` days.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use serde::Serialize;
use steno_agents::agents::claude_code;
use steno_agents::registry::session_locations::{session_locations, settings_folders};
use steno_store::format;

use crate::process_environment::ProcessEnvironment;
use crate::ui::count_noun;
use steno_store::keep::file_stamp::file_stamp;
use steno_store::sync::resolve_links;
use steno_store::sync::seen_files::SeenFiles;

/// Default of Claude Code's setting `cleanupPeriodDays`.
const DEFAULT_PERIOD_DAYS: u64 = 30;

/// Files that are deleted within this time are counted.
const SOON: Duration = Duration::from_secs(7 * 86_400);

const DAY: Duration = Duration::from_secs(86_400);

/// When Claude Code deletes files.
#[derive(Debug, PartialEq, Eq, Serialize)]
pub(crate) struct PurgeReport {
    agent: &'static str,
    /// Days after the last change of a file.
    period_days: u64,
    /// Whole days until the oldest file goes; 0 if it goes at the next start of the agent.
    oldest_goes_in_days: u64,
    /// Files that go within a week.
    files_within_a_week: u64,
    /// Those of them that are not in the store.
    not_kept_within_a_week: u64,
}

impl PurgeReport {
    /// Looks at the session files of Claude Code; `None` if there are none.
    pub(crate) fn collect(env: &ProcessEnvironment) -> Option<Self> {
        let locations = session_locations(&env.home, &ProcessEnvironment::variable).into_iter();
        let locations = locations.filter(|location| location.agent == claude_code::AGENT_NAME);
        let folders: Vec<PathBuf> =
            locations.map(|location| resolve_links(location.path)).collect();
        let files = folders.iter().filter_map(|folder| format::list_file_paths(folder).ok());
        let logs =
            files.flatten().filter(|file| file.extension().is_some_and(|ext| ext == "jsonl"));
        let period_days = configured_period(env).unwrap_or(DEFAULT_PERIOD_DAYS);
        let seen = SeenFiles::load(&env.store, |_| true);
        Self::count_files(logs.collect(), period_days, &|file| {
            file_stamp(file).is_some_and(|stamp| seen.is_unchanged(file, stamp))
        })
    }

    fn count_files(
        files: Vec<PathBuf>,
        period_days: u64,
        is_kept: &dyn Fn(&Path) -> bool,
    ) -> Option<Self> {
        let now = SystemTime::now();
        let period = DAY.saturating_mul(u32::try_from(period_days).unwrap_or(u32::MAX));
        let mut oldest = None;
        let (mut soon, mut not_kept) = (0, 0);
        for file in &files {
            let modified = fs::metadata(file).and_then(|metadata| metadata.modified());
            let Ok(age) = modified.map(|at| now.duration_since(at).unwrap_or_default()) else {
                continue;
            };
            let left = period.saturating_sub(age);
            oldest = Some(oldest.map_or(left, |oldest: Duration| oldest.min(left)));
            if left <= SOON {
                soon += 1;
                not_kept += u64::from(!is_kept(file));
            }
        }
        Some(Self {
            agent: claude_code::AGENT_NAME,
            period_days,
            oldest_goes_in_days: oldest?.as_secs() / DAY.as_secs(),
            files_within_a_week: soon,
            not_kept_within_a_week: not_kept,
        })
    }

    pub(crate) fn to_sentence(&self) -> String {
        let days = |count| match count {
            0 => "today".to_owned(),
            count => format!("in {}", count_noun(count, "day")),
        };
        let start = format!(
            "Claude Code deletes session files after {} (cleanupPeriodDays)",
            count_noun(self.period_days, "day")
        );
        let oldest = days(self.oldest_goes_in_days);
        match (self.files_within_a_week, self.not_kept_within_a_week) {
            (0, _) => format!("{start}:\nthe next one {oldest}"),
            (files, 0) => {
                let files = count_noun(files, "file");
                format!("{start}:\nthe next one {oldest}, {files} within a week; all are kept")
            }
            (files, not_kept) => format!(
                "{start}:\nthe next one {oldest}, {} within a week, {not_kept} of them not kept yet",
                count_noun(files, "file")
            ),
        }
    }
}

/// Returns the period in Claude Code's settings.
fn configured_period(env: &ProcessEnvironment) -> Option<u64> {
    let folders = settings_folders(&env.home, &ProcessEnvironment::variable).into_iter();
    let mut folders = folders.filter(|folder| folder.agent == claude_code::AGENT_NAME);
    folders.find_map(|folder| {
        let text = fs::read_to_string(folder.path.join("settings.json")).ok()?;
        let settings: serde_json::Value = serde_json::from_str(&text).ok()?;
        settings.get("cleanupPeriodDays")?.as_u64()
    })
}

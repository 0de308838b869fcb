//! `steno doctor`: shows what Steno finds and keeps on this machine, and what to do next. Changes nothing.

mod agent_report;
mod purge_report;
mod store_report;

use serde::Serialize;

use self::agent_report::FoundAgentReport;
use self::purge_report::PurgeReport;
use self::store_report::StoreReport;
use crate::agent_settings::RegistrationState;
use crate::commands::hooks::{distinct_problems, hook_status};
use crate::error::{CommandError, CommandExit};
use crate::process_environment::ProcessEnvironment;
use crate::text_table::TextTable;
use crate::ui::{Ui, count_noun};

/// Show what was found, kept and missed, and what to do next.
///
/// Lists the agents with sessions on this machine or in the store, files that are not copied yet, and files that
/// Claude Code will delete soon. Checks hooks, settings, index and free space. Reads only; a store is not created.
/// Exits with 1 if something is wrong.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

/// What the command shows.
#[derive(Serialize)]
struct DoctorReport {
    store: StoreReport,
    agents: Vec<FoundAgentReport>,
    /// Files that an agent will delete.
    purge: Option<PurgeReport>,
    problems: Vec<String>,
    /// What to do next.
    next: Vec<String>,
}

/// Runs the command.
pub(crate) fn run(
    ui: &mut Ui,
    env: &ProcessEnvironment,
    args: &Args,
) -> Result<CommandExit, CommandError> {
    let report = DoctorReport::collect(ui, env)?;
    if args.json {
        serde_json::to_writer(ui.out(), &report)?;
        writeln!(ui.out())?;
    } else {
        let text = report.render_text(env, ui.width());
        ui.listing_text(&text)?;
    }
    Ok(if report.problems.is_empty() { CommandExit::Done } else { CommandExit::Failed })
}

impl DoctorReport {
    fn collect(ui: &mut Ui, env: &ProcessEnvironment) -> Result<Self, CommandError> {
        let (hooks, hook_errors) = hook_status(ui, env)?;
        let (store, summaries) = StoreReport::collect(env);
        let mut problems = store.find_problems();
        problems.extend(hook_errors.iter().map(CommandError::to_line));
        let failures = distinct_problems(&hooks).into_iter();
        problems.extend(failures.map(|problem| format!("the last hook failed: {problem}")));
        let (agents, unreadable) = agent_report::collect_agents(env, &summaries, &hooks);
        problems.extend(unreadable);
        let purge = PurgeReport::collect(env);
        let mut report = Self { store, agents, purge, problems, next: Vec::new() };
        report.next = report.find_next_steps();
        Ok(report)
    }

    fn find_next_steps(&self) -> Vec<String> {
        let mut steps = Vec::new();
        let new_files: u64 = self.agents.iter().map(|agent| agent.new_files).sum();
        if new_files > 0 {
            let files = count_noun(new_files, "new or changed file");
            steps.push(format!("run `steno sync` to copy {files} into the store"));
        }
        let lacks_hooks = |agent: &&FoundAgentReport| {
            matches!(
                agent.hooks,
                Some(RegistrationState::NotInstalled | RegistrationState::Outdated)
            )
        };
        let unhooked: Vec<&str> =
            self.agents.iter().filter(lacks_hooks).map(|agent| agent.agent.as_str()).collect();
        if !unhooked.is_empty() {
            let names = unhooked.join(", ");
            steps.push(format!("run `steno hooks install` to record {names} as they work"));
        }
        if self.store.has_damage() {
            steps.push("run `steno verify` to list the damage".to_owned());
        }
        if self.agents.is_empty() {
            steps
                .push("no agent was found; run `steno run`, `steno exec` or `steno import`".into());
        } else if self.store.sessions > 0 {
            steps.push("run `steno` to browse, `steno search WORDS` to search".to_owned());
        }
        steps
    }

    fn render_text(&self, env: &ProcessEnvironment, width: usize) -> String {
        let mut text = self.store.render_text(env);
        if !self.agents.is_empty() {
            let heading = ["AGENT", "KEPT", "LAST MESSAGE", "NEW FILES", "HOOKS", "FOLDER"];
            let mut table = TextTable::new(heading);
            self.agents.iter().for_each(|agent| table.add_row(agent.table_cells(env)));
            text.push_str(&format!("\n{}", table.render(width)));
        }
        if let Some(purge) = &self.purge {
            text.push_str(&format!("\n{}\n", purge.to_sentence()));
        }
        if !self.problems.is_empty() || !self.next.is_empty() {
            text.push('\n');
        }
        for problem in &self.problems {
            text.push_str(&format!("problem: {problem}\n"));
        }
        for step in &self.next {
            text.push_str(&format!("next: {step}\n"));
        }
        text
    }
}

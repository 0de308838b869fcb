//! `steno status`: prints the status of threads.

mod overview;

use serde_json::json;
use steno_model::Timestamp;
use steno_seeds::thread::{Thread, ThreadRelations};

use super::json_line;
use crate::error::{CommandError, CommandExit};
use crate::process_environment::ProcessEnvironment;
use crate::project_threads::{ProjectThreads, ThreadFlags, report_warnings};
use crate::text_table::fit_columns;
use crate::thread_error::explain_thread_error;
use crate::ui::Ui;

/// Where the status of the store is, which `steno status` may have been expected to show.
const STORE_HINT: &str = "run `steno doctor` for the state of the store";

/// Show the status of a project's threads, or one thread in detail.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Thread id, unique prefix, or `latest` [default: all, by objective].
    thread: Option<String>,
    #[command(flatten)]
    flags: ThreadFlags,
}

/// Runs the command.
pub(super) fn run(
    ui: &mut Ui,
    env: &ProcessEnvironment,
    args: &Args,
) -> Result<CommandExit, CommandError> {
    let threads =
        ProjectThreads::open_existing(ui, env, &args.flags).map_err(|error| match args.thread {
            Some(_) => error,
            None => error.hint(STORE_HINT),
        })?;
    let Some(text) = &args.thread else {
        return overview::print_overview(ui, &threads, args.flags.json);
    };
    let thread = threads.find_thread(text)?;
    let (context, warnings) =
        threads.store.render_thread_context(thread.id.as_str()).map_err(explain_thread_error)?;
    report_warnings(ui, &warnings);
    let relations = threads.store.load_relations().map_err(explain_thread_error)?;
    if args.flags.json {
        let mut row = json!(thread);
        row["relations"] = json!(relations.links.get(&thread.id));
        row["thread_context"] = context.into();
        return json_line(ui, &row);
    }
    let text = ThreadStatusView { env, threads: &threads, relations: &relations, thread: &thread }
        .render_text(ui)?;
    ui.listing_text(&text)?;
    Ok(CommandExit::Done)
}

/// The details of one thread.
struct ThreadStatusView<'a> {
    env: &'a ProcessEnvironment,
    threads: &'a ProjectThreads,
    relations: &'a ThreadRelations,
    thread: &'a Thread,
}

impl ThreadStatusView<'_> {
    fn render_text(&self, ui: &Ui) -> Result<String, CommandError> {
        let thread = self.thread;
        let mut lines = vec![thread.title.clone(), format!("{} · {}", thread.id, thread.status)];
        lines.extend(self.render_facts());
        let (assets, _) = self
            .threads
            .store
            .assets_and_warnings(thread.id.as_str())
            .map_err(explain_thread_error)?;
        let width = ui.width();
        let mut text: String =
            lines.iter().map(|line| fit_columns(&line.replace('\n', " "), width) + "\n").collect();
        // A shortened path would be useless.
        text.extend(
            assets.iter().map(|asset| format_fact(asset.kind.as_str(), &asset.path) + "\n"),
        );
        Ok(text)
    }

    fn render_facts(&self) -> Vec<String> {
        let (thread, empty) = (self.thread, Vec::new());
        let mut facts = vec![format_fact("objective", &self.objective_title())];
        let links = self.relations.links.get(&thread.id);
        let related = [
            ("parent", thread.parent_id.as_slice()),
            ("child", links.map_or(&empty, |links| &links.children)),
            ("refers to", links.map_or(&empty, |links| &links.references_to)),
            ("used by", links.map_or(&empty, |links| &links.referenced_by)),
        ];
        for (name, ids) in related {
            facts
                .extend(ids.iter().map(|id| format_fact(name, &self.describe_thread(id.as_str()))));
        }
        facts.push(format_fact("executor", thread.executor.as_str()));
        let tags = thread.tags.as_deref().unwrap_or_default();
        if !tags.is_empty() {
            facts.push(format_fact("tags", &tags.join(", ")));
        }
        facts.extend(thread.session_id.iter().map(|session| format_fact("session", session)));
        facts.extend(self.worker_fact());
        facts.push(format_fact("created", &self.format_time(thread.created_at)));
        facts.push(format_fact("updated", &self.format_time(thread.updated_at)));
        facts
    }

    /// Returns the process that works in the thread now.
    fn worker_fact(&self) -> Option<String> {
        let worker = self.threads.store.worker(&self.thread.id).ok().flatten()?;
        let since = worker.since.map(|at| format!(" since {}", self.format_time(at)));
        Some(format_fact("worker", &format!("process {}{}", worker.pid, since.unwrap_or_default())))
    }

    fn objective_title(&self) -> String {
        let id = self.thread.objective.as_str();
        let title = self.threads.store.objective(id).map(|objective| objective.title);
        format!("{id} {}", title.unwrap_or_default()).trim_end().to_owned()
    }

    /// Returns another thread's id, status and title.
    fn describe_thread(&self, id: &str) -> String {
        match self.relations.threads.get(id) {
            Some(other) => format!("{id} {} {}", other.status, other.title),
            None => format!("{id} (deleted)"),
        }
    }

    fn format_time(&self, at: Timestamp) -> String {
        at.in_zone(&self.env.zone).date_and_clock()
    }
}

fn format_fact(name: &str, value: &str) -> String {
    format!("{name:<10}  {value}")
}

//! Lists what `forget` and `prune` would remove, asks, and removes it.

use std::path::PathBuf;

use serde_json::json;
use steno_store::StoreLocation;
use steno_store::forget::{
    AgentFile, AgentFileAction, AgentFileChange, ForgetError, PlannedRemoval, SessionForgetter,
};
use steno_vault::SessionDir;
use steno_vault::forget::ForgetRequest;
use steno_vault::tombstone::Tombstone;

use crate::error::{CommandError, CommandExit};
use crate::process_environment::ProcessEnvironment;
use crate::session_store::SessionStore;
use crate::text_table::TextTable;
use crate::ui::{Ui, count_bytes, count_noun};
use crate::user_name::find_user_name;
use crate::write_permission::WritePermission;

/// Flags of commands that remove sessions.
#[derive(Debug, clap::Args)]
pub(crate) struct RemovalOptions {
    /// Only list what would be removed.
    #[arg(long)]
    dry_run: bool,
    /// Remove without asking.
    #[arg(long, short, conflicts_with = "dry_run")]
    yes: bool,
    /// Why it is removed, for the tombstone. Do not repeat the content.
    #[arg(long, value_name = "TEXT")]
    reason: Option<String>,
    /// Print each session as JSON: what is removed, and the tombstone.
    #[arg(long)]
    json: bool,
}

/// A removal that was asked for.
pub(crate) struct SessionRemoval<'a> {
    pub(crate) ui: &'a mut Ui,
    pub(crate) env: &'a ProcessEnvironment,
    pub(crate) store: &'a SessionStore,
    pub(crate) options: &'a RemovalOptions,
    /// What to do with the agents' own files; `None` to ask.
    pub(crate) action: Option<AgentFileAction>,
}

/// What is removed of one session, for the list.
struct RemovalRow {
    session: SessionDir,
    is_whole: bool,
    entries: Vec<u64>,
    parts: u64,
    bytes: u64,
    notes: u64,
}

impl SessionRemoval<'_> {
    /// Lists the removals, asks, and removes.
    pub(crate) fn run(
        mut self,
        removals: Vec<PlannedRemoval>,
    ) -> Result<CommandExit, CommandError> {
        let location = StoreLocation::new(&self.env.store, self.env.clock.clone());
        let forgetter = SessionForgetter::new(&location);
        let (removals, rows) = self.plan(&forgetter, removals)?;
        if rows.is_empty() {
            self.ui.status("nothing to forget");
            return Ok(CommandExit::Failed);
        }
        let files = AgentFile::find_all(&removals).map_err(explain)?;
        if self.options.dry_run || !self.options.json {
            self.print_rows(&rows, &files)?;
        }
        if self.options.dry_run {
            return Ok(CommandExit::Done);
        }
        forgetter.check_removals(&removals).map_err(explain)?;
        let by = find_user_name()?;
        self.confirm(&rows)?;
        let action = self.choose_action(&files);
        self.check_agent_files(&removals, &files, action)?;
        let reason = self.options.reason.clone();
        let request = ForgetRequest { at: self.env.clock.now(), by, reason };
        let progress = self.ui.start_progress("forgetting");
        let tombstones = forgetter.forget(&request, &removals).map_err(explain)?;
        drop(progress);
        self.change_agent_files(&removals, &files, &tombstones, action)?;
        self.print_tombstones(&rows, &tombstones)?;
        let left = forgetter.find_leftovers(&removals).map_err(explain)?;
        self.ui.report_incomplete(left.iter().map(|id| {
            format!(
                "{id}: still found in parts of records that cannot be masked; forget the session"
            )
        }));
        let index = self.store.index()?;
        self.store.update_index(self.ui, &index)?;
        Ok(CommandExit::Done)
    }

    /// Adds what belongs to the removals, and drops those without a text.
    fn plan(
        &mut self,
        forgetter: &SessionForgetter,
        mut removals: Vec<PlannedRemoval>,
    ) -> Result<(Vec<PlannedRemoval>, Vec<RemovalRow>), CommandError> {
        forgetter.add_moved_recordings(&mut removals).map_err(explain)?;
        let mut progress = self.ui.start_progress("searching");
        let (total, mut kept, mut rows) = (removals.len(), Vec::new(), Vec::new());
        let mut compressed = Vec::new();
        for removal in removals {
            progress.step_of(total, removal.session().id());
            let session = removal.session().clone();
            let row = match &removal {
                PlannedRemoval::Session(_) => {
                    let files = session.forgettable_files()?;
                    let bytes = files.iter().map(|file| file.length).sum();
                    let (entries, parts, notes) = (Vec::new(), 0, 0);
                    RemovalRow { session, is_whole: true, entries, parts, bytes, notes }
                }
                PlannedRemoval::Texts { finder, .. } => {
                    let plan = forgetter.plan_texts(&session, finder).map_err(explain)?;
                    if plan.has_compressed_files {
                        compressed.push(removal.clone());
                    }
                    let (parts, bytes) = (plan.part_count(), plan.byte_count());
                    let (entries, notes) = (finder.entry_numbers(), plan.notes);
                    if plan.is_empty() && entries.is_empty() {
                        continue;
                    }
                    RemovalRow { session, is_whole: false, entries, parts, bytes, notes }
                }
            };
            rows.push(row);
            kept.push(removal);
        }
        drop(progress);
        let hidden = forgetter.find_leftovers(&compressed).map_err(explain)?;
        self.ui.report_incomplete(hidden.iter().map(|id| {
            format!("{id}: found in a file that the agent compressed, which cannot be masked; forget the session")
        }));
        Ok((kept, rows))
    }

    fn print_rows(&mut self, rows: &[RemovalRow], files: &[AgentFile]) -> Result<(), CommandError> {
        if self.options.json {
            for row in rows {
                writeln!(self.ui.out(), "{}", row.to_json(None))?;
            }
            for file in files {
                let path = file.path.to_string_lossy();
                writeln!(self.ui.out(), "{}", json!({"agent_file": path}))?;
            }
            return Ok(());
        }
        let mut table = TextTable::new(["SESSION", "AGENT", "REMOVES"]);
        for row in rows {
            let agent = row.session.agent().to_owned();
            table.add_row([row.session.id().to_string(), agent, row.describe()]);
        }
        let text = table.render(self.ui.width());
        self.ui.listing_text(&text)?;
        if !files.is_empty() {
            self.ui.status("the agents' own files still hold it:");
            for file in files {
                let note =
                    if file.is_database { " (a database; delete it in the agent)" } else { "" };
                self.ui.status(format_args!("  {}{note}", file.path.display()));
            }
        }
        Ok(())
    }

    /// Asks whether to remove. Without a terminal, `--yes` is needed.
    fn confirm(&mut self, rows: &[RemovalRow]) -> Result<(), CommandError> {
        if self.options.yes {
            return Ok(());
        }
        if !self.ui.can_ask() {
            let error = CommandError::usage("this removes data for good and needs a confirmation");
            return Err(error.hint("add --yes, or look first with --dry-run"));
        }
        let sessions = count_noun(rows.len() as u64, "session");
        if self.ui.confirm(format_args!("Forget this in {sessions} for good? [y/N] ")) {
            return Ok(());
        }
        Err(CommandError::user("nothing was removed"))
    }

    /// What to do with the agents' own files. Asks if possible, else they stay.
    fn choose_action(&mut self, files: &[AgentFile]) -> AgentFileAction {
        if let Some(action) = self.action {
            return action;
        }
        let is_any = files.iter().any(|file| !file.is_database);
        let question = "Remove it from the agents' own files too? [y/N] ";
        if is_any && !self.options.yes && self.ui.can_ask() && self.ui.confirm(question) {
            return AgentFileAction::Remove;
        }
        AgentFileAction::Keep
    }

    /// Checks that the agents' own files may be changed, before anything is removed.
    fn check_agent_files(
        &mut self,
        removals: &[PlannedRemoval],
        files: &[AgentFile],
        action: AgentFileAction,
    ) -> Result<(), CommandError> {
        if action == AgentFileAction::Keep {
            return Ok(());
        }
        let paths: Vec<PathBuf> = files.iter().map(|file| file.path.clone()).collect();
        for removal in removals {
            WritePermission::new(self.env, removal.session(), &|| Ok(Vec::new()))
                .check_protected(&paths)?;
        }
        Ok(())
    }

    fn change_agent_files(
        &mut self,
        removals: &[PlannedRemoval],
        files: &[AgentFile],
        tombstones: &[Tombstone],
        action: AgentFileAction,
    ) -> Result<(), CommandError> {
        for file in files {
            let change = file.apply(action, removals, tombstones).map_err(explain)?;
            let (name, verb) = match change {
                AgentFileChange::None => ("none", None),
                AgentFileChange::Masked => ("masked", Some("masked it in")),
                AgentFileChange::Deleted => ("deleted", Some("deleted")),
            };
            if self.options.json {
                let row = json!({"agent_file": file.path.to_string_lossy(), "change": name});
                writeln!(self.ui.out(), "{row}")?;
            } else if let Some(verb) = verb {
                let path = file.path.display();
                self.ui.status(format_args!("{verb} the agent's own file {path}"));
            }
        }
        Ok(())
    }

    fn print_tombstones(
        &mut self,
        rows: &[RemovalRow],
        tombstones: &[Tombstone],
    ) -> Result<(), CommandError> {
        for row in rows {
            let key = format!("{}/{}", row.session.agent(), row.session.id());
            let Some(tombstone) = tombstones.iter().find(|one| one.session == key) else {
                continue;
            };
            if self.options.json {
                writeln!(self.ui.out(), "{}", row.to_json(Some(tombstone)))?;
            } else {
                let (id, what) = (tombstone.short_id(), row.describe());
                self.ui.status(format_args!("forgot {key}: {what}, tombstone {id}"));
            }
        }
        Ok(())
    }
}

impl RemovalRow {
    fn describe(&self) -> String {
        if self.is_whole {
            return format!("the session, {}", count_bytes(self.bytes));
        }
        let entries = match self.entries.as_slice() {
            [] => String::new(),
            [one] => format!("entry {one}: "),
            [first, .., last] => format!("entries {first} to {last}: "),
        };
        let (parts, bytes) = (count_noun(self.parts, "text"), count_bytes(self.bytes));
        let notes = match self.notes {
            0 => String::new(),
            notes => format!(", {}", count_noun(notes, "note")),
        };
        format!("{entries}{parts}, {bytes}{notes}")
    }

    fn to_json(&self, tombstone: Option<&Tombstone>) -> serde_json::Value {
        json!({
            "session": self.session.id().as_str(),
            "agent": self.session.agent(),
            "whole": self.is_whole,
            "entries": self.entries,
            "texts": self.parts,
            "bytes": self.bytes,
            "notes": self.notes,
            "tombstone": tombstone.map(|tombstone| tombstone.id.to_string()),
        })
    }
}

/// Adds a hint to an error.
fn explain(error: ForgetError) -> CommandError {
    let hint = match &error {
        ForgetError::Recording(_) => Some("end the recording first, then try again"),
        ForgetError::Shared { .. } => Some("forget all of them together, or use --match"),
        ForgetError::Unsealed(_) | ForgetError::Scattered { .. } => {
            Some("forget the whole session, or use --match")
        }
        ForgetError::Store(_) => None,
    };
    let error = CommandError::user(error);
    hint.into_iter().fold(error, CommandError::hint)
}

//! `steno export --format parquet`: entries and costs of many sessions as tables.

use std::collections::{HashMap, HashSet};
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::json;
use steno_model::entry::Entry;
use steno_model::{Transcript, durable};
use steno_parquet::{EntryTable, EntryTableRow, UsageTable, UsageTableRow};
use steno_store::cost::charge::{ChargeTable, CostMode};
use steno_vault::SessionDir;

use super::{Args, CommandExit};
use crate::config::Config;
use crate::error::CommandError;
use crate::process_environment::ProcessEnvironment;
use crate::redaction_choice::ExportRedaction;
use crate::session_store::SessionStore;
use crate::ui::Ui;

/// The files of an export.
const ENTRY_FILE: &str = "entries.parquet";
const USAGE_FILE: &str = "usage.parquet";

/// Writes the tables of the named sessions, or of all.
pub(super) fn write_tables(
    ui: &mut Ui,
    env: &ProcessEnvironment,
    args: &Args,
    redaction: ExportRedaction,
) -> Result<CommandExit, CommandError> {
    let Some(dir) = &args.output else {
        let error = CommandError::usage("parquet needs an output folder");
        return Err(error.hint("use -o DIR"));
    };
    let store = SessionStore::new(env);
    let named = args.sessions.iter().map(|name| store.find_session(name));
    let mut sessions = named.collect::<Result<Vec<_>, _>>()?;
    let is_selection = !sessions.is_empty();
    if !is_selection {
        sessions = store.vault.list_sessions()?;
    }
    let prices = Config::load(env)?.prices()?;
    let (_, mut charges) = store.query_all(ui, |index| index.load_message_charges())?;
    let costs = charges.charge_costs(&prices, CostMode::Auto);
    let dir = env.cwd.join(dir);
    durable::create_private_dir(&dir)?;
    let mut tables = TableExport { ui, store: &store, redaction, headings: HashMap::new() };
    let entries = TableFile::new(&dir, ENTRY_FILE);
    let exported = tables.write_entries(&entries, &sessions)?;
    let usage = TableFile::new(&dir, USAGE_FILE);
    tables.redact_charges(&mut charges);
    let selected = is_selection.then(|| sessions.iter().map(session_name).collect());
    let usage_rows = tables.write_usage(&usage, &charges, &costs, selected.as_ref())?;
    let redaction = tables.redaction;
    for (file, rows) in [(entries, exported.rows), (usage, usage_rows)] {
        let path = file.replace()?;
        match args.json {
            true => {
                let row = json!({ "path": path.to_string_lossy(), "rows": rows });
                writeln!(ui.out(), "{row}")?;
            }
            false => ui.path_line(&path)?,
        }
    }
    redaction.report(ui);
    Ok(if exported.has_failures { CommandExit::Failed } else { CommandExit::Done })
}

/// A file that replaces another when it is complete.
struct TableFile {
    partial: PathBuf,
    path: PathBuf,
}

impl TableFile {
    fn new(dir: &Path, name: &str) -> Self {
        Self { partial: dir.join(format!(".{name}.partial")), path: dir.join(name) }
    }

    fn replace(self) -> Result<PathBuf, CommandError> {
        fs::rename(&self.partial, &self.path).map_err(|error| {
            CommandError::user(format!("could not write {}: {error}", self.path.display()))
        })?;
        Ok(self.path)
    }
}

/// An agent and the id of its session.
type SessionName = (String, String);

fn session_name(session: &SessionDir) -> SessionName {
    (session.agent().to_owned(), session.id().to_string())
}

/// What was written of the entries.
struct ExportedEntries {
    rows: u64,
    has_failures: bool,
}

/// Writes both tables.
struct TableExport<'a> {
    ui: &'a mut Ui,
    store: &'a SessionStore,
    redaction: ExportRedaction,
    /// The project and thread of each exported session, without secrets.
    headings: HashMap<SessionName, (Option<String>, Option<String>)>,
}

impl TableExport<'_> {
    /// Writes the entries of one session after the other.
    fn write_entries(
        &mut self,
        file: &TableFile,
        sessions: &[SessionDir],
    ) -> Result<ExportedEntries, CommandError> {
        let mut table = EntryTable::create(&file.partial).map_err(CommandError::user)?;
        let mut written = ExportedEntries { rows: 0, has_failures: false };
        for session in sessions {
            let mut transcript = match self.store.read_session(session) {
                Ok(transcript) => transcript,
                Err(error) => {
                    written.has_failures = true;
                    self.ui.report_error(&error);
                    continue;
                }
            };
            self.ui.report_problems(&transcript.problems);
            self.redaction.apply(&mut transcript);
            write_transcript(&mut table, &transcript)?;
            written.rows += transcript.entries.len() as u64;
            let Transcript { session: heading, .. } = transcript;
            self.headings.insert(session_name(session), (heading.project, heading.thread));
        }
        table.finish().map_err(CommandError::user)?;
        Ok(written)
    }

    /// Gives the charges the projects and threads of the transcripts, which are redacted, and redacts the models.
    fn redact_charges(&mut self, charges: &mut ChargeTable) {
        for account in &mut charges.accounts {
            let name = (account.agent.clone(), account.session.clone());
            match self.headings.remove(&name) {
                Some((project, thread)) => (account.project, account.thread) = (project, thread),
                None => [&mut account.project, &mut account.thread]
                    .into_iter()
                    .flatten()
                    .for_each(|text| self.redaction.apply_to_text(text)),
            }
        }
        charges.models.iter_mut().for_each(|model| self.redaction.apply_to_text(model));
    }

    /// Writes what each message cost, of all sessions or of those that are selected.
    fn write_usage(
        &mut self,
        file: &TableFile,
        charges: &ChargeTable,
        costs: &[Option<f64>],
        selected: Option<&HashSet<SessionName>>,
    ) -> Result<u64, CommandError> {
        let mut table = UsageTable::create(&file.partial).map_err(CommandError::user)?;
        let is_selected: Vec<bool> = charges
            .accounts
            .iter()
            .map(|account| {
                let name = (account.agent.clone(), account.session.clone());
                selected.is_none_or(|selected| selected.contains(&name))
            })
            .collect();
        let mut rows = 0;
        for (charge, cost) in charges.charges.iter().zip(costs) {
            if !is_selected[charge.account] {
                continue;
            }
            let account = &charges.accounts[charge.account];
            let model = charges.models[charge.model].as_str();
            let row = UsageTableRow {
                agent: &account.agent,
                session: &account.session,
                project: account.project.as_deref(),
                thread: account.thread.as_deref(),
                time: charge.first,
                model: Some(model).filter(|model| !model.is_empty()),
                tokens: charge.tokens,
                cost: *cost,
            };
            table.add_usage(&row).map_err(CommandError::user)?;
            rows += 1;
        }
        table.finish().map_err(CommandError::user)?;
        Ok(rows)
    }
}

fn write_transcript(table: &mut EntryTable, transcript: &Transcript) -> Result<(), CommandError> {
    let session = &transcript.session;
    for (number, entry) in transcript.entries.iter().enumerate() {
        let Entry { role, content, tool_name, tool_call_id, source, kind, model, .. } = entry;
        let id = entry.entry_id.to_string();
        let input = entry.tool_input.as_ref().map(serde_json::to_string).transpose()?;
        let row = EntryTableRow {
            agent: &session.agent,
            session: session.id.as_str(),
            project: session.project.as_deref(),
            number: number as i64,
            id: &id,
            time: entry.created_at.map(|at| at.instant().as_millisecond()),
            source,
            role: role.as_str(),
            kind: kind.as_str(),
            tool: tool_name.as_deref(),
            tool_call: tool_call_id.as_deref(),
            model: model.as_deref(),
            message: entry.message_id.as_deref(),
            text: content,
            input: input.as_deref(),
        };
        table.add_entry(&row).map_err(CommandError::user)?;
    }
    Ok(())
}

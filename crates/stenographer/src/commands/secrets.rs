//! `steno secrets`: reports the keys, tokens and passwords that the store keeps.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Mutex;

use serde_json::json;
use steno_agents::registry::database_schemas;
use steno_secrets::SecretScanner;
use steno_store::secret_report::{KeptSecret, SecretPlace, SecretReport, report_secrets};
use steno_store::view::redaction::{SecretRedactor, is_distinctive, search_file};
use steno_vault::Vault;

use crate::commands::list::format_start;
use crate::config::Config;
use crate::error::{CommandError, CommandExit};
use crate::process_environment::ProcessEnvironment;
use crate::session_store::SessionStore;
use crate::text_table::TextTable;
use crate::ui::{Ui, count_noun};

/// Places that the table shows of one secret.
const SHOWN_PLACES: usize = 3;

/// Report keys, tokens and passwords in all recorded sessions.
///
/// Searches everything that is kept: entries, notes, and bytes that no entry shows. Prints each secret once: its id, the
/// rule that found it, its first characters and length, how often it is kept, when it was last seen, and where. Exits
/// with 1 if there is any.
///
/// Change a secret that was recorded, at the service that issued it. `[redact]` in config.toml adds words, names and
/// patterns, and disables rules.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Also name the agents' own files that still contain each secret.
    #[arg(long)]
    live_paths: bool,
    /// List the names of all rules instead.
    #[arg(long, conflicts_with = "live_paths")]
    rules: bool,
    /// Print JSON Lines.
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub(crate) fn run(
    ui: &mut Ui,
    env: &ProcessEnvironment,
    args: &Args,
) -> Result<CommandExit, CommandError> {
    if args.rules {
        return print_rules(ui, args.json);
    }
    Config::load(env)?.configure_redaction()?;
    let location = env.store_location();
    let progress = Mutex::new(ui.start_progress("searching"));
    let total = location.vault().list_sessions()?.len();
    let report = report_secrets(&location, &|session| {
        if let Ok(mut progress) = progress.lock() {
            progress.step_of(total, session.id());
        }
    })?;
    drop(progress);
    warn_of_unsearched_parts(ui, &report);
    let finder = LivePathFinder { vault: SessionStore::new(env).vault };
    let mut rows = Vec::new();
    for secret in &report.secrets {
        let live_paths = if args.live_paths { Some(finder.find(secret)?) } else { None };
        rows.push(SecretRow { secret, live_paths });
    }
    match args.json {
        true => rows.iter().try_for_each(|row| row.print_json(ui))?,
        false if rows.is_empty() => {}
        false => print_table(ui, env, &rows)?,
    }
    let secrets = count_noun(rows.len() as u64, "secret");
    let sessions = count_noun(total as u64, "session");
    ui.status(format_args!("{secrets} in {sessions}"));
    let is_clean = rows.is_empty() && report.is_complete();
    Ok(if is_clean { CommandExit::Done } else { CommandExit::Failed })
}

/// Warns of what could not be searched.
pub(super) fn warn_of_unsearched_parts(ui: &mut Ui, report: &SecretReport) {
    for (session, error) in &report.unread {
        ui.warning(format_args!("could not read {}: {error}", session.id()));
    }
    for (session, problem) in &report.damage {
        let id = session.id();
        ui.warning(format_args!("session {id} was searched only in part: {problem}"));
    }
}

fn print_rules(ui: &mut Ui, is_json: bool) -> Result<CommandExit, CommandError> {
    for rule in SecretScanner::rule_names() {
        match is_json {
            true => writeln!(ui.out(), "{}", json!({ "rule": rule }))?,
            false => writeln!(ui.out(), "{rule}")?,
        }
    }
    Ok(CommandExit::Done)
}

/// A secret, and the files of agents that contain it.
struct SecretRow<'a> {
    secret: &'a KeptSecret,
    live_paths: Option<BTreeSet<PathBuf>>,
}

impl SecretRow<'_> {
    fn print_json(&self, ui: &mut Ui) -> Result<(), CommandError> {
        let secret = self.secret;
        let place = |place: &SecretPlace| {
            json!({
                "agent": place.agent,
                "session": place.session.as_str(),
                "entry": place.entry,
                "at": place.at.map(|at| at.to_string()),
                "count": place.count,
            })
        };
        let mut row = json!({
            "id": secret.id.as_str(),
            "rule": secret.rule,
            "masked": secret.masked_value(),
            "count": secret.count(),
            "last": secret.last_seen().map(|at| at.to_string()),
            "places": secret.places.iter().map(place).collect::<Vec<_>>(),
        });
        if let Some(paths) = &self.live_paths {
            let paths: Vec<_> = paths.iter().map(|path| path.to_string_lossy()).collect();
            row["live_paths"] = json!(paths);
        }
        serde_json::to_writer(ui.out(), &row)?;
        Ok(writeln!(ui.out())?)
    }

    /// The first places, and how many more there are.
    fn describe_places(&self) -> String {
        let places = &self.secret.places;
        let name = |place: &SecretPlace| match place.entry {
            Some(entry) => format!("{}:{entry}", place.session),
            None => place.session.to_string(),
        };
        let mut shown: Vec<_> = places.iter().take(SHOWN_PLACES).map(name).collect();
        if places.len() > SHOWN_PLACES {
            shown.push(format!("and {} more", places.len() - SHOWN_PLACES));
        }
        shown.join(", ")
    }
}

fn print_table(
    ui: &mut Ui,
    env: &ProcessEnvironment,
    rows: &[SecretRow<'_>],
) -> Result<(), CommandError> {
    let mut table = TextTable::new(["ID", "RULE", "VALUE", "COUNT", "LAST", "WHERE"]);
    let this_year = env.clock.now().in_zone(&env.zone).wall().year();
    for row in rows {
        let secret = row.secret;
        let last = secret.last_seen().map(|at| format_start(at.in_zone(&env.zone), this_year));
        table.add_row([
            secret.id.to_string(),
            secret.rule.to_owned(),
            secret.masked_value(),
            secret.count().to_string(),
            last.unwrap_or_default(),
            row.describe_places(),
        ]);
    }
    ui.listing_text(&table.render(ui.width()))?;
    for row in rows {
        for path in row.live_paths.iter().flatten() {
            let line = format!("{} is still in {}\n", row.secret.id, path.display());
            ui.listing_text(&line)?;
        }
    }
    Ok(())
}

/// Finds the agents' own files that still contain a secret.
struct LivePathFinder {
    vault: Vault,
}

impl LivePathFinder {
    fn find(&self, secret: &KeptSecret) -> Result<BTreeSet<PathBuf>, CommandError> {
        let needles = secret_spellings(&secret.value);
        let mut paths = BTreeSet::new();
        let mut is_searched = BTreeMap::new();
        for (agent, id) in secret.entries_by_session().keys() {
            let session = self.vault.session_dir(&agent.parse()?, id);
            for file in session.original_files(database_schemas(agent))? {
                let is_live = *is_searched.entry(file.path.clone()).or_insert_with(|| {
                    let bytes = std::fs::read(&file.path).unwrap_or_default();
                    let contains =
                        |needle: &Vec<u8>| memchr::memmem::find(&bytes, needle).is_some();
                    needles.iter().any(contains)
                        && (is_distinctive(&secret.value) || has_secret(&bytes, &secret.value))
                });
                if is_live {
                    paths.insert(file.path);
                }
            }
        }
        Ok(paths)
    }
}

/// Whether a rule finds a secret in the bytes of a file.
fn has_secret(mut bytes: &[u8], secret: &str) -> bool {
    let mut redactor = SecretRedactor::default();
    let searched = search_file(&mut redactor, &mut bytes);
    searched.is_ok() && redactor.take_found().iter().any(|found| found.text == secret)
}

/// How a secret may be written in a file: as it is, and as a JSON string.
fn secret_spellings(secret: &str) -> Vec<Vec<u8>> {
    let escaped = json!(secret).to_string();
    let escaped = escaped.as_bytes()[1..escaped.len() - 1].to_vec();
    let mut spellings = vec![secret.as_bytes().to_vec(), escaped];
    spellings.dedup();
    spellings
}

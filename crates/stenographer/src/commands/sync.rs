//! `steno sync`: keeps what every agent has left on this machine.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use serde::Serialize;
use steno_core::Source;
use steno_core::agent::places::{Place, places};
use steno_core::format::{self, Found};
use steno_core::vault::keep::Growth;

use crate::error::{CommandError, Exit};
use crate::keeper::Keeper;
use crate::scene::Scene;
use crate::seen::{Seen, Stamp, stamp};
use crate::store::Store;
use crate::table::Table;
use crate::ui::{Progress, Ui};

/// A source that has not changed for so long has ended: its last line is kept even without a newline.
const STILL: Duration = Duration::from_secs(3600);

/// Keep every session that agents have left on this machine.
///
/// Looks where each agent keeps its sessions, or at the paths that are named, and keeps what is new. What has not
/// changed since the last time is not even opened. Databases with many sessions are not kept yet.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    /// Look here instead of where agents keep their sessions.
    #[arg(value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// Only this agent's; may be given several times.
    #[arg(long, value_name = "NAME")]
    agent: Vec<String>,
    /// Tell what would be kept, and keep nothing.
    #[arg(long)]
    dry_run: bool,
    /// Print JSON Lines, one per agent.
    #[arg(long)]
    json: bool,
}

/// What was done for one agent.
#[derive(Debug, Default, Serialize)]
struct Row {
    agent: String,
    /// Sessions that were looked at because something in them is new.
    sessions: u64,
    entries: u64,
    bytes_new: u64,
    problems: u64,
    /// Sessions in databases, which are not kept yet.
    not_kept: u64,
}

/// Runs the command.
pub(crate) fn run(ui: &mut Ui, scene: &Scene, args: &Args) -> Result<Exit, CommandError> {
    let mut sync = Sync {
        keeper: Keeper::new(Store::new(scene).vault)?,
        seen: Seen::load(&scene.store),
        rows: BTreeMap::new(),
        progress: ui.progress("keeping"),
        failures: Vec::new(),
        dry_run: args.dry_run,
        now: SystemTime::from(scene.clock.now().instant()),
    };
    for path in roots(scene, args) {
        sync.root(&path, &args.agent)?;
        if !args.dry_run {
            sync.seen.save()?;
        }
    }
    sync.progress.finish();
    for failure in &sync.failures {
        ui.report(failure);
    }
    print(ui, &sync.rows, args)?;
    Ok(if sync.failures.is_empty() { Exit::Done } else { Exit::Failed })
}

/// The folders to look at, each once.
fn roots(scene: &Scene, args: &Args) -> Vec<PathBuf> {
    if !args.paths.is_empty() {
        return args.paths.iter().map(|path| real(scene.cwd.join(path))).collect();
    }
    let wanted =
        |place: &Place| args.agent.is_empty() || args.agent.iter().any(|name| name == place.agent);
    let known = places(&scene.home, &Scene::variable);
    let there = known.into_iter().filter(|place| wanted(place) && place.path.is_dir());
    there.map(|place| real(place.path)).collect::<BTreeSet<_>>().into_iter().collect()
}

/// The path without links, so that a session has one name however it is reached.
fn real(path: PathBuf) -> PathBuf {
    path.canonicalize().unwrap_or(path)
}

struct Sync {
    keeper: Keeper,
    seen: Seen,
    rows: BTreeMap<String, Row>,
    progress: Progress,
    failures: Vec<CommandError>,
    dry_run: bool,
    now: SystemTime,
}

impl Sync {
    /// Keeps what is new at or below a path.
    fn root(&mut self, root: &Path, agents: &[String]) -> Result<(), CommandError> {
        let mut changed: HashMap<PathBuf, Stamp> = HashMap::new();
        for file in format::files(root)? {
            if let Some(stamp) = stamp(&file).filter(|stamp| !self.seen.knows(&file, *stamp)) {
                changed.insert(file, stamp);
            }
        }
        let folders: BTreeSet<PathBuf> = changed.keys().map(|file| below(root, file)).collect();
        for folder in folders {
            match format::find(&folder) {
                Ok(found) => found.iter().for_each(|found| self.found(found, agents, &mut changed)),
                Err(error) => {
                    self.failures.push(error.into());
                    changed.retain(|file, _| !file.starts_with(&folder));
                }
            }
        }
        if !self.dry_run {
            changed.iter().for_each(|(file, stamp)| self.seen.note(file, *stamp));
        }
        Ok(())
    }

    /// Keeps a session that was found, if it is wanted and has changed; what must be looked at again is taken out of
    /// `changed`.
    fn found(&mut self, found: &Found, agents: &[String], changed: &mut HashMap<PathBuf, Stamp>) {
        let wanted = agents.is_empty() || agents.iter().any(|name| name == found.reader.agent);
        let sources = &found.bundle.sources;
        if !sources.iter().any(|source| changed.contains_key(source.path())) {
            return;
        }
        let done = wanted && self.session(found, changed);
        for source in sources {
            if !done || (growth(found, self.now) == Growth::Expected && is_torn(source)) {
                changed.remove(source.path());
            }
        }
    }

    /// Keeps one session; whether that is done for now.
    fn session(&mut self, found: &Found, changed: &HashMap<PathBuf, Stamp>) -> bool {
        self.progress.step(found.bundle.root.display());
        let row = self.rows.entry(found.reader.agent.to_owned()).or_default();
        row.agent = found.reader.agent.to_owned();
        if found.bundle.key.is_some() {
            row.not_kept += 1;
            return true;
        }
        row.sessions += 1;
        if self.dry_run {
            let sources = found.bundle.sources.iter();
            let sizes =
                sources.filter_map(|source| changed.get(source.path())).map(|(size, _)| size);
            row.bytes_new += sizes.sum::<u64>();
            return true;
        }
        match self.keeper.keep(found, growth(found, self.now)) {
            Ok(kept) => {
                row.entries += kept.entries;
                row.bytes_new += kept.added;
                row.problems += kept.problems.count();
                true
            }
            Err(error) => {
                row.problems += 1;
                self.failures.push(error);
                false
            }
        }
    }
}

/// The part of the tree to look at for one changed file: all that stands under the same folder of the root.
fn below(root: &Path, file: &Path) -> PathBuf {
    let part = file.strip_prefix(root).ok().and_then(|path| path.components().next());
    part.map_or_else(|| root.to_owned(), |part| root.join(part))
}

/// Whether a file of lines ends in the middle of one.
fn is_torn(source: &Source) -> bool {
    let last = || -> io::Result<u8> {
        let mut file = File::open(source.path())?;
        file.seek(SeekFrom::End(-1))?;
        let mut last = [0];
        file.read_exact(&mut last)?;
        Ok(last[0])
    };
    source.name().ends_with(".jsonl") && last().is_ok_and(|last| last != b'\n')
}

fn growth(found: &Found, now: SystemTime) -> Growth {
    let times = found.bundle.sources.iter().filter_map(|source| source.modified());
    let still = times.max().and_then(|newest| now.duration_since(newest).ok());
    if still.is_some_and(|still| still > STILL) { Growth::Ended } else { Growth::Expected }
}

fn print(ui: &mut Ui, rows: &BTreeMap<String, Row>, args: &Args) -> Result<(), CommandError> {
    if args.json {
        for row in rows.values() {
            serde_json::to_writer(ui.out(), row)?;
            writeln!(ui.out())?;
        }
        return Ok(());
    }
    if rows.is_empty() {
        ui.status("nothing new");
        return Ok(());
    }
    let heading = if args.dry_run { "BYTES CHANGED" } else { "BYTES NEW" };
    let mut table = Table::new(["AGENT", "SESSIONS", "ENTRIES", "PROBLEMS", "NOT KEPT", heading]);
    for row in rows.values() {
        let numbers = [row.sessions, row.entries, row.problems, row.not_kept, row.bytes_new];
        let [sessions, entries, problems, not_kept, bytes] =
            numbers.map(|number| number.to_string());
        table.row([row.agent.clone(), sessions, entries, problems, not_kept, bytes]);
    }
    let text = table.render(ui.width());
    Ok(ui.transcript_text(&text)?)
}

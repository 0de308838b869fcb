//! The threads of a project: where they are, which one is meant, and the guide that agents find there.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use steno_core::thread::guide::{Guide, Outcome};
use steno_core::thread::{Id, IdSource, Objective, Thread, ThreadError, ThreadStore, Warning};

use crate::error::CommandError;
use crate::process_environment::ProcessEnvironment;
use crate::project_folder;
use crate::thread_error::explain_thread_error;
use crate::thread_run::finish_killed_runs;
use crate::ui::Ui;

/// The flags that all commands on threads have.
#[derive(Debug, clap::Args)]
pub(crate) struct ThreadFlags {
    /// The project's folder [default: this one, or the nearest above that has threads].
    #[arg(long, value_name = "DIR")]
    pub(crate) project: Option<PathBuf>,
    /// Print JSON Lines.
    #[arg(long)]
    pub(crate) json: bool,
}

/// A thread that is named on the command line.
#[derive(Debug, clap::Args)]
pub(crate) struct ThreadArgument {
    /// The thread: its id, the beginning of one, or `latest`.
    thread: String,
    #[command(flatten)]
    pub(crate) flags: ThreadFlags,
}

impl ThreadArgument {
    /// The thread, and the others of its project.
    pub(crate) fn find_thread(
        &self,
        ui: &mut Ui,
        env: &ProcessEnvironment,
    ) -> Result<(ProjectThreads, Thread), CommandError> {
        let threads = ProjectThreads::open_existing(ui, env, &self.flags)?;
        let thread = threads.find_thread(&self.thread)?;
        Ok((threads, thread))
    }
}

/// The threads of one project.
pub(crate) struct ProjectThreads {
    pub(crate) store: ThreadStore,
}

impl ProjectThreads {
    /// The threads that are there already. What runs that were killed have left unfinished is finished first.
    pub(crate) fn open_existing(
        ui: &mut Ui,
        env: &ProcessEnvironment,
        place: &ThreadFlags,
    ) -> Result<Self, CommandError> {
        let root = place.resolve_project(env)?;
        let above = if place.project.is_some() { 1 } else { usize::MAX };
        let mut folders = root.ancestors().take(above).map(|folder| Self::at_root(env, folder));
        let found = folders.find(|threads| threads.store.exists());
        let threads = found.ok_or_else(|| {
            let error = CommandError::user(format!("no threads in {}", root.display()));
            error.hint("run `steno init` in the project's folder first")
        })?;
        for problem in threads.store.problems().map_err(explain_thread_error)? {
            ui.warning(problem);
        }
        finish_killed_runs(ui, env, &threads.store);
        Ok(threads)
    }

    /// The folder in which threads are to be, whether there are any or not.
    pub(crate) fn for_flags(
        env: &ProcessEnvironment,
        place: &ThreadFlags,
    ) -> Result<Self, CommandError> {
        Ok(Self::at_root(env, &place.resolve_project(env)?))
    }

    /// The threads of the working folder, or of the nearest above that has some; where none has, there will be some here.
    pub(crate) fn for_working_folder(env: &ProcessEnvironment) -> Self {
        let mut folders = env.cwd.ancestors().map(|folder| Self::at_root(env, folder));
        folders
            .find(|threads| threads.store.exists())
            .unwrap_or_else(|| Self::at_root(env, &env.cwd))
    }

    /// Finishes the runs that were killed in the project of the working folder, if it has threads.
    pub(crate) fn finish_killed_runs_near(ui: &mut Ui, env: &ProcessEnvironment) {
        let threads = Self::for_working_folder(env);
        if threads.store.exists() {
            finish_killed_runs(ui, env, &threads.store);
        }
    }

    fn at_root(env: &ProcessEnvironment, root: &Path) -> Self {
        Self { store: ThreadStore::new(root, env.clock.clone(), IdSource::random()) }
    }

    /// The thread that is meant: its id, a beginning that only it has, or `latest`.
    pub(crate) fn find_thread(&self, text: &str) -> Result<Thread, CommandError> {
        let mut threads = self.store.threads(None).map_err(explain_thread_error)?;
        let ids: Vec<_> = threads.iter().map(|thread| thread.id.as_str()).collect();
        let at = IdQuery { noun: "thread", text, prefix: "thread-" }.find_index(&ids)?;
        Ok(threads.swap_remove(at))
    }

    /// The ids of the threads that are meant.
    pub(crate) fn find_ids(&self, texts: &[String]) -> Result<Vec<String>, CommandError> {
        texts.iter().map(|text| Ok(self.find_thread(text)?.id.to_string())).collect()
    }

    /// Tells which of the paths that were asked for a thread does not have, and what else was left out.
    pub(crate) fn warn_missing_paths(
        &self,
        ui: &mut Ui,
        thread: &Id,
        scope: &[String],
        warnings: &[Warning],
    ) -> Result<(), CommandError> {
        let folder = self.store.folder(thread).map_err(explain_thread_error)?;
        for path in scope {
            let leads_out = warnings.contains(&Warning::LeadsOut(path.clone()));
            if !leads_out && !folder.join(path).exists() {
                ui.warning(format_args!("{thread} has no such file or folder: {path}"));
            }
        }
        report_warnings(ui, warnings);
        Ok(())
    }

    /// The objective that is meant, as threads are.
    pub(crate) fn find_objective(&self, text: &str) -> Result<Objective, CommandError> {
        let mut objectives = self.store.objectives().map_err(explain_thread_error)?;
        let ids: Vec<_> = objectives.iter().map(|objective| objective.id.as_str()).collect();
        let at = IdQuery { noun: "objective", text, prefix: "obj-" }.find_index(&ids)?;
        Ok(objectives.swap_remove(at))
    }
}

impl ThreadFlags {
    fn resolve_project(&self, env: &ProcessEnvironment) -> Result<PathBuf, CommandError> {
        match &self.project {
            Some(folder) => project_folder::resolve_folder(&env.cwd.join(folder)),
            None => Ok(env.cwd.clone()),
        }
    }
}

/// What a user calls a thread or an objective.
struct IdQuery<'a> {
    noun: &'static str,
    text: &'a str,
    prefix: &'static str,
}

impl IdQuery<'_> {
    /// Which of the ids, oldest first, is meant.
    fn find_index(&self, ids: &[&str]) -> Result<usize, CommandError> {
        let text = self.text;
        if let Some(at) = ids.iter().position(|id| *id == text) {
            return Ok(at);
        }
        if text == "latest" && !ids.is_empty() {
            return Ok(ids.len() - 1);
        }
        let begins = |id: &str| {
            let short = id.strip_prefix(self.prefix).unwrap_or(id);
            !text.is_empty() && (id.starts_with(text) || short.starts_with(text))
        };
        let begun: Vec<_> = (0..ids.len()).filter(|at| begins(ids[*at])).collect();
        match begun.as_slice() {
            [only] => Ok(*only),
            [] => Err(self.missing_error(ids)),
            several => {
                let names: Vec<_> = several.iter().take(3).map(|at| ids[*at]).collect();
                let error = CommandError::user(format!("several {}s begin so: {text}", self.noun));
                Err(error.hint(format!("it may be {}", names.join(", "))))
            }
        }
    }

    fn missing_error(&self, ids: &[&str]) -> CommandError {
        let error = CommandError::user(format!("no such {}: {}", self.noun, self.text));
        if ids.is_empty() {
            return error.hint(format!("there is no {} yet", self.noun));
        }
        error.hint("`steno status` lists them")
    }
}

/// Takes one of the words that threads know.
pub(crate) fn word_parser<T>(words: &'static [&'static str]) -> impl TypedValueParser<Value = T>
where
    T: FromStr + Clone + Send + Sync + 'static,
{
    PossibleValuesParser::new(words).map(|word| word.parse().ok().expect("one of the words"))
}

/// Tells what was left out.
pub(crate) fn report_warnings(ui: &mut Ui, warnings: &[Warning]) {
    for warning in warnings {
        ui.warning(match warning {
            Warning::TargetNotFound(id) | Warning::ReferencedNotFound(id) => {
                format!("a thread that is referred to is gone: {id}")
            }
            Warning::LeadsOut(path) => format!("not copied, it leads out of the thread: {path}"),
            Warning::NotCopied(path) => format!("not copied, neither file nor folder: {path}"),
        });
    }
}

/// Puts the guide into the project's `AGENTS.md`; what is delicate is asked first unless it was said `yes` to.
pub(crate) fn install_guide(ui: &mut Ui, root: &Path, yes: bool) -> Result<Outcome, ThreadError> {
    let mut confirm = |from: &str, to: &str| yes || ui.confirm(confirm_question(from, to));
    Guide::ours().put(&root.join("AGENTS.md"), Some(&mut confirm))
}

fn confirm_question(from: &str, to: &str) -> String {
    if from.split('.').next() == to.split('.').next() {
        return format!("Older guide ahead ({from} -> {to}). Continue? [y/N] ");
    }
    format!("Major guide update detected ({from} -> {to}). Continue? [y/N] ")
}

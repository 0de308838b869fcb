//! The threads of a project: finds them by id, and installs the guide for agents.

use std::path::{Path, PathBuf};
use std::str::FromStr;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use steno_seeds::thread::guide::{GuideOutcome, LeslieGuide};
use steno_seeds::thread::{
    IdSource, LeslieId, Objective, Thread, ThreadError, ThreadStore, ThreadWarning,
};

use crate::error::CommandError;
use crate::process_environment::ProcessEnvironment;
use crate::project_folder;
use crate::thread_error::explain_thread_error;
use crate::thread_run::finish_killed_runs;
use crate::ui::Ui;

/// Flags of all thread commands.
#[derive(Debug, clap::Args)]
pub(crate) struct ThreadFlags {
    /// Project folder [default: this one, or the nearest above that has threads].
    #[arg(long, value_name = "DIR")]
    pub(crate) project: Option<PathBuf>,
    /// Print JSON Lines.
    #[arg(long)]
    pub(crate) json: bool,
}

/// A thread given on the command line.
#[derive(Debug, clap::Args)]
pub(crate) struct ThreadArgument {
    /// Thread id, unique prefix, or `latest`.
    thread: String,
    #[command(flatten)]
    pub(crate) flags: ThreadFlags,
}

impl ThreadArgument {
    /// Finds the thread and opens its project.
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
    /// Opens existing threads. Killed runs are finished first.
    pub(crate) fn open_existing(
        ui: &mut Ui,
        env: &ProcessEnvironment,
        flags: &ThreadFlags,
    ) -> Result<Self, CommandError> {
        let root = flags.resolve_project(env)?;
        let above = if flags.project.is_some() { 1 } else { usize::MAX };
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

    /// Returns the threads of the given project; they may not exist yet.
    pub(crate) fn for_flags(
        env: &ProcessEnvironment,
        flags: &ThreadFlags,
    ) -> Result<Self, CommandError> {
        Ok(Self::at_root(env, &flags.resolve_project(env)?))
    }

    /// Returns the threads of the working folder or the nearest folder above with threads; else of the working
    /// folder.
    pub(crate) fn for_working_folder(env: &ProcessEnvironment) -> Self {
        let mut folders = env.cwd.ancestors().map(|folder| Self::at_root(env, folder));
        folders
            .find(|threads| threads.store.exists())
            .unwrap_or_else(|| Self::at_root(env, &env.cwd))
    }

    /// Finishes killed runs in the project of the working folder, if it has threads.
    pub(crate) fn finish_killed_runs_near(ui: &mut Ui, env: &ProcessEnvironment) {
        let threads = Self::for_working_folder(env);
        if threads.store.exists() {
            finish_killed_runs(ui, env, &threads.store);
        }
    }

    fn at_root(env: &ProcessEnvironment, root: &Path) -> Self {
        Self { store: ThreadStore::new(root, env.clock.clone(), IdSource::random()) }
    }

    /// Finds a thread by id, unique prefix, or `latest`.
    pub(crate) fn find_thread(&self, text: &str) -> Result<Thread, CommandError> {
        let mut threads = self.store.list_threads(None).map_err(explain_thread_error)?;
        let ids: Vec<_> = threads.iter().map(|thread| thread.id.as_str()).collect();
        let at = IdQuery { noun: "thread", text, prefix: "thread-" }.find_index(&ids)?;
        Ok(threads.swap_remove(at))
    }

    /// Returns the ids of the given threads.
    pub(crate) fn find_ids(&self, texts: &[String]) -> Result<Vec<String>, CommandError> {
        texts.iter().map(|text| Ok(self.find_thread(text)?.id.to_string())).collect()
    }

    /// Reports given paths that the thread does not have, and other warnings.
    pub(crate) fn warn_missing_paths(
        &self,
        ui: &mut Ui,
        thread: &LeslieId,
        scope: &[String],
        warnings: &[ThreadWarning],
    ) -> Result<(), CommandError> {
        let folder = self.store.thread_folder(thread).map_err(explain_thread_error)?;
        for path in scope {
            let leads_out = warnings.contains(&ThreadWarning::LeadsOut(path.clone()));
            if !leads_out && !folder.join(path).exists() {
                ui.warning(format_args!("{thread} has no such file or folder: {path}"));
            }
        }
        report_warnings(ui, warnings);
        Ok(())
    }

    /// Finds an objective by id, unique prefix, or `latest`.
    pub(crate) fn find_objective(&self, text: &str) -> Result<Objective, CommandError> {
        let mut objectives = self.store.list_objectives().map_err(explain_thread_error)?;
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

/// The id of a thread or an objective, as given by the user.
struct IdQuery<'a> {
    noun: &'static str,
    text: &'a str,
    prefix: &'static str,
}

impl IdQuery<'_> {
    /// Returns the index of the matching id; the ids are sorted oldest first.
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
        let matching: Vec<_> = (0..ids.len()).filter(|at| begins(ids[*at])).collect();
        match matching.as_slice() {
            [only] => Ok(*only),
            [] => Err(self.missing_error(ids)),
            several => {
                let names: Vec<_> = several.iter().take(3).map(|at| ids[*at]).collect();
                let error = CommandError::user(format!("ambiguous {} id: {text}", self.noun));
                Err(error.hint(format!("one of: {}", names.join(", "))))
            }
        }
    }

    fn missing_error(&self, ids: &[&str]) -> CommandError {
        let error = CommandError::user(format!("no such {}: {}", self.noun, self.text));
        if ids.is_empty() {
            return error.hint(format!("no {}s yet", self.noun));
        }
        error.hint("`steno status` lists them")
    }
}

/// Returns a parser for an enumerated word.
pub(crate) fn word_parser<T>(words: &'static [&'static str]) -> impl TypedValueParser<Value = T>
where
    T: FromStr + Clone + Send + Sync + 'static,
{
    PossibleValuesParser::new(words).map(|word| word.parse().ok().expect("one of the words"))
}

/// Prints warnings.
pub(crate) fn report_warnings(ui: &mut Ui, warnings: &[ThreadWarning]) {
    for warning in warnings {
        ui.warning(match warning {
            ThreadWarning::TargetNotFound(id) | ThreadWarning::ReferencedNotFound(id) => {
                format!("referenced thread no longer exists: {id}")
            }
            ThreadWarning::LeadsOut(path) => format!("not copied, outside of the thread: {path}"),
            ThreadWarning::NotCopied(path) => format!("not copied, not a file or folder: {path}"),
        });
    }
}

/// Installs the guide in the project's `AGENTS.md`. Asks before a major change, unless `yes`.
pub(crate) fn install_guide(
    ui: &mut Ui,
    root: &Path,
    yes: bool,
) -> Result<GuideOutcome, ThreadError> {
    let mut confirm = |from: &str, to: &str| yes || ui.confirm(confirm_question(from, to));
    LeslieGuide::built_in().put_into(&root.join("AGENTS.md"), Some(&mut confirm))
}

fn confirm_question(from: &str, to: &str) -> String {
    if from.split('.').next() == to.split('.').next() {
        return format!("Older guide ahead ({from} -> {to}). Continue? [y/N] ");
    }
    format!("Major guide update detected ({from} -> {to}). Continue? [y/N] ")
}

//! Writes the files of a continued session, and reads them back before the agent starts.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use steno_agents::agent::Agent;
use steno_agents::agent::continuation::conversation::ContinuedConversation;
use steno_agents::agent::continuation::{
    ContinuationFile, ContinuationFiles, ContinuationRule, check_bundle,
};
use steno_agents::agent::user_folders::UserFolders;
use steno_model::durable;
use steno_vault::{SessionBundle, SessionDir};

use crate::error::CommandError;
use crate::process_environment::ProcessEnvironment;
use crate::ui::Ui;
use crate::write_permission::WritePermission;

/// A session to write.
pub(super) struct SessionWriter<'a> {
    pub(super) env: &'a ProcessEnvironment,
    /// The session that is continued.
    pub(super) session: &'a SessionDir,
    pub(super) agent: &'static Agent,
    pub(super) rule: &'static ContinuationRule,
    pub(super) folder: &'a Path,
    pub(super) files: &'a ContinuationFiles,
    pub(super) conversation: &'a ContinuedConversation,
}

impl SessionWriter<'_> {
    /// Reports what would be written.
    pub(super) fn report_targets(&self, ui: &mut Ui) {
        if let Some(line) = self.import_line(&self.files.session_file.path) {
            ui.print_note(format_args!("would run {}", line.join(" ")));
            return;
        }
        for file in self.all_files() {
            ui.print_note(format_args!("would write {}", file.path.display()));
        }
    }

    /// Writes the session, or has the agent import it, and reads it back.
    pub(super) fn write_session(&self, ui: &mut Ui) -> Result<(), CommandError> {
        if self.rule.import_arguments.is_some() {
            let bundle = self.import_session()?;
            self.check_written(&bundle, "it stays in the agent's database, and was not started")?;
            ui.status(format_args!("imported {}", self.files.session_id));
            return Ok(());
        }
        let targets: Vec<PathBuf> = self.all_files().map(|file| file.path.clone()).collect();
        WritePermission::new(self.env, self.session, &|| Ok(Vec::new()))
            .check_protected(&targets)?;
        for file in self.all_files() {
            write_new_file(file)?;
        }
        let path = &self.files.session_file.path;
        let checked = self.find_written(path).and_then(|bundle| {
            self.check_written(&bundle, "the file was removed again, and the agent was not started")
        });
        if checked.is_err() {
            durable::remove_file(path)?;
        }
        checked?;
        ui.status(format_args!("wrote {}", path.display()));
        Ok(())
    }

    fn all_files(&self) -> impl Iterator<Item = &ContinuationFile> {
        self.files.other_files.iter().chain([&self.files.session_file])
    }

    fn check_written(&self, bundle: &SessionBundle, hint: &str) -> Result<(), CommandError> {
        check_bundle(self.agent.reader, bundle, self.conversation)
            .map_err(|error| CommandError::user(error).hint(hint))
    }

    fn find_written(&self, path: &Path) -> Result<SessionBundle, CommandError> {
        let found = self.agent.reader.find_at(path)?.into_iter().next();
        found.ok_or_else(|| {
            CommandError::user(format!("the written session is not found: {}", path.display()))
        })
    }

    fn import_line(&self, file: &Path) -> Option<Vec<String>> {
        let program = self.agent.resume.as_ref()?.program;
        let words = self.rule.import_arguments?.iter();
        let words = words.map(|word| word.replace("{file}", &file.to_string_lossy()));
        Some(std::iter::once(program.to_owned()).chain(words).collect())
    }

    /// Has the agent import the file, and returns the session in its database.
    fn import_session(&self) -> Result<SessionBundle, CommandError> {
        let scratch = tempfile::tempdir()?;
        let path = scratch.path().join(&self.files.session_file.path);
        fs::write(&path, &self.files.session_file.bytes)?;
        let line = self.import_line(&path).unwrap_or_default();
        let [program, arguments @ ..] = line.as_slice() else {
            unreachable!("an agent that imports has a program");
        };
        let mut command = Command::new(program);
        command.args(arguments).current_dir(self.folder).env("PWD", self.folder);
        let output = command.stdin(Stdio::null()).output()?;
        if !output.status.success() {
            let reason = String::from_utf8_lossy(&output.stderr).trim().to_owned();
            let message = format!("{program} could not import the session: {reason}");
            return Err(CommandError::user(message).hint("use --brief for a hand-off note instead"));
        }
        let user = UserFolders { home: &self.env.home, variable: &ProcessEnvironment::variable };
        for place in (self.agent.locations)(&user).iter().filter(|place| place.exists()) {
            let bundles = self.agent.reader.find_at(place)?;
            let id = self.files.session_id.as_str();
            let is_own = |bundle: &SessionBundle| {
                let is_named = || bundle.root.file_stem().is_some_and(|name| name == id);
                bundle.key.as_deref().map_or_else(is_named, |key| key == id)
            };
            if let Some(bundle) = bundles.into_iter().find(is_own) {
                return Ok(bundle);
            }
        }
        let message = format!("{program} did not keep the session: {}", self.files.session_id);
        Err(CommandError::user(message).hint("use --brief for a hand-off note instead"))
    }
}

/// Writes a file that must not exist yet. A file with the same content is fine.
fn write_new_file(file: &ContinuationFile) -> Result<(), CommandError> {
    durable::create_private_dir(durable::parent_folder(&file.path))?;
    if durable::create_atomic(&file.path, &file.bytes)? || fs::read(&file.path)? == file.bytes {
        return Ok(());
    }
    Err(CommandError::user(format!("the file exists: {}", file.path.display()))
        .hint("run it again"))
}

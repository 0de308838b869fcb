//! `steno resume ID --in AGENT`: writes a session of another agent that continues this one, and starts that agent.

use std::path::{Path, PathBuf};

use clap::builder::{PossibleValue, PossibleValuesParser, TypedValueParser};
use steno_agents::agent::Agent;
use steno_agents::agent::continuation::context_cut::{ContextCut, conversation_limit};
use steno_agents::agent::continuation::conversation::{ContinuedConversation, NoticeHandling};
use steno_agents::agent::continuation::image_segments::ContinuedImage;
use steno_agents::agent::continuation::notice::ContinuationNotice;
use steno_agents::agent::continuation::{
    ContinuationError, ContinuationFiles, ContinuationRequest, ContinuationRule, check_files,
};
use steno_agents::agent::resume::{ResumeCommand, ResumeLocationError};
use steno_agents::agent::user_folders::UserFolders;
use steno_agents::registry;
use steno_model::Session;
use steno_model::prompt::{CONTINUED_SESSION_TAG, continued_session_start};
use steno_model::unique_id::new_unique_id;
use steno_store::view::handoff::HandoffNote;
use steno_store::view::redaction::SecretRedactor;
use steno_vault::SessionDir;

use super::written_session::SessionWriter;
use super::{AgentCommandLine, exec_agent};
use crate::agent_version::installed_version;
use crate::byte_size::ByteSize;
use crate::config::Config;
use crate::error::{CommandError, CommandExit};
use crate::process_environment::ProcessEnvironment;
use crate::project_folder;
use crate::session_store::PicturedTranscript;
use crate::ui::{Ui, count_noun};

/// Options for continuing in another agent.
#[derive(Debug, clap::Args)]
pub(super) struct OtherAgentOptions {
    /// Continue in another agent: write a session of that agent with the conversation so far, and start it.
    #[arg(
        long = "in",
        value_name = "AGENT",
        value_parser = continuing_agent_parser(),
        conflicts_with_all = ["prompts", "agent"]
    )]
    pub(super) in_agent: Option<&'static Agent>,
    /// With --in: start with a hand-off note instead of the conversation, as `steno handoff` prints it.
    #[arg(long, requires = "in_agent")]
    brief: bool,
    /// With --in: largest size of the conversation, such as 300 KB [default: half the context of the agent's usual
    /// model].
    #[arg(long, value_name = "SIZE", requires = "in_agent", conflicts_with = "brief")]
    max_size: Option<ByteSize>,
    /// With --in: write the session and print the command, without starting the agent.
    #[arg(long, requires = "in_agent", conflicts_with_all = ["print", "brief"])]
    write_only: bool,
}

/// Parses the name of an agent that can continue sessions of others.
fn continuing_agent_parser() -> impl TypedValueParser<Value = &'static Agent> {
    let names = continuing_agents().map(|agent| {
        let short = agent.launch.as_ref().map(|launch| launch.name);
        let short = short.filter(|short| *short != agent.name());
        short.iter().fold(PossibleValue::new(agent.name()), |value, short| value.alias(*short))
    });
    PossibleValuesParser::new(names.collect::<Vec<_>>()).map(|name| {
        let is_named = |agent: &&Agent| {
            agent.name() == name || agent.launch.as_ref().is_some_and(|launch| launch.name == name)
        };
        continuing_agents().find(is_named).expect("only names of these agents are accepted")
    })
}

fn continuing_agents() -> impl Iterator<Item = &'static Agent> {
    registry::all_agents().filter(|agent| agent.continuation.is_some())
}

/// What to continue, and how.
pub(super) struct OtherAgentRequest<'a> {
    pub(super) session: SessionDir,
    pub(super) agent: &'static Agent,
    pub(super) project: Option<&'a Path>,
    pub(super) options: &'a OtherAgentOptions,
    /// Whether nothing is written and the command is only printed.
    pub(super) is_printed: bool,
}

/// Continues a session in another agent.
pub(super) fn continue_in_agent(
    ui: &mut Ui,
    env: &ProcessEnvironment,
    request: &OtherAgentRequest<'_>,
) -> Result<CommandExit, CommandError> {
    let OtherAgentRequest { session, agent, options, is_printed, .. } = request;
    let pictured = PicturedTranscript::from_session(session)?;
    ui.report_problems(&pictured.transcript.problems);
    let target = ContinuationTarget::new(env, request, &pictured.transcript.session)?;
    let line = if options.brief {
        target.note_command(ui, &pictured)?
    } else if pictured.transcript.session.agent == agent.name() {
        let error = CommandError::user(format!("the session is one of {} already", agent.name()));
        return Err(error.hint("leave out --in, or add --brief to start a new session"));
    } else {
        target.write_continuation(ui, &pictured)?
    };
    if *is_printed || options.write_only {
        ui.transcript_text(&format!("{line}\n"))?;
        return Ok(CommandExit::Done);
    }
    ui.flush()?;
    exec_agent(line)
}

/// The agent and folder to continue in.
struct ContinuationTarget<'a> {
    env: &'a ProcessEnvironment,
    request: &'a OtherAgentRequest<'a>,
    rule: &'static ContinuationRule,
    resume: ResumeCommand,
    folder: PathBuf,
}

impl<'a> ContinuationTarget<'a> {
    fn new(
        env: &'a ProcessEnvironment,
        request: &'a OtherAgentRequest<'a>,
        session: &Session,
    ) -> Result<Self, CommandError> {
        let folder = match request.project {
            Some(named) => env.cwd.join(named),
            None => project_folder::session_folder(env, session, true)?,
        };
        let folder = project_folder::resolve_folder(&folder)?;
        let agent = request.agent;
        let (Some(rule), Some(resume)) = (&agent.continuation, ResumeCommand::of_agent(agent))
        else {
            unreachable!("the command line accepts only agents with both");
        };
        Ok(Self { env, request, rule, resume, folder })
    }

    /// The command that starts a new session with a hand-off note as its first prompt.
    fn note_command(
        &self,
        ui: &mut Ui,
        pictured: &PicturedTranscript,
    ) -> Result<AgentCommandLine, CommandError> {
        if !self.request.is_printed {
            self.check_version(ui)?;
        }
        let session = &pictured.transcript.session;
        let start = continued_session_start(&session.agent, session.id.as_str());
        Config::load(self.env)?.configure_redaction()?;
        // Arguments of processes are public.
        let mut transcript = pictured.transcript.clone();
        SecretRedactor::default().redact_transcript(&mut transcript);
        let note = HandoffNote::from_transcript(&transcript).to_markdown();
        let prompt = format!(
            "{start}\nThe note below describes an earlier session. Continue its work.\n</{CONTINUED_SESSION_TAG}>\n\n\
             {note}"
        );
        let arguments = self.rule.prompt_arguments.iter();
        let arguments = arguments.map(|word| word.replace("{prompt}", &prompt)).collect();
        Ok(self.command_line(arguments))
    }

    /// Writes the session, unless the command is only printed, and returns the command that resumes it.
    fn write_continuation(
        &self,
        ui: &mut Ui,
        pictured: &PicturedTranscript,
    ) -> Result<AgentCommandLine, CommandError> {
        let version = self.check_version(ui)?;
        let mut conversation = ContinuedConversation::from_entries(
            &pictured.transcript.entries,
            NoticeHandling::LeftOut,
        );
        if conversation.items.is_empty() {
            let id = self.request.session.id();
            return Err(CommandError::user(format!("the session has no conversation: {id}"))
                .hint("run `steno sync` first if it is new"));
        }
        let default = conversation_limit(self.rule.context_tokens);
        let limit = self.request.options.max_size.map_or(default, |size| size.0);
        let cut = conversation.cut_to_limit(limit);
        let files = self.make_files(
            pictured,
            &conversation,
            &ContinuationDetails { version, cut: cut.as_ref() },
        )?;
        check_files(self.request.agent.reader, &files, &conversation)
            .map_err(|error| self.explain_refusal(error))?;
        self.report_conversation(ui, &conversation, cut.as_ref());
        let (session, agent) = (&self.request.session, self.request.agent);
        let writer = SessionWriter {
            env: self.env,
            session,
            agent,
            rule: self.rule,
            folder: &self.folder,
            files: &files,
            conversation: &conversation,
        };
        match self.request.is_printed {
            true => writer.report_targets(ui),
            false => writer.write_session(ui)?,
        }
        let path = &files.session_file.path;
        let arguments = self.resume.arguments(&files.session_id, path);
        Ok(self.command_line(arguments.expect("ids that Steno makes are plain")))
    }

    fn make_files(
        &self,
        pictured: &PicturedTranscript,
        conversation: &ContinuedConversation,
        details: &ContinuationDetails<'_>,
    ) -> Result<ContinuationFiles, CommandError> {
        let session = &pictured.transcript.session;
        let origin = registry::agent_named(&session.agent);
        let notice = ContinuationNotice {
            agent: &session.agent,
            display_name: origin.map_or(session.agent.as_str(), |agent| agent.display_name),
            session: session.id.as_str(),
            counts: conversation.counts(),
            cut: details.cut,
        };
        let images = |hash: &str| {
            let picture = pictured.pictures.get(hash)?;
            let (media_type, base64) = (picture.media_type.to_owned(), picture.base64.clone());
            Some(ContinuedImage { media_type, base64 })
        };
        let user = UserFolders { home: &self.env.home, variable: &ProcessEnvironment::variable };
        let now = self.env.clock.now();
        let request = ContinuationRequest {
            conversation,
            notice: &notice.to_text(),
            title: session.title.as_deref().unwrap_or("Continued session"),
            origin_agent: &session.agent,
            images: &images,
            folder: &self.folder,
            branch: session.branch.as_deref(),
            user: &user,
            version: &details.version,
            id: new_unique_id(now),
            now,
        };
        (self.rule.write)(&request).map_err(|error| self.explain_refusal(error))
    }

    /// The version of the agent. Warns about one that Steno was not tested with.
    fn check_version(&self, ui: &mut Ui) -> Result<String, CommandError> {
        let (program, tested) = (self.resume.program(), self.rule.tested_versions);
        let names = tested.join(", ");
        let version = match installed_version(program) {
            Err(error) if self.request.is_printed => {
                ui.warning(error.to_line());
                return Ok(tested[0].to_owned());
            }
            other => other?,
        };
        match version {
            Some(version) if tested.contains(&version.as_str()) => Ok(version),
            Some(version) => {
                ui.warning(format_args!(
                    "{program} {version} is untested with --in (tested: {names})"
                ));
                Ok(version)
            }
            None => {
                ui.warning(format_args!("{program} states no version (tested with --in: {names})"));
                Ok(tested[0].to_owned())
            }
        }
    }

    fn report_conversation(
        &self,
        ui: &mut Ui,
        conversation: &ContinuedConversation,
        cut: Option<&ContextCut>,
    ) {
        if let Some(cut) = cut {
            let (units, items) = (cut.units as u64, cut.items as u64);
            ui.warning(format_args!(
                "left out {} from the start ({}): longer than the context; --max-size sets another limit",
                count_noun(units, "request"),
                count_noun(items, "item")
            ));
        }
        let results = conversation.left_out.results as u64;
        if results > 0 {
            ui.warning(format_args!("left out {} without a call", count_noun(results, "result")));
        }
        let counts = conversation.counts();
        ui.status(format_args!(
            "{}, {} and {} for {}",
            count_noun(counts.prompts as u64, "prompt"),
            count_noun(counts.answers as u64, "answer"),
            count_noun(counts.calls as u64, "tool call"),
            self.request.agent.display_name
        ));
    }

    fn explain_refusal(&self, error: ContinuationError) -> CommandError {
        let hint = match &error {
            ContinuationError::Location(ResumeLocationError::NoSessionsYet { .. }) => {
                format!("start `{}` there once", self.resume.program())
            }
            _ => "nothing was written; use --brief for a hand-off note instead".to_owned(),
        };
        CommandError::user(error).hint(hint)
    }

    fn command_line(&self, arguments: Vec<String>) -> AgentCommandLine {
        AgentCommandLine { folder: self.folder.clone(), program: self.resume.program(), arguments }
    }
}

/// What the files state beside the conversation.
struct ContinuationDetails<'a> {
    version: String,
    cut: Option<&'a ContextCut>,
}

//! Flags that select sessions and times, shared by search and statistics.

use std::sync::Arc;

use steno_model::SessionId;
use steno_model::moment::DayEdge;
use steno_store::entry_filter::SelectedSessions;
use steno_store::index::EntryFilter;

use crate::error::CommandError;
use crate::moment;
use crate::process_environment::ProcessEnvironment;

/// Flags that select sessions and times.
#[derive(Clone, Debug, clap::Args)]
pub(crate) struct SessionScope {
    /// Only this agent.
    #[arg(long, value_name = "NAME")]
    pub(crate) agent: Option<String>,
    /// Only sessions of this project: its folder, or the last part of its path.
    #[arg(long, value_name = "DIR")]
    project: Option<String>,
    /// Only models with this text in their name.
    #[arg(long, value_name = "NAME")]
    pub(crate) model: Option<String>,
    /// Only since this time: a date, a month, `today`, `yesterday`, a time, or 12h, 7d, 2w, 1mo ago.
    #[arg(long, value_name = "TIME")]
    since: Option<String>,
    /// Only before this time, or up to the end of this day.
    #[arg(long, value_name = "TIME")]
    until: Option<String>,
    /// Only this session: id, unique prefix, or `latest`.
    #[arg(long, value_name = "ID")]
    pub(crate) session: Option<String>,
    /// Only sessions of this thread.
    #[arg(long, value_name = "NAME")]
    thread: Option<String>,
    /// Only sessions of this member of the team.
    #[arg(long, value_name = "NAME", requires = "from")]
    person: Option<String>,
}

impl SessionScope {
    /// Returns the project as it was typed.
    pub(crate) fn project(&self) -> Option<&str> {
        self.project.as_deref()
    }

    /// Returns the first flag that was given.
    pub(crate) fn first_flag(&self) -> Option<&'static str> {
        let flags = [
            ("--agent", &self.agent),
            ("--project", &self.project),
            ("--model", &self.model),
            ("--since", &self.since),
            ("--until", &self.until),
            ("--session", &self.session),
            ("--thread", &self.thread),
            ("--person", &self.person),
        ];
        flags.into_iter().find_map(|(flag, value)| value.as_ref().map(|_| flag))
    }

    /// Returns whether the sessions of one person are selected.
    pub(crate) fn has_person(&self) -> bool {
        self.person.is_some()
    }

    /// Converts the flags to an index filter; `session` resolves a session name.
    pub(crate) fn to_filter(
        &self,
        env: &ProcessEnvironment,
        session: impl Fn(&str) -> Result<SessionId, CommandError>,
    ) -> Result<EntryFilter, CommandError> {
        let moment = |text: &Option<String>, edge| {
            text.as_ref().map(|text| moment::parse_moment(text, edge, env)).transpose()
        };
        let since = moment(&self.since, DayEdge::Begin)?;
        let until = moment(&self.until, DayEdge::End)?;
        let is_empty =
            since.zip(until).is_some_and(|(since, until)| since.instant() >= until.instant());
        if is_empty && self.since != self.until {
            let (since, until) = (self.since.as_deref(), self.until.as_deref());
            let (since, until) = (since.unwrap_or_default(), until.unwrap_or_default());
            let text = format!("--since {since} is later than --until {until}");
            return Err(
                CommandError::usage(text).hint("use an earlier --since, or a later --until")
            );
        }
        Ok(EntryFilter {
            agent: self.agent.clone(),
            project: self.project.as_deref().map(|project| resolve_project(env, project)),
            model: self.model.clone(),
            since,
            until,
            session: self.session.as_deref().map(session).transpose()?,
            thread: self.thread.clone(),
            only: self.person.as_deref().map(|person| select_person(env, person)).transpose()?,
            ..EntryFilter::default()
        })
    }
}

/// Selects the sessions of a person in a mirror.
fn select_person(
    env: &ProcessEnvironment,
    person: &str,
) -> Result<Arc<SelectedSessions>, CommandError> {
    let owners = env.session_owners();
    let people = owners.people();
    if !people.contains(&person) {
        let error = CommandError::user(format!("no sessions of {person}"));
        return Err(error.hint(format!("people with sessions: {}", people.join(", "))));
    }
    Ok(Arc::new(owners.select(|owner| owner.person == person)))
}

/// Returns how the index knows a project that was typed: an existing folder by its full path.
pub(crate) fn resolve_project(env: &ProcessEnvironment, project: &str) -> String {
    let named = env.cwd.join(project);
    let known = named.canonicalize().ok().filter(|named| named.is_dir());
    let name =
        known.map_or_else(|| project.to_owned(), |named| named.to_string_lossy().into_owned());
    name.trim_end_matches('/').to_owned()
}

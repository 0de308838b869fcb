//! The recorded sessions that a server may serve.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};

use jiff::tz::TimeZone;
use steno_model::moment::{self, DayEdge, LocalNow};
use steno_model::{Session, Timestamp, Transcript};
use steno_store::StoreLocation;
use steno_store::cost::PriceTable;
use steno_store::index::{EntryFilter, Index, IndexError, SessionFilter, StoreIndex};
use steno_store::private_sessions::{PrivacyRules, PrivateSessions};
use steno_store::session_owners::{SessionOwners, SessionVisibility};
use steno_store::transcript::ReadTranscript;
use steno_vault::Vault;

use crate::history_scope::HistoryScope;
use crate::quoted_text::make_quotable_line;
use crate::tool_error::ToolError;

/// How many sessions a message about an ambiguous id lists.
const MAX_CANDIDATES: usize = 5;

/// What a server serves.
#[derive(Clone)]
pub struct HistoryOptions {
    /// The store.
    pub store: StoreLocation,
    /// The sessions to serve.
    pub scope: HistoryScope,
    /// The sessions that are never served. Those with a private note are added.
    pub privacy: PrivacyRules,
    /// What tokens cost.
    pub prices: PriceTable,
    /// The time zone of dates.
    pub zone: TimeZone,
    /// Called before each tool call, to start a sync if one is due.
    pub before_call: Arc<dyn Fn() + Send + Sync>,
    /// The team whose sessions the store has, if it is the mirror of a remote.
    pub team: Option<TeamHistory>,
}

/// A team whose sessions are served.
#[derive(Clone)]
pub struct TeamHistory {
    /// The name of the remote.
    pub remote: String,
    /// Returns whose sessions the mirror has now. A session without an owner is not served.
    pub owners: Arc<dyn Fn() -> Arc<SessionOwners> + Send + Sync>,
    /// This user's own sessions. Those with a private note are not served from the mirror either.
    pub own_vault: Vault,
}

/// The recorded sessions that a server may serve.
pub struct AgentHistory {
    options: HistoryOptions,
    vault: Vault,
    source: StoreIndex,
    /// The connection of the last query.
    idle_index: Mutex<Option<Index>>,
}

/// A time span as a call states it.
pub(crate) struct TimeSpan {
    pub(crate) since: Option<String>,
    pub(crate) until: Option<String>,
}

impl AgentHistory {
    /// The history of a store. Reads nothing yet.
    pub fn new(options: HistoryOptions) -> Self {
        let (vault, source) = (options.store.vault(), options.store.index());
        Self { options, vault, source, idle_index: Mutex::default() }
    }

    /// Prepares for a call.
    pub(crate) fn begin_call(&self) -> Result<(), ToolError> {
        if let HistoryScope::Nothing(folder) = &self.options.scope {
            return Err(ToolError::arguments(format!(
                "this server was started in {}, which is not a project; start it in a project, or with \
                 `steno mcp --all`",
                folder.display()
            )));
        }
        (self.options.before_call)();
        Ok(())
    }

    /// Queries the index after a refresh. `ask` gets the sessions that must not be served.
    pub(crate) fn query<T>(
        &self,
        ask: impl Fn(&Index, &PrivateSessions) -> Result<T, IndexError>,
    ) -> Result<T, ToolError> {
        let mut rules = self.options.privacy.clone().with_tagged_sessions(&self.vault)?;
        let team = self.options.team.as_ref();
        if let Some(team) = team {
            rules = rules.with_tagged_sessions(&team.own_vault)?;
        }
        let owners = team.map(|team| (team.owners)());
        let ask = |index: &Index| {
            let mut private = index.find_private_sessions(&rules)?;
            if let Some(owners) = &owners {
                private.extend(index.find_unselected_sessions(&|agent, id| {
                    let owner = owners.find(agent, id);
                    owner.is_some_and(|owner| owner.visibility != SessionVisibility::Private)
                })?);
            }
            ask(index, &private)
        };
        let mut refresh = |index: &Index| self.source.catch_up(index, &mut |_, _| ()).map(drop);
        let idle = self.lock_idle().take().filter(Index::is_current_file);
        if let Some(index) = idle
            && let Ok(value) = refresh(&index).and_then(|()| ask(&index))
        {
            *self.lock_idle() = Some(index);
            return Ok(value);
        }
        let answer = self.source.query(&mut refresh, &ask)?;
        if !answer.index.is_read_only() {
            *self.lock_idle() = Some(answer.index);
        }
        Ok(answer.value)
    }

    /// Finds a session by id, unique prefix, or `latest`. One that is not served is not found.
    pub(crate) fn find_session(&self, name: &str) -> Result<Session, ToolError> {
        let name = name.trim();
        let served = self.scope_filter(None, &TimeSpan { since: None, until: None })?;
        let found = self.query(|index, private| {
            let scope = EntryFilter { private: private.clone(), ..served.clone() };
            if name == "latest" {
                return list_newest(index, scope);
            }
            let ids = index.find_by_prefix(name)?;
            let is_exact = |(_, id): &&(String, _)| steno_model::SessionId::as_str(id) == name;
            let exact: Vec<_> = ids.iter().filter(is_exact).cloned().collect();
            let ids = if exact.is_empty() { ids } else { exact };
            let mut sessions = Vec::new();
            for (agent, id) in ids.into_iter().take(100) {
                let (agent, session) = (Some(agent), Some(id));
                let scope = EntryFilter { agent, session, ..scope.clone() };
                sessions.extend(list_newest(index, scope)?);
            }
            Ok(sessions)
        })?;
        match found.as_slice() {
            [session] => Ok(session.clone()),
            [] => Err(ToolError::arguments(format!(
                "no session {name:?} in {}; list_agent_sessions lists them",
                self.scope_name()
            ))),
            several => {
                let ids = several.iter().take(MAX_CANDIDATES).map(|session| session.id.to_string());
                let ids = ids.collect::<Vec<_>>().join(", ");
                Err(ToolError::arguments(format!("several sessions begin with {name:?}: {ids}")))
            }
        }
    }

    /// Reads a session that [`Self::find_session`] has found.
    pub(crate) fn read_transcript(&self, session: &Session) -> Result<Transcript, ToolError> {
        let agent = session.agent.parse().map_err(|error| {
            // Every session of the index is in a folder with the agent's name.
            ToolError::arguments(format!("session {}: {error}", session.id))
        })?;
        Ok(self.vault.session_dir(&agent, &session.id).read_transcript()?)
    }

    /// The entries of the scope, of a project within it, and of a time span.
    pub(crate) fn scope_filter(
        &self,
        project: Option<&str>,
        span: &TimeSpan,
    ) -> Result<EntryFilter, ToolError> {
        Ok(EntryFilter {
            project: self.scope_project(project)?,
            since: self.parse_time("since", span.since.as_deref(), DayEdge::Begin)?,
            until: self.parse_time("until", span.until.as_deref(), DayEdge::End)?,
            ..EntryFilter::default()
        })
    }

    /// The project to search. A call can name one only within the scope.
    fn scope_project(&self, wanted: Option<&str>) -> Result<Option<String>, ToolError> {
        let wanted = wanted.map(|name| name.trim_end_matches('/')).filter(|name| !name.is_empty());
        let root = match &self.options.scope {
            HistoryScope::All => {
                return Ok(wanted.filter(|name| !matches!(*name, "*" | "all")).map(str::to_owned));
            }
            HistoryScope::Project(root) | HistoryScope::Nothing(root) => root,
        };
        let is_root = |name: &str| name == "." || root.file_name().is_some_and(|last| last == name);
        if self.options.team.is_some() {
            return self.team_project(root, wanted);
        }
        let served = match wanted {
            Some(name) if !is_root(name) => {
                let inside = root.join(name);
                let is_inside = inside.starts_with(root) && !has_parent_component(&inside);
                if !is_inside {
                    return Err(ToolError::arguments(format!(
                        "this server serves only {}; leave project out, or start `steno mcp --all`",
                        root.display()
                    )));
                }
                inside
            }
            _ => root.clone(),
        };
        Ok(Some(served.to_string_lossy().into_owned()))
    }

    /// The project of a team's sessions. Each member has it in another folder, so it is known by the folder's name.
    fn team_project(&self, root: &Path, wanted: Option<&str>) -> Result<Option<String>, ToolError> {
        let name = root.file_name().map(|name| name.to_string_lossy().into_owned());
        let name = name.unwrap_or_default();
        match wanted {
            None => Ok(Some(name)),
            Some(wanted) if wanted == "." || wanted == name => Ok(Some(name)),
            Some(wanted) if Path::new(wanted) == root => Ok(Some(name)),
            Some(_) => Err(ToolError::arguments(format!(
                "this server serves only the project {name}; leave project out, or start `steno mcp --all`"
            ))),
        }
    }

    fn parse_time(
        &self,
        name: &str,
        text: Option<&str>,
        edge: DayEdge,
    ) -> Result<Option<Timestamp>, ToolError> {
        let here = LocalNow { now: self.now(), zone: &self.options.zone };
        let parse = |text: &str| {
            let text = text.strip_suffix("ago").unwrap_or(text).trim();
            moment::parse_moment(text, edge, &here)
        };
        text.map(parse).transpose().map_err(|error| {
            let usage = "use 2026-01-05, 2026-01-05T09:15, or 90m, 12h, 7d, 2w";
            ToolError::arguments(format!("{name} is {error}; {usage}"))
        })
    }

    /// A path as sessions of the project may state it: relative to the project's folder.
    pub(crate) fn relative_path(&self, path: &str) -> String {
        let HistoryScope::Project(root) = &self.options.scope else { return path.to_owned() };
        let below = Path::new(path).strip_prefix(root).unwrap_or(Path::new(path));
        let below = below.strip_prefix(".").unwrap_or(below);
        below.to_string_lossy().into_owned()
    }

    /// The absolute path of a file in the project; in any project if all are served.
    pub(crate) fn path_in_scope(&self, file: &str) -> Result<PathBuf, ToolError> {
        let file = Path::new(file);
        let path = match &self.options.scope {
            HistoryScope::Project(root) => root.join(file),
            _ => file.to_owned(),
        };
        let is_served = match &self.options.scope {
            HistoryScope::Project(root) => path.starts_with(root) && !has_parent_component(&path),
            _ => path.is_absolute(),
        };
        if !is_served {
            let scope = self.scope_name();
            return Err(ToolError::arguments(format!(
                "file should be a path in {scope}, not {}",
                file.display()
            )));
        }
        Ok(path)
    }

    /// The kept sessions.
    pub(crate) fn vault(&self) -> &Vault {
        &self.vault
    }

    /// The folder of the store.
    pub(crate) fn store_folder(&self) -> &Path {
        &self.options.store.folder
    }

    /// What is served, for answers.
    pub(crate) fn scope_name(&self) -> String {
        match &self.options.scope {
            HistoryScope::All => format!("all projects{}", self.team_words()),
            HistoryScope::Project(root) | HistoryScope::Nothing(root) => {
                format!("{}{}", root.display(), self.team_words())
            }
        }
    }

    /// The remote, for answers; empty if this machine's own sessions are served.
    fn team_words(&self) -> String {
        let remote = self.options.team.as_ref().map(|team| &team.remote);
        remote.map(|remote| format!(" in the record of {remote}")).unwrap_or_default()
    }

    /// Whose session it is, for the heading of a quote; empty if this machine's own sessions are served.
    pub(crate) fn owner_words(&self, agent: &str, id: &str) -> String {
        let Some(team) = &self.options.team else { return String::new() };
        let owners = (team.owners)();
        let person = owners.person_of(agent, id).unwrap_or("unknown");
        format!("  by {}", make_quotable_line(person, 60))
    }

    /// Whether the sessions of a team are served.
    pub(crate) fn serves_team(&self) -> bool {
        self.options.team.is_some()
    }

    /// Whose sessions are served; empty if they are this machine's own.
    pub(crate) fn session_owners(&self) -> Arc<SessionOwners> {
        self.options.team.as_ref().map(|team| (team.owners)()).unwrap_or_default()
    }

    /// Whether all projects are served.
    pub(crate) fn serves_all(&self) -> bool {
        self.options.scope == HistoryScope::All
    }

    /// A date for an answer.
    pub(crate) fn date(&self, at: Option<Timestamp>) -> String {
        let local = at.map(|at| at.in_zone(&self.options.zone).wall());
        local.map_or_else(|| "undated".to_owned(), |at| at.strftime("%Y-%m-%d %H:%M").to_string())
    }

    /// The current time.
    pub(crate) fn now(&self) -> Timestamp {
        self.options.store.clock.now()
    }

    pub(crate) fn prices(&self) -> &PriceTable {
        &self.options.prices
    }

    pub(crate) fn zone(&self) -> &TimeZone {
        &self.options.zone
    }

    fn lock_idle(&self) -> std::sync::MutexGuard<'_, Option<Index>> {
        self.idle_index.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The newest session of a filter.
fn list_newest(index: &Index, scope: EntryFilter) -> Result<Vec<Session>, IndexError> {
    let mut sessions = Vec::new();
    let filter = SessionFilter { scope, ..SessionFilter::default() };
    index.each_session(&filter, Some(1), &mut |listed| sessions.push(listed.session))?;
    Ok(sessions)
}

fn has_parent_component(path: &Path) -> bool {
    path.components().any(|component| component.as_os_str() == "..")
}

#[cfg(test)]
mod tests {
    use steno_model::Clock;

    use super::*;

    fn history(scope: HistoryScope) -> AgentHistory {
        AgentHistory::new(HistoryOptions {
            store: StoreLocation::new(PathBuf::from("/nowhere"), Clock::system()),
            scope,
            privacy: PrivacyRules::default(),
            prices: PriceTable::bundled(),
            zone: TimeZone::UTC,
            before_call: Arc::new(|| ()),
            team: None,
        })
    }

    #[test]
    fn a_call_stays_in_the_project() {
        let history = history(HistoryScope::Project(PathBuf::from("/home/ada/shop")));
        let project = |name: &str| history.scope_project(Some(name)).ok().flatten();
        for same in [".", "shop", "shop/", "/home/ada/shop", ""] {
            assert_eq!(project(same).as_deref(), Some("/home/ada/shop"), "{same}");
        }
        assert_eq!(project("web").as_deref(), Some("/home/ada/shop/web"));
        for other in ["/home/ada", "/home/ada/bank", "..", "../bank", "/home/ada/shop/../bank"] {
            assert_eq!(project(other), None, "{other}");
        }
        assert_eq!(history.relative_path("/home/ada/shop/src/a.rs"), "src/a.rs");
        assert_eq!(history.relative_path("./src/a.rs"), "src/a.rs");
    }

    #[test]
    fn a_server_outside_of_a_project_serves_nothing() {
        let error = history(HistoryScope::Nothing(PathBuf::from("/home/ada"))).begin_call();
        let text = error.unwrap_err().to_string();
        assert!(text.contains("/home/ada, which is not a project"), "{text}");
    }
}

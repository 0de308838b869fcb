//! Keeps the mirror of a remote current while a server reads it: pulls in the background, at most once per interval.

use std::collections::HashSet;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use steno_team::MirrorOwners;

use crate::error::CommandError;
use crate::process_environment::ProcessEnvironment;
use crate::team_access::{TeamAccess, explain_team_error};
use crate::ui::Ui;

/// Pulls a remote while somebody reads its mirror.
pub(crate) struct MirrorRefresher {
    access: TeamAccess,
    env: ProcessEnvironment,
    /// The environment in which the mirror is the store.
    pub(crate) mirror: ProcessEnvironment,
    /// Whose sessions the mirror has.
    pub(crate) owners: Arc<MirrorOwners>,
    interval: Duration,
    state: Mutex<RefreshState>,
    members: Mutex<TeamMembers>,
}

/// Who belongs to the team.
#[derive(Clone, Debug, Default)]
pub(crate) enum TeamMembers {
    /// The remote was not asked yet.
    #[default]
    Unknown,
    /// Whoever can read the remote.
    Anybody,
    /// The roles of a database.
    Known(Arc<HashSet<String>>),
}

#[derive(Default)]
struct RefreshState {
    is_running: bool,
    /// When the last pull ended.
    ended: Option<Instant>,
    /// Why the last pull failed.
    failure: Option<String>,
}

impl MirrorRefresher {
    /// Opens the mirror of a remote. Pulls first if there is none yet, else in the background.
    pub(crate) fn open(
        ui: &mut Ui,
        env: &ProcessEnvironment,
        name: &str,
        interval: Duration,
    ) -> Result<Arc<Self>, CommandError> {
        let access = TeamAccess::find(env, Some(name))?;
        let has_mirror = access.has_mirror();
        let refresher = Arc::new(Self {
            mirror: access.mirror_environment(env),
            owners: Arc::new(MirrorOwners::new(&access.folder, env.clock.clone())),
            env: env.clone(),
            access,
            interval,
            state: Mutex::default(),
            members: Mutex::default(),
        });
        match has_mirror {
            true => refresher.refresh_if_due(),
            false => {
                ui.status(format_args!("pulling {name} for the first time"));
                refresher.pull()?;
                refresher.lock().ended = Some(Instant::now());
            }
        }
        Ok(refresher)
    }

    /// Starts a pull in the background, unless one is running or has just ended.
    pub(crate) fn refresh_if_due(self: &Arc<Self>) {
        let mut state = self.lock();
        let is_fresh = state.ended.is_some_and(|ended| ended.elapsed() < self.interval);
        if state.is_running || is_fresh {
            return;
        }
        state.is_running = true;
        drop(state);
        let refresher = Arc::clone(self);
        thread::spawn(move || refresher.refresh());
    }

    /// Pulls. A failure is reported once, not at each pull.
    fn refresh(&self) {
        let failure = self.pull().err().map(|error| error.to_line());
        let mut state = self.lock();
        if let Some(failure) = failure.as_ref().filter(|_| state.failure != failure) {
            let name = &self.access.settings.name;
            Ui::stdio().warning(format_args!(
                "could not pull from {name}; showing what was pulled before: {failure}"
            ));
        }
        *state = RefreshState { is_running: false, ended: Some(Instant::now()), failure };
    }

    fn pull(&self) -> Result<(), CommandError> {
        let mut remote = self.access.connect(&self.env)?;
        let explain = |error| explain_team_error(error, &self.access.settings.name);
        let members = remote.list_members().map_err(explain)?;
        *self.lock_members() = match members {
            Some(names) => TeamMembers::Known(Arc::new(names.into_iter().collect())),
            None => TeamMembers::Anybody,
        };
        self.access.pull_from(&self.env, &mut remote).map(drop)
    }

    /// Who belongs to the team, as the last pull has found.
    pub(crate) fn members(&self) -> TeamMembers {
        self.lock_members().clone()
    }

    fn lock_members(&self) -> MutexGuard<'_, TeamMembers> {
        self.members.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn lock(&self) -> MutexGuard<'_, RefreshState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

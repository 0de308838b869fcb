//! Keeps the mirror of a remote current while a server reads it: pulls in the background, at most once per interval.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::{Duration, Instant};

use steno_team::MirrorOwners;

use crate::error::CommandError;
use crate::process_environment::ProcessEnvironment;
use crate::team_access::{TeamAccess, mirror_environment};
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
        if !has_mirror {
            mirror_environment(ui, env, name)?;
        }
        let refresher = Arc::new(Self {
            mirror: access.mirror_environment(env),
            owners: Arc::new(MirrorOwners::new(&access.folder, env.clock.clone())),
            env: env.clone(),
            access,
            interval,
            state: Mutex::new(RefreshState {
                ended: (!has_mirror).then(Instant::now),
                ..RefreshState::default()
            }),
        });
        refresher.refresh_if_due();
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
        let failure = self.access.pull(&self.env).err().map(|error| error.to_line());
        let mut state = self.lock();
        if let Some(failure) = failure.as_ref().filter(|_| state.failure != failure) {
            let name = &self.access.settings.name;
            Ui::stdio().warning(format_args!(
                "could not pull from {name}; showing what was pulled before: {failure}"
            ));
        }
        *state = RefreshState { is_running: false, ended: Some(Instant::now()), failure };
    }

    fn lock(&self) -> MutexGuard<'_, RefreshState> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

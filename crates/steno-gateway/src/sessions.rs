//! The sessions into which one gateway records.
//!
//! An exchange whose agent names its session goes there, beside what the agent's own files hold; any other goes into the
//! session of the run. A session is opened when its first exchange comes.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use steno_core::traffic::AgentSession;
use steno_core::traffic::piece::Headers;

use crate::locking::lock_unpoisoned;
use crate::recording::{
    OnChange, RecordingHandle, SharedListener, TrafficRecorder, TrafficSession,
};

/// Opens the session that an agent names, or that of the run.
pub type OpenSession = Box<dyn Fn(Option<&AgentSession>) -> TrafficSession + Send + Sync>;

/// Which sessions there are to record into.
pub enum TrafficRouting {
    /// All exchanges go into the session of the run.
    OneSession(OpenSession),
    /// Exchanges go into the sessions that agents name.
    ByAgentSession(OpenSession),
}

/// The recorders of all sessions, each opened when it is needed.
pub(crate) struct SessionRecorders {
    routing: TrafficRouting,
    on_change: OnChange,
    listener: Option<SharedListener>,
    recorders: Mutex<HashMap<Option<AgentSession>, Arc<TrafficRecorder>>>,
    handles: SharedHandles,
}

/// What the gateway's owner keeps of each recorder.
pub(crate) type SharedHandles = Arc<Mutex<Vec<RecordingHandle>>>;

impl SessionRecorders {
    pub(crate) fn new(
        routing: TrafficRouting,
        on_change: OnChange,
        listener: Option<SharedListener>,
    ) -> Self {
        let (recorders, handles) = (Mutex::default(), SharedHandles::default());
        Self { routing, on_change, listener, recorders, handles }
    }

    pub(crate) fn handles(&self) -> SharedHandles {
        Arc::clone(&self.handles)
    }

    /// The recorder of an exchange, by the headers of its request and as much of the body as is there.
    pub(crate) fn recorder_for(&self, headers: &Headers, body: &[u8]) -> Arc<TrafficRecorder> {
        match self.routing {
            TrafficRouting::OneSession(_) => self.recorder(None),
            TrafficRouting::ByAgentSession(_) => {
                self.recorder(AgentSession::of_request_with_body(headers, body))
            }
        }
    }

    fn recorder(&self, session: Option<AgentSession>) -> Arc<TrafficRecorder> {
        let mut recorders = lock_unpoisoned(&self.recorders);
        if let Some(recorder) = recorders.get(&session) {
            return Arc::clone(recorder);
        }
        let (TrafficRouting::OneSession(open) | TrafficRouting::ByAgentSession(open)) =
            &self.routing;
        let (on_change, listener) = (Arc::clone(&self.on_change), self.listener.clone());
        let (recorder, handle) =
            TrafficRecorder::start(open(session.as_ref()), on_change, listener);
        lock_unpoisoned(&self.handles).push(handle);
        let recorder = Arc::new(recorder);
        recorders.insert(session, Arc::clone(&recorder));
        recorder
    }
}

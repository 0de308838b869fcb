//! The sessions that one gateway records into.
//!
//! An exchange goes into the session that its agent names, beside the agent's own files; without such a name it goes
//! into the session of the run. A session is opened for its first exchange.

use std::collections::HashMap;
use std::sync::{Arc, Mutex};

use steno_agents::agent_session::AgentSession;
use steno_agents::protocols::traffic::piece::HttpHeaders;

use crate::locking::lock_unpoisoned;
use crate::recording::{
    ChangeCallback, RecordingHandle, SharedPieceListener, TrafficRecorder, TrafficSession,
};

/// Opens the session that an agent names, or the session of the run for `None`.
pub type OpenSession = Box<dyn Fn(Option<&AgentSession>) -> TrafficSession + Send + Sync>;

/// How exchanges are assigned to sessions.
pub enum TrafficRouting {
    /// All exchanges go into the session of the run.
    OneSession(OpenSession),
    /// Each exchange goes into the session that its agent names.
    ByAgentSession(OpenSession),
}

/// The recorders of all sessions. A recorder starts when its first exchange comes.
pub(crate) struct SessionRecorders {
    routing: TrafficRouting,
    on_change: ChangeCallback,
    listener: Option<SharedPieceListener>,
    recorders: Mutex<HashMap<Option<AgentSession>, Arc<TrafficRecorder>>>,
    handles: SharedHandles,
}

/// The handles of all recorders, which the gateway's owner keeps.
pub(crate) type SharedHandles = Arc<Mutex<Vec<RecordingHandle>>>;

impl SessionRecorders {
    pub(crate) fn new(
        routing: TrafficRouting,
        on_change: ChangeCallback,
        listener: Option<SharedPieceListener>,
    ) -> Self {
        let (recorders, handles) = (Mutex::default(), SharedHandles::default());
        Self { routing, on_change, listener, recorders, handles }
    }

    pub(crate) fn handles(&self) -> SharedHandles {
        Arc::clone(&self.handles)
    }

    /// The recorder of an exchange, given the request's headers and the part of its body read so far.
    pub(crate) fn recorder_for(&self, headers: &HttpHeaders, body: &[u8]) -> Arc<TrafficRecorder> {
        match self.routing {
            TrafficRouting::OneSession(_) => self.open_recorder(None),
            TrafficRouting::ByAgentSession(_) => {
                self.open_recorder(AgentSession::from_request(headers, body))
            }
        }
    }

    fn open_recorder(&self, session: Option<AgentSession>) -> Arc<TrafficRecorder> {
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

//! Records the API traffic of an agent that `steno run` starts.

use std::ffi::OsString;
use std::net::{Ipv4Addr, SocketAddr};

use steno_model::SessionId;
use steno_vault::record::RecordingClosing;

use crate::agent_route::AgentRoute;
use crate::commands::exec::agent_name_of_program;
use crate::config::Config;
use crate::error::CommandError;
use crate::process_environment::ProcessEnvironment;
use crate::recording_gateway::{GatewaySettings, RecordingGateway, RecordingTarget};
use crate::runnable_agent::RunnableAgent;
use crate::session_store::SessionStore;
use crate::ui::Ui;

/// A gateway for one agent.
pub(super) struct RunGateway {
    gateway: RecordingGateway,
    route: AgentRoute,
}

impl RunGateway {
    /// Starts the gateway. On failure the agent runs without it, after a warning.
    pub(super) fn start(
        ui: &mut Ui,
        env: &ProcessEnvironment,
        agent: &RunnableAgent,
    ) -> Option<Self> {
        if agent.is_rehearsal() {
            return None;
        }
        match Self::try_start(env, agent) {
            Ok(started) => {
                started.gateway.report_changes(ui);
                Some(started)
            }
            Err(error) => {
                let reason = error.error;
                ui.warning(format_args!("not recording API traffic: {reason}"));
                None
            }
        }
    }

    fn try_start(env: &ProcessEnvironment, agent: &RunnableAgent) -> Result<Self, CommandError> {
        let config = Config::load(env)?;
        let route =
            AgentRoute::for_program(env, &config.agents()?, &agent.command, config.upstreams()?);
        let name = agent_name_of_program(&agent.command[0]);
        // For agents that do not send their session id.
        let dir = SessionStore::new(env)
            .vault
            .session_dir(&name, &SessionId::new_unique(env.clock.now()));
        let settings = GatewaySettings {
            listen: SocketAddr::from((Ipv4Addr::LOCALHOST, 0)),
            upstreams: route.upstreams().clone(),
            subagents: false,
            body_limit: config.body_limit()?,
            debug_files: None,
            forward: None,
        };
        let target = RecordingTarget { dir, is_routed: true };
        Ok(Self { gateway: RecordingGateway::start(env, target, settings)?, route })
    }

    /// Returns the command line and the variables of the agent.
    pub(super) fn build_launch(&self) -> (Vec<OsString>, Vec<(String, OsString)>) {
        let address = self.gateway.address();
        (self.route.command(&address), self.route.variables(&address))
    }

    /// Ends the recording. Call it after the agent's session files are synced.
    pub(super) fn finish(self, ui: &mut Ui, closing: &RecordingClosing) {
        self.gateway.finish(ui, closing);
    }
}

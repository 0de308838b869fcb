//! The report at the end of a run: thread, tokens, cost and transcripts.

use std::path::PathBuf;

use serde::Serialize;
use steno_model::{Session, Usage};
use steno_seeds::thread::{Thread, ThreadStatus};
use steno_store::cost::charge::CostMode;
use steno_store::cost::report::ChargeSum;
use steno_store::index::EntryFilter;

use crate::amount;
use crate::config::Config;
use crate::error::CommandError;
use crate::process_environment::ProcessEnvironment;
use crate::runnable_agent::RunnableAgent;
use crate::session_store::SessionStore;
use crate::ui::{Ui, count_noun};

/// Result of a run.
#[derive(Serialize)]
pub(super) struct RunReport {
    event: &'static str,
    thread: String,
    objective: String,
    status: ThreadStatus,
    agent: String,
    session: Option<String>,
    stop_reason: Option<String>,
    tokens: Usage,
    /// Dollars; `None` without a known price.
    cost: Option<f64>,
    transcripts: Vec<PathBuf>,
    #[serde(skip)]
    sum: Option<ChargeSum>,
    #[serde(skip)]
    recorded_session: Option<Session>,
}

/// A run that has ended.
pub(super) struct FinishedRun<'a> {
    pub(super) thread: &'a Thread,
    pub(super) agent: &'a RunnableAgent,
    pub(super) status: ThreadStatus,
    /// The recorded session, if there is one.
    pub(super) session: Option<Session>,
    pub(super) transcripts: Vec<PathBuf>,
    pub(super) stop_reason: Option<String>,
}

impl RunReport {
    pub(super) fn new(finished: FinishedRun<'_>) -> Self {
        let FinishedRun { thread, agent, status, session, transcripts, stop_reason } = finished;
        Self {
            event: "end",
            thread: thread.id.to_string(),
            objective: thread.objective.to_string(),
            status,
            agent: agent.name.clone(),
            session: session.as_ref().map(|session| session.id.to_string()),
            stop_reason,
            tokens: session.as_ref().map(|session| session.totals.usage).unwrap_or_default(),
            cost: None,
            transcripts,
            sum: None,
            recorded_session: session,
        }
    }

    /// Adds the cost from the index, and prints the report.
    pub(super) fn print(
        mut self,
        ui: &mut Ui,
        env: &ProcessEnvironment,
        json: bool,
    ) -> Result<(), CommandError> {
        if let Err(error) = self.add_cost(env) {
            // The session is recorded; the next search indexes it.
            ui.warning(format_args!("could not update the index: {}", error.error));
        }
        if json {
            serde_json::to_writer(ui.out(), &self)?;
            writeln!(ui.out())?;
            return Ok(());
        }
        let mut facts = vec![format!("{} {}", self.thread, self.status)];
        facts.push(self.agent.clone());
        facts.extend(self.session.clone());
        facts.extend(self.stop_reason.clone().filter(|reason| reason != "end_turn"));
        if !self.tokens.is_empty() {
            let [input, output] =
                [self.tokens.prompt_tokens(), self.tokens.output].map(amount::format_count);
            facts.push(format!("{input} tokens in, {output} out"));
            facts.extend(self.sum.as_ref().map(amount::format_cost));
        }
        facts.extend(
            self.recorded_session
                .as_ref()
                .map(|session| count_noun(session.totals.entries, "entry")),
        );
        ui.status(facts.join(" · "));
        for path in &self.transcripts {
            ui.status(path.strip_prefix(&env.cwd).unwrap_or(path).display());
        }
        Ok(())
    }

    /// Calculates the cost of the session from the index.
    fn add_cost(&mut self, env: &ProcessEnvironment) -> Result<(), CommandError> {
        let Some(session) = &self.recorded_session else { return Ok(()) };
        let filter = EntryFilter { session: Some(session.id.clone()), ..EntryFilter::default() };
        let store = SessionStore::new(env);
        let (_, charges) = store.query(&mut Ui::silent(), |index| index.load_charges(&filter))?;
        let costs = charges.charge_costs(&Config::load(env)?.prices()?, CostMode::Auto);
        let selected: Vec<usize> = charges.select_charges(&filter).collect();
        let sum = charges.sum_charges(&costs, &selected);
        self.cost = sum.cost().map(amount::round_for_json);
        self.sum = Some(sum);
        Ok(())
    }
}

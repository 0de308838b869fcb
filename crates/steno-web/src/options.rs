//! What the server serves, and where.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use jiff::tz::TimeZone;
use steno_mcp::HistoryOptions;
use steno_model::Clock;
use steno_store::cost::PriceTable;
use steno_store::cost::budget::BudgetLimits;

use crate::connections::ConnectionLimits;
use crate::team_page::TeamPage;

/// Prepares a session to be resumed, given its agent and id; returns the command to run.
pub type ResumeAction = Arc<dyn Fn(&str, &str) -> Result<String, String> + Send + Sync>;

/// Reads the budgets as they are configured now; returns why it cannot.
pub type BudgetReader = Arc<dyn Fn() -> Result<BudgetLimits, String> + Send + Sync>;

/// Options of a server.
#[derive(Clone)]
pub struct ServerOptions {
    /// The store: `$STENO_HOME`.
    pub store: PathBuf,
    /// The time zone of the times that pages show.
    pub zone: TimeZone,
    /// The current time.
    pub clock: Clock,
    /// What tokens cost.
    pub prices: PriceTable,
    /// The budgets; `None` if there are none, as on the page of a team.
    pub budgets: Option<BudgetReader>,
    /// Identifies the time since the machine was started, where the system has such an id.
    pub boot: Option<String>,
    /// Where to listen.
    pub address: SocketAddr,
    /// Prepares sessions to be resumed; `None` if pages may only read.
    pub resume: Option<ResumeAction>,
    /// What agents may search over the Model Context Protocol; `None` if nothing.
    pub history: Option<HistoryOptions>,
    /// The team whose record is served; `None` for this machine's own sessions.
    pub team: Option<TeamPage>,
    /// What clients may use up.
    pub limits: ConnectionLimits,
}

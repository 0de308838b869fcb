//! `steno statusline`: prints one line for the status line of an agent. On any error it still prints a line.

mod payload;

use std::io::{self, IsTerminal, Read};

use jiff::civil::Time;
use steno_agents::agents::claude_code;
use steno_model::moment::LocalNow;
use steno_store::cost::PriceTable;
use steno_store::cost::billing_block::BillingBlock;
use steno_store::cost::budget::BudgetUse;
use steno_store::cost::charge::{ChargeTable, CostMode};
use steno_store::index::EntryFilter;

use self::payload::StatuslinePayload;
use crate::amount::{format_count, format_dollars};
use crate::config::Config;
use crate::error::{CommandError, CommandExit};
use crate::process_environment::ProcessEnvironment;
use crate::session_store::SessionStore;
use crate::ui::Ui;

/// Print model, costs and context for an agent's status line.
///
/// Reads the agent's JSON on standard input, and adds costs from the index. For Claude Code, add {"statusLine":
/// {"type": "command", "command": "steno statusline"}} to its settings.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {}

/// Limit of the input in bytes.
const MAX_INPUT_BYTES: u64 = 1 << 20;

/// The agent with five-hour plan limits.
const CLAUDE_AGENT: &str = claude_code::AGENT_NAME;

/// Costs from the index.
struct IndexedCosts {
    /// Cost of the session, if it is in the index.
    session: Option<f64>,
    /// Cost of all sessions since midnight.
    today: f64,
    /// The open block.
    block: Option<BillingBlock>,
    /// Budgets that are crossed.
    crossed: Vec<BudgetUse>,
}

/// Runs the command.
pub(crate) fn run(
    ui: &mut Ui,
    env: &ProcessEnvironment,
    _: &Args,
) -> Result<CommandExit, CommandError> {
    let mut input = Vec::new();
    let stdin = io::stdin();
    if !stdin.is_terminal() {
        // Input that cannot be read counts as empty.
        let _ = stdin.lock().take(MAX_INPUT_BYTES).read_to_end(&mut input);
    }
    let payload = StatuslinePayload::parse(&input);
    let kept = IndexedCosts::from_index(env, &payload);
    writeln!(ui.out(), "{}", format_line(env, &payload, kept.as_ref()))?;
    Ok(CommandExit::Done)
}

impl IndexedCosts {
    /// Reads the index. It is neither created nor updated, since the line must be printed at once.
    fn from_index(env: &ProcessEnvironment, payload: &StatuslinePayload) -> Option<Self> {
        if !steno_cipher::store_fs::exists(&env.store.join("index.db")) {
            return None;
        }
        // An index under rebuild has no data yet.
        let index =
            SessionStore::new(env).index().ok().filter(|index| index.rebuild_reason().is_none())?;
        let charges = index.load_charges(&EntryFilter::default()).ok()?;
        let config = Config::load(env);
        let limits = config.as_ref().ok().and_then(|config| config.budgets().ok());
        let prices = config.and_then(|config| config.prices());
        let costs =
            charges.charge_costs(&prices.unwrap_or_else(|_| PriceTable::bundled()), CostMode::Auto);
        let sum = |filter: &EntryFilter| {
            let selected: Vec<usize> = charges.select_charges(filter).collect();
            charges.sum_charges(&costs, &selected).cost().unwrap_or(0.0)
        };
        let session = payload.session.as_ref().filter(|id| has_session(&charges, id));
        let session = session.and_then(|id| id.parse().ok());
        let session = session.map(|id| EntryFilter { session: Some(id), ..EntryFilter::default() });
        let today = EntryFilter { since: start_of_today(env), ..EntryFilter::default() };
        let own = EntryFilter { agent: Some(CLAUDE_AGENT.to_owned()), ..EntryFilter::default() };
        let blocks =
            charges.split_blocks(&costs, &charges.select_charges(&own).collect::<Vec<_>>());
        let here = LocalNow { now: env.clock.now(), zone: &env.zone };
        let mut budgets = limits.unwrap_or_default().check(&charges, &costs, &here);
        budgets.retain(BudgetUse::is_crossed);
        Some(Self {
            crossed: budgets,
            session: session.map(|filter| sum(&filter)),
            today: sum(&today),
            block: blocks
                .into_iter()
                .next_back()
                .filter(|block| block.is_active(now_in_milliseconds(env))),
        })
    }

    /// Formats the costs of today and of the open block, and the rate.
    fn cost_parts(&self, env: &ProcessEnvironment, payload: &StatuslinePayload) -> Vec<String> {
        let now = now_in_milliseconds(env);
        let midnight = start_of_today(env).map_or(now, |at| at.instant().as_millisecond());
        let today = self.today + self.unrecorded_cost(payload, now, midnight);
        let mut words = vec![format!("{} today", format_dollars(today))];
        let Some(block) = &self.block else { return words };
        let cost =
            block.sum.cost().unwrap_or(0.0) + self.unrecorded_cost(payload, now, block.start);
        let left = ((payload.resets_at.unwrap_or(block.end) - now) / 60_000).max(0);
        words.push(format!(
            "{} block, {}h {:02}m left",
            format_dollars(cost),
            left / 60,
            left % 60
        ));
        let pace = block.burn_rate().and_then(|burn| burn.cost_per_hour);
        words.extend(pace.map(|pace| format!("{}/h", format_dollars(pace))));
        words
    }

    /// Returns the cost of the session since `begin` that is not in the index yet.
    fn unrecorded_cost(&self, payload: &StatuslinePayload, now: i64, begin: i64) -> f64 {
        let Some(all) = payload.cost else { return 0.0 };
        match self.session {
            Some(kept) => (all - kept).max(0.0),
            None if payload.duration.is_some_and(|duration| now - duration >= begin) => all,
            None => 0.0,
        }
    }
}

fn format_line(
    env: &ProcessEnvironment,
    payload: &StatuslinePayload,
    kept: Option<&IndexedCosts>,
) -> String {
    let mut words: Vec<String> = payload.model.iter().cloned().collect();
    let session = payload.cost.or(kept.and_then(|kept| kept.session));
    words.extend(session.map(|cost| format!("{} session", format_dollars(cost))));
    if let Some(kept) = kept {
        words.extend(kept.cost_parts(env, payload));
        let over =
            |one: &BudgetUse| format!("over budget {}: {}", one.name, format_dollars(one.limit));
        words.extend(kept.crossed.iter().map(over));
    }
    words.extend(payload.limit_percent.map(|percent| format!("{percent:.0}% of limit")));
    let context = payload.context_usage();
    words.extend(
        context
            .map(|(percent, window)| format!("{percent:.0}% of {} context", format_count(window))),
    );
    if words.is_empty() { "no sessions yet".to_owned() } else { words.join(" · ") }
}

fn has_session(charges: &ChargeTable, session: &str) -> bool {
    charges.accounts.iter().any(|account| account.session == session)
}

fn now_in_milliseconds(env: &ProcessEnvironment) -> i64 {
    env.clock.now().instant().as_millisecond()
}

/// Returns the start of today in the user's time zone.
fn start_of_today(env: &ProcessEnvironment) -> Option<steno_model::Timestamp> {
    let today = env.zone.to_datetime(env.clock.now().instant()).date();
    let begin = today.to_datetime(Time::midnight());
    let begin = env.zone.to_ambiguous_timestamp(begin).compatible().ok()?;
    Some(steno_model::Timestamp::from_instant(begin, 0))
}

//! `steno statusline`: one line for the status line of an agent. Whatever happens, there is a line.

mod told;

use std::io::{self, IsTerminal, Read};

use jiff::civil::Time;
use steno_core::cost::Prices;
use steno_core::cost::block::Block;
use steno_core::cost::charge::{Charges, Mode};
use steno_core::index::Filter;

use self::told::Told;
use crate::amount::{dollars, short};
use crate::config::Config;
use crate::error::{CommandError, Exit};
use crate::scene::Scene;
use crate::store::Store;
use crate::ui::Ui;

/// Print one line for an agent's status line: model, costs, pace and context.
///
/// Reads what the agent tells on standard input, and adds what is kept. For Claude Code, put
/// {"statusLine": {"type": "command", "command": "steno statusline"}} into its settings.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {}

/// How much an agent can tell at most.
const LIMIT: u64 = 1 << 20;

/// Whose plans are limited to blocks of five hours.
const AGENT: &str = "claude-code";

/// What is kept, added up.
struct Kept {
    /// What the session cost, if any of it is kept.
    session: Option<f64>,
    /// What all sessions cost since midnight.
    today: f64,
    /// The block that is open.
    block: Option<Block>,
}

/// Runs the command.
pub(crate) fn run(ui: &mut Ui, scene: &Scene, _: &Args) -> Result<Exit, CommandError> {
    let mut input = Vec::new();
    let stdin = io::stdin();
    if !stdin.is_terminal() {
        // What cannot be read was not told.
        let _ = stdin.lock().take(LIMIT).read_to_end(&mut input);
    }
    let told = Told::parse(&input);
    let kept = Kept::look(scene, &told);
    writeln!(ui.out(), "{}", line(scene, &told, kept.as_ref()))?;
    Ok(Exit::Done)
}

impl Kept {
    /// What the index has; it is neither made nor brought up to date for a line that must come at once.
    fn look(scene: &Scene, told: &Told) -> Option<Self> {
        if !scene.store.join("index.db").exists() {
            return None;
        }
        // One that is built anew knows nothing yet.
        let index = Store::new(scene).index().ok().filter(|index| index.healed().is_none())?;
        let charges = index.charges(&Filter::default()).ok()?;
        let prices = Config::load(scene).and_then(|config| config.prices());
        let costs = charges.costs(&prices.unwrap_or_else(|_| Prices::bundled()), Mode::Auto);
        let sum = |filter: &Filter| {
            let wanted: Vec<usize> = charges.select(filter).collect();
            charges.total(&costs, &wanted).cost().unwrap_or(0.0)
        };
        let session = told.session.as_ref().filter(|id| has(&charges, id));
        let session = session.and_then(|id| id.parse().ok());
        let session = session.map(|id| Filter { session: Some(id), ..Filter::default() });
        let today = Filter { since: midnight(scene), ..Filter::default() };
        let own = Filter { agent: Some(AGENT.to_owned()), ..Filter::default() };
        let blocks = charges.blocks(&costs, &charges.select(&own).collect::<Vec<_>>());
        Some(Self {
            session: session.map(|filter| sum(&filter)),
            today: sum(&today),
            block: blocks.into_iter().next_back().filter(|block| block.is_active(now(scene))),
        })
    }

    /// What today and the open block cost, and how fast that goes on.
    fn words(&self, scene: &Scene, told: &Told) -> Vec<String> {
        let now = now(scene);
        let midnight = midnight(scene).map_or(now, |at| at.instant().as_millisecond());
        let today = self.today + self.missing(told, now, midnight);
        let mut words = vec![format!("{} today", dollars(today))];
        let Some(block) = &self.block else { return words };
        let cost = block.sum.cost().unwrap_or(0.0) + self.missing(told, now, block.start);
        let left = ((told.resets.unwrap_or(block.end) - now) / 60_000).max(0);
        words.push(format!("{} block, {}h {:02}m left", dollars(cost), left / 60, left % 60));
        let pace = block.burn().and_then(|burn| burn.cost_per_hour);
        words.extend(pace.map(|pace| format!("{}/h", dollars(pace))));
        words
    }

    /// What the session cost that is not kept yet, if it cost that since `begin`.
    fn missing(&self, told: &Told, now: i64, begin: i64) -> f64 {
        let Some(all) = told.cost else { return 0.0 };
        match self.session {
            Some(kept) => (all - kept).max(0.0),
            None if told.duration.is_some_and(|duration| now - duration >= begin) => all,
            None => 0.0,
        }
    }
}

fn line(scene: &Scene, told: &Told, kept: Option<&Kept>) -> String {
    let mut words: Vec<String> = told.model.iter().cloned().collect();
    let session = told.cost.or(kept.and_then(|kept| kept.session));
    words.extend(session.map(|cost| format!("{} session", dollars(cost))));
    if let Some(kept) = kept {
        words.extend(kept.words(scene, told));
    }
    words.extend(told.limit.map(|percent| format!("{percent:.0}% of limit")));
    let context = told.context();
    words.extend(
        context.map(|(percent, window)| format!("{percent:.0}% of {} context", short(window))),
    );
    if words.is_empty() { "nothing is kept yet".to_owned() } else { words.join(" · ") }
}

fn has(charges: &Charges, session: &str) -> bool {
    charges.accounts.iter().any(|account| account.session == session)
}

fn now(scene: &Scene) -> i64 {
    scene.clock.now().instant().as_millisecond()
}

/// When today began, on the user's clock.
fn midnight(scene: &Scene) -> Option<steno_core::Timestamp> {
    let today = scene.zone.to_datetime(scene.clock.now().instant()).date();
    let begin = today.to_datetime(Time::midnight());
    let begin = scene.zone.to_ambiguous_timestamp(begin).compatible().ok()?;
    Some(steno_core::Timestamp::from_instant(begin, 0))
}

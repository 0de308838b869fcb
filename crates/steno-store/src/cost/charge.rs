//! Charges, as they are summed: from the index, or directly from agents' session files.

use std::collections::HashMap;

use super::PriceTable;
use crate::entry_filter::{EntryFilter, SelectedSessions};
use crate::session_owners::SessionOwners;
use steno_agents::agents::claude_code;

/// Milliseconds per quarter of an hour. No quarter spans two days in any time zone.
pub(crate) const QUARTER_HOUR_MS: i64 = 900_000;

/// A billed session.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct SessionAccount {
    /// The agent.
    pub agent: String,
    /// The session's id.
    pub session: String,
    /// The project folder.
    pub project: Option<String>,
    /// The title.
    pub title: Option<String>,
    /// The thread.
    pub thread: Option<String>,
    /// The owner, once [`ChargeTable::name_people`] has noted it.
    pub person: Option<String>,
    /// When the session ended, or else began, in milliseconds since 1970.
    pub ended_at: Option<i64>,
    /// The cost in dollars that the session files report.
    pub reported_cost: Option<f64>,
    /// The tokens that the session files report. Some may belong to messages that other sessions share.
    pub reported_tokens: i64,
}

/// Usage of one model in one session: of one message, or of a quarter of an hour.
#[derive(Clone, Debug, PartialEq)]
pub struct UsageCharge {
    /// Index of the account.
    pub account: usize,
    /// Index of the model.
    pub model: usize,
    /// The prompt band.
    pub(crate) band: usize,
    /// Time of the first message, in milliseconds since 1970.
    pub first: Option<i64>,
    /// Time of the last message.
    pub last: Option<i64>,
    /// Tokens per kind, in the order of [`steno_model::Usage`]. Corrections are negative.
    pub tokens: [i64; 7],
}

/// Usage of one model in one session, as a database sums it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SummedUsage {
    /// The prompt band.
    pub band: usize,
    /// Time of the first message, in milliseconds since 1970.
    pub first: Option<i64>,
    /// Time of the last message.
    pub last: Option<i64>,
    /// Tokens per kind, in the order of [`steno_model::Usage`].
    pub tokens: [i64; 7],
}

/// All charges.
#[derive(Clone, Debug, Default)]
pub struct ChargeTable {
    /// The sessions.
    pub accounts: Vec<SessionAccount>,
    /// Model names; empty for an unknown model.
    pub models: Vec<String>,
    /// The charges.
    pub charges: Vec<UsageCharge>,
    model_indexes: HashMap<String, usize>,
}

/// How costs are determined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CostMode {
    /// As the session files report it, else calculated.
    Auto,
    /// Calculated from tokens and prices.
    Calculate,
    /// Only as the session files report it.
    Reported,
}

impl ChargeTable {
    /// The index of a model. Adds it if it is new.
    pub(crate) fn model_index(&mut self, name: &str) -> usize {
        if let Some(known) = self.model_indexes.get(name) {
            return *known;
        }
        let number = self.models.len();
        self.models.push(name.to_owned());
        self.model_indexes.insert(name.to_owned(), number);
        number
    }

    /// Adds usage to an account. Usage without a time counts at the end of its session.
    pub fn add_usage(&mut self, account: usize, model: &str, usage: SummedUsage) {
        let SummedUsage { band, first, last, tokens } = usage;
        let ended = self.accounts[account].ended_at;
        let (first, last) = (first.or(ended), last.or(ended));
        let model = self.model_index(model);
        self.charges.push(UsageCharge { account, model, band, first, last, tokens });
    }

    /// Removes the charges of all other sessions.
    pub fn retain_sessions(&mut self, selected: &SelectedSessions) {
        let is_selected: Vec<bool> = self
            .accounts
            .iter()
            .map(|account| selected.contains(&account.agent, &account.session))
            .collect();
        self.charges.retain(|charge| is_selected[charge.account]);
    }

    /// Notes whose sessions are charged.
    pub fn name_people(&mut self, owners: &SessionOwners) {
        for account in &mut self.accounts {
            let person = owners.person_of(&account.agent, &account.session);
            account.person = person.map(str::to_owned);
        }
    }

    /// Adds a charge for each session with a reported cost but no tokens, so that its cost is counted.
    pub fn add_tokenless_sessions(&mut self) {
        let mut billed = vec![false; self.accounts.len()];
        self.charges.iter().for_each(|charge| billed[charge.account] = true);
        let model = self.model_index("");
        for (
            account,
            SessionAccount { ended_at: at, reported_cost: stated, reported_tokens: size, .. },
        ) in self.accounts.iter().enumerate()
        {
            if stated.is_some_and(|stated| stated > 0.0) && *size == 0 && !billed[account] {
                let (first, last) = (*at, *at);
                self.charges.push(UsageCharge {
                    account,
                    model,
                    band: 0,
                    first,
                    last,
                    tokens: [0; 7],
                });
            }
        }
    }

    /// The cost of each charge; `None` if unknown.
    ///
    /// A session's reported cost is spread over its charges: by calculated cost, or by tokens if a price is missing.
    /// The share for messages that belong to another session is left out.
    pub fn charge_costs(&self, prices: &PriceTable, mode: CostMode) -> Vec<Option<f64>> {
        let prices: Vec<_> = self.models.iter().map(|model| prices.find_price(model)).collect();
        let cost = |charge: &UsageCharge| match prices[charge.model] {
            _ if charge.tokens == [0; 7] => Some(0.0),
            price => price?.band_cost(charge.band, charge.tokens),
        };
        let calculated = self.charges.iter().map(cost).collect();
        if mode == CostMode::Calculate {
            calculated
        } else {
            self.spread_reported_costs(calculated, mode)
        }
    }

    fn spread_reported_costs(
        &self,
        calculated: Vec<Option<f64>>,
        mode: CostMode,
    ) -> Vec<Option<f64>> {
        let mut weights = vec![SessionWeight::default(); self.accounts.len()];
        for (charge, cost) in self.charges.iter().zip(&calculated) {
            weights[charge.account].add_charge(charge, *cost);
        }
        let share = |(charge, cost): (&UsageCharge, &Option<f64>)| {
            let account = &self.accounts[charge.account];
            let reported = account.reported_cost.filter(|reported| {
                mode == CostMode::Reported
                    || (*reported > 0.0 && account.agent != claude_code::AGENT_NAME)
            });
            match reported {
                Some(reported) => {
                    let weight = &weights[charge.account];
                    Some(
                        reported
                            * weight.own_share(account.reported_tokens)
                            * weight.charge_share(charge, *cost),
                    )
                }
                None => cost.filter(|_| mode == CostMode::Auto || charge.tokens == [0; 7]),
            }
        };
        self.charges.iter().zip(&calculated).map(share).collect()
    }

    /// Indexes of the charges that a filter selects. Determine costs first: a reported cost is spread over the whole
    /// session.
    pub fn select_charges<'a>(
        &'a self,
        filter: &'a EntryFilter,
    ) -> impl Iterator<Item = usize> + 'a {
        let models: Vec<bool> = self.models.iter().map(|name| filter.matches_model(name)).collect();
        let accounts: Vec<bool> =
            self.accounts.iter().map(|account| filter.matches_account(account)).collect();
        let is_selected = move |(_, charge): &(usize, &UsageCharge)| {
            models[charge.model] && accounts[charge.account] && filter.matches_time(charge.first)
        };
        self.charges.iter().enumerate().filter(is_selected).map(|(at, _)| at)
    }
}

/// Weights for spreading a reported cost over a session's charges.
#[derive(Clone, Debug, Default)]
struct SessionWeight {
    cost: f64,
    tokens: i64,
    charges: usize,
    has_unpriced: bool,
}

impl SessionWeight {
    fn add_charge(&mut self, charge: &UsageCharge, cost: Option<f64>) {
        self.cost += cost.unwrap_or_default();
        self.has_unpriced |= cost.is_none();
        self.tokens = self.tokens.saturating_add(charge.token_count());
        self.charges += 1;
    }

    /// The share of a session of `size` tokens that is its own.
    fn own_share(&self, size: i64) -> f64 {
        if size > 0 { (self.tokens as f64 / size as f64).clamp(0.0, 1.0) } else { 1.0 }
    }

    fn charge_share(&self, charge: &UsageCharge, cost: Option<f64>) -> f64 {
        if !self.has_unpriced && self.cost > 0.0 {
            cost.unwrap_or_default() / self.cost
        } else if self.tokens > 0 {
            charge.token_count() as f64 / self.tokens as f64
        } else {
            1.0 / self.charges as f64
        }
    }
}

impl UsageCharge {
    /// All tokens of prompt and output.
    fn token_count(&self) -> i64 {
        let [input, cache_read, cache_write, _, _, output, _] = self.tokens;
        [cache_read, cache_write, output].into_iter().fold(input, i64::saturating_add)
    }
}

impl EntryFilter {
    fn matches_model(&self, name: &str) -> bool {
        let model = self.model.as_ref().map(|model| model.to_lowercase());
        model.is_none_or(|model| name.to_lowercase().contains(&model))
    }

    fn matches_account(&self, account: &SessionAccount) -> bool {
        let matches = |expected: &Option<String>, actual: Option<&str>| {
            expected.as_deref().is_none_or(|expected| actual == Some(expected))
        };
        let project = account.project.as_deref().unwrap_or_default();
        matches(&self.agent, Some(&account.agent))
            && matches(&self.thread, account.thread.as_deref())
            && self.session.as_ref().is_none_or(|session| session.as_str() == account.session)
            && self.project.as_deref().is_none_or(|expected| is_within_folder(project, expected))
            && !self.private.contains(&account.agent, &account.session)
            && self.only.as_ref().is_none_or(|only| only.contains(&account.agent, &account.session))
    }

    /// The quarters of an hour that the filter cuts.
    pub(crate) fn partial_quarters(&self) -> Vec<i64> {
        let ends = [self.since, self.until].into_iter().flatten();
        let ends = ends.map(|at| at.instant().as_millisecond());
        ends.filter(|at| at % QUARTER_HOUR_MS != 0)
            .map(|at| at.div_euclid(QUARTER_HOUR_MS))
            .collect()
    }
}

/// Whether a folder is the wanted one or inside it. The last component of its name is enough.
fn is_within_folder(folder: &str, parent: &str) -> bool {
    let below =
        folder.strip_prefix(parent).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    below || folder.strip_suffix(parent).is_some_and(|rest| rest.ends_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One session with this reported cost, and charges of output tokens by model.
    fn charges(agent: &str, stated: Option<f64>, tokens: &[(&str, i64)]) -> ChargeTable {
        let size = tokens.iter().map(|(_, output)| output).sum();
        let (agent, at) = (agent.to_owned(), Some(7));
        let account = SessionAccount {
            agent,
            reported_cost: stated,
            ended_at: at,
            reported_tokens: size,
            ..SessionAccount::default()
        };
        let mut charges = ChargeTable { accounts: vec![account], ..ChargeTable::default() };
        for (model, output) in tokens {
            let model = charges.model_index(model);
            let tokens = [0, 0, 0, 0, 0, *output, 0];
            charges.charges.push(UsageCharge {
                account: 0,
                model,
                band: 0,
                first: None,
                last: None,
                tokens,
            });
        }
        charges.add_tokenless_sessions();
        charges
    }

    fn costs(charges: &ChargeTable, mode: CostMode) -> Vec<Option<f64>> {
        charges.charge_costs(&PriceTable::bundled(), mode)
    }

    const OPUS: &str = "claude-opus-4-5";
    const HAIKU: &str = "claude-haiku-4-5";

    #[test]
    fn spreads_a_reported_cost_over_the_session() {
        let known = charges("opencode", Some(12.0), &[(OPUS, 1_000_000), (HAIKU, 1_000_000)]);
        assert_eq!(costs(&known, CostMode::Auto), [Some(10.0), Some(2.0)]);
        assert_eq!(costs(&known, CostMode::Reported), [Some(10.0), Some(2.0)]);
        assert_eq!(costs(&known, CostMode::Calculate), [Some(25.0), Some(5.0)]);
        let unknown = charges("opencode", Some(12.0), &[(OPUS, 1_000_000), ("x", 3_000_000)]);
        assert_eq!(costs(&unknown, CostMode::Auto), [Some(3.0), Some(9.0)]);
        assert_eq!(costs(&unknown, CostMode::Calculate), [Some(25.0), None]);
    }

    #[test]
    fn unreported_costs_are_calculated_or_unknown() {
        let silent = charges("opencode", None, &[(OPUS, 1_000_000), ("x", 1)]);
        assert_eq!(costs(&silent, CostMode::Auto), [Some(25.0), None]);
        assert_eq!(costs(&silent, CostMode::Reported), [None, None]);
        // A free plan reports a cost of zero.
        let free = charges("opencode", Some(0.0), &[(OPUS, 1_000_000)]);
        assert_eq!(costs(&free, CostMode::Auto), [Some(25.0)]);
        // Claude Code's own total continues over resumed sessions.
        let own = charges(claude_code::AGENT_NAME, Some(99.0), &[(OPUS, 1_000_000)]);
        assert_eq!(costs(&own, CostMode::Auto), [Some(25.0)]);
        assert_eq!(costs(&own, CostMode::Reported), [Some(99.0)]);
    }

    #[test]
    fn leaves_out_reported_costs_of_copied_messages() {
        let mut forked = charges("opencode", Some(12.0), &[(OPUS, 1_000_000)]);
        forked.accounts[0].reported_tokens = 4_000_000;
        assert_eq!(costs(&forked, CostMode::Auto), [Some(3.0)]);
        forked.charges.clear();
        forked.add_tokenless_sessions();
        assert!(forked.charges.is_empty());
    }

    #[test]
    fn a_sum_without_tokens_counts_when_its_session_ended() {
        let bare = charges("crush", Some(0.5), &[]);
        assert_eq!(
            (bare.charges[0].first, costs(&bare, CostMode::Auto)),
            (Some(7), vec![Some(0.5)])
        );
        assert_eq!(costs(&bare, CostMode::Calculate), [Some(0.0)]);
        assert!(charges("crush", None, &[]).charges.is_empty());
    }

    #[test]
    fn folders_are_known_by_their_last_part() {
        for (folder, wanted) in
            [("/a/b", "/a/b"), ("/a/b/c", "/a/b"), ("/a/b", "b"), ("/a/b", "a/b")]
        {
            assert!(is_within_folder(folder, wanted), "{folder} {wanted}");
        }
        for (folder, wanted) in [("/a/bc", "/a/b"), ("/a/cb", "b"), ("", "b")] {
            assert!(!is_within_folder(folder, wanted), "{folder} {wanted}");
        }
    }
}

//! Charges, as they are summed: from the index, or directly from agents' session files.

use std::collections::HashMap;

use super::Prices;
use crate::agent::claude_code;
use crate::index::Filter;

/// Milliseconds per quarter of an hour. No quarter spans two days in any time zone.
pub(crate) const QUARTER: i64 = 900_000;

/// A billed session.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Account {
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
    /// When the session ended, or else began, in milliseconds since 1970.
    pub at: Option<i64>,
    /// The cost in dollars that the session files report.
    pub stated: Option<f64>,
    /// The tokens that the session files report. Some may belong to messages that other sessions share.
    pub size: i64,
}

/// Usage of one model in one session: of one message, or of a quarter of an hour.
#[derive(Clone, Debug, PartialEq)]
pub struct Charge {
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
    /// Tokens per kind, in the order of [`crate::Usage`]. Corrections are negative.
    pub tokens: [i64; 7],
}

/// All charges.
#[derive(Clone, Debug, Default)]
pub struct Charges {
    /// The sessions.
    pub accounts: Vec<Account>,
    /// Model names; empty for an unknown model.
    pub models: Vec<String>,
    /// The charges.
    pub all: Vec<Charge>,
    names: HashMap<String, usize>,
}

/// How costs are determined.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// As the session files report it, else calculated.
    Auto,
    /// Calculated from tokens and prices.
    Calculate,
    /// Only as the session files report it.
    Stated,
}

impl Charges {
    /// The index of a model. Adds it if it is new.
    pub(crate) fn model(&mut self, name: &str) -> usize {
        if let Some(known) = self.names.get(name) {
            return *known;
        }
        let number = self.models.len();
        self.models.push(name.to_owned());
        self.names.insert(name.to_owned(), number);
        number
    }

    /// Adds a charge for each session with a reported cost but no tokens, so that its cost is counted.
    pub(crate) fn complete(&mut self) {
        let mut billed = vec![false; self.accounts.len()];
        self.all.iter().for_each(|charge| billed[charge.account] = true);
        let model = self.model("");
        for (account, Account { at, stated, size, .. }) in self.accounts.iter().enumerate() {
            if stated.is_some_and(|stated| stated > 0.0) && *size == 0 && !billed[account] {
                let (first, last) = (*at, *at);
                self.all.push(Charge { account, model, band: 0, first, last, tokens: [0; 7] });
            }
        }
    }

    /// The cost of each charge; `None` if unknown.
    ///
    /// A session's reported cost is spread over its charges: by calculated cost, or by tokens if a price is missing.
    /// The share for messages that belong to another session is left out.
    pub fn costs(&self, prices: &Prices, mode: Mode) -> Vec<Option<f64>> {
        let prices: Vec<_> = self.models.iter().map(|model| prices.of(model)).collect();
        let cost = |charge: &Charge| match prices[charge.model] {
            _ if charge.tokens == [0; 7] => Some(0.0),
            price => price?.cost_in(charge.band, charge.tokens),
        };
        let calculated = self.all.iter().map(cost).collect();
        if mode == Mode::Calculate { calculated } else { self.with_stated(calculated, mode) }
    }

    fn with_stated(&self, calculated: Vec<Option<f64>>, mode: Mode) -> Vec<Option<f64>> {
        let mut weights = vec![Weight::default(); self.accounts.len()];
        for (charge, cost) in self.all.iter().zip(&calculated) {
            weights[charge.account].add(charge, *cost);
        }
        let share = |(charge, cost): (&Charge, &Option<f64>)| {
            let account = &self.accounts[charge.account];
            let reported = account.stated.filter(|reported| {
                mode == Mode::Stated || (*reported > 0.0 && account.agent != claude_code::AGENT)
            });
            match reported {
                Some(reported) => {
                    let weight = &weights[charge.account];
                    Some(reported * weight.own(account.size) * weight.share(charge, *cost))
                }
                None => cost.filter(|_| mode == Mode::Auto || charge.tokens == [0; 7]),
            }
        };
        self.all.iter().zip(&calculated).map(share).collect()
    }

    /// Indexes of the charges that a filter selects. Determine costs first: a reported cost is spread over the whole
    /// session.
    pub fn select<'a>(&'a self, filter: &'a Filter) -> impl Iterator<Item = usize> + 'a {
        let models: Vec<bool> = self.models.iter().map(|name| filter.has_model(name)).collect();
        let accounts: Vec<bool> =
            self.accounts.iter().map(|account| filter.has_account(account)).collect();
        let is_selected = move |(_, charge): &(usize, &Charge)| {
            models[charge.model] && accounts[charge.account] && filter.has_time(charge.first)
        };
        self.all.iter().enumerate().filter(is_selected).map(|(at, _)| at)
    }
}

/// Weights for spreading a reported cost over a session's charges.
#[derive(Clone, Debug, Default)]
struct Weight {
    cost: f64,
    tokens: i64,
    charges: usize,
    unpriced: bool,
}

impl Weight {
    fn add(&mut self, charge: &Charge, cost: Option<f64>) {
        self.cost += cost.unwrap_or_default();
        self.unpriced |= cost.is_none();
        self.tokens = self.tokens.saturating_add(charge.size());
        self.charges += 1;
    }

    /// The share of a session of `size` tokens that is its own.
    fn own(&self, size: i64) -> f64 {
        if size > 0 { (self.tokens as f64 / size as f64).clamp(0.0, 1.0) } else { 1.0 }
    }

    fn share(&self, charge: &Charge, cost: Option<f64>) -> f64 {
        if !self.unpriced && self.cost > 0.0 {
            cost.unwrap_or_default() / self.cost
        } else if self.tokens > 0 {
            charge.size() as f64 / self.tokens as f64
        } else {
            1.0 / self.charges as f64
        }
    }
}

impl Charge {
    /// All tokens of prompt and output.
    fn size(&self) -> i64 {
        let [input, cache_read, cache_write, _, _, output, _] = self.tokens;
        [cache_read, cache_write, output].into_iter().fold(input, i64::saturating_add)
    }
}

impl Filter {
    fn has_model(&self, name: &str) -> bool {
        let model = self.model.as_ref().map(|model| model.to_lowercase());
        model.is_none_or(|model| name.to_lowercase().contains(&model))
    }

    fn has_account(&self, account: &Account) -> bool {
        let matches = |expected: &Option<String>, actual: Option<&str>| {
            expected.as_deref().is_none_or(|expected| actual == Some(expected))
        };
        let project = account.project.as_deref().unwrap_or_default();
        matches(&self.agent, Some(&account.agent))
            && matches(&self.thread, account.thread.as_deref())
            && self.session.as_ref().is_none_or(|session| session.as_str() == account.session)
            && self.project.as_deref().is_none_or(|expected| is_within(project, expected))
    }

    /// Whether a time in milliseconds since 1970 is selected.
    pub fn has_time(&self, at: Option<i64>) -> bool {
        let moment = |at: crate::Timestamp| at.instant().as_millisecond();
        let after = |since| at.is_some_and(|at| at >= moment(since));
        let before = |until| at.is_some_and(|at| at < moment(until));
        self.since.is_none_or(after) && self.until.is_none_or(before)
    }

    /// The quarters of an hour that the filter cuts.
    pub(crate) fn cut_quarters(&self) -> Vec<i64> {
        let ends = [self.since, self.until].into_iter().flatten();
        let ends = ends.map(|at| at.instant().as_millisecond());
        ends.filter(|at| at % QUARTER != 0).map(|at| at.div_euclid(QUARTER)).collect()
    }
}

/// Whether a folder is the wanted one or inside it. The last component of its name is enough.
fn is_within(folder: &str, parent: &str) -> bool {
    let below =
        folder.strip_prefix(parent).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    below || folder.strip_suffix(parent).is_some_and(|rest| rest.ends_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One session with this reported cost, and charges of output tokens by model.
    fn charges(agent: &str, stated: Option<f64>, tokens: &[(&str, i64)]) -> Charges {
        let size = tokens.iter().map(|(_, output)| output).sum();
        let (agent, at) = (agent.to_owned(), Some(7));
        let account = Account { agent, stated, at, size, ..Account::default() };
        let mut charges = Charges { accounts: vec![account], ..Charges::default() };
        for (model, output) in tokens {
            let model = charges.model(model);
            let tokens = [0, 0, 0, 0, 0, *output, 0];
            charges.all.push(Charge {
                account: 0,
                model,
                band: 0,
                first: None,
                last: None,
                tokens,
            });
        }
        charges.complete();
        charges
    }

    fn costs(charges: &Charges, mode: Mode) -> Vec<Option<f64>> {
        charges.costs(&Prices::bundled(), mode)
    }

    const OPUS: &str = "claude-opus-4-5";
    const HAIKU: &str = "claude-haiku-4-5";

    #[test]
    fn what_is_stated_for_a_session_is_spread_over_it() {
        let known = charges("opencode", Some(12.0), &[(OPUS, 1_000_000), (HAIKU, 1_000_000)]);
        assert_eq!(costs(&known, Mode::Auto), [Some(10.0), Some(2.0)]);
        assert_eq!(costs(&known, Mode::Stated), [Some(10.0), Some(2.0)]);
        assert_eq!(costs(&known, Mode::Calculate), [Some(25.0), Some(5.0)]);
        let unknown = charges("opencode", Some(12.0), &[(OPUS, 1_000_000), ("x", 3_000_000)]);
        assert_eq!(costs(&unknown, Mode::Auto), [Some(3.0), Some(9.0)]);
        assert_eq!(costs(&unknown, Mode::Calculate), [Some(25.0), None]);
    }

    #[test]
    fn what_is_not_stated_is_calculated_or_unknown() {
        let silent = charges("opencode", None, &[(OPUS, 1_000_000), ("x", 1)]);
        assert_eq!(costs(&silent, Mode::Auto), [Some(25.0), None]);
        assert_eq!(costs(&silent, Mode::Stated), [None, None]);
        // A free plan reports a cost of zero.
        let free = charges("opencode", Some(0.0), &[(OPUS, 1_000_000)]);
        assert_eq!(costs(&free, Mode::Auto), [Some(25.0)]);
        // Claude Code's own total continues over resumed sessions.
        let own = charges(claude_code::AGENT, Some(99.0), &[(OPUS, 1_000_000)]);
        assert_eq!(costs(&own, Mode::Auto), [Some(25.0)]);
        assert_eq!(costs(&own, Mode::Stated), [Some(99.0)]);
    }

    #[test]
    fn what_is_stated_of_copied_messages_is_left_out() {
        let mut forked = charges("opencode", Some(12.0), &[(OPUS, 1_000_000)]);
        forked.accounts[0].size = 4_000_000;
        assert_eq!(costs(&forked, Mode::Auto), [Some(3.0)]);
        forked.all.clear();
        forked.complete();
        assert!(forked.all.is_empty());
    }

    #[test]
    fn a_sum_without_tokens_counts_when_its_session_ended() {
        let bare = charges("crush", Some(0.5), &[]);
        assert_eq!((bare.all[0].first, costs(&bare, Mode::Auto)), (Some(7), vec![Some(0.5)]));
        assert_eq!(costs(&bare, Mode::Calculate), [Some(0.0)]);
        assert!(charges("crush", None, &[]).all.is_empty());
    }

    #[test]
    fn folders_are_known_by_their_last_part() {
        for (folder, wanted) in
            [("/a/b", "/a/b"), ("/a/b/c", "/a/b"), ("/a/b", "b"), ("/a/b", "a/b")]
        {
            assert!(is_within(folder, wanted), "{folder} {wanted}");
        }
        for (folder, wanted) in [("/a/bc", "/a/b"), ("/a/cb", "b"), ("", "b")] {
            assert!(!is_within(folder, wanted), "{folder} {wanted}");
        }
    }
}

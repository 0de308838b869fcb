//! What was billed, in the form in which it is added up: from the index, or straight from agents' files.

use std::collections::HashMap;

use super::Prices;
use crate::agent::claude_code;
use crate::index::Filter;

/// Milliseconds of a quarter of an hour, which is part of one day in every time zone.
pub(crate) const QUARTER: i64 = 900_000;

/// A session that was billed.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Account {
    /// Who held it.
    pub agent: String,
    /// Its id.
    pub session: String,
    /// The folder that it was about.
    pub project: Option<String>,
    /// What it was about.
    pub title: Option<String>,
    /// The thread of work that it belongs to.
    pub thread: Option<String>,
    /// When it ended, or began if that is all that is known, in milliseconds since 1970.
    pub at: Option<i64>,
    /// Dollars that its source states for all of it.
    pub stated: Option<f64>,
    /// Tokens that the source states for all of it; some may be those of messages that another session has too.
    pub size: i64,
}

/// Tokens of one model in one session: of one message, or of all within a quarter of an hour.
#[derive(Clone, Debug, PartialEq)]
pub struct Charge {
    /// Which of the accounts.
    pub account: usize,
    /// Which of the models.
    pub model: usize,
    /// Between which lengths the prompts are.
    pub(crate) band: usize,
    /// When the first message was written, in milliseconds since 1970.
    pub first: Option<i64>,
    /// When the last one was.
    pub last: Option<i64>,
    /// How many of each kind, in the order of [`crate::Usage`]; what corrects a sum is negative.
    pub tokens: [i64; 7],
}

/// All that was billed.
#[derive(Clone, Debug, Default)]
pub struct Charges {
    /// The sessions.
    pub accounts: Vec<Account>,
    /// The models' names; empty where none is told.
    pub models: Vec<String>,
    /// What each was billed.
    pub all: Vec<Charge>,
    names: HashMap<String, usize>,
}

/// Whose word is taken for what a message costs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mode {
    /// The source's, where it states a sum for the session; else it is calculated.
    Auto,
    /// It is calculated from tokens and prices.
    Calculate,
    /// The source's only.
    Stated,
}

impl Charges {
    /// The number of a model.
    pub(crate) fn model(&mut self, name: &str) -> usize {
        if let Some(known) = self.names.get(name) {
            return *known;
        }
        let number = self.models.len();
        self.models.push(name.to_owned());
        self.names.insert(name.to_owned(), number);
        number
    }

    /// Has each session with a stated sum but no tokens at all stand among the charges.
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

    /// What each charge costs; nothing where nobody can tell.
    ///
    /// A sum that is stated for a session is spread over its charges: by what they would cost, or by their tokens
    /// where a price is missing. What it states of another session's messages is left out.
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
            let stated = account.stated.filter(|stated| {
                mode == Mode::Stated || (*stated > 0.0 && account.agent != claude_code::AGENT)
            });
            match stated {
                Some(stated) => {
                    let weight = &weights[charge.account];
                    Some(stated * weight.own(account.size) * weight.share(charge, *cost))
                }
                None => cost.filter(|_| mode == Mode::Auto || charge.tokens == [0; 7]),
            }
        };
        self.all.iter().zip(&calculated).map(share).collect()
    }

    /// Only the charges that are asked for; the cost of a whole session must have been found before.
    pub fn select<'a>(&'a self, filter: &'a Filter) -> impl Iterator<Item = usize> + 'a {
        let models: Vec<bool> = self.models.iter().map(|name| filter.has_model(name)).collect();
        let accounts: Vec<bool> =
            self.accounts.iter().map(|account| filter.has_account(account)).collect();
        let wanted = move |(_, charge): &(usize, &Charge)| {
            models[charge.model] && accounts[charge.account] && filter.has_time(charge.first)
        };
        self.all.iter().enumerate().filter(wanted).map(|(at, _)| at)
    }
}

/// By what a sum is spread over a session's charges.
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

    /// How much of a session of `size` tokens is its own.
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
    /// All tokens, of prompt and answer.
    fn size(&self) -> i64 {
        let [input, cache_read, cache_write, _, _, output, _] = self.tokens;
        [cache_read, cache_write, output].into_iter().fold(input, i64::saturating_add)
    }
}

impl Filter {
    fn has_model(&self, name: &str) -> bool {
        let wanted = self.model.as_ref().map(|model| model.to_lowercase());
        wanted.is_none_or(|wanted| name.to_lowercase().contains(&wanted))
    }

    fn has_account(&self, account: &Account) -> bool {
        let is = |wanted: &Option<String>, told: Option<&str>| {
            wanted.as_deref().is_none_or(|wanted| told == Some(wanted))
        };
        let project = account.project.as_deref().unwrap_or_default();
        is(&self.agent, Some(&account.agent))
            && is(&self.thread, account.thread.as_deref())
            && self.session.as_ref().is_none_or(|session| session.as_str() == account.session)
            && self.project.as_deref().is_none_or(|wanted| is_within(project, wanted))
    }

    /// Whether a moment in milliseconds since 1970 is asked for.
    pub fn has_time(&self, at: Option<i64>) -> bool {
        let moment = |at: crate::Timestamp| at.instant().as_millisecond();
        let after = |since| at.is_some_and(|at| at >= moment(since));
        let before = |until| at.is_some_and(|at| at < moment(until));
        self.since.is_none_or(after) && self.until.is_none_or(before)
    }

    /// The quarters of an hour of which only a part is asked for.
    pub(crate) fn cut_quarters(&self) -> Vec<i64> {
        let ends = [self.since, self.until].into_iter().flatten();
        let ends = ends.map(|at| at.instant().as_millisecond());
        ends.filter(|at| at % QUARTER != 0).map(|at| at.div_euclid(QUARTER)).collect()
    }
}

/// Whether a folder is the wanted one or below it; the last part of its name will do.
fn is_within(folder: &str, wanted: &str) -> bool {
    let below =
        folder.strip_prefix(wanted).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'));
    below || folder.strip_suffix(wanted).is_some_and(|rest| rest.ends_with('/'))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// One session of an agent with this stated sum, and charges of output tokens by model.
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
        // A free plan states nothing that tokens cost.
        let free = charges("opencode", Some(0.0), &[(OPUS, 1_000_000)]);
        assert_eq!(costs(&free, Mode::Auto), [Some(25.0)]);
        // Claude Code's own sum goes on over sessions that were resumed.
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

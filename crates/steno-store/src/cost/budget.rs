//! Budgets: limits of the cost per day, per month, and per month in a project.

use jiff::civil::Date;

use super::charge::ChargeTable;
use steno_model::moment::LocalNow;

/// Limits in dollars; without any, nothing is checked.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct BudgetLimits {
    /// For all sessions of a day.
    pub day: Option<f64>,
    /// For all sessions of a month.
    pub month: Option<f64>,
    /// For the sessions of a project in a month, by its folder or the last part of its name.
    pub projects: Vec<(String, f64)>,
}

/// A budget, and what was spent of it.
#[derive(Clone, Debug, PartialEq)]
pub struct BudgetUse {
    /// What it limits: `today`, `this month`, or a project.
    pub name: String,
    /// The limit in dollars.
    pub limit: f64,
    /// What was spent, as far as prices are known.
    pub spent: f64,
}

impl BudgetUse {
    /// Whether more than the limit was spent.
    pub fn is_crossed(&self) -> bool {
        self.spent > self.limit
    }
}

impl BudgetLimits {
    /// Whether no limit is set.
    pub fn is_empty(&self) -> bool {
        self.day.is_none() && self.month.is_none() && self.projects.is_empty()
    }

    /// What was spent of each budget at a time.
    pub fn check(
        &self,
        charges: &ChargeTable,
        costs: &[Option<f64>],
        here: &LocalNow<'_>,
    ) -> Vec<BudgetUse> {
        let local_date = |at: jiff::Timestamp| here.zone.to_datetime(at).date();
        let today = local_date(here.now.instant());
        let is_this_month = |day: Date| (day.year(), day.month()) == (today.year(), today.month());
        let (mut day, mut month) = (0.0, 0.0);
        let mut projects = vec![0.0; self.projects.len()];
        for (charge, cost) in charges.charges.iter().zip(costs) {
            let at = charge.first.and_then(|at| jiff::Timestamp::from_millisecond(at).ok());
            let Some((date, cost)) = at.map(local_date).zip(*cost) else { continue };
            day += if date == today { cost } else { 0.0 };
            if !is_this_month(date) {
                continue;
            }
            month += cost;
            let project = charges.accounts[charge.account].project.as_deref();
            for (spent, (name, _)) in projects.iter_mut().zip(&self.projects) {
                *spent += if project.is_some_and(|project| is_project(project, name)) {
                    cost
                } else {
                    0.0
                };
            }
        }
        let named = |name: &str, limit: Option<f64>, spent: f64| {
            limit.map(|limit| BudgetUse { name: name.to_owned(), limit, spent })
        };
        let general =
            named("today", self.day, day).into_iter().chain(named("this month", self.month, month));
        let own = self.projects.iter().zip(projects);
        general
            .chain(own.map(|((name, limit), spent)| BudgetUse {
                name: format!("{name} this month"),
                limit: *limit,
                spent,
            }))
            .collect()
    }
}

/// A project with a limit and no session.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct UnknownProject<'a> {
    /// The project as the limit names it.
    pub name: &'a str,
    /// The folder with sessions whose name is most alike.
    pub nearest: &'a str,
}

impl BudgetLimits {
    /// The projects with a limit that none of these folders belongs to. Empty if there are no folders.
    pub fn unknown_projects<'a>(&'a self, folders: &[&'a str]) -> Vec<UnknownProject<'a>> {
        let names = self.projects.iter().map(|(name, _)| name.as_str());
        let unknown = names.filter(|name| !folders.iter().any(|folder| is_project(folder, name)));
        let find_nearest = |name: &'a str| {
            let distance = |folder: &&&str| {
                edit_distance(
                    &last_folder(folder).to_lowercase(),
                    &last_folder(name).to_lowercase(),
                )
            };
            let nearest = folders.iter().min_by_key(distance)?;
            Some(UnknownProject { name, nearest })
        };
        unknown.filter_map(find_nearest).collect()
    }
}

fn last_folder(path: &str) -> &str {
    let path = path.trim_end_matches('/');
    path.rsplit('/').next().unwrap_or(path)
}

/// How many characters must be inserted, removed or replaced to make one text from another.
fn edit_distance(one: &str, other: &str) -> usize {
    let other: Vec<char> = other.chars().collect();
    let mut row: Vec<usize> = (0..=other.len()).collect();
    for (line, mine) in one.chars().enumerate() {
        let mut diagonal = std::mem::replace(&mut row[0], line + 1);
        for (at, theirs) in other.iter().enumerate() {
            let replaced = diagonal + usize::from(mine != *theirs);
            diagonal = row[at + 1];
            row[at + 1] = replaced.min(diagonal + 1).min(row[at] + 1);
        }
    }
    row[other.len()]
}

/// Whether a project folder is named, by its path, by a folder above it, or by the last part of its path.
fn is_project(folder: &str, name: &str) -> bool {
    let (folder, name) = (folder.trim_end_matches('/'), name.trim_end_matches('/'));
    folder == name
        || folder.strip_prefix(name).is_some_and(|rest| rest.starts_with('/'))
        || (!name.contains('/') && folder.rsplit('/').next() == Some(name))
}

#[cfg(test)]
mod tests {
    use jiff::tz::TimeZone;

    use super::*;
    use crate::cost::charge::{SessionAccount, UsageCharge};

    fn charged(all: &[(&str, usize)]) -> ChargeTable {
        let mut table = ChargeTable::default();
        for project in ["/code/harbor", "/code/other"] {
            table.accounts.push(SessionAccount {
                project: Some(project.to_owned()),
                ..SessionAccount::default()
            });
        }
        let model = table.model_index("x");
        for (time, account) in all {
            let at = time.parse::<jiff::Timestamp>().map(|at| at.as_millisecond()).ok();
            let (account, tokens) = (*account, [0; 7]);
            table.charges.push(UsageCharge {
                account,
                model,
                band: 0,
                first: at,
                last: at,
                tokens,
            });
        }
        table
    }

    #[test]
    fn a_limit_of_a_project_without_sessions_is_found() {
        let projects = ["harbr", "/code/Harbor/", "/code", "pier"];
        let projects = projects.map(|name| (name.to_owned(), 1.0)).to_vec();
        let limits = BudgetLimits { projects, ..BudgetLimits::default() };
        let folders = ["/code/lighthouse", "/code/harbor", "/code/piers/"];
        let unknown: Vec<_> =
            limits.unknown_projects(&folders).iter().map(|one| (one.name, one.nearest)).collect();
        let expected = [
            ("harbr", "/code/harbor"),
            ("/code/Harbor/", "/code/harbor"),
            ("pier", "/code/piers/"),
        ];
        assert_eq!(unknown, expected);
        assert_eq!(limits.unknown_projects(&[]), []);
    }

    #[test]
    fn days_and_months_are_local() {
        let table = charged(&[
            ("2026-01-31T23:30:00Z", 0),
            ("2026-02-01T10:00:00Z", 1),
            ("2026-01-10T10:00:00Z", 0),
        ]);
        let limits = BudgetLimits {
            day: Some(5.0),
            month: Some(7.0),
            projects: vec![("harbor".to_owned(), 3.0), ("/code".to_owned(), 100.0)],
        };
        let now = "2026-02-01T12:00:00Z".parse().expect("the time is valid");
        let costs = [Some(4.0), Some(2.0), Some(50.0)];
        let use_in = |zone: &str| {
            let zone = TimeZone::get(zone).expect("the zone is known");
            let all = limits.check(&table, &costs, &LocalNow { now, zone: &zone });
            all.iter()
                .map(|one| (one.name.clone(), one.spent, one.is_crossed()))
                .collect::<Vec<_>>()
        };
        let named = |name: &str, spent: f64, crossed: bool| (name.to_owned(), spent, crossed);
        assert_eq!(
            use_in("UTC")[..2],
            [named("today", 2.0, false), named("this month", 2.0, false)]
        );
        assert_eq!(
            use_in("Europe/Berlin"),
            [
                named("today", 6.0, true),
                named("this month", 6.0, false),
                named("harbor this month", 4.0, true),
                named("/code this month", 6.0, false),
            ]
        );
    }

    #[test]
    fn projects_are_named_by_path_or_last_part() {
        assert!(
            is_project("/code/harbor", "harbor") && is_project("/code/harbor/", "/code/harbor")
        );
        assert!(is_project("/code/harbor/sub", "/code/harbor"));
        assert!(
            !is_project("/code/harbors", "/code/harbor")
                && !is_project("/code/my-harbor", "harbor")
        );
    }
}

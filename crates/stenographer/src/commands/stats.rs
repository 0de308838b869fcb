//! `steno stats`: prints an overview of all sessions.

mod days;

use std::collections::BTreeMap;

use serde_json::{Value, json};
use steno_store::cost::charge::{ChargeTable, CostMode};
use steno_store::cost::report::{ChargeSum, GroupBy, ReportGroup, ReportRow};
use steno_store::index::{ActivityReport, Index, SessionFilter};

use self::days::ActiveDays;
use super::cost::PricedCharges;
use crate::amount::{format_cost, format_count, render_bar, render_curve, round_for_json};
use crate::automatic_sync::AutomaticSyncFlag;
use crate::config::Config;
use crate::error::{CommandError, CommandExit};
use crate::known_values::check_known_values;
use crate::process_environment::ProcessEnvironment;
use crate::session_scope::SessionScope;
use crate::session_store::SessionStore;
use crate::team_access::RemoteFlag;
use crate::text_table::fit_label;
use crate::ui::{Ui, count_noun};
use crate::value_parsers::parse_count;
use steno_store::view::json_rows::cost::unpriced_models;

/// Show activity, models, tools and costs of all sessions.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(flatten)]
    scope: SessionScope,
    /// Time zone for days and times, such as Europe/Berlin [default: the system's].
    #[arg(long, value_name = "ZONE")]
    timezone: Option<String>,
    /// Print at most N of each kind.
    #[arg(long, short = 'n', value_name = "N", default_value_t = 5, value_parser = parse_count, allow_negative_numbers = true)]
    limit: usize,
    /// Print JSON.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    pub(crate) sync: AutomaticSyncFlag,
    #[command(flatten)]
    pub(crate) remote: RemoteFlag,
}

/// Everything on the page.
struct StatsOverview {
    charges: ChargeTable,
    total: ChargeSum,
    models: Vec<ReportRow>,
    activity: ActivityReport,
    days: ActiveDays,
    agents: Vec<(String, u64)>,
    projects: Vec<(String, u64)>,
    /// Sessions that `steno list` has beyond those counted here.
    empty_sessions: u64,
    /// Whether only messages of one model are counted, of which none is a prompt.
    is_of_model: bool,
}

/// Runs the command.
pub(crate) fn run(
    ui: &mut Ui,
    env: &ProcessEnvironment,
    args: &Args,
) -> Result<CommandExit, CommandError> {
    let env = env.in_zone(args.timezone.as_deref())?;
    let prices = Config::load(&env)?.prices()?;
    args.sync.sync_before_answer(ui, &env);
    let store = SessionStore::new(&env);
    store.check_agent(args.scope.agent.as_deref())?;
    let filter = args.scope.to_filter(&env, |name| Ok(store.find_session(name)?.id().clone()))?;
    let ask = |index: &Index| Ok((index.load_charges(&filter)?, index.count_activity(&filter)?));
    let (index, (charges, activity)) = store.query_all(ui, ask)?;
    if activity.sessions.is_empty() {
        check_known_values(&index, &filter, None)?;
    }
    let listed = SessionFilter { scope: filter.clone(), ..SessionFilter::default() };
    let counts = store.count_sessions(&index, &listed)?;
    let costs = charges.charge_costs(&prices, CostMode::Auto);
    let mut overview = StatsOverview::new(&env, PricedCharges { charges, costs, filter }, activity);
    overview.empty_sessions = counts.without_entries;
    overview.is_of_model = args.scope.model.is_some();
    if args.json {
        serde_json::to_writer(ui.out(), &overview.to_json(args.limit))?;
        writeln!(ui.out())?;
    } else if overview.activity.sessions.is_empty() {
        ui.status(match store.vault.has_sessions()? {
            true => "no session matches",
            false => "no sessions yet; run `steno sync`",
        });
    } else {
        let text = overview.render_page(ui, args.limit);
        ui.listing_text(&text)?;
    }
    Ok(CommandExit::Done)
}

impl StatsOverview {
    fn new(env: &ProcessEnvironment, priced: PricedCharges, activity: ActivityReport) -> Self {
        let PricedCharges { charges, costs, filter } = priced;
        let selected: Vec<usize> = charges.select_charges(&filter).collect();
        let total = charges.sum_charges(&costs, &selected);
        let group = ReportGroup { by: GroupBy::Model, zone: &env.zone };
        let mut models = charges.report_rows(&costs, &selected, &group);
        models.retain(|row| !row.sum.tokens().is_empty());
        let days = ActiveDays::new(env, &activity.quarter_hours);
        let named = |name: fn(&steno_store::index::SessionActivity) -> Option<String>| {
            let mut counts: BTreeMap<String, u64> = BTreeMap::new();
            let names = activity.sessions.iter().filter_map(name);
            names.for_each(|name| *counts.entry(name).or_default() += 1);
            let mut counts: Vec<_> = counts.into_iter().collect();
            counts.sort_by_key(|(_, count)| std::cmp::Reverse(*count));
            counts
        };
        let agents = named(|session| Some(session.agent.clone()));
        let projects = named(|session| session.project.clone());
        Self {
            charges,
            total,
            models,
            activity,
            days,
            agents,
            projects,
            empty_sessions: 0,
            is_of_model: false,
        }
    }

    /// Counts the entries. One that several sessions have counts once.
    fn entry_count(&self) -> u64 {
        let entries: u64 = self.activity.sessions.iter().map(|session| session.entries).sum();
        entries - self.activity.copied_entries
    }

    fn prompt_count(&self) -> u64 {
        self.activity.sessions.iter().map(|session| session.prompts).sum()
    }

    fn to_json(&self, limit: usize) -> Value {
        let pairs = |all: &[(String, u64)], name: &str, what: &str| -> Vec<Value> {
            all.iter().take(limit).map(|(key, count)| json!({name: key, what: count})).collect()
        };
        let models = self.models.iter().take(limit).map(|row| {
            json!({"model": row.key, "tokens": row.sum.tokens(), "cost": row.sum.cost().map(round_for_json)})
        });
        let busiest = self.days.busiest_day();
        json!({
            "sessions": self.activity.sessions.len(),
            "sessions_without_entries": self.empty_sessions,
            "entries": self.entry_count(),
            "copied_entries": self.activity.copied_entries,
            "prompts": self.prompt_count(),
            "tokens": self.total.tokens(),
            "cost": self.total.cost().map(round_for_json),
            "unpriced": unpriced_models(&self.charges, &self.total),
            "first_day": self.days.first_day().map(|day| day.to_string()),
            "last_day": self.days.last_day().map(|day| day.to_string()),
            "days": self.days.day_count(),
            "streak": self.days.current_streak(),
            "longest_streak": self.days.longest_streak(),
            "busiest_day": busiest.map(|(day, count)| json!({"day": day.to_string(), "entries": count})),
            "hours": self.days.hours(),
            "agents": pairs(&self.agents, "agent", "sessions"),
            "projects": pairs(&self.projects, "project", "sessions"),
            "models": models.collect::<Vec<_>>(),
            "tools": pairs(&self.activity.tools, "tool", "calls"),
        })
    }

    fn render_page(&self, ui: &Ui, limit: usize) -> String {
        let tokens = self.total.tokens();
        let sessions = count_noun(self.activity.sessions.len() as u64, "session");
        let empty = match self.empty_sessions {
            0 => String::new(),
            empty => format!(" (and {empty} without entries)"),
        };
        let prompts = match self.is_of_model {
            true => String::new(),
            false => format!(", {} prompts", format_count(self.prompt_count())),
        };
        let entries = format_count(self.entry_count());
        let copies = match self.activity.copied_entries {
            0 => String::new(),
            copies => format!(" (and {} copied from other sessions)", format_count(copies)),
        };
        let mut text = format!("{sessions}{empty}, {entries} entries{copies}{prompts}\n");
        text.push_str(&format!(
            "tokens: {} in, {} cache written, {} cache read, {} out\ncost: {}\n",
            format_count(tokens.input),
            format_count(tokens.cache_write),
            format_count(tokens.cache_read),
            format_count(tokens.output),
            format_cost(&self.total),
        ));
        text.push_str(&self.render_times(ui));
        let amounts = |all: &[(String, u64)]| -> Vec<(String, String, f64)> {
            let amount =
                |(name, count): &(String, u64)| (name.clone(), format_count(*count), *count as f64);
            all.iter().map(amount).collect()
        };
        let model = |row: &ReportRow| {
            let name = row.key.clone().unwrap_or_else(|| "unknown".to_owned());
            (name, format_cost(&row.sum), row.sum.cost().unwrap_or(0.0))
        };
        let lists = [
            ("MODEL", self.models.iter().map(model).collect()),
            ("TOOL", amounts(&self.activity.tools)),
            ("PROJECT", amounts(&self.projects)),
            ("AGENT", amounts(&self.agents)),
        ];
        for (heading, all) in lists.iter().filter(|(_, all)| !all.is_empty()) {
            text.push_str(&render_list(ui, heading, &all[..all.len().min(limit)]));
        }
        text
    }

    fn render_times(&self, ui: &Ui) -> String {
        let (Some(first), Some(last)) = (self.days.first_day(), self.days.last_day()) else {
            return String::new();
        };
        let mut text = format!(
            "{} from {first} to {last}, current streak {}, longest {}\n",
            count_noun(self.days.day_count(), "active day"),
            self.days.current_streak(),
            self.days.longest_streak(),
        );
        if let Some((day, entries)) = self.days.busiest_day() {
            text.push_str(&format!("busiest day: {day} ({} entries)\n", format_count(entries)));
        }
        let hours = self.days.hours();
        let busiest =
            (0..24).max_by_key(|hour| (hours[*hour], std::cmp::Reverse(*hour))).unwrap_or(0);
        text.push_str(&format!("busiest hour: {busiest:02}:00"));
        if ui.is_terminal() {
            let curve = render_curve(&hours.map(|count| count as f64));
            text.push_str(&format!("  00 {curve} 24"));
        }
        text.push('\n');
        text
    }
}

/// Renders the top entries of one list, with bars on a terminal.
fn render_list(ui: &Ui, heading: &str, all: &[(String, String, f64)]) -> String {
    let top = all.iter().map(|(_, _, weight)| *weight).fold(0.0, f64::max);
    let mut text = format!("\n{heading}\n");
    for (name, amount, weight) in all {
        let name = fit_label(&name.replace(['\n', '\t'], " "), 44);
        let bar = if ui.is_terminal() && top > 0.0 {
            render_bar(weight / top, 16)
        } else {
            String::new()
        };
        let gap = " ".repeat(46 - unicode_width::UnicodeWidthStr::width(name.as_str()));
        text.push_str(format!("{name}{gap}{amount:>12}  {bar}").trim_end());
        text.push('\n');
    }
    text
}

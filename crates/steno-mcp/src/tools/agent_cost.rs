//! `agent_cost`: adds up tokens and costs.

use steno_store::amount::{format_cost, format_count};
use steno_store::cost::charge::{ChargeTable, CostMode};
use steno_store::cost::report::{ChargeSum, GroupBy, ReportGroup, ReportRow};
use steno_store::index::EntryFilter;

use super::{
    AGENT_ARGUMENT, BYTES_ARGUMENT, PROJECT_ARGUMENT, SINCE_ARGUMENT, UNTIL_ARGUMENT, answer_bytes,
};
use crate::agent_history::{AgentHistory, TimeSpan};
use crate::history_tool::HistoryTool;
use crate::quoted_answer::QuotedAnswer;
use crate::quoted_text::make_quotable_line;
use crate::tool_arguments::{ToolArgument, ToolArguments};
use crate::tool_error::ToolError;

/// The keys to group by. Only a team has people.
const GROUPS: [GroupBy; 8] = [
    GroupBy::Day,
    GroupBy::Week,
    GroupBy::Month,
    GroupBy::Model,
    GroupBy::Agent,
    GroupBy::Session,
    GroupBy::Project,
    GroupBy::Person,
];

/// The tool.
pub(super) const COST_TOOL: HistoryTool = HistoryTool {
    name: "agent_cost",
    description: "Tokens and dollars that agents used.",
    arguments: &[
        ToolArgument::text("by", "day, week, month, model, agent, session or project")
            .also(&["group_by", "groupby", "per"]),
        SINCE_ARGUMENT,
        UNTIL_ARGUMENT,
        AGENT_ARGUMENT,
        PROJECT_ARGUMENT,
        BYTES_ARGUMENT,
    ],
    example: r#"{"by": "model", "since": "30d"}"#,
    answer: sum_costs,
};

fn sum_costs(history: &AgentHistory, arguments: &ToolArguments) -> Result<String, ToolError> {
    let by = parse_group(history, arguments.text("by")?.as_deref())?;
    let span = TimeSpan { since: arguments.text("since")?, until: arguments.text("until")? };
    let scope = EntryFilter {
        agent: arguments.text("agent")?,
        ..history.scope_filter(arguments.text("project")?.as_deref(), &span)?
    };
    let owners = history.session_owners();
    let (charges, filter) = history.query(|index, private| {
        let filter = EntryFilter { private: private.clone(), ..scope.clone() };
        Ok((index.load_team_charges(&filter, &owners)?, filter))
    })?;
    let costs = charges.charge_costs(history.prices(), CostMode::Auto);
    let selected: Vec<usize> = charges.select_charges(&filter).collect();
    if selected.is_empty() {
        return Ok(format!("No tokens were used in {} in this time.", history.scope_name()));
    }
    let group = ReportGroup { by, zone: history.zone() };
    let mut rows = charges.report_rows(&costs, &selected, &group);
    if matches!(by, GroupBy::Day | GroupBy::Week | GroupBy::Month) {
        rows.reverse();
    }
    let total = charges.sum_charges(&costs, &selected);
    let summary = format!("Cost of {} by {}:", history.scope_name(), by.name());
    let mut answer = QuotedAnswer::new(summary, answer_bytes(arguments)?);
    let push = |row: &&ReportRow| {
        let line = format!("{}: {}", row_label(&charges, by, row), sum_text(&row.sum));
        answer.push_whole(&line, "")
    };
    let shown = rows.iter().take_while(push).count();
    if shown < rows.len() {
        answer.add_footer(format!(
            "{} more rows left out: use since, or raise max_bytes.",
            rows.len() - shown
        ));
    }
    answer.add_footer(format!("Total: {}", sum_text(&total)));
    if !total.unpriced.is_empty() {
        let models = total.unpriced.iter().map(|at| make_quotable_line(&charges.models[*at], 60));
        let models: Vec<String> = models.take(5).collect();
        answer.add_footer(format!("No price is known for: {}.", models.join(", ")));
    }
    Ok(answer.into_text())
}

fn parse_group(history: &AgentHistory, name: Option<&str>) -> Result<GroupBy, ToolError> {
    let groups = GROUPS.iter().filter(|by| **by != GroupBy::Person || history.serves_team());
    let groups: Vec<GroupBy> = groups.copied().collect();
    let name = name.unwrap_or("day").to_lowercase();
    let singular = name.strip_suffix('s').unwrap_or(&name);
    groups.iter().copied().find(|by| by.name() == singular).ok_or_else(|| {
        let names: Vec<&str> = groups.iter().map(|by| by.name()).collect();
        ToolError::arguments(format!("by is one of {}, not {name:?}", names.join(", ")))
    })
}

fn row_label(charges: &ChargeTable, by: GroupBy, row: &ReportRow) -> String {
    let account = row.sum.sessions.iter().next().map(|at| &charges.accounts[*at]);
    let label = match (by, account) {
        (GroupBy::Session, Some(account)) => account.session.clone(),
        _ => row.key.clone().unwrap_or_else(|| "unknown".to_owned()),
    };
    make_quotable_line(&label, 120)
}

fn sum_text(sum: &ChargeSum) -> String {
    let tokens = sum.tokens();
    let prompt = format_count(tokens.prompt_tokens());
    let (output, sessions) = (format_count(tokens.output), sum.sessions.len());
    format!("{}, {prompt} tokens in, {output} out, {sessions} session(s)", format_cost(sum))
}

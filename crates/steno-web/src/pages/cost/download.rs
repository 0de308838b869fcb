//! The table of the cost page as a CSV file, with exact numbers and all rows.

use axum::extract::Query;
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_TYPE};
use axum::response::IntoResponse;
use steno_store::cost::budget::BudgetLimits;
use steno_store::cost::report::{ChargeSum, GroupBy};

use super::{CostView, default_days, group_by, group_name, group_names, with_fitting_group};
use crate::app::WebApp;
use crate::cost_tables::CostLine;
use crate::error::WebError;
use crate::filter_query::FilterQuery;
use crate::library::CostAccounts;
use crate::session_listing::SessionListing;
use crate::viewer::PageViewer;

/// The columns of a row that is a session; other rows have their name.
const SESSION_COLUMNS: &str = "session_id,agent,project,started,title";

/// The columns after the name.
const COLUMNS: &str = "sessions,input_tokens,cache_read_tokens,cache_write_tokens,output_tokens,cost_usd,unpriced_models";

/// The rows of the cost page with these filters as a file.
pub(crate) async fn cost_csv(
    app: WebApp,
    viewer: PageViewer,
    Query(filters): Query<FilterQuery>,
) -> Result<impl IntoResponse, WebError> {
    let text = app.run_blocking(move |library| {
        if !group_names().any(|name| name == group_name(&filters)) {
            return Err(WebError::NotFound(format!("costs by {}", group_name(&filters))));
        }
        let days = default_days(&filters);
        let filters = filters.with_default_period(days, viewer.today(&library.clock));
        let accounts = library.cost_accounts(filters.to_filter(library, &viewer.zone)?)?;
        let selected: Vec<usize> = accounts.charges.select_charges(&accounts.filter).collect();
        let filters = with_fitting_group(filters, &accounts, &selected, &viewer.zone);
        let (viewer, accounts, filters) = (&viewer, &accounts, &filters);
        let limits = &BudgetLimits::default();
        let view = CostView { library, viewer, accounts, filters, limits };
        Ok(match group_by(filters) {
            Some(GroupBy::Session) => {
                let listing = library.session_listing()?;
                let rows = view.report_rows(GroupBy::Session, &selected);
                let rows = rows.iter().map(|row| session_line(accounts, &listing, &row.sum));
                heading(SESSION_COLUMNS) + &rows.collect::<String>()
            }
            Some(by) => {
                let rows = view.report_rows(by, &selected);
                let lines = rows.iter().map(|row| csv_line(&view.cost_line(by, row)));
                heading(by.name()) + &lines.collect::<String>()
            }
            None => {
                let (blocks, _) =
                    accounts.charges.blocks_started_in(&accounts.costs, &accounts.filter);
                let used: Vec<_> = blocks.iter().filter(|block| !block.is_gap).collect();
                let lines = view.block_lines(&used);
                heading(group_name(filters)) + &lines.iter().map(csv_line).collect::<String>()
            }
        })
    });
    let file = "attachment; filename=\"steno-cost.csv\"";
    Ok(([(CONTENT_TYPE, "text/csv; charset=utf-8"), (CONTENT_DISPOSITION, file)], text.await?))
}

fn heading(names: &str) -> String {
    format!("{names},{COLUMNS}\r\n")
}

fn csv_line(line: &CostLine<'_>) -> String {
    format!("{},{}\r\n", csv_text(&line.name), amounts(line.sum))
}

/// The row of a session. The start is empty if the session has no time.
fn session_line(accounts: &CostAccounts, listing: &SessionListing, sum: &ChargeSum) -> String {
    let Some(account) = sum.sessions.iter().map(|at| &accounts.charges.accounts[*at]).next() else {
        return String::new();
    };
    let mut sessions = listing.sessions.iter().map(|one| &one.session);
    let session =
        sessions.find(|one| one.agent == account.agent && one.id.as_str() == account.session);
    let started = session.and_then(|one| one.started).map(|at| at.instant().to_string());
    let texts = [
        Some(account.session.as_str()),
        Some(account.agent.as_str()),
        account.project.as_deref(),
        started.as_deref(),
        account.title.as_deref(),
    ];
    let texts = texts.map(|text| csv_text(text.unwrap_or_default()));
    format!("{},{}\r\n", texts.join(","), amounts(sum))
}

/// The values of [`COLUMNS`].
fn amounts(sum: &ChargeSum) -> String {
    let tokens = sum.tokens();
    let cost = sum.cost().map_or_else(String::new, |cost| format!("{cost:.6}"));
    format!(
        "{},{},{},{},{},{cost},{}",
        sum.sessions.len(),
        tokens.input,
        tokens.cache_read,
        tokens.cache_write,
        tokens.output,
        sum.unpriced.len(),
    )
}

/// A text in quotes. A spreadsheet must not take it for a formula.
fn csv_text(text: &str) -> String {
    let is_formula = text.starts_with(['=', '+', '-', '@', '\t', '\r']);
    let guard = if is_formula { "'" } else { "" };
    format!("\"{guard}{}\"", text.replace('"', "\"\"").replace(['\r', '\n'], " "))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_quoted_and_no_formula() {
        assert_eq!(csv_text("Say \"hi\", then\nleave"), "\"Say \"\"hi\"\", then leave\"");
        assert_eq!(csv_text("=1+1"), "\"'=1+1\"");
        assert_eq!(csv_text("/code/harbor"), "\"/code/harbor\"");
    }
}

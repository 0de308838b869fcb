//! The web page: read, search and replay sessions in a browser, or export them as HTML files.
//!
//! The server renders the HTML, with the same code for both. It uses the index only through `steno-store`.

mod activity_calendar;
mod addresses;
mod amount_list;
mod api;
mod api_parameters;
mod app;
mod assets;
mod budget_list;
mod chart;
mod chart_axis;
mod connections;
mod cost_series;
mod cost_tables;
mod date_range;
mod error;
pub mod export;
mod filter_query;
mod fork;
mod guard;
mod heading;
mod help_dialog;
mod history_routes;
mod library;
mod library_set;
mod list_columns;
mod list_filter;
mod list_order;
mod live;
mod neighbours;
mod options;
mod outline;
mod page;
mod pages;
mod palette;
mod period_step;
mod project_names;
mod prompt_branches;
mod quality_counts;
mod quality_report;
mod render;
mod report_api;
mod report_page;
mod routes;
mod section_lists;
mod server;
mod session_listing;
mod session_person;
mod status_expiry;
mod subagent_overview;
mod subagent_run;
mod team_page;
mod units;
mod viewer;
mod week_hours;
mod word_trends;
mod write_timeout;

pub use connections::ConnectionLimits;
pub use error::WebError;
pub use options::{BudgetReader, ResumeAction, ServerOptions};
pub use server::WebServer;
pub use team_page::{
    FindReader, MemberToken, ProxySecret, TeamPage, TrustedProxy, parse_header_name,
};

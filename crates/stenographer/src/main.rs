//! `steno`: the court reporter for AI agents.

mod agent_route;
mod agent_settings;
mod agent_version;
mod automatic_sync;
mod browser;
#[cfg(feature = "bucket")]
mod bucket_access;
mod byte_size;
mod cli;
mod command_pages;
mod command_synonyms;
mod commands;
mod config;
mod error;
mod export_format;
mod file_position;
mod hooks;
mod json_output;
mod known_values;
mod live_session;
mod mcp_settings;
mod mirror_refresher;
mod moment;
mod pager;
mod process_environment;
mod progress_line;
mod project_folder;
mod project_threads;
mod protected_paths;
#[cfg(test)]
mod readme_lists;
mod recording_gateway;
mod recording_session;
mod redaction_choice;
mod runnable_agent;
mod session_paths;
mod session_removal;
mod session_scope;
mod session_store;
mod store_key;
mod sync_state;
mod team_access;
mod team_index;
mod terminal_text;
mod text_table;
mod thread_error;
mod thread_run;
mod ui;
mod user_name;
mod value_completion;
mod value_parsers;
mod write_permission;

use std::process::ExitCode;

use steno_store::amount;

/// Parsing sessions allocates and frees many strings.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let mut ui = ui::Ui::stdio();
    match cli::complete_values() {
        Ok(false) => {}
        Ok(true) => return ExitCode::SUCCESS,
        Err(error) => return ui.report_error(&error).into(),
    }
    let result = process_environment::ProcessEnvironment::from_environment()
        .and_then(|env| cli::run_command_line(&mut ui, &env));
    match result {
        Ok(exit) => exit.into(),
        Err(_) if cli::is_hook_call() => ExitCode::SUCCESS,
        Err(error) => ui.report_error(&error).into(),
    }
}

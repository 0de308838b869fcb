//! `steno`: the court reporter for AI agents.

mod agent_route;
mod agents;
mod browser;
mod byte_size;
mod cli;
mod commands;
mod config;
mod error;
mod hooks;
mod indexer;
mod json_output;
mod keeper;
mod moment;
mod project;
mod projects;
mod protected_paths;
mod recording_session;
mod scene;
mod scope;
mod seen;
mod store;
mod sweep;
mod table;
mod target;
mod thread_error;
mod thread_run;
mod threads;
mod traffic;
mod ui;
mod write_permission;

use std::process::ExitCode;

use steno_core::view::amount;

/// Reading sessions means to make and drop strings without end.
#[global_allocator]
static ALLOCATOR: mimalloc::MiMalloc = mimalloc::MiMalloc;

fn main() -> ExitCode {
    let mut ui = ui::Ui::stdio();
    let result = scene::Scene::from_environment().and_then(|scene| cli::run(&mut ui, &scene));
    match result {
        Ok(exit) => exit.into(),
        Err(_) if cli::is_hook() => ExitCode::SUCCESS,
        Err(error) => ui.report(&error).into(),
    }
}

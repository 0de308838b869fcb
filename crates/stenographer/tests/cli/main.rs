//! End-to-end tests: each command runs as a process, in a home of its own.

#![expect(clippy::unwrap_used, reason = "a test may panic")]

#[cfg(unix)]
mod acp;
mod annotate;
mod automatic_sync;
mod bad_input;
mod blame;
#[cfg(unix)]
mod browser;
#[cfg(all(unix, feature = "bucket"))]
mod bucket;
mod chibi;
#[cfg(target_os = "linux")]
mod children;
#[cfg(unix)]
mod clickhouse_server;
#[cfg(unix)]
mod closed_folders;
mod cost;
mod crash;
mod cut_anywhere;
mod damaged;
mod databases;
mod devflow;
mod diff;
mod doctor;
mod encrypted_commands;
mod encryption;
#[cfg(unix)]
mod exec;
#[cfg(unix)]
mod exec_agents;
mod exec_attributed;
mod exec_joined;
#[cfg(unix)]
mod exec_proxy;
mod export;
#[cfg(unix)]
mod follow;
mod foreign_store;
mod forget;
#[cfg(target_os = "linux")]
mod full_store;
#[cfg(unix)]
mod gateway;
mod gateway_bodies;
#[cfg(unix)]
mod gateway_http2;
mod gateway_secrets;
#[cfg(unix)]
mod gateway_websocket;
mod harness;
mod help_pages;
#[cfg(unix)]
mod hooks;
mod hostile_text;
mod json_output;
mod killed;
#[cfg(unix)]
mod leslie;
mod listing;
#[cfg(unix)]
mod load;
mod mcp;
#[cfg(unix)]
mod model;
#[cfg(all(unix, feature = "bucket"))]
mod moto_server;
mod moved;
mod older_store;
#[cfg(feature = "parquet")]
mod parquet;
mod places;
#[cfg(unix)]
mod postgres_server;
#[cfg(target_os = "linux")]
mod python_tools;
mod read_only;
#[cfg(unix)]
mod readme;
mod record;
#[cfg(unix)]
mod replay;
mod restore;
#[cfg(unix)]
mod resume;
#[cfg(unix)]
mod resume_elsewhere;
#[cfg(unix)]
mod run;
#[cfg(target_os = "linux")]
mod run_killed;
#[cfg(unix)]
mod screens;
mod screenshots;
mod search;
mod secrets;
mod sessions;
#[cfg(target_os = "linux")]
mod stream_killed;
mod sync;
#[cfg(unix)]
mod team;
#[cfg(unix)]
mod team_charges;
#[cfg(unix)]
mod team_colleagues;
mod team_errors;
#[cfg(unix)]
mod team_notes;
#[cfg(unix)]
mod team_page;
mod team_retention;
#[cfg(unix)]
mod team_rights;
mod team_search;
mod team_secrets;
mod team_tls;
#[cfg(unix)]
mod terminal;
#[cfg(target_os = "linux")]
mod thread_survival;
mod threads;
#[cfg(unix)]
mod tls;
mod verify;
#[cfg(unix)]
mod watch;
#[cfg(unix)]
mod watch_push;
#[cfg(unix)]
mod wrong_command_lines;

//! `steno remote`: names the places where a team shares sessions.

use serde_json::json;
use steno_cipher::store_fs;
use steno_team::{
    ClickHouseUrl, KeyLocation, RemoteSettings, RemoteUrl, RemoteUrlError, SessionVisibility,
};

use crate::config::{
    Config, IndexSettings, NewRemote, check_keep, check_push_interval, check_remote_name,
};
use crate::error::{CommandError, CommandExit};
use crate::process_environment::ProcessEnvironment;
use crate::team_access::{TeamAccess, explain_team_error};
use crate::ui::{Ui, count_noun};

/// Name the places where a team shares sessions.
///
/// A remote is a folder that all can write (file:///srv/steno), a PostgreSQL database
/// (postgres://ada@db.example.com/steno), or a bucket (s3://bucket/prefix, gs://, az://). Passwords come from PGPASSWORD, ~/.pgpass or `password_command` in
/// config.toml. `steno push` sends sessions there, without secrets; `--from NAME` reads them.
#[derive(Debug, clap::Args)]
pub(crate) struct Args {
    #[command(subcommand)]
    action: RemoteAction,
}

#[derive(Debug, clap::Subcommand)]
enum RemoteAction {
    Add(Box<AddArgs>),
    List(ListArgs),
    /// Remove a remote from config.toml. What was pushed stays there.
    Remove(NameArgs),
    /// Create what a remote needs, or migrate it: once, as the owner of the folder or database.
    Init(NameArgs),
    Prune(PruneArgs),
}

/// Add a remote to config.toml.
#[derive(Debug, clap::Args)]
struct AddArgs {
    /// Its name on this machine.
    name: String,
    /// Its URL, without a password.
    url: String,
    /// Push only sessions of these projects: folders, or parts of their paths.
    #[arg(long = "project", value_name = "DIR")]
    projects: Vec<String>,
    /// Push only sessions of these agents.
    #[arg(long = "agent", value_name = "NAME")]
    agents: Vec<String>,
    /// Who may see the sessions: private, team or everyone.
    #[arg(long, value_name = "WHO", default_value_t)]
    visibility: SessionVisibility,
    /// Where the keys of a bucket's sessions are: a PostgreSQL database, or file:// and a file of the team.
    #[arg(long, value_name = "URL")]
    keys: Option<String>,
    /// Push the original bytes, with all keys, tokens and passwords in them.
    #[arg(long)]
    no_redact: bool,
    /// Keep the notes of `steno annotate` on this machine.
    #[arg(long)]
    no_notes: bool,
    /// How often `steno watch` pushes: a time such as 10m, or "now" after each quiet moment.
    #[arg(long, value_name = "TIME", value_parser = check_push_interval)]
    every: Option<String>,
    /// How long a database keeps sessions after their end, such as 365d, for its owner's `steno remote prune`.
    #[arg(long, value_name = "DAYS", value_parser = check_keep)]
    keep: Option<String>,
    /// A command that prints the password of the database.
    #[arg(long, value_name = "COMMAND")]
    password_command: Option<String>,
    /// The ClickHouse database that `steno load` fills, and that searches and counts are asked of.
    #[arg(long, value_name = "URL")]
    index: Option<String>,
    /// A command that prints the password of the index.
    #[arg(long, value_name = "COMMAND", requires = "index")]
    index_password_command: Option<String>,
}

/// List the remotes.
#[derive(Debug, clap::Args)]
struct ListArgs {
    /// Print JSON Lines.
    #[arg(long)]
    json: bool,
}

#[derive(Debug, clap::Args)]
struct NameArgs {
    /// The remote.
    name: String,
}

/// Remove old sessions from a database, as its owner.
///
/// Removes the sessions of all members that ended before the time in `keep`, such as `keep = "365d"` below the remote in
/// config.toml. From then on, no member pushes a session of that age.
#[derive(Debug, clap::Args)]
struct PruneArgs {
    /// The remote.
    name: String,
    /// Only say what would be removed.
    #[arg(long)]
    dry_run: bool,
    /// Print JSON Lines.
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub(crate) fn run(
    ui: &mut Ui,
    env: &ProcessEnvironment,
    args: &Args,
) -> Result<CommandExit, CommandError> {
    match &args.action {
        RemoteAction::Add(args) => add(ui, env, args),
        RemoteAction::List(args) => list(ui, env, args),
        RemoteAction::Remove(args) => remove(ui, env, &args.name),
        RemoteAction::Init(args) => initialise(ui, env, &args.name),
        RemoteAction::Prune(args) => prune(ui, env, args),
    }
}

fn add(ui: &mut Ui, env: &ProcessEnvironment, args: &AddArgs) -> Result<CommandExit, CommandError> {
    check_remote_name(&args.name).map_err(CommandError::usage)?;
    // An error of these parsers does not repeat the URL, which may have a password in it.
    let url: RemoteUrl = args.url.parse().map_err(explain_url_error)?;
    let keys = args.keys.as_ref().map(|keys| keys.parse::<KeyLocation>()).transpose();
    let keys = keys.map_err(explain_url_error)?;
    let index = args.index.as_ref().map(|url| url.parse::<ClickHouseUrl>()).transpose();
    let index = index.map_err(CommandError::usage)?;
    let config = Config::load(env)?;
    if config.remotes()?.iter().any(|known| known.settings.name == args.name) {
        let error = CommandError::user(format!("a remote of this name exists: {}", args.name));
        return Err(error.hint(format!("run `steno remote remove {}` first", args.name)));
    }
    let settings = RemoteSettings {
        name: args.name.clone(),
        url,
        projects: args.projects.clone(),
        agents: args.agents.clone(),
        visibility: args.visibility,
        redact: !args.no_redact,
        notes: !args.no_notes,
        password_command: args.password_command.clone(),
        keys,
    };
    let (every, keep) = (args.every.clone(), args.keep.clone());
    let password_command = args.index_password_command.clone();
    let index = index.map(|url| IndexSettings { url, password_command });
    config.add_remote(&NewRemote { settings, every, keep, index })?;
    ui.status(format_args!("added {}", args.name));
    Ok(CommandExit::Done)
}

fn explain_url_error(error: RemoteUrlError) -> CommandError {
    let hint = match error {
        RemoteUrlError::HasPassword => {
            "set PGPASSWORD, a line in ~/.pgpass, or password_command in config.toml; for a bucket, AWS_ACCESS_KEY_ID"
        }
        _ => "such as file:///srv/steno, postgres://ada@db.example.com/steno or s3://bucket/prefix",
    };
    CommandError::usage(error).hint(hint)
}

fn list(
    ui: &mut Ui,
    env: &ProcessEnvironment,
    args: &ListArgs,
) -> Result<CommandExit, CommandError> {
    let remotes = Config::load(env)?.remotes()?;
    for remote in &remotes {
        let RemoteSettings { name, url, projects, agents, visibility, redact, notes, keys, .. } =
            &remote.settings;
        if args.json {
            let every = remote.every.map(|every| every.as_secs());
            let row = json!({
                "name": name, "url": url.to_string(), "projects": projects, "agents": agents,
                "visibility": visibility, "redact": redact, "notes": notes, "every": every,
                "keys": keys.as_ref().map(ToString::to_string), "keep_days": remote.keep_days,
                "index": remote.index.as_ref().map(|index| index.url.to_string()),
            });
            writeln!(ui.out(), "{row}")?;
        } else {
            let kept = if *redact { "" } else { ", not redacted" };
            ui.listing_text(&format!("{name}  {url}  ({visibility}{kept})\n"))?;
        }
    }
    if remotes.is_empty() {
        ui.status("no remotes; run `steno remote add NAME URL`");
    }
    Ok(CommandExit::Done)
}

fn remove(ui: &mut Ui, env: &ProcessEnvironment, name: &str) -> Result<CommandExit, CommandError> {
    let access = TeamAccess::find(env, Some(name))?;
    Config::load(env)?.remove_remote(name)?;
    // The mirror can be pulled again.
    if store_fs::exists(&access.folder) {
        store_fs::remove_dir_all(&access.folder)?;
    }
    ui.status(format_args!("removed {name} and its mirror; the remote itself is unchanged"));
    Ok(CommandExit::Done)
}

fn initialise(
    ui: &mut Ui,
    env: &ProcessEnvironment,
    name: &str,
) -> Result<CommandExit, CommandError> {
    let access = TeamAccess::find(env, Some(name))?;
    #[cfg(feature = "bucket")]
    if crate::bucket_access::create_identity_file(&access.settings, &env.clock)? {
        ui.status("wrote the key file of the team; keep it secret, and give it to all members");
    }
    let mut remote = access.connect(env)?;
    let is_new = remote.initialise().map_err(|error| explain_team_error(error, name))?;
    match is_new {
        true => ui.status(format_args!("initialised {name}")),
        false => ui.status(format_args!("{name} is up to date")),
    }
    Ok(CommandExit::Done)
}

fn prune(
    ui: &mut Ui,
    env: &ProcessEnvironment,
    args: &PruneArgs,
) -> Result<CommandExit, CommandError> {
    let name = &args.name;
    let configured = Config::load(env)?.remote(Some(name))?;
    let days = configured.keep_days.ok_or_else(|| {
        let error = CommandError::user(format!(
            "config.toml does not limit how long {name} keeps sessions"
        ));
        error.hint(format!("add a number of days: [remote.{name}] keep = \"365d\""))
    })?;
    let mut remote = TeamAccess::find(env, Some(name))?.connect(env)?;
    let pruned = remote.prune(days, args.dry_run);
    let pruned = pruned.map_err(|error| explain_team_error(error, name))?;
    if args.json {
        serde_json::to_writer(ui.out(), &pruned)?;
        writeln!(ui.out())?;
        return Ok(CommandExit::Done);
    }
    let done = if args.dry_run { "would remove" } else { "removed" };
    let sessions = count_noun(pruned.sessions, "session");
    ui.status(format_args!("{done} {sessions} that ended over {days} days ago from {name}"));
    Ok(CommandExit::Done)
}

#[cfg(test)]
mod tests {
    use clap::Args as _;

    use super::AddArgs;
    use crate::config::REMOTE_SETTING_NAMES;

    #[test]
    fn every_setting_of_a_remote_has_an_option() {
        let command = AddArgs::augment_args(clap::Command::new("add"));
        let known: Vec<&str> = command.get_arguments().map(|arg| arg.get_id().as_str()).collect();
        for setting in REMOTE_SETTING_NAMES {
            let option = match setting {
                "redact" | "notes" => format!("no_{setting}"),
                _ => setting.to_owned(),
            };
            assert!(known.contains(&option.as_str()), "{setting} is not among {known:?}");
        }
    }
}

//! `steno serve --from`: the page of a team. It reads the mirror, which is pulled while there are readers.

use std::collections::HashSet;
use std::fs;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use steno_model::durable::OnPath;
use steno_store::session_owners::TeamReader;
use steno_web::{
    ConnectionLimits, MemberToken, ProxySecret, ServerOptions, TeamPage, TrustedProxy,
    parse_header_name,
};

use crate::config::{Config, ServeSettings};
use crate::error::CommandError;
use crate::mirror_refresher::{MirrorRefresher, TeamMembers};
use crate::process_environment::ProcessEnvironment;
use crate::team_access::run_password_command;
use crate::ui::Ui;

/// How long the mirror counts as current.
const PULL_INTERVAL: Duration = Duration::from_secs(30);

/// The shortest token of a member, in characters.
const MIN_TOKEN_CHARS: usize = 32;

/// What the command line says about the team.
pub(super) struct TeamRequest<'a> {
    /// The remote.
    pub(super) remote: &'a str,
    /// A file with tokens of members.
    pub(super) token_file: Option<&'a Path>,
}

/// Changes the options of a server to those of the page of a team. It changes nothing, and agents cannot ask it.
pub(super) fn team_options(
    ui: &mut Ui,
    env: &ProcessEnvironment,
    request: &TeamRequest<'_>,
    options: ServerOptions,
) -> Result<ServerOptions, CommandError> {
    let settings = Config::load(env)?.serve_settings()?;
    let tokens = match request.token_file {
        Some(file) => read_tokens(&env.cwd.join(file))?,
        None => Vec::new(),
    };
    let refresher = MirrorRefresher::open(ui, env, request.remote, PULL_INTERVAL)?;
    let store = refresher.mirror.store.clone();
    let team = make_page(settings, tokens, refresher)?;
    Ok(ServerOptions {
        store,
        history: None,
        resume: None,
        // The budgets are those of the person who runs the server.
        budgets: None,
        team: Some(team),
        limits: ConnectionLimits {
            unverified_connections: 128,
            verified_connections: 512,
            event_streams: 256,
            ..options.limits
        },
        ..options
    })
}

fn make_page(
    settings: ServeSettings,
    tokens: Vec<MemberToken>,
    refresher: Arc<MirrorRefresher>,
) -> Result<TeamPage, CommandError> {
    let ServeSettings { user_header, addresses, secret, hosts, users } = settings;
    let secret = match secret {
        Some(secret) => Some(ProxySecret {
            header: parse_header_name(&secret.header).expect("the settings have been checked"),
            value: run_password_command(&secret.command, "secret_command")?.0,
        }),
        None => None,
    };
    if secret.as_ref().is_some_and(|secret| secret.value.is_empty()) {
        return Err(CommandError::user("secret_command printed nothing"));
    }
    let proxy = user_header.map(|header| TrustedProxy {
        user_header: parse_header_name(&header).expect("the settings have been checked"),
        addresses,
        secret,
    });
    let named: HashSet<String> =
        users.values().cloned().chain(tokens.iter().map(|token| token.person.clone())).collect();
    let members = Arc::clone(&refresher);
    let find_reader = move |name: &str| {
        let person = users.get(name).map_or(name, String::as_str).to_owned();
        let is_teammate = match members.members() {
            TeamMembers::Unknown => return None,
            TeamMembers::Anybody => true,
            TeamMembers::Known(names) if names.contains(&person) => true,
            // A member of another team, whom only the settings know.
            TeamMembers::Known(_) if named.contains(&person) => false,
            TeamMembers::Known(_) => return None,
        };
        Some(TeamReader { person, is_teammate })
    };
    let owners = Arc::clone(&refresher.owners);
    Ok(TeamPage {
        owners: Arc::new(move || owners.load()),
        before_request: Arc::new(move || refresher.refresh_if_due()),
        find_reader: Arc::new(find_reader),
        proxy,
        tokens,
        public_hosts: hosts,
    })
}

/// Reads a file with a member and a token on each line.
fn read_tokens(file: &Path) -> Result<Vec<MemberToken>, CommandError> {
    let metadata = fs::metadata(file).on("read", file)?;
    if is_readable_by_others(&metadata) {
        let error = CommandError::user(format!("others can read the tokens in {}", file.display()));
        return Err(error.hint(format!("run `chmod 600 {}`", file.display())));
    }
    let text = fs::read_to_string(file).on("read", file)?;
    let lines = text.lines().enumerate().filter(|(_, line)| {
        let line = line.trim();
        !line.is_empty() && !line.starts_with('#')
    });
    let parse = |(at, line): (usize, &str)| {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words.as_slice() {
            [person, token] if token.len() >= MIN_TOKEN_CHARS => {
                Ok(MemberToken { person: (*person).to_owned(), token: (*token).to_owned() })
            }
            _ => {
                let place = format!("{}:{}", file.display(), at + 1);
                let usage =
                    format!("a member and a token of at least {MIN_TOKEN_CHARS} characters");
                Err(CommandError::user(format!("{place}: not {usage}"))
                    .hint("make one with `openssl rand -hex 32`"))
            }
        }
    };
    lines.map(parse).collect()
}

#[cfg(unix)]
fn is_readable_by_others(metadata: &fs::Metadata) -> bool {
    use std::os::unix::fs::MetadataExt;
    metadata.mode() & 0o077 != 0
}

#[cfg(not(unix))]
fn is_readable_by_others(_metadata: &fs::Metadata) -> bool {
    false
}

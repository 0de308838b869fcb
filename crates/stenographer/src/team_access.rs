//! Opens the remotes of `config.toml`, and the mirror that commands read with `--from`.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use steno_team::{
    FolderRemote, PostgresPassword, PostgresRemote, PullSummary, RemoteSettings, RemoteUrl,
    TeamError, TeamMirror, TeamRemote,
};

use crate::config::Config;
use crate::error::CommandError;
use crate::process_environment::ProcessEnvironment;
use crate::session_store::{NO_SESSIONS_YET, SessionStore};
use crate::ui::Ui;
use crate::user_name::find_user_name;

/// Flag of commands that can read a remote.
#[derive(Clone, Debug, Default, clap::Args)]
pub(crate) struct RemoteFlag {
    /// Read the team's record in this remote instead of this machine's.
    #[arg(long, value_name = "REMOTE")]
    pub(crate) from: Option<String>,
}

/// A configured remote.
pub(crate) struct TeamAccess {
    pub(crate) settings: RemoteSettings,
    /// This machine's own folder for the remote.
    pub(crate) folder: PathBuf,
}

impl TeamAccess {
    /// Finds a remote by name, or the only one.
    pub(crate) fn find(env: &ProcessEnvironment, name: Option<&str>) -> Result<Self, CommandError> {
        let settings = Config::load(env)?.remote(name)?.settings;
        let folder = env.store.join("remotes").join(&settings.name);
        Ok(Self { settings, folder })
    }

    /// Connects.
    pub(crate) fn connect(&self, env: &ProcessEnvironment) -> Result<TeamRemote, CommandError> {
        Ok(match &self.settings.url {
            RemoteUrl::Folder(folder) => {
                TeamRemote::Folder(FolderRemote::new(folder, &find_user_name()?))
            }
            RemoteUrl::Bucket(url) => self.connect_bucket(env, url)?,
            RemoteUrl::Postgres(url) => {
                TeamRemote::Postgres(Box::new(self.connect_database(env, url)?))
            }
        })
    }

    /// Opens a bucket, and connects to the database with its keys.
    #[cfg(feature = "bucket")]
    fn connect_bucket(
        &self,
        env: &ProcessEnvironment,
        _url: &str,
    ) -> Result<TeamRemote, CommandError> {
        let password = match &self.settings.keys {
            Some(steno_team::KeyLocation::Database(url)) => self.find_password(env, url)?,
            _ => None,
        };
        let access = crate::bucket_access::prepare_bucket_access(env, &self.settings, password)?;
        let remote = steno_team::BucketRemote::connect(access);
        let remote = remote.map_err(|error| explain_team_error(error, &self.settings.name))?;
        Ok(TeamRemote::Bucket(Box::new(remote)))
    }

    #[cfg(not(feature = "bucket"))]
    fn connect_bucket(
        &self,
        _env: &ProcessEnvironment,
        url: &str,
    ) -> Result<TeamRemote, CommandError> {
        let error = CommandError::user(format!("this steno was built without buckets: {url}"));
        Err(error.hint(
            "install a package of steno, or build it with `cargo install --features bucket`; see docs/team.md",
        ))
    }

    /// Connects to a database.
    pub(crate) fn connect_database(
        &self,
        env: &ProcessEnvironment,
        url: &str,
    ) -> Result<PostgresRemote, CommandError> {
        let password = self.find_password(env, url)?;
        let connected = PostgresRemote::connect(url, password.as_ref(), env.clock.now());
        connected.map_err(|error| explain_team_error(error, &self.settings.name))
    }

    /// The mirror of the remote.
    pub(crate) fn mirror(&self, env: &ProcessEnvironment) -> TeamMirror {
        TeamMirror::open(&self.folder, env.clock.clone())
    }

    /// Whether anything was pulled before.
    pub(crate) fn has_mirror(&self) -> bool {
        self.folder.join("pulled.json").exists()
    }

    /// The environment in which a command reads the mirror.
    pub(crate) fn mirror_environment(&self, env: &ProcessEnvironment) -> ProcessEnvironment {
        let store = self.mirror(env).location().folder;
        ProcessEnvironment { store, is_mirror: true, ..env.clone() }
    }

    /// Pulls: applies what was forgotten, and copies what is new.
    pub(crate) fn pull(&self, env: &ProcessEnvironment) -> Result<PullSummary, CommandError> {
        self.pull_from(env, &mut self.connect(env)?)
    }

    /// Pulls from a connected remote.
    pub(crate) fn pull_from(
        &self,
        env: &ProcessEnvironment,
        remote: &mut TeamRemote,
    ) -> Result<PullSummary, CommandError> {
        let mut mirror = self.mirror(env);
        let explain = |error| explain_team_error(error, &self.settings.name);
        remote.check_version().map_err(explain)?;
        let forgotten = mirror.pull_tombstones(remote, &env.store_location());
        let forgotten = forgotten.map_err(explain)?;
        let summary = mirror.pull(remote, None).map_err(explain)?;
        Ok(PullSummary { forgotten, ..summary })
    }

    /// The password: from the command in the settings, from PGPASSWORD, or from the password file of PostgreSQL.
    fn find_password(
        &self,
        env: &ProcessEnvironment,
        url: &str,
    ) -> Result<Option<PostgresPassword>, CommandError> {
        if let Some(command) = &self.settings.password_command {
            return run_password_command(command, "password_command").map(Some);
        }
        if let Some(password) = ProcessEnvironment::variable("PGPASSWORD") {
            return Ok(Some(PostgresPassword(password.to_string_lossy().into_owned())));
        }
        let named = ProcessEnvironment::variable("PGPASSFILE").map(PathBuf::from);
        let path = named.unwrap_or_else(|| env.home.join(".pgpass"));
        Ok(find_in_password_file(&path, url).map(PostgresPassword))
    }
}

/// Returns the environment in which a command reads a remote's mirror, after it was brought up to date.
pub(crate) fn mirror_environment(
    ui: &mut Ui,
    env: &ProcessEnvironment,
    name: &str,
) -> Result<ProcessEnvironment, CommandError> {
    let access = TeamAccess::find(env, Some(name))?;
    match access.pull(env) {
        Ok(_) => {}
        // What was pulled before can still be read.
        Err(error) if access.has_mirror() => {
            ui.warning(format_args!("showing what was pulled before: {}", error.to_line()));
        }
        Err(error) => return Err(error),
    }
    Ok(access.mirror_environment(env))
}

/// Says that there are no sessions, and where those are that were pulled.
pub(crate) fn explain_no_sessions(env: &ProcessEnvironment) -> String {
    if env.is_mirror {
        return "no sessions on the remote that you may see; `steno push` sends yours".to_owned();
    }
    let remotes = Config::load(env).and_then(|config| config.remotes()).unwrap_or_default();
    let names = remotes.into_iter().map(|remote| remote.settings.name);
    let has_sessions = |name: &String| {
        let access = TeamAccess::find(env, Some(name));
        access.is_ok_and(|access| {
            let mirror = SessionStore::new(&access.mirror_environment(env));
            mirror.vault.has_sessions().unwrap_or(false)
        })
    };
    match names.filter(has_sessions).collect::<Vec<_>>().as_slice() {
        [] => NO_SESSIONS_YET.to_owned(),
        pulled => {
            let flags: Vec<String> = pulled.iter().map(|name| format!("--from {name}")).collect();
            let flags = flags.join(" or ");
            format!("{NO_SESSIONS_YET}, or use {flags} for what was pulled")
        }
    }
}

/// Adds a hint to an error of a remote.
pub(crate) fn explain_team_error(error: TeamError, name: &str) -> CommandError {
    let hint = match &error {
        TeamError::NotInitialised(_) => {
            Some(format!("run `steno remote init {name}` as the owner of the database or folder"))
        }
        TeamError::OlderSchema { .. } => {
            Some(format!("run `steno remote init {name}` as the owner to migrate it"))
        }
        TeamError::NewerSchema { .. } => Some("install a newer version of steno".to_owned()),
        TeamError::NotMember { role, .. } => Some(format!(
            "its owner adds members: GRANT steno_member TO {role}; SELECT steno.add_member('{role}', 'TEAM')"
        )),
        TeamError::Connection { reason, .. } => Some(match is_about_login(reason) {
            true => "set PGPASSWORD, a line in ~/.pgpass, or password_command; see docs/team.md"
                .to_owned(),
            false => format!("check `url` in [remote.{name}] of config.toml; see docs/team.md"),
        }),
        TeamError::Objects { reason, .. } => Some(explain_object_failure(reason).to_owned()),
        TeamError::NoKey(_) => Some("ask a member for the key file of the team".to_owned()),
        TeamError::OtherKeys(_) => Some(format!("check `keys` in [remote.{name}] of config.toml")),
        TeamError::Contended(_) => Some("push again".to_owned()),
        _ => None,
    };
    let error = CommandError::user(error);
    match hint {
        Some(hint) => error.hint(hint),
        None => error,
    }
}

/// Where a machine of a cloud is asked for its credentials.
const MACHINE_CREDENTIALS: &str = "//169.254.169.254/";

/// Whether a server was reached, and refused the user.
fn is_about_login(reason: &str) -> bool {
    ["password", "authentication", "no pg_hba.conf entry"].iter().any(|sign| reason.contains(sign))
}

/// What to do about a bucket that did not answer as expected.
fn explain_object_failure(reason: &str) -> &'static str {
    if reason.contains(MACHINE_CREDENTIALS) {
        "no credentials were found, also not of this machine; set AWS_ACCESS_KEY_ID and the like, or ~/.aws; see docs/team.md"
    } else if reason.contains("error sending request") {
        "check the network, AWS_REGION and AWS_ENDPOINT_URL; see docs/team.md"
    } else {
        "check AWS_ACCESS_KEY_ID and the like, or ~/.aws; see docs/team.md"
    }
}

/// Runs a command of the settings that prints a secret.
pub(crate) fn run_password_command(
    command: &str,
    setting: &str,
) -> Result<PostgresPassword, CommandError> {
    let failed =
        || CommandError::user(format!("{setting} failed")).hint("run it by hand to see why");
    let words = shlex::split(command).filter(|words| !words.is_empty()).ok_or_else(failed)?;
    let mut child = Command::new(&words[0]);
    child.args(&words[1..]).stdin(Stdio::inherit()).stderr(Stdio::inherit());
    let output = child.output().map_err(|_| failed())?;
    if !output.status.success() {
        return Err(failed());
    }
    let text = String::from_utf8_lossy(&output.stdout);
    Ok(PostgresPassword(text.lines().next().unwrap_or_default().to_owned()))
}

/// Finds the password for a URL in a file with lines `host:port:database:user:password`.
fn find_in_password_file(path: &Path, url: &str) -> Option<String> {
    let text = fs::read_to_string(path).ok()?;
    let rest = url.split_once("://")?.1;
    let rest = rest.split('?').next()?;
    let (authority, database) = rest.split_once('/')?;
    let (user, place) = authority.rsplit_once('@')?;
    let (host, port) = place.rsplit_once(':').unwrap_or((place, "5432"));
    let wanted = [host, port, database, user];
    text.lines().filter(|line| !line.starts_with('#')).find_map(|line| {
        let fields = split_password_line(line);
        let (password, place) = fields.split_last()?;
        let matches = |(field, wanted): (&String, &&str)| field == "*" || field == wanted;
        let is_match = place.len() == wanted.len() && place.iter().zip(&wanted).all(matches);
        is_match.then(|| password.clone())
    })
}

/// Splits a line at colons without a backslash before.
fn split_password_line(line: &str) -> Vec<String> {
    let mut fields = vec![String::new()];
    let mut chars = line.chars();
    while let Some(c) = chars.next() {
        match c {
            '\\' => fields.last_mut().expect("never empty").extend(chars.next()),
            ':' if fields.len() < 5 => fields.push(String::new()),
            c => fields.last_mut().expect("never empty").push(c),
        }
    }
    fields
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_password_file_is_read_as_psql_does() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("pgpass");
        fs::write(&path, "# all\nh:5432:other:ada:one\nh:*:steno:ada:a\\:b:c\n*:*:*:*:last\n")
            .unwrap();
        let find = |url| find_in_password_file(&path, url);
        assert_eq!(find("postgres://ada@h/steno?sslmode=require").as_deref(), Some("a:b:c"));
        assert_eq!(find("postgres://bob@h:99/steno").as_deref(), Some("last"));
        assert_eq!(find_in_password_file(Path::new("/none"), "postgres://a@h/s"), None);
    }
}

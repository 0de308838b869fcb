//! The `[remote.NAME]` tables of `config.toml`: where sessions are pushed to.

use std::time::Duration;

use steno_model::durable;
use steno_team::{ClickHouseUrl, KeyLocation, RemoteSettings, RemoteUrl, SessionVisibility};
use toml_edit::{DocumentMut, Item, Table, value};

use super::Config;
use crate::error::CommandError;

const EXAMPLE: &str =
    "[remote.team] url = \"postgres://ada@db.example.com/steno\" projects = [\"shop\"]";

/// The settings of a remote.
pub(crate) const SETTING_NAMES: [&str; 12] = [
    "url",
    "projects",
    "agents",
    "visibility",
    "redact",
    "notes",
    "every",
    "keep",
    "password_command",
    "keys",
    "index",
    "index_password_command",
];

/// A remote with what only the command line needs to know of it.
#[derive(Clone, Debug)]
pub(crate) struct ConfiguredRemote {
    pub(crate) settings: RemoteSettings,
    /// How often `steno watch` pushes, zero for each quiet moment; `None` if it does not.
    pub(crate) every: Option<Duration>,
    /// How many days the remote keeps sessions after their end; `None` for ever.
    pub(crate) keep_days: Option<u32>,
    /// The search index that `steno load` fills.
    pub(crate) index: Option<IndexSettings>,
}

/// The search index of a remote, which large organisations have beside it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct IndexSettings {
    pub(crate) url: ClickHouseUrl,
    /// A command that prints the password.
    pub(crate) password_command: Option<String>,
}

/// A remote to add, with times as they are written in the file.
#[derive(Debug)]
pub(crate) struct NewRemote {
    pub(crate) settings: RemoteSettings,
    pub(crate) every: Option<String>,
    pub(crate) keep: Option<String>,
    pub(crate) index: Option<IndexSettings>,
}

impl Config {
    /// Returns all remotes, by name.
    pub(crate) fn remotes(&self) -> Result<Vec<ConfiguredRemote>, CommandError> {
        let settings = self.parse_toml()?;
        self.parse_remotes(&settings).map_err(|error| error.hint(EXAMPLE))
    }

    /// Returns a remote by name, or the only one.
    pub(crate) fn remote(&self, name: Option<&str>) -> Result<ConfiguredRemote, CommandError> {
        let mut all = self.remotes()?;
        let names: Vec<String> = all.iter().map(|one| one.settings.name.clone()).collect();
        let at = match name {
            Some(name) => names.iter().position(|known| known == name),
            None if names.len() == 1 => Some(0),
            None => None,
        };
        if let Some(at) = at {
            return Ok(all.swap_remove(at));
        }
        let error = CommandError::user(match name {
            Some(name) => format!("no such remote: {name}"),
            None if names.is_empty() => "no remote is configured".to_owned(),
            None => "several remotes are configured".to_owned(),
        });
        Err(match names.is_empty() {
            true => error.hint("run `steno remote add NAME URL`"),
            false => error.hint(format!("one of: {}", names.join(", "))),
        })
    }

    fn parse_remotes(&self, settings: &Table) -> Result<Vec<ConfiguredRemote>, CommandError> {
        let mut remotes = Vec::new();
        for (name, item) in self.table_entries(settings, "remote")? {
            remotes.push(self.parse_remote(name, item)?);
        }
        remotes.sort_by(|a, b| a.settings.name.cmp(&b.settings.name));
        Ok(remotes)
    }

    fn parse_remote(&self, name: &str, item: &Item) -> Result<ConfiguredRemote, CommandError> {
        let wrong = |item: &Item, reason: &str| self.error_at(item.span(), reason);
        check_remote_name(name).map_err(|reason| wrong(item, &reason))?;
        let table = item.as_table_like().ok_or_else(|| wrong(item, "a remote is not a table"))?;
        let known = |setting: &str| SETTING_NAMES.contains(&setting);
        if let Some((setting, item)) = table.iter().find(|(setting, _)| !known(setting)) {
            let names = SETTING_NAMES.join(", ");
            return Err(wrong(item, &format!("unknown setting {setting}; one of: {names}")));
        }
        let text = |setting: &str| -> Result<Option<&str>, CommandError> {
            let Some(item) = table.get(setting) else { return Ok(None) };
            let text = item.as_str();
            text.map(Some).ok_or_else(|| wrong(item, &format!("{setting} is not a text")))
        };
        let list = |setting: &str| -> Result<Vec<String>, CommandError> {
            let Some(item) = table.get(setting) else { return Ok(Vec::new()) };
            let usage = format!("{setting} is not a list of names: {setting} = [\"shop\"]");
            let names = item.as_array().ok_or_else(|| wrong(item, &usage))?.iter();
            let names = names.map(|name| name.as_str().map(str::to_owned));
            names.collect::<Option<_>>().ok_or_else(|| wrong(item, &usage))
        };
        let url = text("url")?.ok_or_else(|| wrong(item, "a remote needs a url"))?;
        let url: RemoteUrl = url.parse().map_err(|error| wrong(item, &format!("{error}")))?;
        let visibility = match text("visibility")? {
            Some(word) => word.parse().map_err(|error| wrong(item, &format!("{error}")))?,
            None => SessionVisibility::default(),
        };
        let switch = |setting: &str| -> Result<bool, CommandError> {
            let Some(item) = table.get(setting) else { return Ok(true) };
            let reason = format!("{setting} is not true or false");
            item.as_bool().ok_or_else(|| wrong(item, &reason))
        };
        let keys = text("keys")?.map(str::parse::<KeyLocation>).transpose();
        let keys = keys.map_err(|error| wrong(item, &format!("keys: {error}")))?;
        let index = match text("index")? {
            Some(url) => Some(IndexSettings {
                url: url.parse().map_err(|error| wrong(item, &format!("index: {error}")))?,
                password_command: text("index_password_command")?.map(str::to_owned),
            }),
            None => None,
        };
        let every = text("every")?.map(parse_push_interval).transpose();
        let keep_days = text("keep")?.map(parse_keep_days).transpose();
        let (every, keep_days) = every
            .and_then(|every| Ok((every, keep_days?)))
            .map_err(|reason| wrong(item, &reason))?;
        let settings = RemoteSettings {
            name: name.to_owned(),
            url,
            projects: list("projects")?,
            agents: list("agents")?,
            visibility,
            redact: switch("redact")?,
            notes: switch("notes")?,
            password_command: text("password_command")?.map(str::to_owned),
            keys,
        };
        Ok(ConfiguredRemote { settings, every, keep_days, index })
    }

    /// Adds a remote to the file.
    pub(crate) fn add_remote(&self, new: &NewRemote) -> Result<(), CommandError> {
        let mut document = self.document()?;
        let (remote, mut table) = (&new.settings, Table::new());
        table["url"] = value(remote.url.to_string());
        for (name, values) in [("projects", &remote.projects), ("agents", &remote.agents)] {
            if !values.is_empty() {
                table[name] = value(values.iter().collect::<toml_edit::Array>());
            }
        }
        if remote.visibility != SessionVisibility::default() {
            table["visibility"] = value(remote.visibility.as_str());
        }
        if let Some(keys) = &remote.keys {
            table["keys"] = value(keys.to_string());
        }
        for (name, is_on) in [("redact", remote.redact), ("notes", remote.notes)] {
            if !is_on {
                table[name] = value(false);
            }
        }
        let texts = [
            ("every", new.every.clone()),
            ("keep", new.keep.clone()),
            ("password_command", remote.password_command.clone()),
            ("index", new.index.as_ref().map(|index| index.url.to_string())),
            (
                "index_password_command",
                new.index.as_ref().and_then(|index| index.password_command.clone()),
            ),
        ];
        for (name, text) in texts {
            if let Some(text) = text {
                table[name] = value(text);
            }
        }
        let remotes = document.entry("remote").or_insert_with(|| {
            let mut remotes = Table::new();
            remotes.set_implicit(true);
            Item::Table(remotes)
        });
        remotes[&remote.name] = Item::Table(table);
        self.write(&document)
    }

    /// Removes a remote from the file.
    pub(crate) fn remove_remote(&self, name: &str) -> Result<(), CommandError> {
        let mut document = self.document()?;
        if let Some(remotes) = document.get_mut("remote").and_then(Item::as_table_like_mut) {
            remotes.remove(name);
        }
        self.write(&document)
    }

    fn document(&self) -> Result<DocumentMut, CommandError> {
        self.text
            .parse()
            .map_err(|error: toml_edit::TomlError| self.error_at(error.span(), error.message()))
    }

    fn write(&self, document: &DocumentMut) -> Result<(), CommandError> {
        if let Some(folder) = self.path.parent() {
            durable::create_private_dir(folder)?;
        }
        Ok(durable::write_atomic(&self.path, document.to_string().as_bytes())?)
    }
}

/// Checks that a name can be a folder's.
pub(crate) fn check_remote_name(name: &str) -> Result<(), String> {
    let is_plain = |byte: u8| byte.is_ascii_alphanumeric() || b"_-".contains(&byte);
    match !name.is_empty() && name.len() <= 64 && name.bytes().all(is_plain) {
        true => Ok(()),
        false => Err(format!("a remote's name has letters, digits, _ and - only: {name:?}")),
    }
}

/// Checks how long a remote keeps sessions.
pub(crate) fn check_keep(text: &str) -> Result<String, String> {
    parse_keep_days(text).map(|_| text.to_owned())
}

/// Checks how often `steno watch` pushes.
pub(crate) fn check_push_interval(text: &str) -> Result<String, String> {
    parse_push_interval(text).map(|_| text.to_owned())
}

/// Parses how long a remote keeps sessions.
fn parse_keep_days(text: &str) -> Result<u32, String> {
    let days = text.strip_suffix('d').and_then(|days| days.parse().ok()).filter(|days| *days > 0);
    days.ok_or_else(|| format!("keep is not a number of days such as 365d: {text}"))
}

/// Parses an interval. `now` and `0s` have no length.
fn parse_push_interval(text: &str) -> Result<Duration, String> {
    let interval = if text == "now" { Some(Duration::ZERO) } else { parse_duration(text) };
    interval.ok_or_else(|| format!("every is not a time such as now, 30s, 10m or 1h: {text}"))
}

fn parse_duration(text: &str) -> Option<Duration> {
    let (number, unit) = text.split_at_checked(text.len().checked_sub(1)?)?;
    let seconds = match unit {
        "s" => 1,
        "m" => 60,
        "h" => 3600,
        _ => return None,
    };
    let number: u64 = number.parse().ok()?;
    Some(Duration::from_secs(number.checked_mul(seconds)?))
}

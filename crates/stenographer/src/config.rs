//! Reads `config.toml`: prices, model aliases, upstreams, agents, and run settings.
//!
//! Errors name the file and line.

mod agents;
mod budget;
mod encryption;
mod redaction;
mod remotes;
mod retention;
mod serve;

use std::fs;
use std::io::{self, ErrorKind};
use std::ops::Range;
use std::path::{Path, PathBuf};

use steno_gateway::{DEFAULT_BODY_LIMIT, Upstream, Upstreams};
use steno_store::cost::{ModelPrice, PriceTable, TokenRates};
use steno_store::private_sessions::PrivacyRules;
use toml_edit::{Document, Item, Key, Table, TableLike};

pub(crate) use self::agents::{AgentSetting, RunSettings, built_in_agents};
pub(crate) use self::budget::BUDGET_EXAMPLE;
#[cfg(test)]
pub(crate) use self::remotes::SETTING_NAMES as REMOTE_SETTING_NAMES;
pub(crate) use self::remotes::{
    IndexSettings, NewRemote, check_keep, check_push_interval, check_remote_name,
};
pub(crate) use self::retention::RETENTION_EXAMPLE;
pub(crate) use self::serve::ServeSettings;
use crate::byte_size::{ByteSize, ByteSizeError};
use crate::error::CommandError;
use crate::process_environment::ProcessEnvironment;
use crate::ui::Ui;

/// Reads a settings file; empty if it does not exist. A store that is not a folder has none.
fn read_if_present(path: &Path) -> io::Result<String> {
    match fs::read_to_string(path) {
        Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => {
            Ok(String::new())
        }
        result => result,
    }
}

/// A settings file; empty if it does not exist.
pub(crate) struct Config {
    path: PathBuf,
    text: String,
}

impl Config {
    /// Reads `config.toml` in the store's folder.
    pub(crate) fn load(env: &ProcessEnvironment) -> Result<Self, CommandError> {
        let path = env.config.clone();
        let text = read_if_present(&path).map_err(|error| {
            CommandError::user(format!("could not read {}: {error}", path.display()))
        })?;
        Ok(Self { path, text })
    }

    /// Reads `config.toml` for a program that must run even if the disk fails: on failure warns and uses default
    /// settings.
    pub(crate) fn load_or_default(
        ui: &mut Ui,
        env: &ProcessEnvironment,
    ) -> Result<Self, CommandError> {
        let path = env.config.clone();
        match read_if_present(&path) {
            Ok(text) => Ok(Self { path, text }),
            // The user can fix this error, so it is reported.
            Err(error) if error.kind() == ErrorKind::InvalidData => Self::load(env),
            Err(error) => {
                let path_text = path.display();
                ui.warning(format_args!(
                    "could not read {path_text}: {error}; using default settings"
                ));
                Ok(Self { path, text: String::new() })
            }
        }
    }

    /// Reads every setting. Returns the first error.
    pub(crate) fn check_all(&self, home: &Path) -> Result<(), CommandError> {
        self.prices()?;
        self.upstreams()?;
        self.body_limit()?;
        self.automatic_sync()?;
        self.proxy_hosts()?;
        self.privacy_rules(home)?;
        self.agents()?;
        self.run_settings()?;
        self.budgets()?;
        self.redaction_settings()?;
        self.retention()?;
        self.encryption(home)?;
        self.serve_settings()?;
        self.remotes().map(drop)
    }

    /// Returns the bundled prices, overridden by the user's own.
    pub(crate) fn prices(&self) -> Result<PriceTable, CommandError> {
        let settings = self.parse_toml()?;
        self.parse_prices(&settings).map_err(|error| {
            error.hint(
                "prices are dollars per million tokens:\n  [prices.\"model\"]\n  input = 3\n  output = 15",
            )
        })
    }

    fn parse_prices(&self, settings: &Table) -> Result<PriceTable, CommandError> {
        let mut prices = PriceTable::bundled();
        for (model, item) in self.table_entries(settings, "prices")? {
            let table = item.as_table_like().ok_or_else(|| {
                self.error_at(item.span(), &format!("prices of {model} are not a table"))
            })?;
            let rates = self.parse_rates(model, table, item.span())?;
            let (model, rates) = (model.to_owned(), vec![rates]);
            let price = ModelPrice { model, rates, source: String::new(), date: String::new() };
            prices.override_with([price]);
        }
        for (model, item) in self.table_entries(settings, "aliases")? {
            let like = item.as_str().ok_or_else(|| {
                self.error_at(item.span(), &format!("the alias {model} is not a model's name"))
            })?;
            prices.add_alias(model, like);
        }
        Ok(prices)
    }

    /// Returns the vendors' upstreams, overridden by the user's own.
    pub(crate) fn upstreams(&self) -> Result<Upstreams, CommandError> {
        let settings = self.parse_toml()?;
        let mut upstreams = Upstreams::default();
        for (name, item) in self.table_entries(&settings, "upstreams")? {
            let wrong = |reason: &str| self.error_at(item.span(), reason);
            let address = item.as_str().ok_or_else(|| wrong("an upstream is not a URL"))?;
            let upstream = Upstream::new(name, address);
            upstreams.set(upstream.map_err(|error| wrong(&error.to_string()))?);
        }
        Ok(upstreams)
    }

    /// Returns the maximum number of bytes recorded per body.
    pub(crate) fn body_limit(&self) -> Result<u64, CommandError> {
        let settings = self.parse_toml()?;
        let mut limit = DEFAULT_BODY_LIMIT;
        for (name, item) in self.table_entries(&settings, "gateway")? {
            let wrong = |reason: &str| self.error_at(item.span(), reason);
            if name != "body_limit" {
                return Err(wrong(&format!("unknown setting {name}; one of: body_limit")));
            }
            let configured = item.as_integer().map(|bytes| bytes.to_string());
            let configured =
                configured.or_else(|| item.as_str().map(str::to_owned)).unwrap_or_default();
            let size: ByteSize =
                configured.parse().map_err(|error: ByteSizeError| wrong(&error.to_string()))?;
            limit = size.0;
        }
        Ok(limit)
    }

    /// Returns whether commands that read sync by themselves.
    pub(crate) fn automatic_sync(&self) -> Result<bool, CommandError> {
        let settings = self.parse_toml()?;
        let mut is_automatic = true;
        for (name, item) in self.table_entries(&settings, "sync")? {
            let wrong = |reason: &str| self.error_at(item.span(), reason);
            if name != "automatic" {
                return Err(wrong(&format!("unknown setting {name}; one of: automatic")));
            }
            is_automatic = item.as_bool().ok_or_else(|| wrong("automatic is not true or false"))?;
        }
        Ok(is_automatic)
    }

    /// Returns the additional hosts that `steno exec --proxy` records.
    pub(crate) fn proxy_hosts(&self) -> Result<Vec<String>, CommandError> {
        let settings = self.parse_toml()?;
        let mut hosts = Vec::new();
        for (name, item) in self.table_entries(&settings, "proxy")? {
            let wrong = |reason: &str| self.error_at(item.span(), reason);
            let configured = item.as_array().filter(|_| name == "hosts");
            let configured = configured.ok_or_else(|| {
                wrong("[proxy] has a list of hosts: hosts = [\"llm.example.com\"]")
            })?;
            for host in configured {
                let host = host.as_str().ok_or_else(|| wrong("a host is not a string"))?;
                hosts.push(host.to_owned());
            }
        }
        Ok(hosts)
    }

    /// Returns the agents and projects whose sessions are never served to agents.
    pub(crate) fn privacy_rules(&self, home: &Path) -> Result<PrivacyRules, CommandError> {
        let settings = self.parse_toml()?;
        let mut rules = PrivacyRules::default();
        for (name, item) in self.table_entries(&settings, "private")? {
            let wrong = |reason: &str| self.error_at(item.span(), reason);
            let names = match name {
                "agents" => &mut rules.agents,
                "projects" => &mut rules.projects,
                _ => {
                    return Err(wrong(&format!(
                        "unknown setting {name}; one of: agents, projects"
                    )));
                }
            };
            let usage = format!("{name} is not a list of names: {name} = [\"acme\"]");
            for value in item.as_array().ok_or_else(|| wrong(&usage))? {
                let value = value.as_str().ok_or_else(|| wrong(&usage))?;
                names.push(match value.strip_prefix("~/") {
                    Some(below) => home.join(below).to_string_lossy().into_owned(),
                    None => value.to_owned(),
                });
            }
        }
        Ok(rules)
    }

    fn parse_toml(&self) -> Result<Table, CommandError> {
        let parsed = Document::parse(self.text.as_str());
        let settings = parsed
            .map(Document::into_table)
            .map_err(|error| self.error_at(error.span(), error.message()))?;
        if let Some((name, item)) = settings.iter().find(|(name, _)| !SECTION_NAMES.contains(name))
        {
            let span = settings.key(name).and_then(Key::span).or(item.span());
            let error = self.error_at(span, &format!("unknown setting: {name}"));
            return Err(error.hint(format!("the sections are: {}", SECTION_NAMES.join(", "))));
        }
        Ok(settings)
    }

    /// Returns the entries of a table; empty if it does not exist.
    fn table_entries<'a>(
        &self,
        settings: &'a Table,
        name: &str,
    ) -> Result<Vec<(&'a str, &'a Item)>, CommandError> {
        let Some(item) = settings.get(name) else { return Ok(Vec::new()) };
        let table = item.as_table_like();
        let table =
            table.ok_or_else(|| self.error_at(item.span(), &format!("{name} is not a table")))?;
        Ok(table.iter().collect())
    }

    fn parse_rates(
        &self,
        model: &str,
        table: &dyn TableLike,
        span: Option<Range<usize>>,
    ) -> Result<TokenRates, CommandError> {
        let mut rates = [None; RATE_NAMES.len()];
        for (name, item) in table.iter() {
            let kind = RATE_NAMES.iter().position(|kind| *kind == name).ok_or_else(|| {
                let reason = format!("unknown price {name}; one of: {}", RATE_NAMES.join(", "));
                self.error_at(item.span(), &reason)
            })?;
            let whole = item.as_integer().map(|number| number as f64);
            let rate = item.as_float().or(whole).filter(|rate| rate.is_finite() && *rate >= 0.0);
            let unfit = || self.error_at(item.span(), &format!("{name} is not a price in dollars"));
            rates[kind] = Some(rate.ok_or_else(unfit)?);
        }
        let [input, output, cache_read, cache_write_5m, cache_write_1h] = rates;
        let missing = || self.error_at(span, &format!("{model} needs both input and output"));
        let (input, output) = input.zip(output).ok_or_else(missing)?;
        Ok(TokenRates { above: 0, input, output, cache_read, cache_write_5m, cache_write_1h })
    }

    fn error_at(&self, span: Option<Range<usize>>, reason: &str) -> CommandError {
        let at = span.map_or(0, |span| span.start.min(self.text.len()));
        let line = 1 + self.text.as_bytes()[..at].iter().filter(|byte| **byte == b'\n').count();
        let reason = reason.trim().replace('\n', "; ");
        CommandError::user(format!("{}:{line}: {reason}", self.path.display()))
    }
}

/// The tables of the file.
const SECTION_NAMES: [&str; 15] = [
    "agents",
    "aliases",
    "budget",
    "encryption",
    "gateway",
    "keep",
    "prices",
    "private",
    "proxy",
    "redact",
    "remote",
    "run",
    "serve",
    "sync",
    "upstreams",
];

const RATE_NAMES: [&str; 5] = ["input", "output", "cache_read", "cache_write_5m", "cache_write_1h"];

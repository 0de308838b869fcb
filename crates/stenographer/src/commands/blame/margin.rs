//! A whole file with a margin that names the session of each line.

use std::collections::HashMap;
use std::collections::hash_map::Entry;

use steno_model::SessionId;
use steno_store::blame::{LineOrigin, OriginCertainty, OriginEntry};
use steno_store::index::Index;

use super::prompt_line;
use crate::commands::list::MIN_ID_CHARS;
use crate::error::CommandError;
use crate::process_environment::ProcessEnvironment;
use crate::text_table::{TextTable, expand_tabs, fit_columns};
use crate::ui::{Ui, count_noun, escape_control};

/// Width without a terminal.
const DEFAULT_WIDTH: usize = 80;

/// Prints the lines with their margin, then the sessions and prompts that it names.
pub(crate) fn print_margin(
    ui: &mut Ui,
    env: &ProcessEnvironment,
    index: &Index,
    origins: &[LineOrigin],
) -> Result<(), CommandError> {
    let width = if ui.is_terminal() { ui.width() } else { DEFAULT_WIDTH };
    let labels = label_entries(index, origins)?;
    let label_of = |origin: &LineOrigin| {
        origin
            .entry
            .as_ref()
            .and_then(|entry| labels.get(&entry.link()))
            .cloned()
            .unwrap_or_default()
    };
    let label_width = labels.values().map(String::len).max().unwrap_or(0);
    let last = origins.last().map_or(0, |origin| origin.line.number);
    let number_width = last.to_string().len();
    for origin in origins {
        let mark = certainty_mark(origin.certainty);
        let (label, number) = (label_of(origin), origin.line.number);
        let text = escape_control(&expand_tabs(&origin.line.text));
        let left = format!("{mark} {label:label_width$} {number:>number_width$} ");
        let text = fit_columns(&text, width.saturating_sub(left.len()).max(10));
        ui.listing_text(&format!("{}\n", format!("{left}{text}").trim_end()))?;
    }
    print_legend(ui, env, origins, &labels)?;
    let count = |certainty| origins.iter().filter(|one| one.certainty == certainty).count();
    ui.status(format_args!(
        "{}: {} certain (*), {} likely (?), {} unknown",
        count_noun(origins.len() as u64, "line"),
        count(OriginCertainty::Certain),
        count(OriginCertainty::Likely),
        count(OriginCertainty::Unknown),
    ));
    Ok(())
}

fn certainty_mark(certainty: OriginCertainty) -> char {
    match certainty {
        OriginCertainty::Certain => '*',
        OriginCertainty::Likely => '?',
        OriginCertainty::Unknown => ' ',
    }
}

/// Short names of the entries: the beginning of the session's id and the entry's number.
fn label_entries(
    index: &Index,
    origins: &[LineOrigin],
) -> Result<HashMap<String, String>, CommandError> {
    let mut labels = HashMap::new();
    for entry in origins.iter().filter_map(|origin| origin.entry.as_ref()) {
        if let Entry::Vacant(free) = labels.entry(entry.link()) {
            let id = short_id(index, &entry.session)?;
            free.insert(format!("{id}:{}", entry.number));
        }
    }
    Ok(labels)
}

/// The shortest unique beginning of a session's id. A whole id leaves no room for the text.
pub(crate) fn short_id(index: &Index, id: &SessionId) -> Result<String, CommandError> {
    let length = index.distinct_length(id)?.max(MIN_ID_CHARS).min(id.as_str().len());
    Ok(id.as_str()[..length].to_owned())
}

fn print_legend(
    ui: &mut Ui,
    env: &ProcessEnvironment,
    origins: &[LineOrigin],
    labels: &HashMap<String, String>,
) -> Result<(), CommandError> {
    let mut entries: Vec<&OriginEntry> = Vec::new();
    for entry in origins.iter().filter_map(|origin| origin.entry.as_ref()) {
        if !entries.iter().any(|known| known.link() == entry.link()) {
            entries.push(entry);
        }
    }
    if entries.is_empty() {
        return Ok(());
    }
    let mut table = TextTable::new(["ENTRY", "AGENT", "TIME", "PROMPT"]);
    for entry in entries {
        let time = entry
            .time
            .map(|time| time.in_zone(&env.zone).wall().strftime("%Y-%m-%d %H:%M").to_string());
        let prompt = entry.prompt.as_ref().map(|prompt| prompt_line(&prompt.text));
        let label = labels.get(&entry.link()).cloned().unwrap_or_default();
        table.add_row([
            label,
            entry.agent.clone(),
            time.unwrap_or_default(),
            prompt.unwrap_or_default(),
        ]);
    }
    let width = if ui.is_terminal() { ui.width() } else { DEFAULT_WIDTH };
    writeln!(ui.out())?;
    Ok(ui.listing_text(&table.render(width))?)
}

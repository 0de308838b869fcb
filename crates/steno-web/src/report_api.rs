//! The JSON API of reports over all sessions: words over time, and recent edits.

use serde_json::{Value, json};
use steno_store::blame::EditedFile;

use crate::api::{ApiQuery, CheckedResponse, CheckedResult};
use crate::api_parameters::check_role;
use crate::app::WebApp;
use crate::error::WebError;
use crate::filter_query::FilterQuery;
use crate::pages::edits::recent_edits;
use crate::viewer::PageViewer;
use crate::word_trends::{WordTrend, WordTrends};

/// How many calls of edit tools are looked at unless the query says.
const DEFAULT_CALLS: usize = 1000;

/// How many entries contain each word, by day, week or month.
pub(crate) async fn count_words(
    app: WebApp,
    ApiQuery(filters): ApiQuery<FilterQuery>,
) -> CheckedResult {
    let rows = app.run_blocking(move |library| {
        check_role(library, &filters)?;
        let viewer = PageViewer { zone: library.zone.clone() };
        let trends = WordTrends::count(library, &viewer, &filters, false)?;
        let rows: Result<Vec<Value>, WebError> =
            trends.words.iter().map(|word| word_row(&trends, word)).collect();
        CheckedResponse::about_all_sessions(Value::Array(rows?), library)
    });
    Ok(rows.await?)
}

fn word_row(trends: &WordTrends, word: &WordTrend) -> Result<Value, WebError> {
    let found = word.found.as_ref().map_err(|error| WebError::Action(error.clone()))?;
    let steps: Vec<Value> = word
        .steps
        .iter()
        .map(|(first, entries)| json!({"start": first.to_string(), "entries": entries}))
        .collect();
    Ok(json!({
        "word": word.word,
        "entries": found.entries,
        "sessions": found.sessions,
        "by": trends.step.name(),
        "steps": steps,
    }))
}

/// The files that were edited last.
pub(crate) async fn list_edits(
    app: WebApp,
    ApiQuery(filters): ApiQuery<FilterQuery>,
) -> CheckedResult {
    let rows = app.run_blocking(move |library| {
        let viewer = PageViewer { zone: library.zone.clone() };
        let limit = filters.limit.unwrap_or(DEFAULT_CALLS);
        let found = recent_edits(library, &viewer, &filters, limit)?;
        CheckedResponse::about_all_sessions(found.files.iter().map(file_row).collect(), library)
    });
    Ok(rows.await?)
}

fn file_row(file: &EditedFile) -> Value {
    let (added, removed) = file.count_lines();
    let edits: Vec<Value> = file
        .edits
        .iter()
        .map(|edit| {
            json!({
                "agent": edit.agent,
                "session": edit.session,
                "title": edit.title,
                "entry": edit.number,
                "time": edit.time,
                "lines_added": edit.added,
                "lines_removed": edit.removed,
                "is_deletion": edit.is_deletion,
            })
        })
        .collect();
    json!({
        "file": file.path,
        "project": file.project,
        "lines_added": added,
        "lines_removed": removed,
        "edits": edits,
    })
}

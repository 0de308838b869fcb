//! Selects sessions of the index.

use rusqlite::types::Value;

use super::SearchQuery;
use crate::entry_filter::EntryFilter;
use steno_model::Timestamp;

/// Selects sessions. A field that is `None` matches all.
#[derive(Clone, Debug, Default)]
pub struct SessionFilter {
    /// Agent, project, model, times, session and thread. A session matches a time span that it overlaps. What only
    /// entries have, such as a role, is ignored.
    pub scope: EntryFilter,
    /// The Git branch.
    pub branch: Option<String>,
    /// Text that an entry or the title must contain.
    pub text: Option<SessionText>,
}

/// A text to find in sessions.
#[derive(Clone, Debug)]
pub struct SessionText {
    /// The text, for titles.
    pub title_part: String,
    /// The query, for entries. It must not be a regular expression.
    pub query: SearchQuery,
}

impl SessionFilter {
    /// Selects the sessions of one agent, or of all.
    pub fn of_agent(agent: Option<&str>) -> Self {
        let agent = agent.map(str::to_owned);
        Self { scope: EntryFilter { agent, ..EntryFilter::default() }, ..Self::default() }
    }

    /// Whether the filter selects by nothing but the agent.
    pub(super) fn is_agent_only(&self) -> bool {
        let without_agent = EntryFilter { agent: None, ..self.scope.clone() };
        without_agent.is_unrestricted() && self.branch.is_none() && self.text.is_none()
    }

    /// The SQL conditions and their values. Parameters start at `?1`.
    pub(super) fn sql_conditions(&self) -> (String, Vec<Value>) {
        let moment =
            |at: Option<Timestamp>| at.map(|at| Value::from(at.instant().as_millisecond()));
        let text = |text: &Option<String>| text.clone().map(Value::from);
        let session = self.scope.session.as_ref().map(|id| Value::from(id.as_str().to_owned()));
        let words = self.text.as_ref().and_then(|text| text.query.match_expression.clone());
        let title = self.text.as_ref().map(|text| Value::from(text.title_part.clone()));
        let only = self.scope.only.as_ref().map(|only| Value::from(only.to_json()));
        let conditions: [(&str, Option<Value>); 10] = [
            ("agent = ?", text(&self.scope.agent)),
            (PROJECT_CONDITION, text(&self.scope.project)),
            (MODEL_CONDITION, text(&self.scope.model)),
            ("coalesce(ended_at, started_at) >= ?", moment(self.scope.since)),
            ("started_at < ?", moment(self.scope.until)),
            ("name = ?", session),
            ("thread = ?", text(&self.scope.thread)),
            ("branch = ?", text(&self.branch)),
            (PRIVACY_CONDITION, self.scope.private.sql_value()),
            (SELECTED_CONDITION, only),
        ];
        let (mut sql, mut values) = (String::from("1"), Vec::new());
        for (condition, value) in conditions {
            if let Some(value) = value {
                values.push(value);
                let parameter = format!("?{}", values.len());
                sql.push_str(&format!(" AND ({})", condition.replace('?', &parameter)));
            }
        }
        if let (Some(words), Some(title)) = (words, title) {
            values.extend([title, words.into()]);
            let (title, words) = (values.len() - 1, values.len());
            sql.push_str(&format!(
                " AND (instr(lower(coalesce(title, '')), lower(?{title})) > 0 OR session.id IN
                (SELECT entry.session FROM words CROSS JOIN entry INDEXED BY entry_text
                ON entry.text = words.rowid WHERE words MATCH ?{words}))"
            ));
        }
        (sql, values)
    }
}

const PRIVACY_CONDITION: &str = "session.id NOT IN (SELECT value FROM json_each(?))";
const SELECTED_CONDITION: &str = "agent || '/' || name IN (SELECT value FROM json_each(?))";
const PROJECT_CONDITION: &str = "project = ? OR substr(project, 1, length(?) + 1) = ? || '/'
    OR substr(project, -length(?) - 1) = '/' || ?";
const MODEL_CONDITION: &str = "EXISTS (SELECT 1 FROM json_each(models)
    WHERE instr(lower(json_each.value), lower(?)) > 0)";

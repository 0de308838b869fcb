//! The same as JSON: the objects that the commands print with `--json`.

use std::fmt::Display;

use axum::Json;
use axum::body::HttpBody;
use axum::extract::{FromRequest, FromRequestParts, Path, Request, State};
use axum::http::header::CONTENT_TYPE;
use axum::http::request::Parts;
use axum::http::{HeaderValue, StatusCode};
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use steno_core::Problem;
use steno_core::compare::compare;
use steno_core::cost::report::{By, Group};
use steno_core::index::Listed;
use steno_core::index::mark::Shown;
use steno_core::vault::SessionDir;
use steno_core::view::answer::{self, EntryRow, HitRow, NoteRow, SessionRow};
use uuid::Uuid;

use crate::app::WebApp;
use crate::asked::Asked;
use crate::error::WebError;
use crate::library::{Accounts, Library};
use crate::pages::compare::{Both, opened};
use crate::pages::cost::group_by;
use crate::pages::session::Name;

const OPENAPI: &str = include_str!("../assets/openapi.json");

/// An error as an object.
pub(crate) struct Failure(WebError);

type Answer = Result<Json<Value>, Failure>;

/// An answer, and what of it is missing or damaged in the vault: named in a header, because most answers are lists.
pub(crate) struct CheckedAnswer {
    value: Value,
    problems: Vec<String>,
}

type Checked = Result<CheckedAnswer, Failure>;

/// The header that names what an answer lacks.
const PROBLEMS_HEADER: &str = "x-steno-problems";
/// How many characters of that are sent.
const PROBLEMS_LIMIT: usize = 1000;

impl CheckedAnswer {
    fn of(value: Value, problems: &[Problem]) -> Self {
        Self { value, problems: problems.iter().map(Problem::to_string).collect() }
    }

    /// An answer about all sessions.
    fn of_all(value: Value, library: &Library) -> Result<Self, WebError> {
        let troubled = library.ask(|index| index.troubled_sessions(5))?;
        let problems = troubled.iter().map(|one| format!("{}: {}", one.id, one.reason)).collect();
        Ok(Self { value, problems })
    }
}

impl IntoResponse for CheckedAnswer {
    fn into_response(self) -> Response {
        let mut response = Json(self.value).into_response();
        if !self.problems.is_empty() {
            let text = self.problems.join("; ");
            let plain = |c: char| if c.is_ascii_graphic() || c == ' ' { c } else { '?' };
            let text: String = text.chars().map(plain).take(PROBLEMS_LIMIT).collect();
            if let Ok(value) = HeaderValue::try_from(text) {
                response.headers_mut().insert(PROBLEMS_HEADER, value);
            }
        }
        response
    }
}

impl<E: Into<WebError>> From<E> for Failure {
    fn from(error: E) -> Self {
        Self(error.into())
    }
}

impl IntoResponse for Failure {
    fn into_response(self) -> Response {
        (self.0.status(), Json(json!({"error": self.0.to_string()}))).into_response()
    }
}

/// The query of an address; what is wrong with it is told as an object.
pub(crate) struct Query<T>(T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequestParts<S> for Query<T> {
    type Rejection = Failure;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Failure> {
        let query = axum::extract::Query::from_request_parts(parts, state).await;
        query.map(|query| Self(query.0)).map_err(|error| refused(&error))
    }
}

/// The body of a request; what is wrong with it is told as an object.
pub(crate) struct Body<T>(T);

impl<T: DeserializeOwned> FromRequest<WebApp> for Body<T> {
    type Rejection = Failure;

    async fn from_request(request: Request, app: &WebApp) -> Result<Self, Failure> {
        if request.body().size_hint().lower() > app.body_bytes as u64 {
            return Err(WebError::BodyTooLarge.into());
        }
        let body = tokio::time::timeout(app.body_timeout, Json::from_request(request, app)).await;
        match body.map_err(|_| WebError::BodyTimeout)? {
            Ok(Json(body)) => Ok(Self(body)),
            Err(error) if error.status() == StatusCode::PAYLOAD_TOO_LARGE => {
                Err(WebError::BodyTooLarge.into())
            }
            Err(error) => Err(refused(&error)),
        }
    }
}

fn refused(reason: &dyn Display) -> Failure {
    Failure(WebError::Action(reason.to_string()))
}

/// Which entries of a session.
#[derive(Deserialize)]
pub(crate) struct Part {
    from: Option<usize>,
    count: Option<usize>,
}

/// What the API is.
pub(crate) async fn openapi() -> Response {
    ([(CONTENT_TYPE, "application/json")], OPENAPI).into_response()
}

/// As `steno list --json`.
pub(crate) async fn sessions(State(app): State<WebApp>, Query(asked): Query<Asked>) -> Checked {
    let listed = app.run_blocking(move |library| {
        let agent = Some(asked.agent.as_str()).filter(|agent| !agent.is_empty());
        let listed = library.sessions(agent, asked.limit)?;
        let is_readable = |one: &&Listed| one.trouble.is_none() || one.session.totals.entries > 0;
        let rows = listed.iter().filter(is_readable).map(|one| json!(SessionRow::of(&one.session)));
        CheckedAnswer::of_all(rows.collect(), library)
    });
    Ok(listed.await?)
}

/// What is known of a session.
pub(crate) async fn session(State(app): State<WebApp>, Path((agent, id)): Name) -> Checked {
    let told = app.run_blocking(move |library| {
        let transcript = &library.open(&agent, &id)?.transcript;
        let mut session = json!(transcript.session);
        if !transcript.problems.is_empty() {
            session["problems"] = transcript.problems.iter().map(Problem::to_string).collect();
        }
        Ok(CheckedAnswer::of(session, &transcript.problems))
    });
    Ok(told.await?)
}

/// As `steno show ID --json`.
pub(crate) async fn entries(
    State(app): State<WebApp>,
    Path((agent, id)): Name,
    Query(part): Query<Part>,
) -> Checked {
    let entries = app.run_blocking(move |library| {
        let opened = library.open(&agent, &id)?;
        let notes = opened.dir.notes()?;
        let wanted = opened.transcript.entries.iter().skip(part.from.unwrap_or(0));
        let wanted = wanted.take(part.count.unwrap_or(usize::MAX));
        let rows = wanted.map(|entry| json!(EntryRow::of(entry, &notes.all))).collect();
        let problems = [opened.transcript.problems.as_slice(), &notes.problems].concat();
        Ok(CheckedAnswer::of(rows, &problems))
    });
    Ok(entries.await?)
}

/// As `steno search --json`.
pub(crate) async fn search(State(app): State<WebApp>, Query(asked): Query<Asked>) -> Checked {
    let found = app.run_blocking(move |library| {
        let (question, hits) = asked.hits(library, asked.limit.unwrap_or(10))?;
        let shown = Shown { lines: 3, context: 0 };
        let row = |hit| json!(HitRow::of(hit, &question.lines(&hit.text, shown)));
        CheckedAnswer::of_all(hits.iter().map(row).collect(), library)
    });
    Ok(found.await?)
}

/// As `steno cost --json`: rows, then the total.
pub(crate) async fn cost(State(app): State<WebApp>, Query(asked): Query<Asked>) -> Checked {
    let rows = app.run_blocking(move |library| {
        let accounts = library.accounts(asked.filter(library)?)?;
        let rows = group_by(&asked)
            .map_or_else(|| blocks(library, &accounts), |by| rows(library, &accounts, by));
        CheckedAnswer::of_all(Value::Array(rows), library)
    });
    Ok(rows.await?)
}

fn rows(library: &Library, accounts: &Accounts, by: By) -> Vec<Value> {
    let Accounts { charges, costs, filter } = accounts;
    let wanted: Vec<usize> = charges.select(filter).collect();
    let rows = charges.rows(costs, &wanted, &Group { by, zone: &library.zone });
    let sums = rows.iter().map(|row| (answer::cost::row_key(charges, by, row), &row.sum));
    let total = charges.total(costs, &wanted);
    let sums = sums.chain([(answer::cost::total_key(), &total)]);
    sums.map(|(key, sum)| Value::Object(answer::cost::sum(key, charges, sum))).collect()
}

fn blocks(library: &Library, accounts: &Accounts) -> Vec<Value> {
    let Accounts { charges, costs, filter } = accounts;
    let (blocks, total) = charges.blocks_begun(costs, filter);
    let now = library.clock.now().instant().as_millisecond();
    let sums = blocks.iter().map(|block| (answer::cost::block_key(block, now), &block.sum));
    let sums = sums.chain([(answer::cost::total_key(), &total)]);
    sums.map(|(key, sum)| Value::Object(answer::cost::sum(key, charges, sum))).collect()
}

/// As `steno diff --json`.
pub(crate) async fn diff(State(app): State<WebApp>, Query(both): Query<Both>) -> Answer {
    let objects = app.run_blocking(move |library| {
        let (a, b) = (opened(library, &both.a)?, opened(library, &both.b)?);
        let steps = compare(&a.transcript.entries, &b.transcript.entries);
        Ok(answer::diff::objects(&a.transcript, &b.transcript, &steps))
    });
    Ok(Json(Value::Array(objects.await?)))
}

/// What to note, and about which entry.
#[derive(Deserialize)]
pub(crate) struct Noting {
    text: String,
    entry: Option<usize>,
}

/// As `steno annotate ID --json`.
pub(crate) async fn notes(State(app): State<WebApp>, Path((agent, id)): Name) -> Checked {
    let notes = app.run_blocking(move |library| {
        let dir = library.dir(&agent, &id)?;
        Ok(CheckedAnswer::of(rows_of_notes(&dir)?.into(), &dir.notes()?.problems))
    });
    Ok(notes.await?)
}

/// As `steno annotate --json`.
pub(crate) async fn all_notes(State(app): State<WebApp>) -> Checked {
    let notes = app.run_blocking(|library| {
        let (mut rows, mut problems) = (Vec::new(), Vec::new());
        for dir in library.vault.sessions()?.iter().chain(&library.vault.missing_sessions()?) {
            rows.extend(rows_of_notes(dir)?);
            problems.extend(dir.notes()?.problems);
        }
        Ok(CheckedAnswer::of(rows.into(), &problems))
    });
    Ok(notes.await?)
}

fn rows_of_notes(dir: &SessionDir) -> Result<Vec<Value>, WebError> {
    Ok(dir.notes()?.all.iter().map(|note| json!(NoteRow::of(dir, note))).collect())
}

/// As `steno annotate ID[:N] TEXT --json`.
pub(crate) async fn annotate(
    State(app): State<WebApp>,
    Path((agent, id)): Name,
    Body(Noting { text, entry }): Body<Noting>,
) -> Answer {
    app.require_writable()?;
    if text.trim().is_empty() {
        return Err(WebError::Action("a note has to say something".to_owned()).into());
    }
    let noted = app.run_blocking(move |library| {
        let opened = library.open(&agent, &id)?;
        let named = |number: usize| {
            let entry = opened.transcript.entries.get(number);
            entry.ok_or_else(|| WebError::Unknown(format!("{agent}/{id}:{number}")))
        };
        let entry = entry.map(named).transpose()?.map(|entry| entry.entry_id);
        let note = opened.dir.annotate(entry, text.trim(), &library.clock)?;
        Ok(json!(NoteRow::of(&opened.dir, &note)))
    });
    Ok(Json(noted.await?))
}

/// As `steno annotate ID --remove NOTE`.
pub(crate) async fn remove_note(
    State(app): State<WebApp>,
    Path((agent, id, note)): Path<(String, String, String)>,
) -> Answer {
    app.require_writable()?;
    let removed = app.run_blocking(move |library| {
        let dir = library.dir(&agent, &id)?;
        let named = Uuid::parse_str(&note).ok();
        let is_removed = named.map(|named| dir.remove_note(named, &library.clock)).transpose()?;
        if is_removed == Some(true) { Ok(note) } else { Err(WebError::Unknown(note)) }
    });
    Ok(Json(json!({"removed": removed.await?})))
}

/// Puts back what the agent needs to go on with a session, and gives the command that does.
pub(crate) async fn resume(State(app): State<WebApp>, Path((agent, id)): Name) -> Answer {
    let resume = app.require_writable()?;
    let command = app.run_blocking(move |library| {
        let dir = library.dir(&agent, &id)?;
        resume(dir.agent(), dir.id().as_str()).map_err(WebError::Action)
    });
    Ok(Json(json!({"command": command.await?})))
}

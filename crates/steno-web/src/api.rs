//! The JSON API. It returns the objects that the commands print with `--json`.

use std::fmt::Display;

use axum::Json;
use axum::body::HttpBody;
use axum::extract::{FromRequest, FromRequestParts, Path, Request};
use axum::http::header::CONTENT_TYPE;
use axum::http::request::Parts;
use axum::http::{HeaderValue, StatusCode};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};
use steno_model::Problem;
use steno_store::compare::compare_entries;
use steno_store::cost::report::{GroupBy, ReportGroup};
use steno_store::index::match_lines::LineLimits;
use steno_store::index::{ListedSession, SearchHit};
use steno_store::view::json_rows::{self, EntryRow, HitRow, NoteRow, SessionRow};
use steno_vault::SessionDir;
use uuid::Uuid;

use crate::addresses::SessionPath;
use crate::api_parameters::{check_parameters, check_role};
use crate::app::WebApp;
use crate::error::WebError;
use crate::filter_query::FilterQuery;
use crate::library::{CostAccounts, SessionLibrary};
use crate::pages::compare::{SessionPair, open_named};
use crate::pages::cost::group_by;
use crate::session_person::session_person;

const OPENAPI_JSON: &str = include_str!("../assets/openapi.json");

/// An error, as a JSON object.
pub(crate) struct ApiError(WebError);

type JsonResult = Result<Json<Value>, ApiError>;

/// A response, and the problems of the records that it is made from. They go into a header, because most responses are
/// lists.
pub(crate) struct CheckedResponse {
    value: Value,
    problems: Vec<String>,
}

pub(crate) type CheckedResult = Result<CheckedResponse, ApiError>;

/// The header that lists problems.
const PROBLEMS_HEADER: &str = "x-steno-problems";
/// How many characters of them are sent.
const PROBLEMS_LIMIT: usize = 1000;

impl CheckedResponse {
    fn new(value: Value, problems: &[Problem]) -> Self {
        Self { value, problems: problems.iter().map(Problem::to_string).collect() }
    }

    /// A response about all sessions.
    pub(crate) fn about_all_sessions(
        value: Value,
        library: &SessionLibrary,
    ) -> Result<Self, WebError> {
        Ok(Self { value, problems: library.damage_warnings()? })
    }
}

impl IntoResponse for CheckedResponse {
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

impl<E: Into<WebError>> From<E> for ApiError {
    fn from(error: E) -> Self {
        Self(error.into())
    }
}

impl IntoResponse for ApiError {
    fn into_response(self) -> Response {
        (self.0.status_code(), Json(json!({"error": self.0.to_string()}))).into_response()
    }
}

/// Refuses a request to the JSON API with an unknown parameter, or an unknown value of one that has a list of values.
pub(crate) async fn check_query(request: Request, next: Next) -> Response {
    match check_parameters(request.uri()) {
        Ok(()) => next.run(request).await,
        Err(error) => ApiError::from(error).into_response(),
    }
}

/// The query of a request. A query that cannot be parsed is an [`ApiError`].
pub(crate) struct ApiQuery<T>(pub(crate) T);

impl<S: Send + Sync, T: DeserializeOwned> FromRequestParts<S> for ApiQuery<T> {
    type Rejection = ApiError;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, ApiError> {
        let query = axum::extract::Query::from_request_parts(parts, state).await;
        query.map(|query| Self(query.0)).map_err(|error| bad_request(&error))
    }
}

/// The body of a request. A body that cannot be parsed is an [`ApiError`].
pub(crate) struct ApiBody<T>(T);

impl<T: DeserializeOwned> FromRequest<WebApp> for ApiBody<T> {
    type Rejection = ApiError;

    async fn from_request(request: Request, app: &WebApp) -> Result<Self, ApiError> {
        if request.body().size_hint().lower() > app.body_bytes as u64 {
            return Err(WebError::BodyTooLarge.into());
        }
        let body = tokio::time::timeout(app.body_timeout, Json::from_request(request, app)).await;
        match body.map_err(|_| WebError::BodyTimeout)? {
            Ok(Json(body)) => Ok(Self(body)),
            Err(error) if error.status() == StatusCode::PAYLOAD_TOO_LARGE => {
                Err(WebError::BodyTooLarge.into())
            }
            Err(error) => Err(bad_request(&error)),
        }
    }
}

fn bad_request(reason: &dyn Display) -> ApiError {
    ApiError(WebError::Action(reason.to_string()))
}

/// A range of entries.
#[derive(Deserialize)]
pub(crate) struct EntryRange {
    from: Option<usize>,
    count: Option<usize>,
}

/// The OpenAPI description of this API.
pub(crate) async fn get_openapi() -> Response {
    ([(CONTENT_TYPE, "application/json")], OPENAPI_JSON).into_response()
}

/// Same as `steno list --json`.
pub(crate) async fn list_sessions(
    app: WebApp,
    ApiQuery(filters): ApiQuery<FilterQuery>,
) -> CheckedResult {
    let listed = app.run_blocking(move |library| {
        let agent = Some(filters.agent.as_str()).filter(|agent| !agent.is_empty());
        let listed = library.list_sessions(agent, filters.limit)?;
        let is_readable =
            |one: &&ListedSession| one.problem.is_none() || one.session.totals.entries > 0;
        let rows = listed.iter().filter(is_readable).map(|one| {
            let person = session_person(&one.session);
            json!(SessionRow::from_session(&one.session).of_person(person))
        });
        CheckedResponse::about_all_sessions(rows.collect(), library)
    });
    Ok(listed.await?)
}

/// The metadata of a session.
pub(crate) async fn get_session(app: WebApp, Path((agent, id)): SessionPath) -> CheckedResult {
    let session = app.run_blocking(move |library| {
        let transcript = &library.open_session(&agent, &id)?.transcript;
        let mut session = json!(transcript.session);
        session["status"] = json!(library.status_check().status_of(&transcript.session));
        if !transcript.problems.is_empty() {
            session["problems"] = transcript.problems.iter().map(Problem::to_string).collect();
        }
        Ok(CheckedResponse::new(session, &transcript.problems))
    });
    Ok(session.await?)
}

/// Same as `steno show ID --json`.
pub(crate) async fn list_entries(
    app: WebApp,
    Path((agent, id)): SessionPath,
    ApiQuery(part): ApiQuery<EntryRange>,
) -> CheckedResult {
    let entries = app.run_blocking(move |library| {
        let opened = library.open_session(&agent, &id)?;
        let notes = opened.dir.read_notes()?;
        let entries = opened.transcript.entries.iter().skip(part.from.unwrap_or(0));
        let entries = entries.take(part.count.unwrap_or(usize::MAX));
        let rows = entries.map(|entry| json!(EntryRow::from_entry(entry, &notes.all))).collect();
        let problems = [opened.transcript.problems.as_slice(), &notes.problems].concat();
        Ok(CheckedResponse::new(rows, &problems))
    });
    Ok(entries.await?)
}

/// Same as `steno search --json`.
pub(crate) async fn search_entries(
    app: WebApp,
    ApiQuery(filters): ApiQuery<FilterQuery>,
) -> CheckedResult {
    let hits = app.run_blocking(move |library| {
        check_role(library, &filters)?;
        let (question, hits) =
            filters.search(library, &library.zone, filters.limit.unwrap_or(10))?;
        let shown = LineLimits { max_lines: 3, context_lines: 0 };
        let owners = library.owners().unwrap_or_default();
        let row = |hit: &SearchHit| {
            let person = owners.person_of(&hit.agent, hit.session.as_str());
            json!(
                HitRow::from_hit(hit, &question.matching_lines(&hit.text, shown)).of_person(person)
            )
        };
        CheckedResponse::about_all_sessions(hits.iter().map(row).collect(), library)
    });
    Ok(hits.await?)
}

/// Same as `steno cost --json`: the rows, then the total.
pub(crate) async fn get_cost(
    app: WebApp,
    ApiQuery(filters): ApiQuery<FilterQuery>,
) -> CheckedResult {
    let rows = app.run_blocking(move |library| {
        let accounts = library.cost_accounts(filters.to_filter(library, &library.zone)?)?;
        let rows = group_by(&filters).map_or_else(
            || cost_blocks(library, &accounts),
            |by| cost_rows(library, &accounts, by),
        );
        CheckedResponse::about_all_sessions(Value::Array(rows), library)
    });
    Ok(rows.await?)
}

fn cost_rows(library: &SessionLibrary, accounts: &CostAccounts, by: GroupBy) -> Vec<Value> {
    let CostAccounts { charges, costs, filter } = accounts;
    let selected: Vec<usize> = charges.select_charges(filter).collect();
    let rows = charges.report_rows(costs, &selected, &ReportGroup { by, zone: &library.zone });
    let sums = rows.iter().map(|row| (json_rows::cost::row_key(charges, by, row), &row.sum));
    let total = charges.sum_charges(costs, &selected);
    let sums = sums.chain([(json_rows::cost::total_key(), &total)]);
    sums.map(|(key, sum)| Value::Object(json_rows::cost::sum_object(key, charges, sum))).collect()
}

fn cost_blocks(library: &SessionLibrary, accounts: &CostAccounts) -> Vec<Value> {
    let CostAccounts { charges, costs, filter } = accounts;
    let (blocks, total) = charges.blocks_started_in(costs, filter);
    let now = library.clock.now().instant().as_millisecond();
    let sums = blocks.iter().map(|block| (json_rows::cost::block_key(block, now), &block.sum));
    let sums = sums.chain([(json_rows::cost::total_key(), &total)]);
    sums.map(|(key, sum)| Value::Object(json_rows::cost::sum_object(key, charges, sum))).collect()
}

/// Same as `steno diff --json`.
pub(crate) async fn get_diff(app: WebApp, ApiQuery(both): ApiQuery<SessionPair>) -> JsonResult {
    let objects = app.run_blocking(move |library| {
        let (a, b) = (open_named(library, &both.a)?, open_named(library, &both.b)?);
        let steps = compare_entries(&a.transcript.entries, &b.transcript.entries);
        Ok(json_rows::diff::diff_objects(&a.transcript, &b.transcript, &steps))
    });
    Ok(Json(Value::Array(objects.await?)))
}

/// The text of a new note, and the number of its entry.
#[derive(Deserialize)]
pub(crate) struct NewNote {
    text: String,
    entry: Option<usize>,
}

/// Same as `steno annotate ID --json`.
pub(crate) async fn list_notes(app: WebApp, Path((agent, id)): SessionPath) -> CheckedResult {
    let notes = app.run_blocking(move |library| {
        let dir = library.session_dir(&agent, &id)?;
        Ok(CheckedResponse::new(note_rows(&dir)?.into(), &dir.read_notes()?.problems))
    });
    Ok(notes.await?)
}

/// Same as `steno annotate --json`.
pub(crate) async fn list_all_notes(app: WebApp) -> CheckedResult {
    let notes = app.run_blocking(|library| {
        let (mut rows, mut problems) = (Vec::new(), Vec::new());
        let (present, missing) =
            (library.vault.list_sessions()?, library.vault.missing_sessions()?);
        let may_see = |dir: &&SessionDir| library.may_see(dir.agent(), dir.id().as_str());
        for dir in present.iter().chain(&missing).filter(may_see) {
            rows.extend(note_rows(dir)?);
            problems.extend(dir.read_notes()?.problems);
        }
        Ok(CheckedResponse::new(rows.into(), &problems))
    });
    Ok(notes.await?)
}

fn note_rows(dir: &SessionDir) -> Result<Vec<Value>, WebError> {
    Ok(dir.read_notes()?.all.iter().map(|note| json!(NoteRow::from_note(dir, note))).collect())
}

/// Same as `steno annotate ID[:N] TEXT --json`.
pub(crate) async fn add_note(
    app: WebApp,
    Path((agent, id)): SessionPath,
    ApiBody(NewNote { text, entry }): ApiBody<NewNote>,
) -> JsonResult {
    app.require_writable()?;
    if text.trim().is_empty() {
        return Err(WebError::Action("a note must not be empty".to_owned()).into());
    }
    let note = app.run_blocking(move |library| {
        let opened = library.open_session(&agent, &id)?;
        let named = |number: usize| {
            let entry = opened.transcript.entries.get(number);
            entry.ok_or_else(|| WebError::NotFound(format!("{agent}/{id}:{number}")))
        };
        let entry = entry.map(named).transpose()?.map(|entry| entry.entry_id);
        let note = opened.dir.add_note(entry, text.trim(), &library.clock)?;
        Ok(json!(NoteRow::from_note(&opened.dir, &note)))
    });
    Ok(Json(note.await?))
}

/// Same as `steno annotate ID --remove NOTE`.
pub(crate) async fn remove_note(
    app: WebApp,
    Path((agent, id, note)): Path<(String, String, String)>,
) -> JsonResult {
    app.require_writable()?;
    let removed = app.run_blocking(move |library| {
        let dir = library.session_dir(&agent, &id)?;
        let named = Uuid::parse_str(&note).ok();
        let is_removed = named.map(|named| dir.remove_note(named, &library.clock)).transpose()?;
        if is_removed == Some(true) { Ok(note) } else { Err(WebError::NotFound(note)) }
    });
    Ok(Json(json!({"removed": removed.await?})))
}

/// Restores the files that the agent needs to resume a session; returns the command that resumes it.
pub(crate) async fn resume_session(app: WebApp, Path((agent, id)): SessionPath) -> JsonResult {
    let resume = app.require_writable()?;
    let command = app.run_blocking(move |library| {
        let dir = library.session_dir(&agent, &id)?;
        resume(dir.agent(), dir.id().as_str()).map_err(WebError::Action)
    });
    Ok(Json(json!({"command": command.await?})))
}

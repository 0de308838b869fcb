//! The page of recent edits: the files that agents edited last, over all sessions.

use axum::extract::Query;
use jiff::civil::Date;
use maud::{Markup, html};
use steno_store::blame::{EditedFile, RecentEdit, RecentEdits, find_recent_edits};
use steno_store::index::EditCallRequest;

use crate::addresses::{last_segment, path_in_project, session_address};
use crate::app::WebApp;
use crate::error::WebError;
use crate::filter_query::{DEFAULT_DAYS, FilterQuery};
use crate::library::SessionLibrary;
use crate::render::plain::{clean_text, first_line};
use crate::report_page::{ReportPage, empty_period};
use crate::units::{count_of, exact_count};
use crate::viewer::PageViewer;

/// The address of the page.
const ADDRESS: &str = "/edits";

/// How many of the newest calls of edit tools are counted. Few periods have more; a shorter one has the others.
const MAX_CALLS: usize = 5000;

/// How many files a page lists.
const PAGE_FILES: usize = 60;

/// How many edits of a file are listed.
const MAX_LISTED: usize = 40;

/// How many characters of a session's title are shown.
const TITLE_CHARS: usize = 100;

/// The page of recent edits.
pub(crate) async fn edits_page(
    app: WebApp,
    viewer: PageViewer,
    Query(filters): Query<FilterQuery>,
) -> Result<Markup, WebError> {
    app.run_blocking(move |library| {
        let today = viewer.today(&library.clock);
        let filters = filters.with_default_period(DEFAULT_DAYS, today);
        let listing = library.session_listing()?;
        let zone = viewer.zone.iana_name().unwrap_or("zone of the server");
        let key = format!("edits {:?} {zone} {today} {filters:?}", listing.edition);
        let report = library.cache_rendered_list(key, || {
            // The totals are of the whole period, so all its edits are read; a page lists some of the files.
            let whole = FilterQuery { skip: None, ..filters.clone() };
            let found = recent_edits(library, &viewer, &whole, MAX_CALLS)?;
            Ok(EditView { found: &found, filters: &filters, viewer: &viewer, today }.report())
        })?;
        let content = html! { (file_form(&filters)) (report) };
        let (title, address, viewer, filters) = ("Recent edits", ADDRESS, &viewer, &filters);
        ReportPage { title, address, library, viewer, filters, today }.with_content(&content)
    })
    .await
}

/// The files that were edited last, as a query selects them.
pub(crate) fn recent_edits(
    library: &SessionLibrary,
    viewer: &PageViewer,
    filters: &FilterQuery,
    limit: usize,
) -> Result<RecentEdits, WebError> {
    let filter = filters.to_filter(library, &viewer.zone)?;
    let request = EditCallRequest {
        filter: &filter,
        path: &filters.q,
        skip: filters.skip.unwrap_or(0),
        limit,
    };
    library.query_index(|index| find_recent_edits(index, &library.vault, &request))
}

/// Where a part of a path is entered. The other filters stay as they are.
fn file_form(filters: &FilterQuery) -> Markup {
    let kept = [
        ("since", &filters.since),
        ("until", &filters.until),
        ("period", &filters.period),
        ("agent", &filters.agent),
        ("project", &filters.project),
        ("model", &filters.model),
    ];
    html! {
        form.filters action=(ADDRESS) {
            input name="q" type="search" value=(filters.q) placeholder="Filter by file: cost.rs, src/pages" aria-label="Filter by file"
                title="A part of the path, from the begin of a word";
            @for (name, value) in kept.iter().filter(|(_, value)| !value.is_empty()) { input type="hidden" name=(name) value=(value); }
            button { "Filter" }
        }
    }
}

fn no_edits(filters: &FilterQuery) -> Markup {
    html! {
        (empty_period(ADDRESS, filters, "No file was edited in this period"))
        p.hint { "Only calls of edit tools are listed, not what shell commands wrote." }
    }
}

/// What the parts of the page need.
struct EditView<'a> {
    found: &'a RecentEdits,
    filters: &'a FilterQuery,
    viewer: &'a PageViewer,
    today: Date,
}

impl EditView<'_> {
    fn report(&self) -> Markup {
        html! {
            @if self.found.files.is_empty() { (no_edits(self.filters)) } @else { (self.figures()) (self.file_list()) }
            (self.page_links())
        }
    }

    fn figures(&self) -> Markup {
        let files = &self.found.files;
        let edits = || files.iter().flat_map(|file| &file.edits);
        let sum = |lines: fn(&RecentEdit) -> u64| edits().map(lines).sum::<u64>();
        let sessions: std::collections::HashSet<_> =
            edits().map(|edit| (&edit.agent, &edit.session)).collect();
        let newest = match self.found.has_more {
            true => " by the newest calls of edit tools",
            false => " in this period",
        };
        let all = [
            (files.len() as u64, "files", "Files that were edited"),
            (edits().count() as u64, "edits", "Successful edits of files"),
            (
                sum(|edit| edit.added),
                "lines added",
                "Lines that the edits added, and all lines of files that were written as a whole,",
            ),
            (sum(|edit| edit.removed), "lines removed", "Lines that the edits removed"),
            (sessions.len() as u64, "sessions", "Sessions with an edit"),
        ];
        html! {
            ul.figures {
                @for (count, name, about) in all { li title={ (about) (newest) } { b { (exact_count(count)) @if self.found.has_more { "+" } } small { (name) } } }
            }
            @if self.found.has_more {
                p.hint { "Only the newest " (exact_count(MAX_CALLS as u64)) " calls of edit tools are counted and listed. Choose a period or a file for older ones." }
            }
        }
    }

    /// The files by the day of their last edit.
    fn file_list(&self) -> Markup {
        let day = |file: &EditedFile| {
            file.edits.first().and_then(|edit| self.local_time(edit)).map(|at| at.date())
        };
        let files = &self.found.files;
        let first = self.filters.skip.unwrap_or(0).min(files.len());
        let days =
            files[first..files.len().min(first + PAGE_FILES)].chunk_by(|a, b| day(a) == day(b));
        html! {
            @for files in days {
                h2.edit-day { (day(&files[0]).map_or_else(|| "Without a date".to_owned(), |day| self.day_name(day))) }
                ul.edited-files { @for file in files { (self.file_item(file)) } }
            }
        }
    }

    fn day_name(&self, day: Date) -> String {
        let name = day.strftime("%A, %-d %B %Y").to_string();
        match () {
            () if day == self.today => format!("Today, {name}"),
            () if Some(day) == self.today.yesterday().ok() => format!("Yesterday, {name}"),
            () => name,
        }
    }

    fn local_time(&self, edit: &RecentEdit) -> Option<jiff::civil::DateTime> {
        Some(edit.time?.in_zone(&self.viewer.zone).wall())
    }

    fn file_item(&self, file: &EditedFile) -> Markup {
        let project = file.project.as_deref();
        let path = path_in_project(&file.path, project);
        let folder = path.strip_suffix(last_segment(path)).unwrap_or_default();
        let sessions = file.sessions().len() as u64;
        html! {
            li {
                details {
                    summary {
                        code title=(clean_text(&file.path)) { @if !folder.is_empty() { span { (clean_text(folder)) } } b { (clean_text(last_segment(path))) } }
                        @if let Some(edit) = file.edits.first() { span.session title={ "The session that edited it last: " (session_title(edit)) } { (session_title(edit)) } }
                        span.project title=(clean_text(project.unwrap_or_default())) { (clean_text(project.map_or("", last_segment))) }
                        span.num { (count_of(file.edits.len() as u64, "edit")) @if sessions > 1 { " in " (count_of(sessions, "session")) } }
                        (file_lines(file))
                    }
                    ol.file-edits {
                        @for edit in file.edits.iter().take(MAX_LISTED) { (self.edit_item(edit)) }
                    }
                    @if file.edits.len() > MAX_LISTED { p.hint { (exact_count((file.edits.len() - MAX_LISTED) as u64)) " older edits are not shown." } }
                }
                @if let Some(edit) = file.edits.first() {
                    a.last-edit href=(entry_address(edit)) title={ "Open the last edit, " (self.long_time(edit)) } { (self.clock_time(edit)) }
                }
            }
        }
    }

    fn edit_item(&self, edit: &RecentEdit) -> Markup {
        html! {
            li {
                span.when title=(self.long_time(edit)) { (self.short_time(edit)) }
                a href=(entry_address(edit)) { (session_title(edit)) }
                span.agent { (clean_text(&edit.agent)) }
                (edit_lines(edit))
            }
        }
    }

    fn long_time(&self, edit: &RecentEdit) -> String {
        edit.time.map_or_else(|| "at an unknown time".to_owned(), |at| self.viewer.format_time(at))
    }

    fn short_time(&self, edit: &RecentEdit) -> String {
        self.local_time(edit)
            .map_or_else(String::new, |at| at.strftime("%-d %b, %H:%M").to_string())
    }

    fn clock_time(&self, edit: &RecentEdit) -> String {
        self.local_time(edit)
            .map_or_else(|| "open".to_owned(), |at| at.strftime("%H:%M").to_string())
    }

    /// Links to files that were edited later or earlier than those of the page.
    fn page_links(&self) -> Markup {
        let (skip, files) = (self.filters.skip.unwrap_or(0), self.found.files.len());
        let (address, next) = (self.filters.address_of(ADDRESS), skip.saturating_add(PAGE_FILES));
        html! {
            @if skip > 0 || next < files {
                nav.tabs aria-label="Other files" {
                    @if skip > 0 { a href={ (address) "&skip=" (skip.saturating_sub(PAGE_FILES)) } { "Edited later" } }
                    @if next < files { a href={ (address) "&skip=" (next) } { "Edited earlier" } }
                }
                p.hint { "Files " (exact_count(skip.min(files) as u64 + 1)) " to " (exact_count(next.min(files) as u64)) " of " (exact_count(files as u64)) ", by their last edit" }
            }
        }
    }
}

/// The address of the entry that edited a file.
fn entry_address(edit: &RecentEdit) -> String {
    format!("{}#e{}", session_address(&edit.agent, &edit.session), edit.number)
}

/// The title of the session of an edit, or its id.
fn session_title(edit: &RecentEdit) -> String {
    let title = edit.title.as_deref().filter(|title| !title.trim().is_empty());
    first_line(title.unwrap_or(edit.session.as_str()), TITLE_CHARS)
}

/// How many lines all edits of a file added and removed, and whether the last one deleted it.
fn file_lines(file: &EditedFile) -> Markup {
    let (added, removed) = file.count_lines();
    lines_changed(added, removed, file.edits.first().is_some_and(|edit| edit.is_deletion))
}

fn edit_lines(edit: &RecentEdit) -> Markup {
    lines_changed(edit.added, edit.removed, edit.is_deletion)
}

fn lines_changed(added: u64, removed: u64, is_deleted: bool) -> Markup {
    let mut parts: Vec<(&str, String)> = Vec::new();
    if added > 0 || (removed == 0 && !is_deleted) {
        parts.push(("plus", format!("+{}", exact_count(added))));
    }
    if removed > 0 {
        parts.push(("minus", format!("−{}", exact_count(removed))));
    }
    if is_deleted {
        parts.push(("minus", "deleted".to_owned()));
    }
    let deleted = if is_deleted { "; the file was deleted" } else { "" };
    html! {
        span.lines-changed title={ (count_of(added, "line")) " added, " (count_of(removed, "line")) " removed" (deleted) } {
            @for (at, (class, text)) in parts.iter().enumerate() { @if at > 0 { " " } span class=(class) { (text) } }
        }
    }
}

//! Exports a session from its page: as HTML, Markdown or JSON, without secrets unless the reader asks for them.

use axum::extract::{Path, Query};
use axum::http::header::{CONTENT_DISPOSITION, CONTENT_TYPE};
use axum::response::{IntoResponse, Response};
use maud::{Markup, html};
use serde::Deserialize;
use steno_model::{Session, Transcript};
use steno_store::format::native;
use steno_store::view::markdown::render_markdown;
use steno_store::view::redaction::SecretRedactor;

use crate::addresses::{SessionPath, session_address};
use crate::app::WebApp;
use crate::error::WebError;
use crate::export::SessionExport;
use crate::library::{OpenedSession, SessionLibrary};
use crate::viewer::PageViewer;

/// The format of an export, and whether it keeps secrets.
#[derive(Deserialize)]
pub(crate) struct ExportQuery {
    format: PageExportFormat,
    #[serde(default)]
    keep_secrets: bool,
}

/// A format that pages export.
#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "lowercase")]
enum PageExportFormat {
    Html,
    Md,
    Json,
}

impl PageExportFormat {
    fn extension(self) -> &'static str {
        match self {
            PageExportFormat::Html => "html",
            PageExportFormat::Md => "md",
            PageExportFormat::Json => "json",
        }
    }
}

/// The dialog that offers the formats.
pub(crate) fn export_dialog(session: &Session) -> Markup {
    html! {
        dialog #export aria-labelledby="export-title" {
            form action={ (session_address(&session.agent, &session.id)) "/export" } {
                h2 #export-title { "Export this session" }
                fieldset {
                    legend { "Format" }
                    @for (value, name, about) in [
                        ("html", "HTML", "one file that opens in any browser"),
                        ("md", "Markdown", "text to read or to paste"),
                        ("json", "JSON", "all fields, for programs"),
                    ] {
                        label { input type="radio" name="format" value=(value) checked[value == "html"]; " " b { (name) } " " small { (about) } }
                    }
                }
                label { input type="checkbox" name="keep_secrets" value="true"; " Keep keys, tokens and passwords" }
                p { small { "Without this, what looks like a secret is replaced by “[redacted]”. Read the file before you share it." } }
                p.tools { button #export-save .main { "Save" } button #export-cancel type="button" { "Cancel" } }
            }
        }
    }
}

/// The dialog before a session is printed that is too long to be printed whole. A script fills in the numbers.
pub(crate) fn print_dialog() -> Markup {
    html! {
        dialog #print-part aria-labelledby="print-title" {
            form method="dialog" {
                h2 #print-title { "Print a part of this session" }
                p { "Only the " b {} " entries that are loaded now are printed, of " b {} ". To print all, export the session as HTML and print that file." }
                p.tools {
                    button.main value="export" { "Export as HTML…" }
                    button value="print" { "Print the part" }
                    button value="" { "Cancel" }
                }
            }
        }
    }
}

/// A session as a file to save.
pub(crate) async fn export_session(
    app: WebApp,
    viewer: PageViewer,
    Path((agent, id)): SessionPath,
    Query(query): Query<ExportQuery>,
) -> Result<Response, WebError> {
    app.run_blocking(move |library| {
        let opened = library.open_session(&agent, &id)?;
        let mut transcript = opened.transcript.clone();
        transcript.notes = opened.dir.read_notes()?.all;
        if !query.keep_secrets {
            SecretRedactor::default().redact_transcript(&mut transcript);
        }
        let text =
            ExportRequest { library, viewer: &viewer, opened: &opened, transcript: &transcript }
                .render(query.format);
        let file = format!(
            "attachment; filename=\"{}.{}\"",
            transcript.session.id,
            query.format.extension()
        );
        // A file is saved, never shown, so its type is not the page's.
        Ok((
            [(CONTENT_TYPE, "application/octet-stream".to_owned()), (CONTENT_DISPOSITION, file)],
            text,
        )
            .into_response())
    })
    .await
}

/// What an export is made of.
struct ExportRequest<'a> {
    library: &'a SessionLibrary,
    viewer: &'a PageViewer,
    opened: &'a OpenedSession,
    transcript: &'a Transcript,
}

impl ExportRequest<'_> {
    fn render(&self, format: PageExportFormat) -> String {
        let Self { library, viewer, opened, transcript } = *self;
        match format {
            PageExportFormat::Html => {
                let (pictures, zone, prices) = (&opened.pictures, &viewer.zone, &library.prices);
                SessionExport { transcript, pictures, zone, prices, index: None }.to_html()
            }
            PageExportFormat::Md => render_markdown(transcript),
            PageExportFormat::Json => native::render_json(transcript),
        }
    }
}

//! Whether an export is redacted, and what is said about its secrets.

use steno_model::Transcript;
use steno_store::view::redaction::SecretRedactor;

use crate::export_format::ExportFormat;
use crate::ui::{Ui, count_noun};

/// The flags of commands that write sessions in other formats.
#[derive(Clone, Copy, Debug, clap::Args)]
pub(crate) struct RedactionFlags {
    /// Replace keys, tokens and passwords in any format.
    #[arg(long)]
    redact: bool,
    /// Keep keys, tokens and passwords in any format.
    #[arg(long, conflicts_with = "redact")]
    no_redact: bool,
}

/// Redacts the sessions of one command, or counts what is left in them.
pub(crate) struct ExportRedaction {
    is_redacting: bool,
    /// Whether the user wants to know about secrets that stay.
    is_counting: bool,
    redactor: SecretRedactor,
}

impl ExportRedaction {
    pub(crate) fn new(flags: RedactionFlags, format: &ExportFormat) -> Self {
        let is_redacting = flags.redact || format.is_shared && !flags.no_redact;
        let is_counting = !is_redacting && !flags.no_redact;
        Self { is_redacting, is_counting, redactor: SecretRedactor::default() }
    }

    /// Redacts a transcript if the format or the user asks for it. Returns how many secrets it had.
    pub(crate) fn apply(&mut self, transcript: &mut Transcript) -> u64 {
        let before = self.redactor.count();
        if self.is_redacting {
            self.redactor.redact_transcript(transcript);
        } else if self.is_counting {
            self.redactor.search_transcript(transcript);
        }
        self.redactor.count() - before
    }

    /// Redacts a text if the format or the user asks for it.
    #[cfg(feature = "parquet")]
    pub(crate) fn apply_to_text(&mut self, text: &mut String) {
        if self.is_redacting {
            *text = self.redactor.redact_text(text).into_owned();
        }
    }

    /// Whether secrets are replaced.
    pub(crate) fn is_redacting(&self) -> bool {
        self.is_redacting
    }

    /// Says how many secrets were redacted, or warns of those that were not.
    pub(crate) fn report(&self, ui: &mut Ui) {
        let count = self.redactor.count();
        if self.is_redacting {
            ui.status(format_args!("{} redacted", count_noun(count, "secret")));
        } else if self.is_counting {
            warn_of_secrets(ui, &self.redactor);
        }
    }
}

/// Warns of secrets in what was written, if there are any.
pub(crate) fn warn_of_secrets(ui: &mut Ui, found: &SecretRedactor) {
    let count = found.count();
    if count > 0 {
        let rules: Vec<_> = found.count_by_rule().into_keys().collect();
        let verb = if count == 1 { "is" } else { "are" };
        ui.warning(format_args!(
            "{} {verb} not redacted ({}); use --redact to remove secrets",
            count_noun(count, "secret"),
            rules.join(", ")
        ));
    }
}

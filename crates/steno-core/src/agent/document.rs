//! What readers of formats share whose session is one JSON document: knowing it by its beginning,
//! reading it although a few of its bytes are not JSON, and handing out entries.

mod opening;

use std::path::Path;

pub(super) use self::opening::Opening;
use super::repair;
use crate::durable::FileError;
use crate::entry::{Entry, Numbering};
use crate::format::tree;
use crate::format::{Emit, FormatError, Item};
use crate::json::Value;
use crate::problem::Problem;
use crate::source::{Bundle, Source};

/// The files at or below `path` whose first bytes `recognises` takes, each as a session.
pub(super) fn find(
    path: &Path,
    recognises: impl Fn(&Source, &Opening) -> bool,
) -> Result<Vec<Bundle>, FileError> {
    let mut bundles = Vec::new();
    for file in tree::files(path)? {
        let bundle = Bundle::file(&file);
        let source = &bundle.sources[0];
        if recognises(source, &Opening::of(source)?) {
            bundles.push(bundle);
        }
    }
    Ok(bundles)
}

/// The only file of a session.
pub(super) fn only_source(bundle: &Bundle) -> Result<&Source, FormatError> {
    let missing = || FormatError::Invalid(Problem::of(&bundle.root, "no file in it"));
    bundle.sources.first().ok_or_else(missing)
}

/// The whole document.
pub(super) fn parse(source: &Source) -> Result<Value, FormatError> {
    repair::parse(&source.bytes()?)
        .map_err(|reason| FormatError::Invalid(Problem::of(source.path(), reason)))
}

/// Numbers entries and hands them out.
pub(super) struct Output<'a> {
    numbering: Numbering,
    emit: Emit<'a>,
}

impl<'a> Output<'a> {
    pub(super) fn new(numbering: Numbering, emit: Emit<'a>) -> Self {
        Self { numbering, emit }
    }

    pub(super) fn entry(&mut self, mut entry: Entry) {
        self.numbering.assign(&mut entry);
        (self.emit)(Item::Entry(Box::new(entry)));
    }

    pub(super) fn problem(&mut self, problem: Problem) {
        (self.emit)(Item::Problem(problem));
    }
}

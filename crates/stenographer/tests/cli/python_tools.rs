//! A Python with the packages that some tests read our files with, and that stand in for a database server.
//!
//! `STENO_PYTHON_TOOLS` names the program; `scripts/check` prepares it where pip can fetch. Without it, these tests print
//! a notice and pass, unless `STENO_PYTHON_TOOLS_REQUIRED` is set.

use std::path::PathBuf;
use std::process::Command;

/// The Python program with a module; `None` without one.
pub(crate) fn python_with(module: &str) -> Option<PathBuf> {
    let is_required = std::env::var_os("STENO_PYTHON_TOOLS_REQUIRED").is_some();
    let named = std::env::var_os("STENO_PYTHON_TOOLS").map(PathBuf::from);
    let found = named.filter(|python| {
        let tried = Command::new(python).args(["-c", &format!("import {module}")]).output();
        tried.is_ok_and(|tried| tried.status.success())
    });
    if found.is_none() {
        assert!(!is_required, "{module} is required, but STENO_PYTHON_TOOLS has none");
        eprintln!("left out: STENO_PYTHON_TOOLS names no Python with {module}");
    }
    found
}

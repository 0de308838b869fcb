//! Checks, before a program is started, that the system can start it.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};

use rustix::fs::{Access, access};

use crate::process_environment::ProcessEnvironment;

/// Number of bytes of a script that the kernel reads to find its interpreter.
const MAX_INTERPRETER_LINE: u64 = 256;

/// Fails if a program, given by path or found on `PATH`, does not exist, is not executable, or is a script whose
/// interpreter does not exist.
pub(super) fn check_startable(program: &Path) -> io::Result<()> {
    let found: Vec<PathBuf> =
        candidate_paths(program).into_iter().filter(|path| path.is_file()).collect();
    if found.is_empty() {
        return Err(io::Error::new(io::ErrorKind::NotFound, "no such program"));
    }
    let Some(path) = found.iter().find(|path| access(*path, Access::EXEC_OK).is_ok()) else {
        return Err(io::Error::new(io::ErrorKind::PermissionDenied, "the file is not executable"));
    };
    match read_interpreter(path).filter(|interpreter| fs::metadata(interpreter).is_err()) {
        Some(missing) => {
            let message = format!("its interpreter {} does not exist", missing.display());
            Err(io::Error::new(io::ErrorKind::NotFound, message))
        }
        None => Ok(()),
    }
}

/// Returns the paths at which the system looks for a program.
fn candidate_paths(program: &Path) -> Vec<PathBuf> {
    if program.components().count() > 1 || program.is_absolute() {
        return vec![program.to_owned()];
    }
    let folders = ProcessEnvironment::variable("PATH").unwrap_or_default();
    std::env::split_paths(&folders).map(|folder| folder.join(program)).collect()
}

/// Returns the interpreter that the first line of a script names. A file that cannot be read has none.
fn read_interpreter(path: &Path) -> Option<PathBuf> {
    let mut head = Vec::new();
    File::open(path).ok()?.take(MAX_INTERPRETER_LINE).read_to_end(&mut head).ok()?;
    let line = head.strip_prefix(b"#!")?.split(|byte| *byte == b'\n').next()?;
    let name = line.trim_ascii().split(u8::is_ascii_whitespace).next()?;
    let name = std::str::from_utf8(name).ok().filter(|name| name.starts_with('/'))?;
    Some(PathBuf::from(name))
}

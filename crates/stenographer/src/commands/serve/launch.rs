//! Opens the page in the browser without exposing the token to other users of the machine.
//!
//! Process arguments are public, so the browser gets the path of a private file that redirects to the page. The file
//! is removed after the first visit, after a minute, or when the program stops.

use std::ffi::OsString;
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::process::Stdio;
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

use steno_web::WebServer;
use tempfile::{NamedTempFile, TempDir};

use crate::process_environment::ProcessEnvironment;
use crate::runnable_agent;

/// Time for the browser to read the file.
const LAUNCH_FILE_LIFETIME: Duration = Duration::from_secs(60);

/// A file that redirects to the page; removed when dropped.
struct LaunchFile {
    file: NamedTempFile,
    _folder: TempDir,
}

/// A launch file that is removed once, by whichever event comes first.
#[derive(Clone, Default)]
struct SharedLaunchFile(Arc<Mutex<Option<LaunchFile>>>);

impl SharedLaunchFile {
    /// Creates the file and returns its path. The lock makes `remove` wait for a file that is being created.
    fn create(&self, url: &str) -> io::Result<PathBuf> {
        let mut shared = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let created = shared.insert(LaunchFile::create(url)?);
        Ok(created.file.path().to_owned())
    }

    fn remove(&self) {
        drop(self.0.lock().unwrap_or_else(PoisonError::into_inner).take());
    }
}

/// Opens the page. Fails if no browser can be started.
pub(super) fn open_page(server: &mut WebServer) -> io::Result<()> {
    let launch_file = SharedLaunchFile::default();
    let (visited, stopped, expired) =
        (launch_file.clone(), launch_file.clone(), launch_file.clone());
    server.on_first_visit(Box::new(move || visited.remove()));
    // Set before the file exists, so that Ctrl-C always removes it. Without a handler the file stays until the system
    // removes it; its token is invalid by then.
    let _ = ctrlc::set_handler(move || {
        stopped.remove();
        std::process::exit(130);
    });
    start_browser(&launch_file.create(&server.launch_url())?)?;
    thread::spawn(move || {
        thread::sleep(LAUNCH_FILE_LIFETIME);
        expired.remove();
    });
    Ok(())
}

impl LaunchFile {
    /// Writes the file to a private folder.
    fn create(url: &str) -> io::Result<Self> {
        let mut folder = tempfile::Builder::new();
        folder.prefix("steno-");
        #[cfg(unix)]
        folder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o700));
        let runtime_dir = ProcessEnvironment::variable("XDG_RUNTIME_DIR");
        let folder = match runtime_dir.filter(|dir| Path::new(dir).is_dir()) {
            Some(runtime_dir) => folder.tempdir_in(runtime_dir)?,
            None => folder.tempdir()?,
        };
        let mut file = tempfile::Builder::new().suffix(".html").tempfile_in(folder.path())?;
        write!(
            file,
            "<!doctype html>\n<meta charset=\"utf-8\">\n<title>Steno</title>\n\
             <meta http-equiv=\"refresh\" content=\"0;url={url}\">\n<a href=\"{url}\">Open the page</a>\n"
        )?;
        file.flush()?;
        Ok(Self { file, _folder: folder })
    }
}

/// Opens a file in the system's browser.
fn start_browser(file: &Path) -> io::Result<()> {
    let (program, first) = match std::env::consts::OS {
        "macos" => ("open", None),
        "windows" => ("cmd", Some(["/c", "start", ""])),
        _ => ("xdg-open", None),
    };
    // The launcher could report it only by its exit code.
    if cfg!(unix) && !runnable_agent::is_program_installed(program) {
        return Err(io::ErrorKind::NotFound.into());
    }
    let words = [program].into_iter().chain(first.into_iter().flatten()).map(OsString::from);
    let words: Vec<OsString> = words.chain([file.into()]).collect();
    let launcher =
        runnable_agent::child_launcher().map_err(|error| io::Error::other(error.error))?;
    let mut command = launcher.detached_command(&words);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().map(drop)
}

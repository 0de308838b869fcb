//! Standard input, standard output and pipes as plain files, without buffers.

#[cfg(unix)]
pub(crate) use self::unix::{close_stdin, close_stdout, pipe_file, stdin_file, stdout_file};
#[cfg(not(unix))]
pub(crate) use self::windows::{close_stdin, close_stdout, pipe_file, stdin_file, stdout_file};

#[cfg(unix)]
mod unix {
    use std::fs::File;
    use std::io;
    use std::os::fd::{AsFd, OwnedFd};

    pub(crate) fn stdin_file() -> io::Result<File> {
        Ok(io::stdin().as_fd().try_clone_to_owned()?.into())
    }

    pub(crate) fn stdout_file() -> io::Result<File> {
        Ok(io::stdout().as_fd().try_clone_to_owned()?.into())
    }

    pub(crate) fn pipe_file(pipe: impl Into<OwnedFd>) -> File {
        pipe.into().into()
    }

    /// Closes our end of the editor's pipe, so that the editor's next write fails.
    pub(crate) fn close_stdin() {
        if let Ok(nothing) = File::open("/dev/null") {
            let _ = rustix::stdio::dup2_stdin(nothing);
        }
    }

    /// Closes our end of the editor's pipe, so that the editor reads its end.
    pub(crate) fn close_stdout() {
        if let Ok(nothing) = File::options().write(true).open("/dev/null") {
            let _ = rustix::stdio::dup2_stdout(nothing);
        }
    }
}

#[cfg(not(unix))]
mod windows {
    use std::fs::File;
    use std::io;
    use std::os::windows::io::{AsHandle, OwnedHandle};

    pub(crate) fn stdin_file() -> io::Result<File> {
        Ok(io::stdin().as_handle().try_clone_to_owned()?.into())
    }

    pub(crate) fn stdout_file() -> io::Result<File> {
        Ok(io::stdout().as_handle().try_clone_to_owned()?.into())
    }

    pub(crate) fn pipe_file(pipe: impl Into<OwnedHandle>) -> File {
        pipe.into().into()
    }

    /// Does nothing: the pipe closes when the process ends.
    pub(crate) fn close_stdin() {}

    /// Does nothing: the pipe closes when the process ends.
    pub(crate) fn close_stdout() {}
}

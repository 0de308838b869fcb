//! A tap on a pipe: the kernel lets us have what stands in the pipe a second time, and moves it on without a copy of ours.
//!
//! Only Linux has that, and only for pipes. Whatever it is not made for is passed on by reading and writing.

#[cfg(target_os = "linux")]
pub(super) use self::linux::{Tap, tap};

#[cfg(not(target_os = "linux"))]
pub(super) use self::elsewhere::{Tap, tap};

#[cfg(target_os = "linux")]
mod linux {
    use std::fs::File;
    use std::io;
    use std::os::fd::OwnedFd;

    use rustix::io::Errno;
    use rustix::pipe::{self, PipeFlags, SpliceFlags};

    /// Bytes that may stand in a tap before who collects must have come.
    const ROOM: usize = 1 << 20;

    /// Where what stands in a pipe is had a second time.
    #[derive(Debug)]
    pub(in crate::proxy) struct Tap(OwnedFd);

    /// A tap, and where what it gave is read.
    pub(in crate::proxy) fn tap() -> Option<(Tap, File)> {
        let (read, write) = pipe::pipe_with(PipeFlags::CLOEXEC).ok()?;
        // A smaller one is only fuller sooner.
        let _ = pipe::fcntl_setpipe_size(&write, ROOM);
        Some((Tap(write), read.into()))
    }

    impl Tap {
        /// Has what stands in a pipe a second time, without taking it out; says how much that is, and nothing while the
        /// tap is full or the pipe is empty.
        pub(in crate::proxy) fn take(&self, from: &File) -> io::Result<usize> {
            match pipe::tee(from, &self.0, ROOM, SpliceFlags::NONBLOCK) {
                Err(Errno::AGAIN | Errno::INTR) => Ok(0),
                other => Ok(other?),
            }
        }

        /// Moves at most so many bytes from a pipe to where they are meant for; says how many.
        pub(in crate::proxy) fn pass_on(from: &File, to: &File, count: usize) -> io::Result<usize> {
            Ok(pipe::splice(from, None, to, None, count, SpliceFlags::empty())?)
        }
    }
}

#[cfg(not(target_os = "linux"))]
mod elsewhere {
    use std::fs::File;
    use std::io;

    /// Nobody has one here.
    #[derive(Debug)]
    pub(in crate::proxy) enum Tap {}

    pub(in crate::proxy) fn tap() -> Option<(Tap, File)> {
        None
    }

    impl Tap {
        pub(in crate::proxy) fn take(&self, _: &File) -> io::Result<usize> {
            match *self {}
        }

        pub(in crate::proxy) fn pass_on(_: &File, _: &File, _: usize) -> io::Result<usize> {
            Err(io::ErrorKind::Unsupported.into())
        }
    }
}

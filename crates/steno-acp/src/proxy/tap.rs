//! A tap on a pipe: the kernel lets us have what stands in the pipe a second time, and moves it on without a copy of ours.
//!
//! Only Linux has that, and only for pipes. Whatever it is not made for is passed on by reading and writing.

#[cfg(target_os = "linux")]
pub(super) use self::linux::{Spout, Tap, tap};

#[cfg(not(target_os = "linux"))]
pub(super) use self::elsewhere::{Spout, Tap, tap};

#[cfg(target_os = "linux")]
mod linux {
    use std::fs::File;
    use std::io::{self, Read};
    use std::os::fd::OwnedFd;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    use rustix::io::Errno;
    use rustix::pipe::{self, PipeFlags, SpliceFlags};

    /// Pipes of a tap. Each is filled once and then emptied, so that one may wait for what comes next with an empty one.
    const PIPES: usize = 24;

    /// The most bytes that are asked for at a time, which is more than a pipe has.
    const ALL: usize = 1 << 20;

    /// Where what stands in a pipe is had a second time.
    #[derive(Debug)]
    pub(in crate::proxy) struct Tap {
        pipes: Vec<OwnedFd>,
        is_filled: Arc<[AtomicBool]>,
        /// The pipe that is filled next.
        next: usize,
    }

    /// Where what a tap gave is collected.
    #[derive(Debug)]
    pub(in crate::proxy) struct Spout {
        pipes: Vec<File>,
        is_filled: Arc<[AtomicBool]>,
    }

    /// A tap and its spout.
    pub(in crate::proxy) fn tap() -> Option<(Tap, Spout)> {
        let made: Result<Vec<_>, _> =
            (0..PIPES).map(|_| pipe::pipe_with(PipeFlags::CLOEXEC)).collect();
        let (read, pipes): (Vec<_>, Vec<_>) = made.ok()?.into_iter().unzip();
        let is_filled: Arc<[AtomicBool]> = (0..PIPES).map(|_| AtomicBool::new(false)).collect();
        let read = read.into_iter().map(File::from).collect();
        let spout = Spout { pipes: read, is_filled: Arc::clone(&is_filled) };
        Some((Tap { pipes, is_filled, next: 0 }, spout))
    }

    impl Spout {
        /// Takes so many bytes out of a pipe. They stand there since before it was said, so nobody waits for them.
        pub(in crate::proxy) fn collect(&self, pipe: usize, count: usize) -> Vec<u8> {
            let mut bytes = Vec::with_capacity(count);
            let _ = (&self.pipes[pipe]).take(count as u64).read_to_end(&mut bytes);
            self.is_filled[pipe].store(false, Ordering::Release);
            bytes
        }
    }

    impl Tap {
        /// Whether what would come next has no room.
        pub(in crate::proxy) fn is_full(&self) -> bool {
            self.is_filled[self.next].load(Ordering::Acquire)
        }

        /// Waits for what comes in a pipe and has it a second time, without taking it out; says in which pipe that is and how
        /// much. Nothing, and no waiting, while all are filled.
        pub(in crate::proxy) fn take(&mut self, from: &File) -> io::Result<Option<(usize, usize)>> {
            let at = self.next;
            if self.is_full() {
                return Ok(None);
            }
            match pipe::tee(from, &self.pipes[at], ALL, SpliceFlags::empty()) {
                Ok(0) | Err(Errno::INTR | Errno::AGAIN) => Ok(None),
                Ok(count) => {
                    self.is_filled[at].store(true, Ordering::Relaxed);
                    self.next = (at + 1) % PIPES;
                    Ok(Some((at, count)))
                }
                Err(error) => Err(error.into()),
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

    /// Nor this.
    #[derive(Debug)]
    pub(in crate::proxy) enum Spout {}

    pub(in crate::proxy) fn tap() -> Option<(Tap, Spout)> {
        None
    }

    impl Spout {
        pub(in crate::proxy) fn collect(&self, _: usize, _: usize) -> Vec<u8> {
            match *self {}
        }
    }

    impl Tap {
        pub(in crate::proxy) fn is_full(&self) -> bool {
            match *self {}
        }

        pub(in crate::proxy) fn take(&mut self, _: &File) -> io::Result<Option<(usize, usize)>> {
            match *self {}
        }

        pub(in crate::proxy) fn pass_on(_: &File, _: &File, _: usize) -> io::Result<usize> {
            Err(io::ErrorKind::Unsupported.into())
        }
    }
}

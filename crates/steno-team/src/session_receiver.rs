//! Writes the streams of a pushed session into a vault. Each frame is checked against its hash before.

use std::io::{self, BufRead, Cursor, Read};

use steno_vault::SessionDir;
use steno_vault::commit::VaultCommit;
use steno_vault::transfer::ReceivedFile;

use crate::frame_chain::{FrameLink, decompress};
use crate::manifest::{FileStream, SessionKey};
use crate::remote::TeamRemote;
use crate::team_error::TeamError;

/// A session that is being received.
pub(crate) struct SessionReceiver<'a> {
    pub(crate) key: &'a SessionKey,
    pub(crate) dir: &'a SessionDir,
    pub(crate) commit: VaultCommit,
}

impl SessionReceiver<'_> {
    /// Copies the frames of a stream that the session lacks. Returns the number of received bytes.
    pub(crate) fn receive_stream(
        &mut self,
        remote: &mut TeamRemote,
        stream: &FileStream,
    ) -> Result<u64, TeamError> {
        let kept = self.dir.received_length(&stream.description)?.unwrap_or(0);
        let Some(first) = frames_after(stream, kept) else {
            let reason = format!("the copy of {} does not fit", stream.description.name);
            return Err(TeamError::Damaged { session: self.key.to_string(), reason });
        };
        let frames = &stream.frames[first..];
        let mut rest = PendingFrames { remote, key: self.key, frames, error: None };
        let mut content = io::BufReader::new(FrameContentReader {
            frames: &mut rest,
            current: Cursor::default(),
        });
        let result = self.receive_content(stream, &mut content);
        match rest.error.take() {
            Some(error) => Err(error),
            None => result.map(|()| stream.length() - kept),
        }
    }

    /// Appends content to a stream of the session.
    pub(crate) fn receive_content(
        &mut self,
        stream: &FileStream,
        content: &mut dyn BufRead,
    ) -> Result<(), TeamError> {
        let description = &stream.description;
        if description.is_recording && description.generation > 0 {
            // A vault has one recording of a session.
            return Ok(());
        }
        let received = ReceivedFile { description, rest: content };
        Ok(self.dir.receive_files(&mut [received], &mut self.commit)?)
    }
}

/// The content of a frame, after its hash was checked.
pub(crate) fn read_checked(
    remote: &mut TeamRemote,
    key: &SessionKey,
    frame: &FrameLink,
) -> Result<Vec<u8>, TeamError> {
    let damaged = |reason: String| TeamError::Damaged { session: key.to_string(), reason };
    let stored = remote.read_frame(key, frame)?;
    let stored = stored.ok_or_else(|| damaged(format!("frame {} is missing", frame.hash)))?;
    decompress(&stored, frame)
        .ok_or_else(|| damaged(format!("frame {} differs from its hash", frame.hash)))
}

/// The first frame after `kept` bytes; `None` if no frame starts there.
fn frames_after(stream: &FileStream, kept: u64) -> Option<usize> {
    let mut length = 0;
    for (at, frame) in stream.frames.iter().enumerate() {
        if length == kept {
            return Some(at);
        }
        length += frame.length;
    }
    (length == kept).then_some(stream.frames.len())
}

/// The frames of a stream that are still to be received.
struct PendingFrames<'a> {
    remote: &'a mut TeamRemote,
    key: &'a SessionKey,
    frames: &'a [FrameLink],
    error: Option<TeamError>,
}

/// The content of frames as one stream of bytes.
struct FrameContentReader<'a, 'b> {
    frames: &'a mut PendingFrames<'b>,
    current: Cursor<Vec<u8>>,
}

impl Read for FrameContentReader<'_, '_> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        while self.current.position() >= self.current.get_ref().len() as u64 {
            let PendingFrames { remote, key, frames, error } = &mut *self.frames;
            let Some((frame, rest)) = frames.split_first() else { return Ok(0) };
            *frames = rest;
            match read_checked(remote, key, frame) {
                Ok(content) => self.current = Cursor::new(content),
                Err(failure) => {
                    *error = Some(failure);
                    return Err(io::Error::other("the remote failed"));
                }
            }
        }
        self.current.read(out)
    }
}

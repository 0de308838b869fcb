//! Forwards lines between editor and agent through the answerer. What the agent sends and receives is recorded; what the
//! store answers is not, because the store has it.

use std::fs::File;
use std::io;
use std::sync::{Arc, Mutex, PoisonError};

use super::{HistoryAnswerer, RoutedLines};
use crate::proxy::forward::{ForwardProgress, read_available, write_all};
use crate::recording::SideRecorder;
use steno_agents::protocols::acp::wire::AcpSide;

/// How many bytes are read at once.
const BUFFER_SIZE: usize = 64 << 10;

/// A file to which two threads write whole lines.
#[derive(Clone)]
pub(crate) struct SharedOutput(Arc<Mutex<File>>);

impl SharedOutput {
    pub(crate) fn new(file: File) -> Self {
        Self(Arc::new(Mutex::new(file)))
    }

    fn write_lines(&self, lines: &[Vec<u8>]) -> io::Result<()> {
        let file = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        lines.iter().try_for_each(|line| write_all(&file, line))
    }
}

/// Forwards the lines of one side.
pub(crate) struct HistoryForwarder {
    pub(crate) side: AcpSide,
    pub(crate) answerer: Arc<HistoryAnswerer>,
    pub(crate) recorder: SideRecorder,
    pub(crate) progress: ForwardProgress,
    pub(crate) editor: SharedOutput,
}

impl HistoryForwarder {
    /// Forwards lines from one side until it is closed. `agent` is the agent's input; the agent's own side has none.
    pub(crate) fn forward_all(mut self, from: &File, agent: Option<&File>) {
        let (mut buffer, mut rest) = (vec![0; BUFFER_SIZE], Vec::new());
        while let Ok(count @ 1..) = read_available(from, &mut buffer) {
            self.progress.note_activity(true);
            rest.extend_from_slice(&buffer[..count]);
            while let Some(end) = memchr::memchr(b'\n', &rest) {
                let line: Vec<u8> = rest.drain(..=end).collect();
                if self.forward_line(&line, agent).is_err() {
                    return;
                }
            }
            self.progress.note_activity(false);
        }
        // A line without an end is forwarded as it is. A closed receiver ends the forwarding anyway.
        let _ = self.forward_line(&rest, agent);
    }

    fn forward_line(&mut self, line: &[u8], agent: Option<&File>) -> io::Result<()> {
        if line.is_empty() {
            return Ok(());
        }
        let RoutedLines { to_agent, to_editor } = match self.side {
            AcpSide::Client => self.answerer.route_editor_line(line),
            AcpSide::Agent => {
                self.recorder.record(line);
                self.answerer.route_agent_line(line)
            }
        };
        for line in to_agent {
            self.recorder.record(&line);
            agent.map_or(Ok(()), |agent| write_all(agent, &line))?;
        }
        self.editor.write_lines(&to_editor)
    }
}

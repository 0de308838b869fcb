//! Kinds of streams between agent and editor, and large amounts of data.

use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;

use super::*;

/// Lines of a session, more than a pipe buffer holds.
fn flood() -> Vec<u8> {
    let line = |n: usize| {
        let text = "word ".repeat(n % 400);
        format!(
            "{{\"method\":\"session/update\",\"params\":{{\"sessionId\":\"s\",\"n\":{n},\"text\":\"{text}\"}}}}\n"
        )
    };
    (0..12_000).map(line).collect::<String>().into_bytes()
}

/// Sends `lines` to an echoing agent and returns everything that comes back.
fn echoed(mut input: impl Write + Send + 'static, mut output: impl Read, lines: &[u8]) -> Vec<u8> {
    let given = lines.to_vec();
    let feeder = std::thread::spawn(move || input.write_all(&given).unwrap());
    let mut heard = vec![0; lines.len()];
    output.read_exact(&mut heard).unwrap();
    feeder.join().unwrap();
    heard
}

#[test]
fn a_flood_through_pipes_is_recorded() {
    let (home, lines) = (Home::new(), flood());
    let mut steno = home.command(&["acp", "--", "cat"]);
    let mut steno = steno.stdin(Stdio::piped()).stdout(Stdio::piped()).spawn().unwrap();
    let (input, output) = (steno.stdin.take().unwrap(), steno.stdout.take().unwrap());
    assert!(echoed(input, output, &lines) == lines);
    assert_eq!(steno.wait().unwrap().code(), Some(0));
    for side in [AcpSide::Client, AcpSide::Agent] {
        assert!(kept(&home, side) == lines, "{side:?}");
    }
    home.steno(&["verify"]).ok();
}

#[test]
fn a_flood_through_sockets_is_recorded() {
    let (home, lines) = (Home::new(), flood());
    let (ours, theirs) = UnixStream::pair().unwrap();
    let theirs = OwnedFd::from(theirs);
    let mut steno = home.command(&["acp", "--", "cat"]);
    let mut steno = steno.stdin(theirs.try_clone().unwrap()).stdout(theirs).spawn().unwrap();
    let heard = echoed(ours.try_clone().unwrap(), &ours, &lines);
    assert!(heard == lines);
    ours.shutdown(std::net::Shutdown::Write).unwrap();
    assert_eq!(steno.wait().unwrap().code(), Some(0));
    for side in [AcpSide::Client, AcpSide::Agent] {
        assert!(kept(&home, side) == lines, "{side:?}");
    }
}

#[test]
fn a_flood_goes_to_a_file_that_is_appended_to() {
    let (home, lines) = (Home::new(), flood());
    let given = home.file("lines", &lines);
    let log = home.file("log", "before\n");
    let mut steno = home.command(&["acp", "--", "cat"]);
    let output = std::fs::File::options().append(true).open(&log).unwrap();
    let status = steno.stdin(std::fs::File::open(given).unwrap()).stdout(output).status().unwrap();
    assert_eq!(status.code(), Some(0));
    assert!(std::fs::read(log).unwrap() == [b"before\n", lines.as_slice()].concat());
    assert!(kept(&home, AcpSide::Agent) == lines);
}

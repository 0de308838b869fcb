"""Runs the examples of README.md with an installed program, and compares what they print. Python's standard library
only."""

import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import termios
import time
import urllib.request

# Time and size of the terminal for which the README was written.
CLOCK = "2026-01-05T09:15:32.5Z"
COLUMNS, ROWS = 100, 120
LIMIT = 30
SIZES = re.compile(r"\d+(\.\d+)? [KM]?B")
ESCAPES = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b[=>()][A-Z0-9]?|\r")


class ExampleFailure(Exception):
    """An example did not print what the page shows."""


class TerminalProgram:
    """A program whose standard output is a terminal."""

    def __init__(self, words, environment, cwd):
        self.terminal, inner = pty.openpty()
        fcntl.ioctl(inner, termios.TIOCSWINSZ, struct.pack("HHHH", ROWS, COLUMNS, 0, 0))
        self.child = subprocess.Popen(words, env=environment, cwd=cwd, stdin=inner, stdout=inner,
                                      stderr=subprocess.DEVNULL, start_new_session=True)
        os.close(inner)
        self.text = ""

    def read_until(self, is_enough):
        """Reads until the text is enough, or to the end."""
        deadline = time.monotonic() + LIMIT
        while not is_enough(self.text):
            if time.monotonic() > deadline:
                raise ExampleFailure(f"no end after {LIMIT} s: {self.text}")
            if not select.select([self.terminal], [], [], 1)[0]:
                continue
            try:
                chunk = os.read(self.terminal, 65536)
            except OSError:
                break
            if not chunk:
                break
            self.text += chunk.decode("utf-8", "replace")
        return ESCAPES.sub("", self.text)

    def press(self, keys):
        os.write(self.terminal, keys.encode())

    def end(self, stop_signal=None):
        if stop_signal:
            self.child.send_signal(stop_signal)
        code = self.child.wait(LIMIT)
        os.close(self.terminal)
        return code


def console_examples(page, heading):
    """The commands and outputs of the `console` blocks below a heading."""
    section = page.split(f"\n## {heading}\n", 1)[1].split("\n## ", 1)[0]
    examples = []
    for block in section.split("```console\n")[1:]:
        for line in block.split("```", 1)[0].splitlines():
            if line.startswith("$ "):
                examples.append((line[2:], []))
            else:
                examples[-1][1].append(line)
    return examples


def run_examples(examples, environment, cwd):
    """Runs each command in the shell. Raises an error with the first difference."""
    environment = {**environment, "TZ": "UTC", "TERM": "xterm-256color", "NO_COLOR": "1", "PAGER": "cat",
                   "STENO_NOW": CLOCK}
    for command, expected in examples:
        program = TerminalProgram(["sh", "-c", f"exec {command}"], environment, cwd)
        if command == "steno serve":
            check_server(program)
        elif command == "steno":
            check_browser(program, expected)
        else:
            got = program.read_until(lambda _: False).rstrip().splitlines()
            if program.end() or not same_lines(got, expected):
                raise ExampleFailure("\n".join([f"$ {command}", *got, "--- the page has:", *expected]))


def check_server(program):
    """The page that the server's address opens is there; the server ends when it is told to."""
    address = re.compile(r"http://127\.0\.0\.1:\d+/\?token=\S+")
    found = address.search(program.read_until(lambda text: address.search(text) and "\n" in text))
    if not found:
        raise ExampleFailure(f"no address: {program.text}")
    # The token becomes a cookie.
    browser = urllib.request.build_opener(urllib.request.HTTPCookieProcessor())
    with browser.open(found[0], timeout=LIMIT) as answer:
        if b"<html" not in answer.read().lower():
            raise ExampleFailure("the address opens no page")
    program.end(signal.SIGTERM)


def check_browser(program, expected):
    """The browser lists the sessions that the page lists, and `q` ends it."""
    titles = [line.split()[4] for line in expected if re.match(r"  \d\d-\d\d ", line)]
    seen = program.read_until(lambda text: all(title in text for title in titles) and "quit" in text)
    program.press("q")
    program.read_until(lambda _: False)
    if not titles or program.end():
        raise ExampleFailure(f"the browser shows: {seen}")


def same_lines(got, expected):
    """`...` in an expected line stands for any text. Sizes of kept files depend on the length of their paths."""
    got, expected = [[SIZES.sub("SIZE", line.rstrip()) for line in lines] for lines in (got, expected)]
    patterns = [".*".join(map(re.escape, line.split("..."))) for line in expected]
    return len(got) == len(expected) and all(map(re.fullmatch, patterns, got))

"""The good store of `scripts/tamper`, and what is done to it."""

import json, os, shutil

from store_scenarios import Step, claude_line, run_step, said

RECORDED, KEPT = ["r0", "r1", "live"], ["c0", "c1"]
AGENTS = {"r0": "rec", "r1": "rec", "live": "rec", "c0": "claude-code", "c1": "claude-code"}


def claude_session(session, count, version):
    """Prompts and answers of a Claude Code session."""
    lines = []
    for number in range(0, count, 2):
        lines.append(claude_line(session, number, f"needle {version} {number}"))
        answer = json.loads(claude_line(session, number + 1, ""))
        answer |= {"type": "assistant", "requestId": f"req{number}", "message": {
            "id": f"msg-{session}-{version}-{number}", "type": "message", "role": "assistant", "model": "claude-sonnet-4-5",
            "content": [{"type": "text", "text": f"needle answer {number}"}],
            "usage": {"input_tokens": 100, "output_tokens": 50}}}
        lines.append(json.dumps(answer) + "\n")
    return "".join(lines)


def keep(box, versions):
    """Writes Claude Code's files, each as (version, count), and syncs them."""
    folder = box.files / "projects/-w"
    folder.mkdir(parents=True, exist_ok=True)
    for session, (version, count) in versions.items():
        (folder / f"{session}.jsonl").write_text(claude_session(session, count, version))
    done(box.run("sync", box.files / "projects"))


def record(box, session, first, end, is_killed=False):
    lines = [said(f"needle {session} {number}") for number in range(first, end)]
    result = run_step(box, Step(["record", "--agent", "rec", "--session", session, "--ack"], lines, is_killed))
    if not is_killed:
        done(result)


def done(result):
    if result.code != 0:
        raise SystemExit(f"the good store could not be made: {result.err.decode()}")
    return result


def build(box, older, prepare_with=None):
    """Makes the store, with a copy of an earlier state in `older`. Gives the head that was then, if there is one."""
    box.home.mkdir(parents=True)
    current, box.steno = box.steno, str(prepare_with or box.steno)
    record(box, "r0", 0, 3)
    record(box, "r1", 0, 3)
    keep(box, {"c0": ("first", 6), "c1": ("first", 6)})
    done(box.run("annotate", "r1", "note one"))
    box.steno = current
    # The list of files of release 0.1, which nothing reads any more.
    for manifest in box.store.glob("vault/*/*/files.json"):
        manifest.unlink()
    shutil.copytree(box.store, older)
    keep(box, {"c0": ("second", 4), "c1": ("first", 10)})
    keep(box, {"c0": ("third", 6)})
    record(box, "r1", 3, 6)
    done(box.run("annotate", "r1", "note two"))
    if b"forget" in box.run("--help").out:
        forget(box)
    record(box, "live", 0, 4, is_killed=True)
    done(box.run("reindex"))
    has_heads = b"--since" in box.run("verify", "--help").out
    result = box.run("verify")
    if result.code != 0:
        raise SystemExit(f"the good store does not verify: {result.out.decode()}{result.err.decode()}")
    return done(box.run("verify", "--head")).out.decode().strip() if has_heads else None


def forget(box):
    """Forgets a session, and texts of a file and of a recording."""
    keep(box, {"c2": ("forgotten", 4)})
    done(box.run("forget", "c2", "--yes", "--reason", "a test"))
    done(box.run("forget", "--match", "needle (first 2|r0 1)$", "--yes"))


def folder(store, session):
    return store / "vault" / AGENTS[session] / session


def sealed(store, session, generation=0):
    """A session's sealed file of this generation."""
    mark = f"@{generation}.zst" if generation else ".zst"
    found = [path for path in folder(store, session).glob("*.zst") if path.name.endswith(mark)]
    found = [path for path in found if generation or "@" not in path.name]
    return found[0]


def live(store):
    return next(path for path in folder(store, "live").glob("*.live.*") if path.suffix != ".head")


def head_of(path):
    return path.with_name(path.name + ".head")


def tombstones(store):
    return store / "vault/forgotten.jsonl"


def journal(store):
    return store / "vault/journal.jsonl"


def remove(*paths):
    for path in paths:
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)


def cut(path, at_line_end):
    """Takes the last line away, or the last half of it."""
    data = path.read_bytes()
    start = data.rstrip(b"\n").rfind(b"\n") + 1
    path.write_bytes(data[:start] if at_line_end else data[:(start + len(data)) // 2])


def swap(one, other):
    aside = one.with_name(one.name + ".aside")
    one.rename(aside)
    other.rename(one)
    aside.rename(other)


def roll_back(store, older, path):
    """Puts an earlier copy of a file or folder in the place of today's."""
    remove(path)
    source = older / path.relative_to(store)
    shutil.copytree(source, path) if source.is_dir() else shutil.copy2(source, path)


def swap_lines(path):
    lines = path.read_bytes().splitlines(keepends=True)
    lines[-1], lines[-2] = lines[-2], lines[-1]
    path.write_bytes(b"".join(lines))


def truncate(path, share):
    os.truncate(path, int(path.stat().st_size * share))


def grow(path):
    with open(path, "ab") as out:
        out.write(b"\x50\x2a\x4d\x18\x04\x00\x00\x00more")


def cases():
    """Name to (what must be named, how it is done). `s` is the store, `o` the earlier copy."""
    notes = lambda s: folder(s, "r1") / "notes.jsonl"
    return {
        "recorded session deleted": ("r1", lambda s, o: remove(folder(s, "r1"))),
        "kept session deleted": ("c1", lambda s, o: remove(folder(s, "c1"))),
        "agent deleted": ("claude-code", lambda s, o: remove(s / "vault/claude-code")),
        "sealed file deleted": ("c1", lambda s, o: remove(sealed(s, "c1"))),
        "sealed record deleted": ("r0", lambda s, o: remove(sealed(s, "r0"))),
        "sealed file and list deleted": ("c1", lambda s, o: remove(sealed(s, "c1"), folder(s, "c1") / "files.json")),
        "sealed file emptied": ("c1", lambda s, o: truncate(sealed(s, "c1"), 0)),
        "sealed file cut in half": ("c1", lambda s, o: truncate(sealed(s, "c1"), 0.5)),
        "sealed file cut at the end": ("c1", lambda s, o: truncate(sealed(s, "c1"), 0.97)),
        "bytes after a sealed file": ("c1", lambda s, o: grow(sealed(s, "c1"))),
        "older sealed file": ("c1", lambda s, o: roll_back(s, o, sealed(s, "c1"))),
        "older sealed record": ("r1", lambda s, o: roll_back(s, o, sealed(s, "r1"))),
        "older session": ("r1", lambda s, o: roll_back(s, o, folder(s, "r1"))),
        "older kept session": ("c0", lambda s, o: roll_back(s, o, folder(s, "c0"))),
        "newest generation deleted": ("c0", lambda s, o: remove(sealed(s, "c0", 2))),
        "newest generation and list deleted": (
            "c0", lambda s, o: remove(sealed(s, "c0", 2), folder(s, "c0") / "files.json")),
        "middle generation deleted": ("c0", lambda s, o: remove(sealed(s, "c0", 1))),
        "first generation deleted": ("c0", lambda s, o: remove(sealed(s, "c0"))),
        "generations swapped": ("c0", lambda s, o: swap(sealed(s, "c0", 1), sealed(s, "c0", 2))),
        "stray generation": ("c0", lambda s, o: shutil.copy2(sealed(s, "c0"), folder(s, "c0") / "c0.jsonl@3.zst")),
        "stray file of another session": ("c1", lambda s, o: shutil.copy2(sealed(s, "c0"), folder(s, "c1"))),
        "stray session": ("c9", lambda s, o: shutil.copytree(folder(s, "c0"), s / "vault/claude-code/c9")),
        "sessions swapped": ("c0", lambda s, o: swap(folder(s, "c0"), folder(s, "c1"))),
        "sealed records swapped": ("r0", lambda s, o: swap(sealed(s, "r0"), sealed(s, "r1"))),
        "live log deleted": ("live", lambda s, o: remove(live(s))),
        "live log and head deleted": ("live", lambda s, o: remove(head_of(live(s)), live(s))),
        "live head deleted": ("live", lambda s, o: remove(head_of(live(s)))),
        "live log emptied": ("live", lambda s, o: truncate(live(s), 0)),
        "live log cut at a line end": ("live", lambda s, o: cut(live(s), True)),
        "live log cut in a line": ("live", lambda s, o: cut(live(s), False)),
        "notes deleted": ("notes", lambda s, o: remove(notes(s))),
        "notes and head deleted": ("notes", lambda s, o: remove(notes(s), head_of(notes(s)))),
        "notes cut at a line end": ("notes", lambda s, o: cut(notes(s), True)),
        "older notes": ("notes", lambda s, o: roll_back(s, o, notes(s))),
        "journal deleted": ("journal", lambda s, o: remove(journal(s))),
        "journal and head deleted": ("journal", lambda s, o: remove(journal(s), head_of(journal(s)))),
        "journal head deleted": ("journal", lambda s, o: remove(head_of(journal(s)))),
        "journal cut at a line end": ("journal", lambda s, o: cut(journal(s), True)),
        "journal cut in a line": ("journal", lambda s, o: cut(journal(s), False)),
        "journal lines swapped": ("journal", lambda s, o: swap_lines(journal(s))),
        "older journal": ("journal", lambda s, o: roll_back(s, o, journal(s))),
        "older journal and head": (
            "journal", lambda s, o: (roll_back(s, o, journal(s)), roll_back(s, o, head_of(journal(s))))),
        "tombstones deleted": ("forgotten", lambda s, o: remove(tombstones(s))),
        "tombstones and head deleted": ("forgotten", lambda s, o: remove(tombstones(s), head_of(tombstones(s)))),
        "tombstones cut at a line end": ("forgotten", lambda s, o: cut(tombstones(s), True)),
        "tombstones cut in a line": ("forgotten", lambda s, o: cut(tombstones(s), False)),
        "tombstones swapped": ("forgotten", lambda s, o: swap_lines(tombstones(s))),
        "forgotten session is back": ("c2", lambda s, o: shutil.copytree(folder(s, "c1"), s / "vault/claude-code/c2")),
        "older vault": ("", lambda s, o: roll_back(s, o, s / "vault")),
        "older store": ("", lambda s, o: (remove(s), shutil.copytree(o, s))),
    }


# Only a remembered head can show these, and no reader can know.
ONLY_SINCE = {"older vault", "older store"}
# The files of the vault are newer than such a journal, which is what an interrupted write looks like, too.
UNKNOWN_TO_READERS = {"older journal and head"}
# Never acknowledged: not read, not damage, but named.
INTERRUPTED = {"bytes after a sealed file"}
SINCE_OR_PLAIN = {"journal cut at a line end", "journal cut in a line", "older journal", "older journal and head"}

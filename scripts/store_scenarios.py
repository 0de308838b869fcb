"""The writing commands that `scripts/crash-states` and `scripts/faults` attack: how each is prepared and run, what it
has acknowledged, and what a reader must then find. Python's standard library only."""

import json, os, shutil, signal, subprocess, time
from dataclasses import dataclass, field
from pathlib import Path

TIMEOUT = 60


@dataclass
class Result:
    """How a command ended; a command that did not end has code 124."""

    code: int
    out: bytes
    err: bytes

    @property
    def has_panicked(self):
        return self.code in (101, 134, -6) or b"panicked at" in self.err


class Box:
    """One home folder with its store, the agents' files outside of it, and the binary under attack."""

    def __init__(self, steno, home, files):
        self.steno, self.home, self.files = str(steno), Path(home), Path(files)
        self.store = self.home / "store"
        self.panics = []
        self.more_env = {}
        # What every command is started by.
        self.tracer = []

    @property
    def env(self):
        return {"HOME": str(self.home), "STENO_HOME": str(self.store), "STENO_SYNC_AUTOMATIC": "false", "PATH": os.environ["PATH"], "TZ": "UTC",
                "TMPDIR": str(self.home), **self.identity, **self.more_env}

    @property
    def identity(self):
        """The key of a store that `encrypt` has encrypted."""
        key = self.home / "key.txt"
        return {"STENO_IDENTITY": str(key)} if key.exists() else {}

    def encrypt(self):
        """Encrypts the store, before anything is in it."""
        result = self.run("encrypt", "--new-identity", self.home / "key.txt")
        if result.code != 0:
            raise SystemExit(f"encrypt ended with {result.code}: {result.err.decode()}")

    def run(self, *args, stdin=b"", prefix=(), cwd=None):
        command = [*self.tracer, *prefix, self.steno, *map(str, args)]
        child = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                                 env=self.env, cwd=cwd or self.home, start_new_session=True)
        try:
            out, err = child.communicate(stdin, TIMEOUT)
            result = Result(child.returncode, out, err)
        except subprocess.TimeoutExpired:
            os.killpg(child.pid, signal.SIGKILL)
            out, err = child.communicate()
            result = Result(124, out, err)
        if result.has_panicked:
            self.panics.append(f"{args[0]}: {last_line(result.err)}")
        return result

    def json_lines(self, *args):
        """The JSON Lines that a command prints, and its result."""
        result = self.run(*args)
        return [json.loads(line) for line in result.out.splitlines() if line], result

    def contents(self, session):
        """What was said in a session, entry by entry; nothing if there is no such session."""
        entries, _ = self.json_lines("show", session, "--json")
        return [entry["content"] for entry in entries]

    def restored(self, session):
        """The file that `restore` gives back, or nothing."""
        target = self.home / "restored"
        shutil.rmtree(target, ignore_errors=True)
        result = self.run("restore", session, "--to", target)
        found = sorted(path for path in target.rglob("*.jsonl")) if target.exists() else []
        data = b"".join(path.read_bytes() for path in found)
        shutil.rmtree(target, ignore_errors=True)
        return data if result.code == 0 else b""


def last_line(text):
    """The last line that says something, without the paths of one run."""
    lines = [line for line in text.decode(errors="replace").splitlines() if line.strip() and "RUST_BACKTRACE" not in line]
    return lines[-1].strip()[:200] if lines else ""


@dataclass
class Step:
    """One command of a scenario. `lines` are given to its standard input one by one, each once the one before it is
    acknowledged; `is_killed` kills it then. `change` is called before it is run."""

    args: list
    lines: list = field(default_factory=list)
    is_killed: bool = False
    change: object = None
    cwd: str = None


def run_step(box, step, prefix=(), wait=True):
    """Runs a step and gives its result. Without `wait`, all lines are given at once."""
    if step.change:
        step.change(box)
    args = step.args(box) if callable(step.args) else step.args
    cwd = box.home / step.cwd if step.cwd else None
    if not (step.lines and wait):
        return box.run(*args, stdin="".join(step.lines).encode(), prefix=prefix, cwd=cwd)
    child = subprocess.Popen([*prefix, box.steno, *args], stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                             stderr=subprocess.DEVNULL, env=box.env, cwd=cwd or box.home)
    out = b""
    for line in step.lines:
        child.stdin.write(line.encode())
        child.stdin.flush()
        out += child.stdout.readline()
    if step.is_killed:
        os.kill(only_child_of(child.pid) if prefix else child.pid, signal.SIGKILL)
    child.stdin.close()
    out += child.stdout.read()
    return Result(child.wait(), out, b"")


def only_child_of(pid):
    return int(Path(f"/proc/{pid}/task/{pid}/children").read_text().split()[0])


def said(text):
    return json.dumps({"role": "user", "content": text}) + "\n"


def claude_line(session, number, text):
    """One record of a Claude Code session."""
    parent = f"{session}-{number - 1}" if number else None
    return json.dumps({
        "type": "user", "uuid": f"{session}-{number}", "parentUuid": parent, "sessionId": session,
        "timestamp": f"2026-01-01T00:{number // 60:02}:{number % 60:02}.000Z", "cwd": "/w", "version": "2.1.0",
        "gitBranch": "main", "isSidechain": False, "userType": "external",
        "message": {"role": "user", "content": text}}) + "\n"


def claude_lines(session, first, end, size=0):
    """Records of a Claude Code session; each text has about `size` bytes that do not compress well."""
    def filler(number):
        return "".join(f"{((number * 4093 + n) * 2654435761) % (1 << 32):08x}" for n in range(size // 8))
    return "".join(claude_line(session, number, f"needle {number} {filler(number)}") for number in range(first, end))


class Scenario:
    """A writing command. The store is attacked while `steps` run on what `prepare` made. A scenario's acknowledged
    level is how many records, or how many steps, were acknowledged."""

    name = ""
    # Whether each line of standard output acknowledges something, or only the end of a step.
    acknowledges_lines = False
    # Whether `search` must find all that `observe` gives.
    is_indexed = False
    # What else, beside the store, belongs to the attacked tree.
    trees = ("store",)

    def prepare(self, box):
        pass

    def finish(self, box):
        """Called once, after the steps: brings the agents' files to the state in which `again` finds them."""

    def steps(self):
        raise NotImplementedError

    def observe(self, box):
        raise NotImplementedError

    def judge(self, seen, level):
        """What is wrong with what a reader saw, given the acknowledged level; nothing if it is right."""
        raise NotImplementedError

    def again(self, box):
        """One more write of the same kind."""
        raise NotImplementedError

    def judge_again(self, before, after):
        return None if after == before + ["again"] else describe_loss(before + ["again"], after)

    def needles(self, level):
        """How many acknowledged entries have the word `needle`."""
        raise NotImplementedError

    def has_all(self, seen):
        """Whether everything that all steps wrote is there."""
        return self.judge(seen, self.top_level) is None

    def level_before(self, number):
        """The acknowledged level when this step begins."""
        steps = self.steps()[:number]
        return sum(len(step.lines) for step in steps) if self.acknowledges_lines else number

    def attacked(self, box, number, prefix):
        """Runs a step behind `prefix`; gives its result and the level that it has acknowledged."""
        result = run_step(box, self.steps()[number], prefix, wait=False)
        if result.code == 0:
            return result, self.level_before(number + 1)
        lines = result.out.count(b"\n") if self.acknowledges_lines else 0
        return result, self.level_before(number) + lines

    def succeeded(self, result, level):
        return result.code == 0

    def check_run(self, box, result, action):
        """What else is wrong with how a step ended after a fault."""
        return []

    @property
    def top_level(self):
        steps = self.steps()
        return sum(len(step.lines) for step in steps) if self.acknowledges_lines else len(steps)


def describe_loss(wanted, got):
    if len(got) < len(wanted):
        return f"lost: {len(got)} of {len(wanted)}"
    return f"doubled or changed: {len(got)} instead of {len(wanted)}"


class Record(Scenario):
    """`steno record`: each sequence number on standard output acknowledges one record."""

    acknowledges_lines = True

    def __init__(self, name, runs, kill=False, prepared=0, is_indexed=False, size=0):
        self.name, self.runs, self.kill, self.prepared = name, runs, kill, prepared
        self.is_indexed, self.size = is_indexed, size

    def texts(self, first, end):
        return [f"needle {number} " + f"{number:04}" * (self.size // 4) for number in range(first, end)]

    def prepare(self, box):
        if self.prepared:
            lines = "".join(said(text) for text in self.texts(0, self.prepared))
            box.run("record", "--session", "s", stdin=lines.encode())

    def steps(self):
        steps, first = [], self.prepared
        for index, count in enumerate(self.runs):
            lines = [said(text) for text in self.texts(first, first + count)]
            is_killed = self.kill and index == 0
            steps.append(Step(["record", "--ack", "--session", "s"], lines, is_killed))
            first += count
        return steps

    def observe(self, box):
        return box.contents("s")

    def judge(self, seen, level):
        full = self.texts(0, self.prepared + sum(self.runs))
        if seen != full[:len(seen)]:
            return f"doubled or changed: {len(seen)} entries"
        return describe_loss(full[:self.prepared + level], seen) if len(seen) < self.prepared + level else None

    def needles(self, level):
        return self.prepared + level

    def again(self, box):
        return box.run("record", "--session", "s", stdin=said("again").encode())


class Keep(Scenario):
    """`steno sync` or `steno import` of Claude Code's sessions, which grow between the steps."""

    def __init__(self, name, command, growth, sessions=1, prepared=(), size=0, is_indexed=False):
        self.name, self.command, self.growth, self.sessions = name, command, list(growth), sessions
        self.prepared, self.size, self.is_indexed = list(prepared), size, is_indexed

    @property
    def ids(self):
        return [f"s{number}" for number in range(self.sessions)]

    def text(self, session, stage):
        count = sum((self.prepared + self.growth)[:stage])
        return claude_lines(session, 0, count, self.size).encode()

    def write(self, box, stage, extra=b""):
        folder = box.files / "projects/-w"
        folder.mkdir(parents=True, exist_ok=True)
        for session in self.ids:
            (folder / f"{session}.jsonl").write_bytes(self.text(session, stage) + extra)

    def prepare(self, box):
        for stage in range(1, len(self.prepared) + 1):
            self.write(box, stage)
            box.run(self.command, str(box.files / "projects"))

    def steps(self):
        first = len(self.prepared) + 1
        def args(box):
            return [self.command, str(box.files / "projects")]
        def changes(stage):
            return lambda box: self.write(box, stage)
        return [Step(args, change=changes(first + index)) for index in range(len(self.growth))]

    @property
    def last_stage(self):
        return len(self.prepared) + len(self.growth)

    def final(self, session):
        number = sum(self.prepared + self.growth)
        return self.text(session, self.last_stage) + claude_line(session, number, "again").encode()

    def finish(self, box):
        self.write(box, self.last_stage)
        for session in self.ids:
            (box.files / "projects/-w" / f"{session}.jsonl").write_bytes(self.final(session))

    def observe(self, box):
        return {session: box.restored(session) for session in self.ids}

    def judge(self, seen, level):
        for session, data in seen.items():
            if data != self.final(session)[:len(data)]:
                return f"doubled or changed: {session} has {len(data)} bytes"
            wanted = self.text(session, len(self.prepared) + level)
            if len(data) < len(wanted):
                return f"lost: {session} has {len(data)} of {len(wanted)} bytes"
        return None

    def needles(self, level):
        return self.sessions * sum((self.prepared + self.growth)[:len(self.prepared) + level])

    def again(self, box):
        return box.run(self.command, str(box.files / "projects"))

    def judge_again(self, before, after):
        for session, data in after.items():
            if data != self.final(session):
                return f"lost: {session} has {len(data)} of {len(self.final(session))} bytes after the last {self.command}"
        return None


class Rewritten(Keep):
    """A session that its agent rewrites: each version is kept, and the last one is given back."""

    def __init__(self, name, command):
        super().__init__(name, command, [2, 3], prepared=[4], size=2000)

    def text(self, session, stage):
        count = (self.prepared + self.growth)[stage - 1]
        return claude_lines(f"{session}-{stage}", 0, count, self.size).replace(f'"sessionId": "{session}-{stage}"',
                                                                              f'"sessionId": "{session}"').encode()

    def judge(self, seen, level):
        allowed = [self.text("s0", stage) for stage in range(1 + level, self.last_stage + 1)]
        if seen["s0"] in allowed + [self.final("s0")]:
            return None
        return f"lost or changed: {len(seen['s0'])} instead of {len(allowed[0])} bytes"

    def judge_again(self, before, after):
        if after["s0"] != self.final("s0"):
            return f"lost: {len(after['s0'])} of {len(self.final('s0'))} bytes after the last {self.command}"
        return None


class Annotate(Scenario):
    """`steno annotate`: notes are added, one is taken back. Without `prepared`, the first one makes the file."""

    texts = ["zero " + "0" * 900, "one " + "1" * 3000, "two", "three " + "3" * 700]

    def __init__(self, name, prepared=0):
        self.name, self.prepared = name, prepared
        added = [self.texts[:count] for count in range(prepared, len(self.texts) + 1)]
        self.versions = added + [self.texts[1:]]

    def prepare(self, box):
        box.run("record", "--session", "s", stdin=said("needle").encode())
        for text in self.texts[:self.prepared]:
            box.run("annotate", "s", text)

    def steps(self):
        def removal(box):
            notes, _ = box.json_lines("annotate", "s", "--json")
            return ["annotate", "s", "--remove", notes[0]["id"]]
        return [Step(["annotate", "s", text]) for text in self.texts[self.prepared:]] + [Step(removal)]

    def observe(self, box):
        notes, _ = box.json_lines("annotate", "s", "--json")
        return [note["text"] for note in notes]

    def judge(self, seen, level):
        if seen in self.versions[level:]:
            return None
        return f"lost or doubled: {len(seen)} notes instead of {len(self.versions[level])}"

    def again(self, box):
        return box.run("annotate", "s", "again")


class Threads(Scenario):
    """Commands on the threads of a project."""

    name = "threads"
    trees = ("store", "project")
    versions = [[], ["one:active"], ["one:active", "told"], ["one:suspended", "told"],
                ["one:suspended", "two:active", "told"]]

    def prepare(self, box):
        (box.home / "project").mkdir()
        box.run("init", "--yes", cwd=box.home / "project")
        box.run("objective", "create", "aim", cwd=box.home / "project")

    def steps(self):
        commands = [["spawn", "one"], ["inject", "latest", "told"], ["lifecycle", "latest", "suspend"],
                    ["spawn", "two"]]
        return [Step(command, cwd="project") for command in commands]

    def observe(self, box):
        result = box.run("list", "--threads", "--json", cwd=box.home / "project")
        threads = [json.loads(line) for line in result.out.splitlines() if line]
        seen = sorted(f"{thread['title']}:{thread['status']}" for thread in threads)
        for thread in threads:
            folder = box.home / "project" / thread["storage_path"]
            seen += ["told" for path in folder.rglob("injections.log") if b"told" in path.read_bytes()]
        return seen

    def judge(self, seen, level):
        if seen in self.versions[level:]:
            return None
        return f"lost or doubled: {seen} instead of {self.versions[level]}"

    def again(self, box):
        return box.run("spawn", "again", cwd=box.home / "project")

    def judge_again(self, before, after):
        wanted = sorted(before + ["again:active"])
        return None if sorted(after) == wanted else describe_loss(wanted, after)


def age_locks(home):
    """Makes what looks like a lock folder old, as it is when a machine has started again."""
    old = time.time() - 3600
    for path in Path(home).rglob("*.lock"):
        if path.is_dir():
            os.utime(path, (old, old))


def check_store(box, scenario, level):
    """Checks a store that was interrupted: verify, read, write once more, read again. Gives pairs of (kind, text)."""
    age_locks(box.home)
    wrong = []
    def verify(when):
        result = box.run("verify")
        if result.code != 0 or b"damaged" in result.out + result.err:
            first = result.out.splitlines()[0] if result.out else result.err
            wrong.append(("alarm", f"verify {when}: {last_line(first).replace(str(box.home), '')}"))
    verify("at first")
    seen = scenario.observe(box)
    loss = scenario.judge(seen, level)
    if loss:
        wrong.append(("lost", loss))
    if scenario.is_indexed:
        wrong += check_index(box, scenario.needles(level), seen)
    result = scenario.again(box)
    if result.code != 0:
        wrong.append(("write", f"one more write ended with {result.code}: {last_line(result.err)}"))
    else:
        after = scenario.observe(box)
        loss = scenario.judge_again(seen, after)
        if loss:
            wrong.append(("lost", f"after one more write: {loss}"))
        if scenario.is_indexed:
            wrong += check_index(box, scenario.needles(level), after)
    verify("after one more write")
    wrong += [("panic", text) for text in box.panics]
    return [(kind, text.replace(str(box.home), "")) for kind, text in wrong]


def check_index(box, least, seen):
    """Whether `search` finds every acknowledged entry that has the word, and none that is not kept."""
    if isinstance(seen, dict):
        most = sum(data.count(b'"needle ') for data in seen.values())
    else:
        most = sum("needle" in text for text in seen)
    hits, _ = box.json_lines("search", "needle", "--json", "-n", "1000")
    if least <= len(hits) <= most:
        return []
    return [("index", f"search finds {len(hits)}, of {least} acknowledged and {most} kept")]

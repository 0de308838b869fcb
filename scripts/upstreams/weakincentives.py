"""What weakincentives itself does with slices: `write` appends the entries of each file on standard input to a slice in DIR,
`resave IN OUT` reads every slice and writes its items to another one. The first argument is the folder of its sources."""

import dataclasses, json, pathlib, sys, types, uuid
from datetime import datetime
from typing import Any, Literal

sys.path.insert(0, sys.argv[1])

from weakincentives.runtime.session.slices import JsonlSlice

module = types.ModuleType("weakincentives.transcript")
sys.modules[module.__name__] = module


@dataclasses.dataclass(frozen=True, slots=True)
class TranscriptEntry:
    """The seed's type, which upstream's own branch defined with the same fields."""

    role: Literal["system", "user", "assistant", "tool"]
    content: str
    created_at: datetime
    tool_name: str | None = None
    tool_call_id: str | None = None
    tool_input: dict[str, Any] | None = None
    metadata: dict[str, Any] | None = None
    entry_id: uuid.UUID = dataclasses.field(default_factory=uuid.uuid4)
    source: str = "primary"
    sequence: int = 0


TranscriptEntry.__module__ = module.__name__
module.TranscriptEntry = TranscriptEntry


def opened(path):
    return JsonlSlice(path=pathlib.Path(path), item_type=TranscriptEntry)


def write(folder):
    for name, entries in json.load(sys.stdin).items():
        items = []
        for entry in entries:
            entry["created_at"] = datetime.fromisoformat(entry["created_at"])
            entry["entry_id"] = uuid.UUID(entry["entry_id"])
            items.append(TranscriptEntry(**entry))
        opened(pathlib.Path(folder) / name).extend(items)


def resave(source, target):
    for path in sorted(pathlib.Path(source).glob("*.jsonl")):
        opened(pathlib.Path(target) / path.name).extend(opened(path).all())


{"write": write, "resave": resave}[sys.argv[2]](*sys.argv[3:])

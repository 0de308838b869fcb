"""Names, versions, licences and notices of the crates that are part of the binary. Python's standard library only."""

import json
import subprocess
from pathlib import Path

NOTICE_NAMES = ("LICENSE", "LICENCE", "COPYING", "COPYRIGHT", "NOTICE", "UNLICENSE")


def third_party_notices(root, package, target, features):
    """The text for all crates that `package` links on the target, with its features."""
    words = ["cargo", "metadata", "--locked", "--format-version", "1", "--filter-platform", target, "--features", features]
    done = subprocess.run(words, cwd=root, check=True, stdout=subprocess.PIPE, text=True)
    metadata = json.loads(done.stdout)
    crates = [crate for crate in linked_crates(metadata, package) if crate["source"]]
    crates.sort(key=lambda crate: (crate["name"], crate["version"]))
    lines = ["Steno contains these libraries:", ""]
    lines += [f"{crate['name']} {crate['version']}: {crate['license'] or 'see below'}" for crate in crates]
    notices = {}
    for crate in crates:
        for text in notice_texts(Path(crate["manifest_path"]).parent):
            notices.setdefault(text, []).append(crate["name"])
    for text, names in notices.items():
        lines += ["", "-" * 80, ", ".join(sorted(set(names))), "", text]
    return "\n".join(lines) + "\n"


def linked_crates(metadata, package):
    """The crates that are linked: neither tools of the build nor macros."""
    crates = {crate["id"]: crate for crate in metadata["packages"]}
    edges = {node["id"]: node["deps"] for node in metadata["resolve"]["nodes"]}
    waiting = [name for name, crate in crates.items() if crate["name"] == package]
    seen = set()
    while waiting:
        name = waiting.pop()
        if name in seen or any("proc-macro" in target["kind"] for target in crates[name]["targets"]):
            continue
        seen.add(name)
        waiting += [edge["pkg"] for edge in edges[name] if any(kind["kind"] is None for kind in edge["dep_kinds"])]
    return [crates[name] for name in seen]


def notice_texts(folder):
    """The licences and notices in a crate's folder, also those of C sources in it."""
    paths = sorted(path for path in folder.rglob("*") if path.name.upper().startswith(NOTICE_NAMES) and path.is_file())
    texts = [path.read_text("utf-8", "replace").replace("\r\n", "\n").strip() for path in paths]
    return [text for text in texts if text]

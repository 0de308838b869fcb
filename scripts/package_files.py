"""Files of a package in memory, and archives made of them: tar, wheel, Debian package. The same files give the same
bytes, whenever and wherever the archive is made. Python's standard library only."""

import base64
import gzip
import hashlib
import io
import lzma
import stat
import tarfile
import time
import zipfile
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

PROGRAM_MODE = 0o755


@dataclass(frozen=True)
class PackageFile:
    content: bytes
    mode: int = 0o644


def text_file(text):
    return PackageFile(text.encode())


def compressed(file):
    """The file as gzip stores it, without name and time."""
    return PackageFile(gzip.compress(file.content, 9, mtime=0))


def moved_below(folder, files):
    return {f"{folder}/{path}": file for path, file in files.items()}


def write_folder(folder, files):
    for path, file in files.items():
        target = folder / path
        target.parent.mkdir(parents=True, exist_ok=True)
        target.write_bytes(file.content)
        target.chmod(file.mode)


def parent_folders(paths):
    """All folders of the paths, each before those in it."""
    folders = {str(parent) for path in paths for parent in PurePosixPath(path).parents}
    return sorted(folders - {"."})


def tar_bytes(files, seconds, prefix=""):
    """An uncompressed tar archive that belongs to root."""
    archive = io.BytesIO()
    with tarfile.open(fileobj=archive, mode="w", format=tarfile.GNU_FORMAT) as tar:
        for folder in parent_folders(files):
            tar.addfile(tar_entry(f"{prefix}{folder}", seconds, tarfile.DIRTYPE, 0o755))
        for path in sorted(files):
            entry = tar_entry(f"{prefix}{path}", seconds, tarfile.REGTYPE, files[path].mode)
            entry.size = len(files[path].content)
            tar.addfile(entry, io.BytesIO(files[path].content))
    return archive.getvalue()


def tar_entry(name, seconds, kind, mode):
    entry = tarfile.TarInfo(name)
    entry.type, entry.mode, entry.mtime = kind, mode, seconds
    entry.uname = entry.gname = "root"
    return entry


def write_tarball(path, files, seconds):
    path.write_bytes(gzip.compress(tar_bytes(files, seconds), 9, mtime=0))


def write_wheel(folder, wheel, files, seconds):
    """Writes a wheel with the files; those of its `.dist-info` folder but for WHEEL and RECORD are among them."""
    info = f"{wheel.name}-{wheel.version}.dist-info"
    tags = "".join(f"Tag: {tag}\n" for tag in wheel.tags)
    header = f"Wheel-Version: 1.0\nGenerator: steno scripts/package\nRoot-Is-Purelib: false\n{tags}"
    files = {**files, f"{info}/WHEEL": text_file(header)}
    lines = [f"{path},{wheel_hash(file.content)},{len(file.content)}\n" for path, file in files.items()]
    files[f"{info}/RECORD"] = text_file("".join(lines) + f"{info}/RECORD,,\n")
    date = time.gmtime(seconds)[:6]
    target = folder / wheel.file_name()
    with zipfile.ZipFile(target, "w", zipfile.ZIP_DEFLATED, compresslevel=9) as archive:
        for path, file in files.items():
            entry = zipfile.ZipInfo(path, date)
            entry.create_system = 3
            entry.external_attr = (stat.S_IFREG | file.mode) << 16
            entry.compress_type = zipfile.ZIP_DEFLATED
            archive.writestr(entry, file.content)
    return target


@dataclass(frozen=True)
class WheelName:
    name: str
    version: str
    tags: tuple

    def file_name(self):
        """All tags in one, as `py3-none-A.B`."""
        platforms = ".".join(tag.rsplit("-", 1)[1] for tag in self.tags)
        return f"{self.name}-{self.version}-py3-none-{platforms}.whl"


def wheel_hash(content):
    digest = base64.urlsafe_b64encode(hashlib.sha256(content).digest())
    return "sha256=" + digest.decode().rstrip("=")


def write_deb(path, control, files, seconds):
    """Writes a Debian package: an `ar` archive of two tar archives. `control` lacks only the size."""
    size = sum(-(-len(file.content) // 1024) for file in files.values()) + len(parent_folders(files))
    sums = [f"{hashlib.md5(files[name].content).hexdigest()}  {name}\n" for name in sorted(files)]
    about = {"control": text_file(f"{control}Installed-Size: {size}\n"), "md5sums": text_file("".join(sums))}
    members = {
        "debian-binary": b"2.0\n",
        "control.tar.xz": lzma.compress(tar_bytes(about, seconds, "./")),
        "data.tar.xz": lzma.compress(tar_bytes(files, seconds, "./")),
    }
    with path.open("wb") as archive:
        archive.write(b"!<arch>\n")
        for name, content in members.items():
            archive.write(f"{name:<16}{seconds:<12}{0:<6}{0:<6}{100644:<8}{len(content):<10}`\n".encode())
            archive.write(content + b"\n" * (len(content) % 2))


def write_checksums(folder):
    """Writes SHA256SUMS for the archives in the folder."""
    names = sorted(path.name for path in folder.iterdir() if path.is_file() and path.name != "SHA256SUMS")
    lines = [f"{hashlib.sha256((folder / name).read_bytes()).hexdigest()}  {name}\n" for name in names]
    Path(folder / "SHA256SUMS").write_text("".join(lines))

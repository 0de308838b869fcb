"""Plays a trace of strace onto the modelled disk of crash_model.py."""

import os, re

from crash_model import Inode

CALLS = ("open openat creat read pread64 readv lseek write pwrite64 writev pwritev pwritev2 ftruncate truncate fallocate "
         "fsync fdatasync syncfs sync rename renameat renameat2 unlink unlinkat mkdir mkdirat rmdir link linkat symlink "
         "symlinkat copy_file_range sendfile dup dup2 dup3 fcntl close exit_group").split()
# Calls with effects that the model does not know: it refuses a trace with one on a modelled file.
UNKNOWN = {"pwritev", "pwritev2", "fallocate", "truncate", "symlink", "symlinkat", "sendfile"}

STRING = re.compile(r'"((?:\\x[0-9a-f]{2})*)"(\.\.\.)?')
DESCRIPTOR = re.compile(r'(?:^|, )(AT_FDCWD|-?\d+)(?:<([^>]*)>(\(deleted\))?)?')
COPY = re.compile(r"(\d+)<[^>]*>, (?:NULL|\[(\d+)\].*?), (\d+)<[^>]*>, (?:NULL|\[(\d+)\].*?), \d+, \d+")


def unescape(text):
    return bytes.fromhex(text.replace("\\x", ""))


class Player:
    """Plays the calls of `strace -f -y -xx` onto a disk."""

    def __init__(self, disk):
        self.disk = disk
        # Descriptor to [inode, position, appends].
        self.open = {}
        self.unfinished = {}

    def calls(self, lines):
        """Whole calls, (name, arguments, result): syncs where they begin, others where they end."""
        for line in lines:
            pid, _, rest = line.rstrip("\n").partition(" ")
            rest = rest.lstrip()
            if rest.startswith(("+++", "---")):
                continue
            if rest.endswith("<unfinished ...>"):
                start = rest[:-len("<unfinished ...>")].rstrip()
                self.unfinished[pid] = start
                if start.startswith(("fsync", "fdatasync", "syncfs", "sync(")):
                    yield start.partition("(")[0], start.partition("(")[2], 0
                continue
            if rest.startswith("<... "):
                start = self.unfinished.pop(pid)
                if start.startswith(("fsync", "fdatasync", "syncfs", "sync(")):
                    continue
                rest = start + rest.partition("resumed>")[2]
            match = re.match(r"(\w+)\((.*)\)\s+= (-?\d+|\?)", rest)
            if match:
                result = 0 if match[3] == "?" else int(match[3])
                yield match[1], match[2], result

    def path(self, arguments, index=0):
        """The n-th path of a call, absolute."""
        strings = STRING.findall(arguments)
        name = unescape(strings[index][0]).decode()
        if name.startswith("/"):
            return os.path.normpath(name)
        folders = [match for match in DESCRIPTOR.findall(arguments) if match[1]]
        base = readable(folders[min(index, len(folders) - 1)][1]) if folders else ""
        return os.path.normpath(f"{base}/{name}")

    def play(self, name, arguments, result):
        """Plays one call; gives whether it changed the disk."""
        if result < 0:
            return False
        method = getattr(self, "do_" + name, None)
        if method:
            return bool(method(arguments, result))
        descriptor = DESCRIPTOR.match(arguments)
        path = readable(descriptor[2]) if descriptor and descriptor[2] else ""
        if name in UNKNOWN and path.startswith(self.disk.root):
            raise SystemExit(f"the model does not know {name}: {arguments[:100]}")
        return False

    def touches_disk(self, arguments):
        """Whether the first descriptor is that of something below the root, still with a name."""
        descriptor = DESCRIPTOR.match(arguments)
        path = readable(descriptor[2] or "")
        return self.disk.find(path) is not None and not descriptor[3]

    def handle(self, arguments):
        return self.open.get(int(DESCRIPTOR.match(arguments)[1]))

    def do_openat(self, arguments, result):
        path = self.path(arguments)
        self.open.pop(result, None)
        place = self.disk.place(path)
        if not place and path != self.disk.root:
            return False
        inode = self.disk.find(path)
        changed = False
        if inode is None:
            if "O_CREAT" not in arguments:
                return False
            inode = Inode(False)
            self.disk.change(inode, None, place)
            changed = True
        if "O_TRUNC" in arguments and inode.data:
            inode.resize(0)
            changed = True
        self.open[result] = [inode, 0, "O_APPEND" in arguments]
        return changed

    do_open = do_creat = do_openat

    def do_close(self, arguments, result):
        self.open.pop(int(DESCRIPTOR.match(arguments)[1]), None)

    def do_dup(self, arguments, result):
        handle = self.handle(arguments)
        self.open.pop(result, None)
        if handle:
            self.open[result] = handle

    do_dup2 = do_dup3 = do_dup

    def do_fcntl(self, arguments, result):
        if "F_DUPFD" in arguments:
            self.do_dup(arguments, result)

    def do_read(self, arguments, result):
        handle = self.handle(arguments)
        if handle:
            handle[1] += result

    do_readv = do_read

    def do_lseek(self, arguments, result):
        handle = self.handle(arguments)
        if handle:
            handle[1] = result

    def do_write(self, arguments, result):
        handle = self.handle(arguments)
        if not handle:
            assert not self.touches_disk(arguments), "a write to an unknown file: " + arguments[:200]
            return False
        data = b"".join(unescape(text) for text, _ in STRING.findall(arguments))[:result]
        assert len(data) == result, arguments[:100]
        inode, position, appends = handle
        position = len(inode.data) if appends else position
        inode.write(position, data)
        handle[1] = position + result
        return True

    do_writev = do_write

    def do_pwrite64(self, arguments, result):
        handle = self.handle(arguments)
        if not handle:
            assert not self.touches_disk(arguments), "a write to an unknown file: " + arguments[:200]
            return False
        data = unescape(STRING.search(arguments)[1])[:result]
        handle[0].write(int(arguments.rsplit(", ", 1)[1]), data)
        return True

    def do_copy_file_range(self, arguments, result):
        match = COPY.fullmatch(arguments)
        source, target = self.open.get(int(match[1])), self.open.get(int(match[3]))
        if not target:
            return False
        start = int(match[2]) if match[2] else source[1]
        end = int(match[4]) if match[4] else target[1]
        target[0].write(end, bytes(source[0].data[start:start + result]))
        if not match[2]:
            source[1] += result
        if not match[4]:
            target[1] += result
        return True

    def do_ftruncate(self, arguments, result):
        handle = self.handle(arguments)
        if handle:
            handle[0].resize(int(arguments.rsplit(", ", 1)[1]))
        return handle

    def do_fsync(self, arguments, result):
        handle = self.handle(arguments)
        if not handle:
            assert not self.touches_disk(arguments), "a sync of an unknown file: " + arguments[:200]
            return False
        if handle[0].is_folder:
            self.disk.sync_folder(handle[0])
        else:
            handle[0].sync()
        return True

    do_fdatasync = do_fsync

    def do_syncfs(self, arguments, result):
        self.disk.sync_all()
        return True

    do_sync = do_syncfs

    def do_mkdir(self, arguments, result):
        place = self.disk.place(self.path(arguments))
        if place:
            self.disk.change(Inode(True), None, place)
        return place

    do_mkdirat = do_mkdir

    def do_unlink(self, arguments, result):
        place = self.disk.place(self.path(arguments))
        if place:
            self.disk.change(place[0].names[place[1]], place, None)
        return place

    do_unlinkat = do_rmdir = do_unlink

    def do_rename(self, arguments, result):
        source, target = (self.disk.place(self.path(arguments, index)) for index in (0, 1))
        if source and target:
            self.disk.change(source[0].names[source[1]], source, target)
        return source

    do_renameat = do_renameat2 = do_rename

    def do_link(self, arguments, result):
        inode, target = self.disk.find(self.path(arguments)), self.disk.place(self.path(arguments, 1))
        if inode and target:
            self.disk.change(inode, None, target)
        return inode

    do_linkat = do_link


def readable(path):
    """A path as strace prints it after a descriptor."""
    return re.sub(r"\\x([0-9a-f]{2})", lambda match: chr(int(match[1], 16)), path)

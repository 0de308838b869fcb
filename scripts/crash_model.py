"""A model of what a file system may hold after a power failure, built from a trace of real system calls.

A file's data is durable after fsync or fdatasync of it, a name after fsync of its folder. Until then each page of 4,096
bytes may hold any of its versions, or the beginning of a newer one (whole sectors of 512 bytes), a size any of its
values, and a name may be there or not; a rename is atomic. `scripts/crash-states` checks the states."""

import hashlib, os, random, re
from pathlib import Path

PAGE, SECTOR = 4096, 512

CALLS = ("open openat creat read pread64 readv lseek write pwrite64 writev pwritev pwritev2 ftruncate truncate fallocate "
         "fsync fdatasync syncfs sync rename renameat renameat2 unlink unlinkat mkdir mkdirat rmdir link linkat symlink "
         "symlinkat copy_file_range sendfile dup dup2 dup3 fcntl close exit_group").split()
# Calls whose effect the model cannot know: it refuses a trace that has one on a modelled file.
UNKNOWN = {"pwritev", "pwritev2", "fallocate", "truncate", "symlink", "symlinkat", "sendfile"}


class Inode:
    """A file or a folder: what is durable of it, and what has happened since."""

    def __init__(self, is_folder, data=b""):
        self.is_folder = is_folder
        self.data = bytearray(data)
        self.durable = bytes(data)
        self.pages = {}
        self.sizes = []
        self.names = {}
        self.durable_names = {}

    def write(self, offset, data):
        if not data:
            return
        end = offset + len(data)
        if end > len(self.data):
            self.data.extend(bytes(end - len(self.data)))
            self.sizes.append(end)
        self.data[offset:end] = data
        for page in range(offset // PAGE, (end - 1) // PAGE + 1):
            image = bytes(self.data[page * PAGE:(page + 1) * PAGE])
            self.pages.setdefault(page, []).append(image.ljust(PAGE, b"\0"))

    def resize(self, size):
        if size != len(self.data):
            if size < len(self.data):
                del self.data[size:]
            else:
                self.data.extend(bytes(size - len(self.data)))
            self.sizes.append(size)

    def sync(self):
        self.durable, self.pages, self.sizes = bytes(self.data), {}, []

    def content(self, chosen_pages, size):
        """The data with these page images on top of what is durable, cut or filled to a size."""
        data = bytearray(self.durable)
        for page, image in chosen_pages:
            end = (page + 1) * PAGE
            if len(data) < end:
                data.extend(bytes(end - len(data)))
            data[page * PAGE:end] = image
        if len(data) < size:
            data.extend(bytes(size - len(data)))
        return bytes(data[:size])


class NameChange:
    """A name that came, went or moved, not durable yet. `source` and `target` are (folder, name) or nothing."""

    def __init__(self, inode, source, target):
        self.inode, self.source, self.target = inode, source, target

    def folders(self):
        return [place[0] for place in (self.source, self.target) if place]

    def apply(self, names_of):
        if self.source:
            names = names_of(self.source[0])
            if names.get(self.source[1]) is self.inode:
                del names[self.source[1]]
        if self.target:
            names_of(self.target[0])[self.target[1]] = self.inode


class Disk:
    """The modelled tree below a real folder."""

    def __init__(self, root):
        self.root = str(root)
        self.top = self.load(Path(root))
        self.changes = []

    def load(self, path):
        if not path.is_dir():
            return Inode(False, path.read_bytes())
        inode = Inode(True)
        inode.names = {child.name: self.load(child) for child in path.iterdir()}
        inode.durable_names = dict(inode.names)
        return inode

    def place(self, path):
        """The folder and the name of a path below the root, or nothing."""
        if not path.startswith(self.root + "/"):
            return None
        *folders, name = path[len(self.root) + 1:].split("/")
        inode = self.top
        for folder in folders:
            inode = inode.names.get(folder)
            if inode is None:
                return None
        return inode, name

    def find(self, path):
        if path == self.root:
            return self.top
        place = self.place(path)
        return place and place[0].names.get(place[1])

    def change(self, inode, source, target):
        change = NameChange(inode, source, target)
        change.apply(lambda folder: folder.names)
        self.changes.append(change)

    def sync_folder(self, folder):
        kept = []
        for change in self.changes:
            if folder in change.folders():
                change.apply(lambda inode: inode.durable_names)
            else:
                kept.append(change)
        self.changes = kept

    def sync_all(self):
        for change in self.changes:
            change.apply(lambda inode: inode.durable_names)
        self.changes = []
        for _, inode in walk(self.top, lambda inode: inode.names):
            inode.sync()

    def files(self):
        """The tree as it is now: path to bytes, or to nothing for a folder."""
        return {path: None if inode.is_folder else bytes(inode.data)
                for path, inode in walk(self.top, lambda inode: inode.names)}


def walk(folder, names_of, path=""):
    for name, inode in sorted(names_of(folder).items()):
        yield path + name, inode
        if inode.is_folder:
            yield from walk(inode, names_of, path + name + "/")


class Choice:
    """One state: which of the unsynced things are there. `pick` gives 0 for absent, 1 for present, or a random
    generator's word for something in between."""

    def __init__(self, disk, pick, is_coarse):
        self.disk, self.pick, self.is_coarse = disk, pick, is_coarse

    def tree(self):
        names = {}
        def names_of(folder):
            return names.setdefault(id(folder), dict(folder.durable_names))
        for index, change in enumerate(self.disk.changes):
            if self.pick(("name", index), 2):
                change.apply(names_of)
        return {path: None if inode.is_folder else self.content(path, inode)
                for path, inode in walk(self.disk.top, names_of)}

    def content(self, path, inode):
        if not inode.pages and not inode.sizes:
            return bytes(inode.durable)
        if self.is_coarse(path):
            return bytes(inode.data) if self.pick(("file", id(inode)), 2) else inode.durable
        sizes = [len(inode.durable), *inode.sizes]
        size = sizes[self.pick(("size", id(inode)), len(sizes))]
        chosen = []
        for page, images in sorted(inode.pages.items()):
            old = inode.durable[page * PAGE:(page + 1) * PAGE].ljust(PAGE, b"\0")
            versions = [old, *images]
            image = versions[self.pick(("page", id(inode), page), len(versions))]
            torn = self.pick(("torn", id(inode), page), PAGE // SECTOR)
            if torn:
                image = image[:torn * SECTOR] + old[torn * SECTOR:]
            chosen.append((page, image))
        return inode.content(chosen, size)


def things(disk, is_coarse):
    """The unsynced things of a disk, as keys of `Choice.pick`."""
    keys = [("name", index) for index in range(len(disk.changes))]
    found = {id(inode): (path, inode) for path, inode in walk(disk.top, lambda inode: inode.durable_names)}
    found |= {id(inode): (path, inode) for path, inode in walk(disk.top, lambda inode: inode.names)}
    for key, (path, inode) in found.items():
        if is_coarse(path) and (inode.pages or inode.sizes):
            keys.append(("file", key))
        else:
            keys += [("page", key, page) for page in inode.pages]
            keys += [("size", key)] if inode.sizes else []
    return keys


def states(disk, seed, subsets, is_coarse=lambda path: False):
    """Trees that a power failure may leave now: none, all, all but one, only one, torn ones, random subsets."""
    keys = things(disk, is_coarse)
    def tree(pick):
        return Choice(disk, pick, is_coarse).tree()
    def fixed(default, other=None):
        def pick(key, count):
            if key[0] == "torn":
                return 0
            return count - 1 if (default if key != other else not default) else 0
        return pick
    yield "none", tree(fixed(False))
    yield "all", tree(fixed(True))
    if not keys:
        return
    for key in keys:
        yield f"all but {key[0]}", tree(fixed(True, key))
        yield f"only {key[0]}", tree(fixed(False, key))
    rng = random.Random(seed)
    for key in keys:
        if key[0] == "page":
            for torn in range(1, PAGE // SECTOR):
                for others in (True, False):
                    base = fixed(others) if others else fixed(False, key)
                    yield "torn page", tree(lambda k, n: torn if k == ("torn", *key[1:]) else base(k, n))
    for _ in range(subsets):
        share = rng.choice((0.2, 0.5, 0.8))
        memory = {}
        def pick(key, count):
            if key not in memory:
                if key[0] == "torn":
                    memory[key] = rng.randrange(count) if rng.random() < 0.2 else 0
                elif count > 2 and rng.random() < 0.3:
                    memory[key] = rng.randrange(count)
                else:
                    memory[key] = count - 1 if rng.random() < share else 0
            return memory[key]
        yield "subset", tree(pick)


def tree_hash(tree):
    digest = hashlib.blake2b(digest_size=16)
    for path, data in sorted(tree.items()):
        digest.update(path.encode() + (b"/" if data is None else b"\0" + hashlib.blake2b(data).digest()))
    return digest.digest()


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

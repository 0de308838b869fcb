"""A model of what a file system may hold after a power failure, built from a trace of real system calls.

A file's data is durable after fsync or fdatasync of it, a name after fsync of its folder. Until then each page of 4,096
bytes may hold any of its versions, or the beginning of a newer one (whole sectors of 512 bytes), a size any of its
values, and a name may be there or not; a rename is atomic. `scripts/crash-states` checks the states."""

import hashlib, random
from pathlib import Path

PAGE, SECTOR = 4096, 512


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

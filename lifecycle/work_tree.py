"""Adapter: the state of a git work tree, and a tree object that holds it."""

from __future__ import annotations

import os
import stat
import tempfile
from collections.abc import Iterable, Mapping
from datetime import timedelta
from pathlib import Path
from typing import NamedTuple

from lifecycle.errors import GitRefused
from lifecycle.git import Git
from lifecycle.value import Value

_GITLINK = "160000"


class Caps(Value):
    """How much a snapshot may hold. *largest_file* is for untracked files, *most_bytes* for all together."""

    largest_file: int
    most_bytes: int
    most_files: int = 20_000


class Change(NamedTuple):
    """One path that differs from HEAD. *marks* are git's two letters, `??` where it is untracked."""

    marks: str
    path: str
    is_submodule: bool = False

    @property
    def is_gone(self) -> bool:
        """Whether git found no such file. Behind a folder that became a symbolic link there may still be one."""
        return self.marks[1] == "D" or self.marks == "D."


class Stored(NamedTuple):
    """A tree object, and the paths that it lacks, each with the reason."""

    tree: str
    not_stored: dict[str, str]


class Repository:
    """One work tree. *git* runs at its top.

    Raises:
        GitRefused: from every method.
    """

    def __init__(self, git: Git) -> None:
        self.git = git
        self.root = git.folder
        self._null = "0" * (64 if git.line("rev-parse", "--show-object-format") == "sha256" else 40)

    @classmethod
    def around(cls, folder: Path, *, within: timedelta) -> Repository | None:
        """The repository whose work tree *folder* stands in, None where it stands in none."""
        git = Git(folder, within=within)
        try:
            root = git.line("rev-parse", "--show-toplevel")
        except GitRefused as error:
            found = any(os.path.lexists(above / ".git") for above in (folder, *folder.parents))
            if "must be run in a work tree" in error.detail or ("not a git repository" in error.detail and not found):
                return None
            raise
        git.folder = Path(root)
        return cls(git)

    def branch(self) -> str | None:
        return self.git.line("symbolic-ref", "--quiet", "--short", "HEAD", fails=True) or None

    def commit(self, name: str) -> str | None:
        """The commit that *name* stands for."""
        return self.git.line("rev-parse", "--quiet", "--verify", f"{name}^{{commit}}", fails=True) or None

    def changes(self) -> list[Change]:
        """All paths that differ from HEAD, in index or work tree. What happens inside submodules is not asked."""
        listed = self.git(
            "status", "--porcelain=v2", "-z", "--untracked-files=all", "--no-renames", "--ignore-submodules=dirty"
        )
        return [change for entry in listed.split(b"\0") if (change := _change(os.fsdecode(entry)))]

    def store(self, changes: Iterable[Change], caps: Caps, *, environment: Mapping[str, str] | None = None) -> Stored:
        """Write a tree: HEAD's, with every change as it lies in the work tree. *environment* is git's besides.

        Contents go through git's own conversions (line ends, encodings), never through a filter's program.
        """
        changes = list(changes)
        with tempfile.TemporaryDirectory(prefix="afresh-") as folder:
            at_hand = {**(environment or {}), "GIT_INDEX_FILE": str(Path(folder, "index"))}
            self.git("read-tree", *(["HEAD"] if self.commit("HEAD") else ["--empty"]), environment=at_hand)
            modes, not_stored = self._storable(changes, caps)
            hashes = self._hashed(modes, Path(folder), at_hand)
            lines = [f"0 {self._null}\t{change.path}" for change in changes if change.path not in not_stored]
            lines += [f"{modes[path]} {found}\t{path}" for path, found in hashes.items()]
            table = b"".join(os.fsencode(line) + b"\0" for line in lines)
            self.git("update-index", "-z", "--index-info", text=table, environment=at_hand)
            tree = self.git("write-tree", "--missing-ok", environment=at_hand)
        return Stored(tree=os.fsdecode(tree).strip(), not_stored=not_stored)

    def blob_of(self, path: str, mode: str, scratch: Path) -> str | None:
        """What git would store of *path* now, which is of *mode*; None where it is gone."""
        if _lstat(self.root / path) is None:
            return None
        return self._hashed({path: mode}, scratch, {})[path]

    def _storable(self, changes: list[Change], caps: Caps) -> tuple[dict[str, str], dict[str, str]]:
        """The mode of each changed path that can be stored, and why each other one cannot; neither where it is gone."""
        modes: dict[str, str] = {}
        not_stored: dict[str, str] = {}
        left = caps.most_bytes
        for change in changes:
            found = None if change.is_gone else _lstat(self.root / change.path)
            if change.is_submodule or (change.path.endswith("/") and found):
                not_stored[change.path] = "a repository of its own" if change.path.endswith("/") else "a submodule"
            elif found is None:
                continue
            elif len(modes) >= caps.most_files:
                not_stored[change.path] = f"more than {caps.most_files:,} files"
            elif stat.S_ISLNK(found.st_mode):
                modes[change.path] = "120000"
            elif stat.S_ISDIR(found.st_mode):
                continue  # the path of a tracked file that is gone: what lies in the folder is listed by itself
            elif not stat.S_ISREG(found.st_mode):
                not_stored[change.path] = "no regular file"
            elif change.marks == "??" and found.st_size > caps.largest_file:
                not_stored[change.path] = f"{found.st_size:,} bytes, over {caps.largest_file:,}"
            elif found.st_size > left:
                not_stored[change.path] = f"{found.st_size:,} bytes, and a snapshot takes {caps.most_bytes:,}"
            elif not os.access(self.root / change.path, os.R_OK):
                not_stored[change.path] = "it cannot be read"
            else:
                modes[change.path] = "100755" if found.st_mode & stat.S_IXUSR else "100644"
                left -= found.st_size
        self.git.left()
        return modes, not_stored

    def _hashed(self, modes: Mapping[str, str], folder: Path, environment: Mapping[str, str]) -> dict[str, str]:
        """The blob of each path, by its path. A symbolic link's content is where it points to."""
        links = [path for path, mode in modes.items() if mode == "120000"]
        files = [path for path, mode in modes.items() if mode != "120000"]
        copies = []
        for number, path in enumerate(links):
            copy = folder / f"link{number}"
            copy.write_bytes(os.fsencode((self.root / path).readlink()))
            copies.append(str(copy))
        found = dict(zip(links, self._blobs(copies, environment, raw=True), strict=True))
        try:
            blobs = self._blobs(files, environment)
        except GitRefused:
            # A file vanished meanwhile, or its declared encoding is not its own: once more, as the bytes lie there.
            files = [path for path in files if _lstat(self.root / path) is not None]
            blobs = self._blobs(files, environment, raw=True)
        return found | dict(zip(files, blobs, strict=True))

    def _blobs(self, paths: list[str], environment: Mapping[str, str], *, raw: bool = False) -> list[str]:
        if not paths:
            return []
        listed = b"".join(_quoted(os.fsencode(path)) + b"\n" for path in paths)
        options = ["--no-filters"] if raw else []
        printed = self.git("hash-object", "-w", *options, "--stdin-paths", text=listed, environment=environment)
        return printed.decode().split()


def _change(entry: str) -> Change | None:
    kind, _, rest = entry.partition(" ")
    match kind:
        case "?":
            return Change("??", rest)
        case "1":
            marks, submodule, _, _, _, _, _, path = rest.split(" ", 7)
            return Change(marks, path, submodule != "N...")
        case "u":
            marks, submodule, *_, path = rest.split(" ", 9)
            return Change(marks, path, submodule != "N...")
        case _:
            return None


def _lstat(path: Path) -> os.stat_result | None:
    try:
        return path.lstat()
    except OSError:
        return None


def _quoted(path: bytes) -> bytes:
    """As git reads a path on a line of its own: quoted like a C string where it must be."""
    if not path.startswith(b'"') and b"\n" not in path:
        return path
    escaped = path.replace(b"\\", b"\\\\").replace(b'"', b'\\"').replace(b"\n", b"\\n")
    return b'"' + escaped + b'"'

"""Real git repositories for tests."""

from __future__ import annotations

import hashlib
import os
import subprocess
from datetime import timedelta
from pathlib import Path

from lifecycle.work_tree import Caps, Repository

CAPS = Caps(largest_file=1_000, most_bytes=1_000_000)


class Tree:
    """A work tree that a test changes as a person would."""

    def __init__(self, root: Path, *, commits: bool = True) -> None:
        self.root = root
        root.mkdir(parents=True, exist_ok=True)
        self.git("init", "--quiet", "--initial-branch=main")
        if commits:
            self.write("kept.txt", "kept\n")
            self.write("src/rows.py", "rows = 1\n")
            self.write("gone.txt", "gone\n")
            self.commit()

    def git(self, *arguments: str, cwd: Path | None = None) -> str:
        environment = {
            "PATH": os.environ["PATH"],
            "HOME": os.environ["HOME"],
            "GIT_CONFIG_NOSYSTEM": "1",
            "GIT_ALLOW_PROTOCOL": "file",
            "GIT_OPTIONAL_LOCKS": "0",  # a look by the test changes nothing itself
            **{
                f"GIT_{who}_{what}": "demo@example.org" for who in ("AUTHOR", "COMMITTER") for what in ("NAME", "EMAIL")
            },
        }
        done = subprocess.run(
            ["git", *arguments], cwd=cwd or self.root, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, done.stderr
        return done.stdout

    def commit(self) -> str:
        self.git("add", "--all")
        self.git("commit", "--quiet", "--message=work")
        return self.git("rev-parse", "HEAD").strip()

    def write(self, path: str, text: str) -> Path:
        file = self.root / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
        return file

    def repository(self, *, within: float = 60) -> Repository:
        found = Repository.around(self.root, within=timedelta(seconds=within))
        assert found is not None
        return found

    def in_commit(self, commit: str) -> dict[str, str]:
        """The files of a commit with what they hold."""
        names = self.git("ls-tree", "-r", "-z", "--name-only", commit).split("\0")
        return {name: self.git("cat-file", "blob", f"{commit}:{name}") for name in names if name}

    def marks(self) -> dict[str, str]:
        """All that a snapshot must leave as it is: the git folder but for objects and our refs, and every file."""
        found = {"status": self.git("status", "--porcelain=v2", "--branch", "--untracked-files=all")}
        for path in sorted(self.root.rglob("*")):
            name = str(path.relative_to(self.root))
            if "objects" in path.parts or "refs/afresh" in name or name.endswith(("/refs", ".git")):
                continue
            if path.is_symlink():
                found[name] = str(path.readlink())
            elif path.is_file():
                found[name] = f"{hashlib.sha256(path.read_bytes()).hexdigest()} {path.stat().st_mtime_ns}"
        return found

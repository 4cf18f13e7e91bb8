"""A real PostgreSQL of one test's own, on one address, with a password."""

from __future__ import annotations

import os
import pwd
import secrets
import shutil
import signal
import subprocess
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import pytest

from lifecycle.waiting import SystemClock, wait_until
from tests.ports import free_port


class Postgres:
    """Its data lies in a folder with a short name; it refuses to run as root, so that it has an account of its own."""

    def __init__(self, root: Path, address: str) -> None:
        self.root, self.address = root, address
        self.port, self.password = free_port(address), secrets.token_hex(16)
        self.account = _account() if os.geteuid() == 0 else None
        given = root / "password"
        given.write_text(self.password)
        if self.account is not None:
            for path in (root, given):
                shutil.chown(path, self.account)
        authentication = ("-A", "scram-sha-256", "-U", "prefect", f"--pwfile={given}")
        self._run("initdb", "-D", str(root / "pg"), "-N", *authentication)
        with (root / "pg" / "pg_hba.conf").open("a") as rules:
            rules.write("host all all samenet scram-sha-256\n")
        self.log = root / "postgres.log"
        with self.log.open("wb") as output:
            self.process = subprocess.Popen(
                [
                    _program("postgres"),
                    "-D",
                    str(root / "pg"),
                    "-k",
                    str(root),
                    "-h",
                    address,
                    "-p",
                    str(self.port),
                ],
                user=self.account,
                cwd=root,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
            )

    @property
    def url(self) -> str:
        return f"postgresql+asyncpg://prefect:{self.password}@{self.address}:{self.port}/postgres"

    def is_ready(self) -> bool:
        command = [_program("pg_isready"), "-h", self.address, "-p", str(self.port)]
        return subprocess.run(command, capture_output=True, check=False, timeout=20).returncode == 0

    def end(self) -> None:
        self.process.send_signal(signal.SIGINT)
        self.process.wait(timeout=60)

    def _run(self, name: str, *arguments: str) -> None:
        done = subprocess.run(
            [_program(name), *arguments],
            user=self.account,
            cwd=self.root,
            capture_output=True,
            text=True,
            check=False,
            timeout=120,
        )
        assert done.returncode == 0, done.stdout + done.stderr


def _program(name: str) -> str:
    found = [*Path("/usr/lib/postgresql").glob(f"*/bin/{name}"), *filter(None, [shutil.which(name)])]
    if not found:
        pytest.fail(f"no {name}: `make test-operations` installs PostgreSQL")
    return str(found[0])


def _account() -> str:
    for name in ("postgres", "nobody"):
        try:
            return pwd.getpwnam(name).pw_name
        except KeyError:
            continue
    pytest.fail("PostgreSQL refuses root, and there is neither an account postgres nor nobody")


@contextmanager
def postgres(address: str = "127.0.0.1") -> Iterator[Postgres]:
    """One that listens on *address*, for whoever is on its network."""
    root = Path(tempfile.mkdtemp(prefix="afresh-pg-"))
    try:
        database = Postgres(root, address)
        try:
            wait_until(database.is_ready, timedelta(seconds=60), SystemClock())
            yield database
        finally:
            database.end()
    finally:
        shutil.rmtree(root)

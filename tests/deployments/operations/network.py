"""The network between the hosts of a test: a namespace for each where one can be made, else this machine's loopback."""

from __future__ import annotations

import ipaddress
import os
import random
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import psutil

from tests.folders import clear_abandoned, give_up, own_folder

_PREFIX = "afresh-net-"
_LOOPBACK = "127.0.0.1"
_BENCHMARKS = ipaddress.IPv4Network("198.18.0.0/15")
"""Private, and for tests of networks (RFC 2544): no office or VPN has a route of its own there."""

_NAMED = Path("/run/netns")


class Network(NamedTuple):
    """*told* says which network it is. *server* and *test* are addresses; *test* is where this process is found.

    *inside* has for each host what is put before a command that shall run there; nothing on loopback.
    """

    told: str
    is_apart: bool
    server: str
    test: str
    inside: dict[str, tuple[str, ...]]


class _NoNamespacesError(Exception):
    """Why none can be made."""


@contextmanager
def network(*hosts: str) -> Iterator[Network]:
    """A network of *hosts*, of which the one named `server` holds the switch; gone at the end, also after a failure."""
    clear_abandoned(_PREFIX, _remove)
    root = own_folder(_PREFIX)
    try:
        try:
            made = _made(root.name.removeprefix(_PREFIX), hosts)
        except _NoNamespacesError as error:
            told = f"several homes on loopback, without network namespaces: {error}"
            made = Network(told, False, _LOOPBACK, _LOOPBACK, dict.fromkeys(hosts, ()))
        yield made
    finally:
        _clear(root)
        give_up(root)


def _remove(root: Path) -> None:
    _clear(root)
    shutil.rmtree(root)


def _clear(root: Path) -> None:
    """Remove the namespaces of a run by their names; their links go with them."""
    if shutil.which("ip") is None:
        return
    for name in _NAMED.glob(f"{root.name}-*"):
        subprocess.run(["ip", "netns", "del", name.name], check=False, capture_output=True, timeout=20)
    # The kernel lets go of a namespace, and of its ends of links, some time after its last process.
    subprocess.run(["ip", "link", "del", _link(root.name)], check=False, capture_output=True, timeout=20)


def _link(run: str) -> str:
    """This process's end; a name has 15 characters at most."""
    return f"af-{run.removeprefix(_PREFIX)}"


def _made(run: str, hosts: tuple[str, ...]) -> Network:
    if os.geteuid() != 0:
        raise _NoNamespacesError("not root")  # noqa: TRY003, EM101
    for program in ("ip", "nsenter"):
        if shutil.which(program) is None:
            raise _NoNamespacesError(f"no program {program}")  # noqa: TRY003, EM102
    names = {host: f"{_PREFIX}{run}-{host}" for host in hosts}
    subnet = _free_subnet()
    test, *given = (f"{address}" for address in subnet.hosts())
    addresses = dict(zip(hosts, given, strict=False))
    for name in names.values():
        _ip("netns", "add", name)
        _ip("-n", name, "link", "set", "lo", "up")
    # The switch is not in this machine's own namespace, where rules of a firewall may hold for what passes it.
    switch = names["server"]
    _ip("-n", switch, "link", "add", "switch", "type", "bridge")
    _ip("-n", switch, "addr", "add", f"{addresses['server']}/{subnet.prefixlen}", "dev", "switch")
    _ip("-n", switch, "link", "set", "switch", "up")
    for host in (host for host in hosts if host != "server"):
        _plug(["-n", names[host]], "uplink", f"{addresses[host]}/{subnet.prefixlen}", switch, f"to-{host}"[:15])
    _plug([], _link(run), f"{test}/{subnet.prefixlen}", switch, "to-test")
    inside: dict[str, tuple[str, ...]] = {host: ("nsenter", f"--net={_NAMED / name}") for host, name in names.items()}
    for host in hosts:
        _check_way(inside[host], host, test)
    return Network(f"network namespaces on {subnet}", True, addresses["server"], test, inside)


def _free_subnet() -> ipaddress.IPv4Network:
    used = [
        ipaddress.IPv4Address(address.address)
        for addresses in psutil.net_if_addrs().values()
        for address in addresses
        if address.family == socket.AF_INET
    ]
    free = [net for net in _BENCHMARKS.subnets(new_prefix=28) if not any(address in net for address in used)]
    return random.choice(free)  # noqa: S311 - several runs on one machine shall not meet


def _plug(where: list[str], link: str, address: str, switch: str, port: str) -> None:
    """Lead a cable from *where* to a port of the switch."""
    _ip(*where, "link", "add", link, "type", "veth", "peer", "name", port, "netns", switch)
    _ip(*where, "addr", "add", address, "dev", link)
    _ip(*where, "link", "set", link, "up")
    _ip("-n", switch, "link", "set", port, "master", "switch", "up")


def _check_way(inside: tuple[str, ...], host: str, test: str) -> None:
    """Whether this process can be reached from *host*: a firewall of this machine may forbid it."""
    with socket.create_server((test, 0)) as listening:
        ask = f"import socket; socket.create_connection(({test!r}, {listening.getsockname()[1]}), 10)"
        done = subprocess.run([*inside, sys.executable, "-c", ask], check=False, capture_output=True, timeout=60)
    if done.returncode:
        raise _NoNamespacesError(f"{test} is not reached from {host}")  # noqa: TRY003, EM102


def _ip(*words: str) -> None:
    done = subprocess.run(["ip", *words], check=False, capture_output=True, text=True, timeout=20)
    if done.returncode:
        raise _NoNamespacesError(f"ip {' '.join(words)}: {done.stderr.strip()}")  # noqa: TRY003, EM102

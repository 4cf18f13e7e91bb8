"""Permissions seen for real where the tests run as root, whom no mode of a file stops otherwise.

Root is stopped like anyone by the modes of its own files, and by those of other users, once it has given up the two
rights to pass over them (capabilities(7)). Its folders, its interpreter and its processes stay its own.
"""

from __future__ import annotations

import ctypes
import os
import shutil
from collections.abc import Sequence

_VERSION = 0x20080522
_PASSING = 0b110
"""CAP_DAC_OVERRIDE and CAP_DAC_READ_SEARCH."""

ANOTHER = 65534
"""The uid of `nobody`, who owns nothing here."""


class _Header(ctypes.Structure):
    _fields_ = (("version", ctypes.c_uint32), ("pid", ctypes.c_int))


class _Rights(ctypes.Structure):
    _fields_ = (("effective", ctypes.c_uint32), ("permitted", ctypes.c_uint32), ("inheritable", ctypes.c_uint32))


def be_stopped_by_modes() -> None:
    """From here on this process is stopped by permissions as any user is; for good. Programs it starts are not."""
    if os.geteuid() != 0:
        return
    libc = ctypes.CDLL(None, use_errno=True)
    header, rights = _Header(_VERSION, 0), (_Rights * 2)()
    if libc.capget(ctypes.byref(header), rights) != 0:
        raise OSError(ctypes.get_errno(), "capget")
    rights[0].effective &= ~_PASSING
    rights[0].permitted &= ~_PASSING
    rights[0].inheritable &= ~_PASSING
    if libc.capset(ctypes.byref(header), rights) != 0:
        raise OSError(ctypes.get_errno(), "capset")


def stopped_by_modes(command: Sequence[str]) -> list[str]:
    """*command* as a program that permissions stop as they stop any user."""
    if os.geteuid() != 0:
        return [*command]
    rights = "-dac_override,-dac_read_search"
    return ["setpriv", f"--bounding-set={rights}", f"--inh-caps={rights}", "--", *command]


def why_modes_stop_nobody() -> str:
    """Why permissions cannot be tried here; empty where they can."""
    if os.geteuid() == 0 and not shutil.which("setpriv"):
        return "root, and no setpriv"
    return ""

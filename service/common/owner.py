"""The owner of a lease: a process, distinct from all earlier ones with the same pid."""

from __future__ import annotations

import os
import socket
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from secrets import token_hex


@dataclass(frozen=True)
class Owner:
    """A coordinator in a process.

    Process ids can be compared within one `machine`: one boot of one host, and one process
    namespace. Two containers may share a host name and a database file. `started` is the start of
    the process in clock ticks. `nonce` distinguishes two coordinators of one process. `lock` is the
    number of the session lock that the process holds while it runs; None without one.
    """

    machine: str
    pid: int
    started: int
    nonce: str
    lock: int | None = None

    @classmethod
    def here(cls, lock: int | None = None) -> Owner:
        """Return a new owner for this process."""
        pid = os.getpid()
        return cls(_this_machine(), pid, _start_of(pid) or 0, token_hex(4), lock)

    @classmethod
    def parse(cls, text: str) -> Owner:
        """Parse the text that `str` wrote."""
        machine, pid, started, last = text.rsplit("/", 3)
        nonce, _, lock = last.partition("+")
        return cls(machine, int(pid), int(started), nonce, int(lock) if lock else None)

    def __str__(self) -> str:
        lock = "" if self.lock is None else f"+{self.lock}"
        return f"{self.machine}/{self.pid}/{self.started}/{self.nonce}{lock}"

    def is_gone(self) -> bool:
        """Return whether the process has ended; False for processes of other machines."""
        return self.machine == _this_machine() and _start_of(self.pid) != self.started


@cache
def _this_machine() -> str:
    boot = Path("/proc/sys/kernel/random/boot_id").read_text().strip()
    pid_space = Path("/proc/self/ns/pid").readlink().name.strip("pid:[]")
    return f"{socket.gethostname()[:100]}/{boot}/{pid_space}"


def _start_of(pid: int) -> int | None:
    """Return the start of a living process in clock ticks since boot; None if it does not run."""
    try:
        stat = Path(f"/proc/{pid}/stat").read_text()
    except (FileNotFoundError, ProcessLookupError):
        return None
    # The name, in parentheses, may contain any character: count from its end. Field 3 is the state.
    fields = stat[stat.rindex(")") + 2 :].split()
    return None if fields[0] in {"Z", "X"} else int(fields[19])

"""The processes of a fleet: start and kill them, and count their processor time and memory."""

from __future__ import annotations

import os
import signal
import subprocess
import time
from collections import defaultdict
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from threading import Event, Thread

import psutil

SAMPLE_SECS = 1.0


@dataclass
class Usage:
    """The processor seconds of a role so far, and its resident bytes over time."""

    cpu_secs: float = 0.0
    samples: list[tuple[float, float, int]] = field(default_factory=list)  # at, cpu_secs, bytes

    def cpu_between(self, begin: float, end: float) -> float:
        """Return the processor seconds between two moments of `time.time`."""
        inside = [cpu_secs for at, cpu_secs, _ in self.samples if begin <= at <= end]
        return inside[-1] - inside[0] if inside else 0.0

    def growth(self, begin: float, end: float) -> float:
        """Return the memory at the end as a multiple of that after a quarter of the time."""
        inside = [num for at, _, num in self.samples if begin <= at <= end]
        tenth = max(1, len(inside) // 10)
        early = sorted(inside[len(inside) // 4 :][:tenth])
        late = sorted(inside[-tenth:])
        if not early or not early[len(early) // 2]:
            return 1.0
        return late[len(late) // 2] / early[len(early) // 2]


class Processes:
    """Processes by role, such as `scheduler` and `coordinator`; samples them from a thread.

    Args:
        folder: For their logs.
        environment: Their environment.
    """

    def __init__(self, folder: Path, environment: Mapping[str, str]) -> None:
        self._folder = folder
        self._environment = dict(environment)
        self._roots: dict[int, str] = {}
        self._popen: dict[int, subprocess.Popen[bytes]] = {}
        self._spent: dict[int, float] = {}
        self.usage: defaultdict[str, Usage] = defaultdict(Usage)
        self._is_over = Event()
        self._sampler = Thread(target=self._sample, daemon=True)
        self._sampler.start()

    def start(self, role: str, command: Sequence[str], *, session_niceness: int = 0) -> int:
        """Start a process of a role in a session with this niceness; return its id."""
        with (self._folder / f"{role}.log").open("ab") as log:
            process = subprocess.Popen(
                command, stdout=log, stderr=log, env=self._environment, start_new_session=True
            )
        with suppress(OSError):  # a kernel that does not group by session, or the process has ended
            Path(f"/proc/{process.pid}/autogroup").write_text(str(session_niceness))
        self._popen[process.pid] = process
        self.watch(role, process.pid)
        return process.pid

    def watch(self, role: str, pid: int) -> None:
        """Count a process that others started, with those below it."""
        self._roots[pid] = role

    def popen(self, pid: int) -> subprocess.Popen[bytes]:
        """Return a started process by its id."""
        return self._popen[pid]

    def kill(self, pid: int) -> None:
        """Kill a process with those below it, as if its host had lost power."""
        self._roots.pop(pid, None)
        os.killpg(pid, signal.SIGKILL)
        self._popen.pop(pid).wait()

    def log_end(self, role: str) -> str:
        """Return the end of the log of a role."""
        with suppress(FileNotFoundError):
            return (self._folder / f"{role}.log").read_text(errors="replace")[-3000:]
        return ""

    def count_errors(self, role: str, text: str) -> int:
        """Return how many lines of the log of a role contain a text."""
        with suppress(FileNotFoundError):
            return (self._folder / f"{role}.log").read_text(errors="replace").count(text)
        return 0

    def stop(self, *, patience_secs: float = 20.0) -> None:
        """End all processes: first politely."""
        for pid in self._popen:
            with suppress(ProcessLookupError):
                os.killpg(pid, signal.SIGTERM)
        end = time.monotonic() + patience_secs
        for pid, process in self._popen.items():
            try:
                process.wait(max(0.1, end - time.monotonic()))
            except subprocess.TimeoutExpired:
                with suppress(ProcessLookupError):
                    os.killpg(pid, signal.SIGKILL)
                process.wait()
        self._is_over.set()
        self._sampler.join()

    def _sample(self) -> None:
        while not self._is_over.wait(SAMPLE_SECS):
            num_bytes: defaultdict[str, int] = defaultdict(int)
            children = _children()
            for pid, role in list(self._roots.items()):
                with suppress(psutil.Error):
                    spent, used = _of_tree(psutil.Process(pid), children)
                    # Children that end take their share along until their parent has waited.
                    gain = max(0.0, spent - self._spent.get(pid, 0.0))
                    self._spent[pid] = max(spent, self._spent.get(pid, 0.0))
                    self.usage[role].cpu_secs += gain
                    num_bytes[role] += used
            now = time.time()
            for role, used in num_bytes.items():
                usage = self.usage[role]
                usage.samples.append((now, usage.cpu_secs, used))


def _children() -> Mapping[int, Sequence[psutil.Process]]:
    """Return the children of each process.

    `psutil.Process.children` would read this list for each root again: a tenth of a core, beside
    what is measured.
    """
    children: defaultdict[int, list[psutil.Process]] = defaultdict(list)
    for process in psutil.process_iter():
        with suppress(psutil.Error):
            children[process.ppid()].append(process)
    return children


def _of_tree(
    process: psutil.Process, children: Mapping[int, Sequence[psutil.Process]]
) -> tuple[float, int]:
    """Return processor seconds and private resident bytes of a process and those below it."""
    cpu_secs, num_bytes = 0.0, 0
    with suppress(psutil.Error), process.oneshot():
        times, memory = process.cpu_times(), process.memory_info()
        cpu_secs += times.user + times.system + times.children_user + times.children_system
        num_bytes += memory.rss - memory.shared
    for child in children.get(process.pid, ()):
        child_secs, child_bytes = _of_tree(child, children)
        cpu_secs += child_secs
        num_bytes += child_bytes
    return cpu_secs, num_bytes

"""Diagnosis: which error a candidate gets after its child died.

A death by SIGKILL is distinguished from others, because the kernel, or anyone on the host, may
have sent it: `explain_kill` is for those, `explain_death` for the rest.
"""

from __future__ import annotations

from pathlib import Path
from signal import SIGABRT

from compiler.runtime.measurement import ErrorKind, Measurement
from workers.child.phase_clock import PhaseClock
from workers.child.process import Death

# Of the memory limit, which is one of address space: that runs out before all of it is resident.
# Chosen, not measured.
_NEAR_LIMIT = 0.8
# Native code prints one of these before it aborts; the words depend on the library.
_OUT_OF_MEMORY_WORDS = ("out of memory", "bad_alloc", "cannot allocate memory", "MemoryError")


class OomCounter:
    """Counts the processes that the kernel has killed because the host ran out of memory."""

    def __init__(self) -> None:
        self._num_kills = 0

    def has_grown(self) -> bool:
        """Return whether the kernel killed a process since the last call."""
        before, self._num_kills = self._num_kills, _oom_kills()
        return self._num_kills > before


def explain_death(clock: PhaseClock, death: Death, used_bytes: int) -> Measurement:
    """Return the error of a candidate whose child died, or closed its pipe.

    Args:
        used_bytes: The peak memory of the candidate; 0 if it is unknown.
    """
    if death.was_alive:
        return clock.failed(ErrorKind.CRASH, f"closed the pipe to its runner{_words(death)}")
    mentions_memory = any(word in death.last_words for word in _OUT_OF_MEMORY_WORDS)
    is_near_limit = used_bytes > _NEAR_LIMIT * clock.limits.memory_bytes
    if is_near_limit or (mentions_memory and death.exit_code in (-SIGABRT, 1)):
        used = f" with {used_bytes >> 20} MiB in use" if used_bytes else ""
        reason = f"died of {death.cause}{used}{_words(death)}"
        return clock.failed(ErrorKind.OUT_OF_MEMORY, reason)
    return clock.failed(ErrorKind.CRASH, f"died of {death.cause}{_words(death)}")


def explain_kill(
    clock: PhaseClock, death: Death, *, ran_out: bool, is_last: bool
) -> Measurement | None:
    """Return the error of a candidate whose child was killed by another process.

    Args:
        ran_out: Whether the host ran out of memory meanwhile.
        is_last: Whether this was the candidate's last attempt.

    Returns:
        The measurement; None if the candidate deserves another attempt.
    """
    if ran_out:
        reason = f"was killed: the host ran out of memory{_words(death)}"
        return clock.failed(ErrorKind.OUT_OF_MEMORY, reason)
    if is_last:
        return clock.failed(ErrorKind.CRASH, "was killed by another process, twice")
    return None


def _words(death: Death) -> str:
    return f": {death.last_words}" if death.last_words else ""


def _oom_kills() -> int:
    try:
        text = Path("/proc/vmstat").read_text()
    except OSError:
        return 0
    counts = (line.split() for line in text.splitlines())
    return next((int(count) for name, count in counts if name == "oom_kill"), 0)

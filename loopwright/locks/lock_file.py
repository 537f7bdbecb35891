"""The text of a lock file: kernels with their schedules, digests and recorded times.

Equal kernels give equal bytes: kernels are sorted, the keys of an object have a fixed order, and
each line is a small piece, so that a difference between two versions can be reviewed. Each kernel
carries the digest of its own fields. Two branches that lock different kernels therefore merge.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Literal, Self

from pydantic import BaseModel, ConfigDict, Field, JsonValue, ValidationError

from compiler.ir.core.program import PrimFunc
from compiler.ir.text.printer import script
from compiler.schedule.error import TraceError
from compiler.schedule.trace.trace import Trace
from loopwright.atomic_file import atomic_file
from loopwright.errors import LockError
from service.wire.times import Interval, TimeKind

FORMAT = 1
LOCK_NAME = "loopwright.lock"
"""The usual name of a lock file."""

_WIDTH = 100
"""A list or an object that fits this many columns has one line. Chosen."""


class _LockModel(BaseModel):
    model_config = ConfigDict(frozen=True, extra="forbid", strict=True, allow_inf_nan=False)


class TimeRecord(_LockModel):
    """The time of a kernel when it was tuned, and how it was measured.

    Attributes:
        run_secs: The seconds of one run.
        kind: The statistic that `run_secs` is.
        interval: Its 95% interval; null while it is provisional.
        default_secs: The seconds of the default schedule, of the same kind and the same job; null
            if it was not measured.
        worker: The host that measured, and the process.
        toolchain: What compiled the measured kernel.
        measured_at: The time of the measurement; null if it is unknown.
    """

    run_secs: float = Field(gt=0)
    kind: TimeKind = Field(strict=False)
    interval: Interval | None = Field(strict=False)
    default_secs: float | None
    worker: str
    toolchain: str
    measured_at: str | None


class LockedKernel(_LockModel):
    """One kernel of a lock file.

    Attributes:
        name: The name of the function.
        target: The machine.
        workload_key: The structural hash of the function.
        loopwright, toolchain: The versions that built the kernel.
        code_sha256: The digest of the machine code; null if the lock was written on another CPU,
            which builds other code for the target.
        record: Its time; null if none was measured.
        script: The function, by lines.
        trace_key: The digest of the trace.
        trace: The schedule.
    """

    name: str
    target: str
    workload_key: str
    loopwright: str
    toolchain: str
    code_sha256: str | None
    record: TimeRecord | None
    script: tuple[str, ...] = Field(strict=False)
    trace_key: str
    trace: Mapping[str, JsonValue]

    def __repr__(self) -> str:
        return f"<LockedKernel {self.label}>"

    @property
    def schedule(self) -> Trace:
        """Return the schedule.

        Raises:
            LockError: If the trace is damaged.
        """
        try:
            trace = Trace.from_json(dict(self.trace))
        except TraceError as error:
            raise LockError(f"the trace of {self.name} cannot be read: {error}") from error
        if trace.key() != self.trace_key:
            raise LockError(f"the trace of {self.name} is damaged: it has another digest")
        return trace

    @property
    def label(self) -> str:
        """Return what it is, for messages: name, target and the start of its key."""
        return f"{self.name} ({self.workload_key[:12]}) for {self.target}"

    def digest(self) -> str:
        """Return the SHA-256 of its fields, as JSON with sorted keys."""
        text = json.dumps(self.model_dump(mode="json"), sort_keys=True, separators=(",", ":"))
        return hashlib.sha256(text.encode()).hexdigest()


class _SealedKernel(LockedKernel):
    """A kernel as it is written, with the digest of the other fields."""

    sha256: str

    def opened(self) -> LockedKernel:
        """Return the kernel.

        Raises:
            LockError: If its digest differs.
        """
        fields = {name: getattr(self, name) for name in LockedKernel.model_fields}
        kernel = LockedKernel(**fields)
        if kernel.digest() != self.sha256:
            raise LockError(f"{kernel.label} is damaged, or was changed by hand")
        return kernel


class _LockText(_LockModel):
    format: Literal[1]
    kernels: tuple[_SealedKernel, ...] = Field(strict=False)


class LockFile:
    """Kernels by the keys of their functions and their targets."""

    def __init__(self, kernels: Iterable[LockedKernel] = ()) -> None:
        self._kernels = {(kernel.workload_key, kernel.target): kernel for kernel in kernels}

    @property
    def kernels(self) -> tuple[LockedKernel, ...]:
        """Return the kernels, sorted by name, key and target."""
        return tuple(
            sorted(self._kernels.values(), key=lambda k: (k.name, k.workload_key, k.target))
        )

    def with_kernels(self, kernels: Iterable[LockedKernel]) -> LockFile:
        """Return the file with further kernels; they replace those of the same task."""
        return LockFile([*self._kernels.values(), *kernels])

    def of(self, workload_key: str) -> tuple[LockedKernel, ...]:
        """Return the kernels of a function, sorted by target."""
        return tuple(kernel for kernel in self.kernels if kernel.workload_key == workload_key)

    def text(self) -> str:
        """Return the text of the file."""
        kernels = [{**k.model_dump(mode="json"), "sha256": k.digest()} for k in self.kernels]
        return _printed({"format": FORMAT, "kernels": kernels}, 0) + "\n"

    def save(self, path: str | Path) -> None:
        """Write the file; readers see the earlier content or all of the new one.

        Raises:
            OSError: If it can't be written.
        """
        with atomic_file(Path(path)) as file:
            file.write(self.text().encode())

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a file.

        Raises:
            LockError: If there is none, or it is damaged.
        """
        try:
            return cls.parse(Path(path).read_bytes())
        except FileNotFoundError:
            raise LockError(
                f"there is no lock file {path}: `loopwright lock WORKLOAD -o {path}` writes one"
            ) from None
        except OSError as error:
            raise LockError(f"the lock file {path} cannot be read: {error.strerror}") from error
        except LockError as error:
            raise LockError(f"the lock file {path} cannot be used: {error}") from error

    @classmethod
    def parse(cls, content: bytes) -> Self:
        """Read the bytes of a file, which is not trusted.

        Raises:
            LockError: If it is no lock file, or damaged.
        """
        try:
            # Python's parser has no limit on depth but that of recursion.
            fields = json.loads(content)
        except (ValueError, RecursionError) as error:
            raise LockError(f"it is no JSON ({error}); is it an unfinished merge?") from error
        version = fields.get("format") if isinstance(fields, dict) else None
        if version != FORMAT:
            raise LockError(f"its format is {version!r}: this version reads {FORMAT}")
        try:
            sealed = _LockText.model_validate(fields).kernels
        except (ValidationError, RecursionError) as error:
            raise LockError(_first_flaw(error)) from error
        return cls([kernel.opened() for kernel in sealed])


def script_lines(func: PrimFunc) -> tuple[str, ...]:
    """Return the text of a function, by lines."""
    return tuple(script(func).splitlines())


def _first_flaw(error: ValidationError | RecursionError) -> str:
    if isinstance(error, RecursionError):
        return "it is nested too deeply"
    flaw = error.errors(include_url=False, include_input=False)[0]
    return f"{'.'.join(map(str, flaw['loc']))}: {flaw['msg']}"


def _printed(value: object, depth: int) -> str:
    """Return JSON, whose lists and objects are on one line if they fit it."""
    line = json.dumps(value, ensure_ascii=False)
    if not isinstance(value, list | dict) or len(line) + 2 * depth <= _WIDTH:
        return line
    indent = "  " * (depth + 1)
    if isinstance(value, dict):
        items = [f"{json.dumps(name)}: {_printed(item, depth + 1)}" for name, item in value.items()]
        opening, closing = "{", "}"
    else:
        items = [_printed(item, depth + 1) for item in value]
        opening, closing = "[", "]"
    body = ",\n".join(f"{indent}{item}" for item in items)
    return f"{opening}\n{body}\n{'  ' * depth}{closing}"

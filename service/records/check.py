"""Check a records file before an import: every line, and the references between lines."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import IO
from uuid import UUID

from pydantic import ValidationError

from compiler.schedule.error import TraceError
from compiler.schedule.trace.trace_reader import TraceReader
from compiler.target.error import TargetError
from compiler.target.target import Target
from service.common.errors import Flaw, UnprocessableError
from service.intake.request_validation import read_workload
from service.records.lines import (
    VERSION,
    AnyLine,
    BaselineLine,
    End,
    FinalLine,
    GroupLine,
    Header,
    JobLine,
    TargetLine,
    TrialLine,
    WorkloadLine,
    parse_line,
)
from service.wire.requests import Workload

MAX_LINE_BYTES = 16 << 20
_MAX_FLAWS = 20
_COMPRESSED = (b"\x1f\x8b", b"\xfd7zXZ", b"\x28\xb5\x2f\xfd", b"BZh", b"PK\x03\x04")


class _LineError(Exception):
    """The reason why a line cannot be imported."""


def refusal(flaws: Iterable[tuple[int, str]]) -> UnprocessableError:
    """Return the error of a file with invalid lines: nothing was imported."""
    messages = [Flaw(detail, line=line) for line, detail in flaws]
    lines = "; ".join(f"line {flaw.line}: {flaw.detail}" for flaw in messages)
    return UnprocessableError(f"nothing was imported: {lines}", *messages)


def lines_of(file: IO[bytes]) -> Iterator[bytes]:
    """Yield the lines of a file from its beginning; a line that is too long is cut."""
    file.seek(0)
    while line := file.readline(MAX_LINE_BYTES + 1):
        yield line
        while len(line) > MAX_LINE_BYTES and not line.endswith(b"\n"):
            line = file.readline(MAX_LINE_BYTES + 1)


def checked(lines: Iterable[bytes]) -> Iterator[tuple[int, bytes, AnyLine]]:
    """Yield the number, the text and the content of each line, as long as all are valid.

    The lines are valid only if the iteration ends without an error.

    Raises:
        UnprocessableError: If a line is invalid; lists up to twenty such lines by number.
    """
    checker = _LineChecker()
    flaws: list[tuple[int, str]] = []
    number = 0
    for number, text in enumerate(lines, start=1):
        try:
            line = _parsed(text)
            checker.see(number, line)
        except _LineError as error:
            flaws.append(
                (number, _hint(text) or str(error)) if number == 1 else (number, str(error))
            )
            if number == 1 or len(flaws) == _MAX_FLAWS:  # without a header it is no records file
                raise refusal(flaws) from None
        else:
            if not flaws:
                yield number, text, line
    if not checker.has_ended and not flaws:
        flaw = "the file is empty" if number == 0 else "the file has no end line: is it truncated?"
        flaws.append((number + 1, flaw))
    if flaws:
        raise refusal(flaws)


def _hint(head: bytes) -> str | None:
    """Return what a file is by its first bytes if it is no records file, else None."""
    if head.startswith(_COMPRESSED):
        return "the file is compressed: unpack it first, such as by gunzip, xz -d or unzstd"
    if not head.lstrip().startswith(b"{"):
        return "it is not a records header: expected JSON lines in UTF-8, without a byte order mark"
    return None


def _parsed(text: bytes) -> AnyLine:
    if len(text) > MAX_LINE_BYTES:
        raise _LineError(f"it is longer than {MAX_LINE_BYTES} bytes")
    try:
        return parse_line(text)
    except ValidationError as error:
        flaw = error.errors(include_url=False)[0]
        field = ".".join(map(str, flaw["loc"][1:]))
        reason = str(flaw["msg"]).removeprefix("Value error, ")
        if flaw["type"] == "json_invalid" and not text.endswith(b"\n"):
            reason = f"the file ends within it: is it truncated? ({reason})"
        raise _LineError(f"{field}: {reason}" if field else reason) from None


class _LineChecker:
    """Checks the lines in order; remembers what later lines may refer to."""

    def __init__(self) -> None:
        self.has_ended = False
        self._has_header = False
        self._workloads: set[str] = set()
        self._targets: set[str] = set()
        self._groups: set[UUID] = set()
        self._jobs: set[UUID] = set()
        self._job: UUID | None = None
        self._numbers: set[int] = set()
        self._candidates: set[str] = set()
        self._finals: set[tuple[int, int]] = set()
        self._libraries: set[str] = set()
        self._traces = TraceReader()

    def see(self, number: int, line: AnyLine) -> None:
        if self.has_ended:
            raise _LineError("it comes after the end line")
        if self._has_header == isinstance(line, Header):
            raise _LineError("only the first line may be the header")
        match line:
            case Header():
                self._header(line)
            case End():
                self.has_ended = True
                if line.num_lines != number - 2:
                    raise _LineError(
                        f"expected {line.num_lines} lines between header and end, got {number - 2}"
                    )
            case _:
                self._see_content(line)

    def _see_content(
        self,
        line: WorkloadLine
        | TargetLine
        | GroupLine
        | JobLine
        | TrialLine
        | FinalLine
        | BaselineLine,
    ) -> None:
        match line:
            case WorkloadLine():
                self._workload(line)
            case TargetLine():
                self._target(line)
            case GroupLine():
                self._group(line)
            case JobLine():
                self._begin(line)
            case TrialLine():
                self._trial(line)
            case FinalLine():
                self._final(line)
            case BaselineLine():
                self._baseline(line)

    def _header(self, line: Header) -> None:
        if line.version > VERSION:
            raise _LineError(
                f"the format is version {line.version}, written by Loopwright {line.loopwright};"
                f" this version reads up to {VERSION}: upgrade it"
            )
        self._has_header = True

    def _workload(self, line: WorkloadLine) -> None:
        try:
            key = read_workload(Workload(script=line.script)).key
        except UnprocessableError as error:
            raise _LineError(f"script: {error.detail}") from None
        if key != line.key:
            raise _LineError(f"key: the script is workload {key}, not {line.key}")
        if key in self._workloads:
            raise _LineError(f"key: workload {key} is a duplicate")
        self._workloads.add(key)

    def _target(self, line: TargetLine) -> None:
        _check_target(line.name, "name")
        if line.name in self._targets:
            raise _LineError(f"name: target {line.name!r} is a duplicate")
        self._targets.add(line.name)

    def _group(self, line: GroupLine) -> None:
        if line.id in self._groups:
            raise _LineError(f"id: group {line.id} is a duplicate")
        self._groups.add(line.id)

    def _begin(self, line: JobLine) -> None:
        # Lines below an invalid job are not reported again for that reason.
        self._job, self._numbers, self._candidates = line.id, set(), set()
        self._finals, self._libraries = set(), set()
        if line.id in self._jobs:
            raise _LineError(f"id: job {line.id} is a duplicate")
        self._jobs.add(line.id)
        if line.workload_key not in self._workloads:
            raise _LineError(f"workload_key: no line above has workload {line.workload_key}")
        _check_target(line.target, "target")
        if line.group_id is not None and line.group_id not in self._groups:
            raise _LineError(f"group_id: no line above has group {line.group_id}")

    def _trial(self, line: TrialLine) -> None:
        self._belongs(line.job_id)
        try:
            self._traces.read(line.trace)
        except TraceError as error:
            raise _LineError(f"trace: {error}") from None
        # The key is in the form of the version that measured it, which may differ from the current
        # form.
        if line.number in self._numbers or line.candidate_key in self._candidates:
            raise _LineError(f"number: trial {line.number}, or its candidate, is a duplicate")
        self._numbers.add(line.number)
        self._candidates.add(line.candidate_key)

    def _final(self, line: FinalLine) -> None:
        self._belongs(line.job_id)
        if line.number not in self._numbers:
            raise _LineError(f"number: no line above has trial {line.number} of this job")
        if (line.finish, line.number) in self._finals:
            raise _LineError(f"number: finish {line.finish} had trial {line.number} before")
        self._finals.add((line.finish, line.number))

    def _baseline(self, line: BaselineLine) -> None:
        self._belongs(line.job_id)
        if line.trial_number not in self._numbers:
            raise _LineError(
                f"trial_number: no line above has trial {line.trial_number} of this job"
            )
        if line.library in self._libraries:
            raise _LineError(f"library: the job had {line.library!r} before")
        self._libraries.add(line.library)

    def _belongs(self, job_id: UUID) -> None:
        if job_id != self._job:
            raise _LineError(f"job_id: the job above is {self._job}, not {job_id}")


def _check_target(text: str, field: str) -> None:
    try:
        name = Target(text).name
    except TargetError as error:
        raise _LineError(f"{field}: {error}") from None
    if name != text:
        raise _LineError(f"{field}: {text!r} is written {name!r}")

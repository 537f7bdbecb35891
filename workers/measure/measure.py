"""Measure a candidate in this process: build it, compare it with the oracle, time it.

A failure is a measurement with an error, never an exception. The runner detects crashes and hangs,
which can't be caught; so each phase is announced as it begins.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import asdict, replace
from typing import Any

from compiler.backends.backend import backend_of
from compiler.backends.error import BuildError, DeviceFaultError, KernelFaultError
from compiler.backends.module import Module
from compiler.backends.trial_arrays import TrialArrays, WrongResultError
from compiler.bounded_cache import BoundedCache
from compiler.driver import compile_kernel
from compiler.executor.artifact import Artifact
from compiler.executor.error import ArtifactError
from compiler.ir.analysis.structural import structural_hash
from compiler.ir.analysis.symbols import timed_at
from compiler.ir.core.program import PrimFunc
from compiler.ir.interpret.oracle.oracle import OracleError
from compiler.ir.modules.inline_calls import only_entry
from compiler.ir.text.one_line import describe_func
from compiler.runtime.measurement import ErrorKind, Measurement
from compiler.runtime.resources import KernelResources
from compiler.schedule.error import ScheduleError, TraceError
from compiler.schedule.trace.trace import Trace
from compiler.schedule.trace_prefix_cache import TracePrefixCache
from compiler.script.error import ScriptError
from compiler.script.parser import parse, parse_module
from compiler.target.error import TargetError
from compiler.target.target import Target
from workers.libraries.library import LibraryError
from workers.libraries.load import Load, load_library
from workers.measure.build_cache import BuildCache
from workers.measure.compare import Announce, Build, CompareRequest, FaultError, compare
from workers.measure.prepared import PreparedWorkloads
from workers.measure.seat import CandidateSeat, LibrarySeat
from workers.measure.timed_run import load_kernel
from workers.wire.built import BuiltCandidate
from workers.wire.frames import Message
from workers.wire.phase import Phase
from workers.wire.request import MeasureRequest, SeatRequest

_BEGINNINGS = TracePrefixCache()
_MAX_KERNELS = 64
"""Kernels of symbolic programs that are kept: as many as are timed at one size. Chosen."""
_KERNELS: BoundedCache[tuple[str, str, str], Artifact] = BoundedCache(_MAX_KERNELS)
_MAX_PROGRAMS = 4
"""Programs whose candidates are built without measuring them: a group interleaves several. Chosen.
"""
_MESSAGE_CHARS = 4000
"""Limit of an error message, which the store holds for each failed trial. Chosen."""
# Errors that a build may raise by design; any other one is a bug of ours.
_REFUSALS = (
    *(BuildError, LibraryError, OracleError, ScheduleError, ScriptError, TargetError, TraceError),
)


def build_candidate(func: PrimFunc, trace: str, target: Target) -> Artifact:
    """Replay a trace on a program and compile the result.

    A kernel of a symbolic program runs at all sizes that the program is timed at, so it is kept.

    Args:
        func: The program.
        trace: The trace as JSON; or `{"module": TEXT}`, a module whose entry computes the program.
        target: The target.

    Raises:
        ValueError: If the text is not JSON.
        TraceError: If it is not a trace, or the entry of the module takes other parameters.
        ScheduleError: If the trace does not apply.
        BuildError: If the program does not compile.
    """
    program = timed_at(func, {})
    if program is func:
        return _compiled(func, trace, target)
    key = (structural_hash(program), trace, target.name)
    artifact = _KERNELS.get(key)
    if artifact is None:
        artifact = _compiled(program, trace, target)
        _KERNELS.put(key, artifact)
    return artifact


def _compiled(func: PrimFunc, text: str, target: Target) -> Artifact:
    match json.loads(text):
        case {"module": str(module_text)}:
            module = parse_module(module_text)
            entry = only_entry(module)
            if describe_func(entry) != describe_func(func):
                raise TraceError(
                    "module", f"the module takes {describe_func(entry)}, not {describe_func(func)}"
                )
            return compile_kernel(module, target)
        case instructions:
            schedule = _BEGINNINGS.apply(Trace.from_json(instructions), func)
    # A kernel of the workload is called with the workload's arrays.
    schedule.require_own_layouts()
    return compile_kernel(schedule, target)


class CandidateMeasurer:
    """Measures candidates; caches the data of their workloads.

    Args:
        build: Makes the artifact of a candidate.
        slots: The memory files of a `workers.measure.shared_arrays.SharedArrays`, for data that
            should outlive this process.
        load: Loads a library by its name.

    Attributes:
        has_lost_device: Whether a kernel made the device unusable for this process.
    """

    def __init__(
        self,
        build: Build = build_candidate,
        slots: Sequence[int] = (),
        load: Load = load_library,
    ) -> None:
        self._build = BuildCache(build)
        self._load = load
        self._prepared = PreparedWorkloads(slots)
        self._programs: BoundedCache[str, PrimFunc] = BoundedCache(_MAX_PROGRAMS)
        self._seat: CandidateSeat | LibrarySeat | None = None
        self.has_lost_device = False

    def build(self, request: MeasureRequest) -> Message:
        """Build the only candidate of a request, for another process that measures it.

        Returns:
            The candidate as `{"built": ...}`, or the error as `{"measurement": ...}`.
        """
        (trace,) = request.traces
        # Not wall time: this process may be suspended meanwhile.
        start = time.process_time()
        try:
            target = Target(request.target)
            artifact = self._build(self._program(request.workload, target), trace, target)
            built = BuiltCandidate.of(artifact, time.process_time() - start)
        except Exception as error:
            failure = replace(self._failure(error), build_secs=time.process_time() - start)
            return {"measurement": failure.to_json()}
        return {"built": asdict(built)}

    def measure(
        self,
        request: MeasureRequest,
        announce: Callable[[Phase], None] = lambda _: None,
        built: BuiltCandidate | None = None,
    ) -> Measurement:
        """Measure the only candidate of a request.

        Args:
            request: The candidate, its workload and its target.
            announce: Called as each phase begins.
            built: Its artifact, if another process built it.
        """
        (trace,) = request.traces
        clock = _PhaseClock(announce)
        module: Module | None = None
        resources: KernelResources | None = None
        try:
            target = Target(request.target)
            prepared = self._prepare(request.workload, target, clock.enter)
            clock.enter(Phase.BUILD)
            if built is None:
                artifact = self._build(prepared.func, trace, target)
            else:
                artifact = built.load()
                self._build.keep(prepared.func, trace, target, artifact)
            resources = backend_of(target).resources(artifact)
            module, arguments = load_kernel(artifact, prepared)
            measurement = _check_and_time(module, arguments, prepared, request, resources, clock)
            resources = measurement.resources
        except Exception as error:
            measurement = self._failure(error)
        finally:
            if module is not None:
                module.close()
        stamped = replace(clock.stamp(measurement), resources=resources)
        ahead_secs = 0.0 if built is None else built.build_secs
        return replace(stamped, build_secs=stamped.build_secs + ahead_secs)

    def compare(self, request: CompareRequest, announce: Announce) -> Iterator[Message]:
        """Time the contestants of a request side by side; yield the events.

        That is `{"samples": ...}`, by index, for a round, and
        `{"fault": ..., "contestant": ...}` for a contestant that dropped out.

        Args:
            announce: Called as each phase begins, with the contestant that is in it.
        """
        try:
            prepared = self._prepare(
                request.workload, Target(request.target), lambda phase: announce(phase, None)
            )
        except Exception as error:
            for index in range(request.num_contestants):
                yield {"fault": self._failure(error).to_json(), "contestant": index}
            return
        for outcome in compare(request, prepared, self._build, announce):
            if isinstance(outcome, FaultError):
                assert isinstance(outcome.__cause__, Exception), outcome
                fault = self._failure(outcome.__cause__)
                yield {"fault": fault.to_json(), "contestant": outcome.index}
            else:
                yield {"samples": {str(index): secs for index, secs in outcome.samples.items()}}

    def sit(self, request: SeatRequest, announce: Announce) -> Message:
        """Prepare the only contestant of this process; return its facts, or its fault."""
        try:
            prepared = self._prepare(
                request.workload, Target(request.target), lambda phase: announce(phase, None)
            )
            if request.library:
                _require_libraries(request)
                self._seat = LibrarySeat(request, prepared, announce, self._load)
            else:
                self._seat = CandidateSeat(request, prepared, announce, self._build)
            return {"seated": self._seat.facts()}
        except Exception as error:
            return {"fault": self._failure(error).to_json()}

    def turn(self, number: int, num_threads: int) -> Message:
        """Time the contestant of this process; return its seconds, or its fault."""
        assert self._seat is not None, "it was seated before"
        try:
            return {"secs": self._seat.turn(number, num_threads)}
        except Exception as error:
            return {"fault": self._failure(error).to_json()}

    def _failure(self, error: Exception) -> Measurement:
        self.has_lost_device |= isinstance(error, DeviceFaultError)
        kind, message = _explain(error)
        return Measurement(error=kind, message=message[:_MESSAGE_CHARS])

    def _program(self, workload: str, target: Target) -> PrimFunc:
        """Return the program of a workload; the one that is measured, if this process does that.

        Caches of artifacts and of prefixes are for one object.
        """
        prepared = self._prepared.find(workload, target)
        if prepared is not None:
            return prepared.func
        func = self._programs.get(workload)
        if func is None:
            func = parse(workload)
            self._programs.put(workload, func)
        return func

    def _prepare(
        self, workload: str, target: Target, announce: Callable[[Phase], None]
    ) -> TrialArrays:
        prepared = self._prepared.find(workload, target)
        if prepared is None:
            announce(Phase.ORACLE)
            try:
                prepared = self._prepared.add(workload, target)
            except MemoryError as error:
                raise MemoryError(f"the oracle can't hold the expected result: {error}") from error
        return prepared


def _require_libraries(request: SeatRequest) -> None:
    """Refuse a library beside kernels that run on another machine.

    Raises:
        LibraryError: If the kernels of the target run elsewhere.
    """
    if not backend_of(Target(request.target)).runs_libraries:
        raise LibraryError(f"{request.library} does not run on the device of {request.target}")


def _check_and_time(  # noqa: PLR0917
    module: Module,
    arguments: Sequence[Any],
    prepared: TrialArrays,
    request: MeasureRequest,
    resources: KernelResources | None,
    clock: _PhaseClock,
) -> Measurement:
    backend, num_threads = backend_of(Target(request.target)), module.num_threads
    clock.enter(Phase.CHECK)
    run = module.bind(*arguments)
    first_secs = backend.time_calls(run, num_threads, 1)
    max_error = prepared.check()
    clock.enter(Phase.TIME)
    samples = backend.sample(run, num_threads, first_secs, request.incumbent_secs)
    # A race may spare the first run.
    prepared.check_again()
    if resources is not None:
        resources = replace(resources, bank_conflicts=backend.bank_conflicts(run))
    return Measurement(
        run_secs=samples.secs,
        max_error=max_error,
        is_spot_checked=prepared.is_spot_checked,
        conditions=samples.conditions,
        resources=resources,
    )


def _explain(error: Exception) -> tuple[ErrorKind, str]:
    match error:
        case WrongResultError():
            return ErrorKind.WRONG_RESULT, str(error)
        case MemoryError():
            return ErrorKind.OUT_OF_MEMORY, f"no memory left under the limit: {error}"
        case ArtifactError() | KernelFaultError():
            return ErrorKind.DEVICE_ERROR, str(error)
        case _ if isinstance(error, _REFUSALS):
            return ErrorKind.BUILD_ERROR, str(error)
        case _:
            return ErrorKind.BUILD_ERROR, f"{type(error).__name__}: {error}"


class _PhaseClock:
    """Announces phases, and sums the time of each."""

    def __init__(self, announce: Callable[[Phase], None]) -> None:
        self._announce = announce
        self._secs = dict.fromkeys(Phase, 0.0)
        self._phase = Phase.BUILD
        self._since = time.perf_counter()

    def enter(self, phase: Phase) -> None:
        """End a phase, begin another."""
        self._stop()
        self._phase = phase
        self._announce(phase)

    def stamp(self, measurement: Measurement) -> Measurement:
        """Return the measurement with the seconds of its phases; the oracle is not counted."""
        self._stop()
        return replace(
            measurement,
            build_secs=self._secs[Phase.BUILD],
            check_secs=self._secs[Phase.CHECK],
            time_secs=self._secs[Phase.TIME],
        )

    def _stop(self) -> None:
        now = time.perf_counter()
        self._secs[self._phase] += now - self._since
        self._since = now

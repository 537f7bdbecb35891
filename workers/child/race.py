"""Time a candidate beside libraries that compute the same, each in a separate process.

After a call has returned, a library's threads still spin on the cores, OpenBLAS's for a tenth of a
second, and slow down the next contestant. So each contestant has a child, which is stopped
(SIGSTOP) during the turns of others. A turn begins with a warm-up that wakes threads and cores.

A library is first timed in each of its settings: with one thread, if the kernel is short, and with
all; and with code for more of the CPU's instruction set, if it chose less (`kernel_sets`). The
fastest setting takes part, and the report names all of them.
"""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np

from compiler.runtime.measurement import ErrorKind, LibraryFacts, Measurement, Setting
from compiler.target.host import host_features
from compiler.target.target import Target
from workers.child.host import Host
from workers.child.phase_clock import PhaseClock
from workers.child.process import ChildGoneError, ChildProcess, DeadlineError
from workers.libraries.kernel_sets import LibraryCode, better_settings, is_below
from workers.measure.compare import CompareRequest
from workers.wire.frames import FrameError, Message
from workers.wire.phase import Phase
from workers.wire.request import SeatRequest

RACE_SECS = 6.0
"""The time after which no further rounds are measured."""
_START_SECS = 60.0
"""Time limit for the start of a child: loading PyTorch takes seconds, more on a busy host. Chosen.
"""
_GRACE_SECS = 1.0
"""A child that closed its pipe has so long to write its last words. Chosen."""
_SHORT_SECS = 20e-3
"""A call of one thread that is shorter is also tried with one thread: with more, a library may wait
for them longer than it gains. Chosen.
"""
_NUM_LOOKS = 2
"""Measurements of each setting, of which the shorter counts: the least that exclude one
interruption. Chosen.
"""
_FAULTS = (DeadlineError, ChildGoneError, FrameError, ValueError, TypeError, KeyError)

OpenChild: TypeAlias = Callable[[Mapping[str, str]], ChildProcess]
"""Starts a child with additional environment variables."""
_ALONE = Measurement(
    error=ErrorKind.BUILD_ERROR, message="there is nothing left to compare it with"
)


class SeatError(Exception):
    """A contestant failed; `measurement` has the error."""

    def __init__(self, measurement: Measurement) -> None:
        super().__init__(measurement.message)
        self.measurement = measurement


class Contestant:
    """A contestant in a separate child, which is stopped except during requests.

    Its child starts at once: wait for all starts (`wait_for_start`) before any contestant is seated
    (`sit`) and timed, which a start would disturb.

    Args:
        open_child: Starts the child.
        settings: Environment variables of the child.
    """

    def __init__(
        self, request: SeatRequest, open_child: OpenChild, settings: Mapping[str, str]
    ) -> None:
        self.request = request
        self.settings = settings
        self.num_threads = Target(request.target).num_cores
        self.toolchain = ""
        self.facts: Message = {}
        self._attempt = PhaseClock(request)
        self._child = open_child(settings)

    @property
    def pid(self) -> int:
        """Return the process id of its child."""
        return self._child.pid

    def wait_for_start(self) -> None:
        """Wait until its child has started.

        Raises:
            SeatError: If it can't start.
        """
        try:
            greeting = self._child.receive(time.monotonic() + _START_SECS)
            self.toolchain = Host.from_json(greeting["host"]).toolchain_for(self.request.target)
        except _FAULTS as error:
            raise self._failed(error) from error

    def sit(self) -> None:
        """Build the candidate or load the library, once its child has started.

        Raises:
            SeatError: If it can't take part.
        """
        self.facts = self._checked(self._ask({"seat": self.request.to_json()}).get("seated"))

    def turn(self, number: int) -> float:
        """Return its seconds a call in a round.

        Raises:
            SeatError: If it fails.
        """
        secs = self._ask({"turn": number, "num_threads": self.num_threads}).get("secs")
        # Do not trust data from a child: a crashing kernel may write anything anywhere.
        if secs is None or not _is_positive(secs):
            raise self._failed(ValueError(f"{secs!r:.50} as its seconds"))
        return float(secs)

    def end(self) -> None:
        """End its child."""
        self._child.end()

    def _ask(self, message: Message) -> Message:
        self._attempt.enter(Phase.BUILD)
        try:
            self._child.resume()
            self._child.send(message, self._attempt.deadline)
            while "phase" in (answer := self._child.receive(self._attempt.deadline)):
                self._attempt.enter(Phase(answer["phase"]))
            self._child.pause()
        except _FAULTS as error:
            raise self._failed(error) from error
        if "fault" in answer:
            self.end()
            raise SeatError(Measurement.from_json(answer["fault"]))
        return answer

    def _checked(self, facts: object) -> Message:
        """Return facts if they have the correct types."""
        if not isinstance(facts, dict):
            raise self._failed(ValueError(f"{facts!r:.50} as its facts"))
        for name, value in facts.items():
            is_fine = _is_positive(value) if name == "peak_flops" else isinstance(value, str)
            if not is_fine:
                raise self._failed(ValueError(f"{value!r:.50} as its {name!r:.20}"))
        return facts

    def _failed(self, error: Exception) -> SeatError:
        """End the child, and return the error."""
        if isinstance(error, DeadlineError):
            self._child.end()
            reason = f"took longer than {self._attempt.allowed_secs:g} s"
            return SeatError(self._attempt.failed(ErrorKind.TIMEOUT, reason))
        death = self._child.end(_GRACE_SECS)
        words = f": {death.last_words}" if death.last_words else ""
        reason = f"died of {death.cause}" if isinstance(error, ChildGoneError) else f"said {error}"
        return SeatError(self._attempt.failed(ErrorKind.CRASH, reason + words))


class Race:
    """The comparison of a candidate with libraries; indices are those of contestants in a request.

    Args:
        request: One candidate, and libraries.
        open_child: Starts a child.
        features: The features of this CPU, in LLVM's form; tests pass others.
    """

    def __init__(
        self, request: CompareRequest, open_child: OpenChild, features: str | None = None
    ) -> None:
        self._request = request
        self._open_child = open_child
        self._features = host_features() if features is None else features
        self._opened: list[Contestant] = []
        self._in: dict[int, Contestant] = {}
        self._faults: dict[int, Measurement] = {}
        self._facts: dict[int, LibraryFacts] = {}

    def rounds(self) -> list[list[Measurement]]:
        """Return rounds, each with a measurement of each contestant.

        A failed contestant is an error in each round from then on. There are fewer rounds than
        requested if they take long, and at least one.
        """
        try:
            self._seat_contestants()
            measured = list(self._play())
        finally:
            for contestant in self._opened:
                contestant.end()
        num_missing = self._request.num_rounds - self._request.first_round - len(measured)
        if self._is_contest():
            return measured
        return measured + [[self._faults.get(p, _ALONE) for p in self._indices()]] * num_missing

    def _indices(self) -> range:
        return range(self._request.num_contestants)

    def _is_contest(self) -> bool:
        return 0 in self._in and len(self._in) > 1

    def _seat_contestants(self) -> None:
        """Open a child for the candidate, and one for each library in its best setting."""
        request = self._request
        (trace,) = request.traces
        base = SeatRequest(
            workload=request.workload,
            target=request.target,
            incumbent_secs=request.incumbent_secs,
            limits=request.limits,
        )
        of_libraries = (
            replace(base, library=name, operator=request.operator) for name in request.libraries
        )
        opened = [self._open(each, {}) for each in (replace(base, trace=trace), *of_libraries)]
        for index, contestant in enumerate(opened):
            with self._noting_faults(index):
                contestant.wait_for_start()
        for index, contestant in enumerate(opened):
            if self._faults.keys() & {0, index}:
                continue
            with self._noting_faults(index):
                if index == 0:
                    contestant.sit()
                    self._in[0] = contestant
                else:
                    self._in[index], facts = self._best_setting(contestant)
                    peak = opened[0].facts.get("peak_flops")
                    self._facts[index] = replace(facts, peak_flops=peak)

    def _open(self, request: SeatRequest, settings: Mapping[str, str]) -> Contestant:
        """Start the child of a contestant; `rounds` ends it."""
        contestant = Contestant(request, self._open_child, settings)
        self._opened.append(contestant)
        return contestant

    @contextmanager
    def _noting_faults(self, index: int) -> Iterator[None]:
        try:
            yield
        except SeatError as error:
            self._faults[index] = error.measurement

    def _best_setting(self, default: Contestant) -> tuple[Contestant, LibraryFacts]:
        """Return a library in its fastest setting.

        Args:
            default: The library in its default setting, in a child that has started.

        Raises:
            SeatError: If it fails alone.
        """
        tried: list[Setting] = []
        best, (best_secs, best_threads) = default, self._try(default, tried)
        default_kernels = _kernel_set(default.facts)
        for settings in better_settings(default_kernels, self._features):
            try:
                other = self._open(default.request, settings)
                other.wait_for_start()
                secs, num_threads = self._try(other, tried)
            except SeatError:
                tried.append(Setting(_words(settings, None), "", None))
                continue
            if secs < best_secs:
                best.end()
                best, best_secs, best_threads = other, secs, num_threads
            else:
                other.end()
        best.num_threads = best_threads
        chosen = _words(best.settings, best_threads)
        return best, LibraryFacts(
            kernel_set=_kernel_set(best.facts).name,
            setting=chosen,
            tried=tuple(tried),
            is_below_cpu=all(
                is_below(s.kernel_set, self._features) for s in tried if s.secs is not None
            ),
        )

    def _try(self, contestant: Contestant, tried: list[Setting]) -> tuple[float, int]:
        """Load a library and time it with each number of threads.

        Returns:
            The shortest time in seconds, and its number of threads.
        """
        contestant.sit()
        secs: dict[int, float] = {}
        for num_threads in self._thread_counts():
            contestant.num_threads = num_threads
            secs[num_threads] = min(contestant.turn(-2 - look) for look in range(_NUM_LOOKS))
            kernel_set = _kernel_set(contestant.facts).name
            tried.append(
                Setting(_words(contestant.settings, num_threads), kernel_set, secs[num_threads])
            )
        best = min(secs, key=secs.__getitem__)
        return secs[best], best

    def _thread_counts(self) -> Sequence[int]:
        """Return the thread counts to try for a library; short kernels are tried with one, too."""
        num = Target(self._request.target).num_cores
        is_short = num * (self._request.incumbent_secs or 0.0) < _SHORT_SECS
        return (1, num) if num > 1 and is_short else (num,)

    def _play(self) -> Iterator[list[Measurement]]:
        number, end = self._request.first_round, time.monotonic() + RACE_SECS
        while number < self._request.num_rounds and self._is_contest():
            try:
                yield self._round(number)
            except _DropOutError as drop:
                # Repeat its round without it.
                del self._in[drop.index]
                self._faults[drop.index] = drop.measurement
            else:
                number += 1
                if time.monotonic() > end:
                    return

    def _round(self, number: int) -> list[Measurement]:
        rng = np.random.default_rng((self._request.seed, number))
        order = rng.permutation(list(self._in)).tolist()
        samples: dict[int, list[float]] = {index: [] for index in order}
        for index in (*order, *reversed(order)):
            try:
                samples[index].append(self._in[index].turn(number))
            except SeatError as error:
                raise _DropOutError(index, error.measurement) from error
        return [
            self._faults[index] if index in self._faults else self._measured(index, samples[index])
            for index in self._indices()
        ]

    def _measured(self, index: int, samples: Sequence[float]) -> Measurement:
        contestant = self._in[index]
        toolchain = str(contestant.facts.get("version") or contestant.toolchain)[:255]
        return Measurement(tuple(samples), toolchain=toolchain, library=self._facts.get(index))


class _DropOutError(Exception):
    """A contestant failed in a round."""

    def __init__(self, index: int, measurement: Measurement) -> None:
        super().__init__(index)
        self.index = index
        self.measurement = measurement


def _is_positive(value: Any) -> bool:
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return is_number and 0 < value < math.inf


def _kernel_set(facts: Mapping[str, Any]) -> LibraryCode:
    return LibraryCode(facts.get("kernel_set", "")[:64], facts.get("is_chosen_by", ""))


def _words(settings: Mapping[str, str], num_threads: int | None) -> str:
    """Return a setting in words, such as `OPENBLAS_CORETYPE=SkylakeX, 2 threads`."""
    parts = [f"{name}={value}" for name, value in settings.items()]
    if num_threads is not None:
        parts.append("1 thread" if num_threads == 1 else f"{num_threads} threads")
    return ", ".join(parts)

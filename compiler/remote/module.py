"""Kernels on a device: called with arrays there, and timed there."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from compiler.executor.artifact import Artifact
from compiler.executor.error import ArgumentError, ArtifactError
from compiler.executor.kernel import BACKEND, require_constants, wrong_number
from compiler.executor.named_type import named_type
from compiler.executor.params import ENTRY, Param, describe_kernel
from compiler.executor.pool import CORES, LAUNCH
from compiler.remote.arrays import RemoteArray
from compiler.remote.image import RemoteImage, load_image
from compiler.remote.protocol import MAX_CALLS, MAX_DEADLINE_SECS, MAX_SAMPLES, Sample, Word
from compiler.remote.session import Session
from compiler.runtime.timing import Timing

if TYPE_CHECKING:
    from compiler.remote.remote import Remote

_SERIAL = "lw_launch_serially"
_REQUEST_SECS = 5.0
"""Seconds of samples that one request asks for. Chosen below the deadline of a call."""
_MOST_GROWTH = 10
"""How many times as many calls the next trial of a sample has at most, as `time_calls`. Chosen."""


class RemoteModule:
    """A kernel on a device: call it with one remote array a parameter, in order.

    Args:
        remote: The device.
        artifact: The kernel.
        const_params: An array of this host for each constant parameter, by name: they are packed on
            the device now, and calls omit them.

    Raises:
        ArtifactError: If the device can't run the code of the artifact.
        ArgumentError: If the constants do not fit the kernel.
        RemoteError: If the device refuses it, or vanished.
    """

    def __init__(
        self, remote: Remote, artifact: Artifact, const_params: Mapping[str, Any] | None = None
    ) -> None:
        if artifact.backend != BACKEND:
            raise ArtifactError(f"{artifact.name} was built for {artifact.target}, not for a CPU")
        if artifact.is_symbolic:
            raise ArtifactError(
                f"{artifact.name} takes sizes from its arrays: only kernels of fixed shapes run on"
                " remote devices; make one by specialize"
            )
        if artifact.functions:
            raise ArtifactError(
                f"{artifact.name} calls registered functions ({', '.join(artifact.functions)}):"
                " a remote device has none"
            )
        self.artifact = artifact
        self.params = artifact.arguments
        self.num_threads = max(1, min(artifact.num_threads, remote.facts.num_cores))
        self._remote = remote
        self._session: Session = remote.session
        require_constants(artifact, const_params or {})
        remote.check_machine(artifact)
        self._image = load_image(self._session, artifact.name, artifact.code)
        self._launch = self._launch_word(artifact)
        assert isinstance(artifact.workspace_bytes, int), (
            "fixed shapes have a workspace of one size"
        )
        self._workspace = RemoteArray(self._session, (artifact.workspace_bytes,), "uint8")
        self._constants = self._packed(const_params or {})

    def __repr__(self) -> str:
        signature = describe_kernel(self.artifact.name, self.params)
        return f"<RemoteModule {signature} on {self._remote}>"

    @property
    def entry_name(self) -> str:
        """Return the name of its only function."""
        return self.artifact.name

    def __getitem__(self, name: str) -> RemoteModule:
        """Return the kernel by its name, as TVM's modules do.

        Raises:
            KeyError: If it has another name.
        """
        if name != self.artifact.name:
            raise KeyError(f"unknown function {name!r}: expected the kernel {self.artifact.name!r}")
        return self

    def __call__(self, *arrays: RemoteArray, deadline_secs: float = 60.0) -> None:
        """Run the kernel.

        Args:
            arrays: One array of the device for each parameter.
            deadline_secs: The time after which the device gives it up.

        Raises:
            ArgumentError: If the arrays do not fit.
            RemoteFaultError: If it crashed, or passed the deadline.
            RemoteError: If the device refuses it, or vanished.
        """
        self.sample(arrays, deadline_secs=deadline_secs)

    def sample(
        self,
        arrays: Sequence[RemoteArray],
        *,
        calls: int = 1,
        samples: int = 0,
        deadline_secs: float = 60.0,
    ) -> list[Sample]:
        """Run the kernel so many times, and return timed samples, each of so many calls."""
        words = [*self._words(arrays), *(Word(0, a.region.number) for a in self._constants)]
        words.append(Word(0, self._workspace.region.number))
        words += [Word(self.num_threads), self._launch]
        return self._session.run(
            self._image.region,
            self._image.offset(ENTRY),
            words,
            calls=calls,
            samples=samples,
            deadline_secs=deadline_secs,
        )

    def mean_secs(
        self, arrays: Sequence[RemoteArray], calls: int, deadline_secs: float = 60.0
    ) -> float:
        """Return the mean seconds a call, as `compiler.runtime.time_calls` measures them here.

        Raises:
            EmulatedDeviceError: If the device is emulated.
        """
        (sample,) = self.sample(arrays, calls=calls, samples=1, deadline_secs=deadline_secs)
        return self._secs(sample) / calls

    def time_evaluator(
        self,
        func_name: str | None = None,
        dev: object = None,
        number: int = 10,
        repeat: int = 1,
        min_repeat_ms: int = 0,
    ) -> Callable[..., Timing]:
        """Return a function that times the kernel on arrays of the device, with TVM's signature.

        The clock is that of the device, so the network is not part of the times.

        Args:
            func_name: The name of the kernel; optional.
            dev: Ignored; it exists for compatibility with TVM.
            number: The number of calls in a sample, which is their mean.
            repeat: The number of samples.
            min_repeat_ms: The minimum time of a sample, in milliseconds; it raises the number of
                calls.

        Raises:
            KeyError: If the kernel has another name.
            ValueError: If `number`, `repeat` or `min_repeat_ms` is out of range.
        """
        del dev
        if func_name is not None:
            self[func_name]
        if number not in range(1, MAX_CALLS + 1) or repeat not in range(1, MAX_SAMPLES + 1):
            raise ValueError(
                f"number is {number}, repeat is {repeat}: expected 1 to {MAX_CALLS} and 1 to"
                f" {MAX_SAMPLES}"
            )
        if not 0 <= min_repeat_ms <= 1000 * MAX_DEADLINE_SECS:
            raise ValueError(
                f"min_repeat_ms is {min_repeat_ms}: expected 0 to {1000 * MAX_DEADLINE_SECS}"
            )

        def evaluate(*arrays: RemoteArray) -> Timing:
            self.sample(arrays)
            calls = self._calls(arrays, int(number), min_repeat_ms / 1e3)
            secs: list[float] = []
            while len(secs) < repeat:
                # As many samples in one request as are far below its deadline.
                longest = max(secs, default=_REQUEST_SECS) or _REQUEST_SECS
                samples = min(repeat - len(secs), max(1, int(_REQUEST_SECS / longest)))
                timed = self.sample(arrays, calls=calls, samples=samples)
                secs += [self._secs(sample) for sample in timed]
            return Timing(tuple(total / calls for total in secs))

        return evaluate

    def _calls(self, arrays: Sequence[RemoteArray], number: int, least_secs: float) -> int:
        """Return the number of calls of a sample that lasts long enough."""
        calls = number
        while least_secs and calls < MAX_CALLS:
            secs = self.mean_secs(arrays, calls) * calls
            if secs >= least_secs:
                break
            calls *= min(_MOST_GROWTH, max(2, int(1.2 * least_secs / max(secs, 1e-9))))
        return min(calls, MAX_CALLS)

    def _secs(self, sample: Sample) -> float:
        """Return the seconds of a sample: CPU time, if its only thread was preempted."""
        was_preempted = self.num_threads == 1 and sample.preemptions
        return (sample.cpu_nanos if was_preempted else sample.wall_nanos) / 1e9

    def _words(self, arrays: Sequence[RemoteArray]) -> list[Word]:
        if len(arrays) != len(self.params):
            raise wrong_number(self.artifact, len(arrays))
        numbers = [self._fitting(p, a) for p, a in zip(self.params, arrays, strict=True)]
        for param, number in zip(self.params, numbers, strict=True):
            if param.is_output and numbers.count(number) > 1:
                raise ArgumentError(f"parameter {param.name} is written, and passed twice")
        return [Word(0, number) for number in numbers]

    def _fitting(self, param: Param, array: object) -> int:
        """Return the region of an array of this device."""
        if not isinstance(array, RemoteArray) or array.session is not self._session:
            raise ArgumentError(
                f"parameter {param.name} is {named_type(array)}: expected an array of this"
                " device, as remote.array(...) makes it"
            )
        if array.shape != param.shape or array.nbytes != param.size_bytes:
            raise ArgumentError(
                f"parameter {param.name} is {array.dtype}{list(array.shape)}: expected"
                f" {param.dtype}{list(param.shape)}"
            )
        return array.region.number

    def _launch_word(self, artifact: Artifact) -> Word:
        """Return the function that runs parallel loops, on threads if the kernel brings a pool."""
        if self.num_threads == 1 or not artifact.pool:
            self.num_threads = 1
            return Word(self._remote.address_of(_SERIAL))
        pool = self._remote.pool(artifact)
        return Word(pool.offset(LAUNCH), pool.region.number)

    def _packed(self, const_params: Mapping[str, Any]) -> list[RemoteArray]:
        """Return the arrays that follow the arguments: constants, then packed copies of them."""
        artifact = self.artifact
        if artifact.packer is None:
            return []
        constants = {p.name: self._uploaded(p, const_params[p.name]) for p in artifact.constants}
        copies = {p.name: self._remote.empty(p.shape, p.dtype) for p in artifact.packed_copies}
        packer = RemoteModule(self._remote, replace(artifact.packer, packer=None))
        packer(*constants.values(), *copies.values())
        arrays = {**constants, **copies}
        return [arrays[param.name] for param in artifact.params[len(artifact.arguments) :]]

    def _uploaded(self, param: Param, values: Any) -> RemoteArray:
        array = self._remote.empty(param.shape, param.dtype)
        return array.copyfrom(np.asarray(values))


def load_pool(session: Session, artifact: Artifact) -> RemoteImage:
    """Load the pool of threads of a kernel on a device, limited to the cores of the device."""
    return load_image(
        session, f"the pool of {artifact.name}", artifact.pool, {CORES: session.facts.num_cores}
    )

"""The self-test of a worker before it takes work: measure a known kernel, and the noise.

The program and the trace are text, so that the process above the child needs no compiler.
"""

from __future__ import annotations

import statistics
import time
from dataclasses import dataclass

from compiler.executor.machine import is_emulated
from compiler.user_errors import NoResultError
from workers.child.runner import ChildRunner
from workers.wire.request import MeasureRequest

PROGRAM = """\
@T.prim_func
def self_test(A: T.Buffer((32, 32), "float32"), B: T.Buffer((32, 32), "float32"),
              C: T.Buffer((32, 32), "float32")):
    for i, j, k in T.grid(32, 32, 32):
        with T.sblock("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
"""
TRACE = '{"format": 1, "instructions": []}'
CPU_CORE = "cpu -num-cores=1"
_REPEATS = 3
"""Runs of the known kernel: three distinguish a broken host from one interruption. Chosen."""


def known_kernel(num_times: int = 1, target: str = CPU_CORE) -> MeasureRequest:
    """Return a request for measurements that succeed on every host with a device of the target."""
    return MeasureRequest(PROGRAM, target, (TRACE,) * num_times)


class SelfTestError(NoResultError, RuntimeError):
    """A worker can't build, run or check a kernel that is known to be correct."""


@dataclass(frozen=True, slots=True)
class SelfTest:
    """The result of the self-test.

    `noise` is the distance of the median sample from the shortest, as a share of it: differences
    below it are meaningless on this worker.
    """

    label: str
    toolchain: str
    run_secs: float
    noise: float
    test_secs: float


def self_test(runner: ChildRunner) -> SelfTest:
    """Have a runner measure the known kernel a few times, on its device or else on one core.

    Raises:
        SelfTestError: If one of its measurements is an error, or its times mean nothing.
        ChildStartError: If no child can be started.
    """
    if runner.device is None and is_emulated():
        raise SelfTestError("an emulator (QEMU) runs this worker: times here say nothing of a CPU")
    start = time.monotonic()
    samples: list[float] = []
    target = CPU_CORE if runner.device is None else runner.device.target.name
    for _, measurement in runner.measure(known_kernel(_REPEATS, target)):
        if measurement.error is not None:
            raise SelfTestError(f"self-test: {measurement.error}: {measurement.message}")
        samples += measurement.run_secs
    host = runner.host()
    return SelfTest(
        label=host.label if runner.device is None else runner.device.target.label,
        toolchain=host.toolchain_for(target),
        run_secs=min(samples),
        noise=statistics.median(samples) / min(samples) - 1,
        test_secs=time.monotonic() - start,
    )

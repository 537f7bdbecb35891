"""Command 1: instructions against their descriptions, planted faults, ceilings, noise."""

from __future__ import annotations

import re
import statistics
import subprocess
import sys
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from typing import Any

import numpy as np

import loopwright as lw
from benchmarks.gpu.device_kernels import COPY, FFMA, MMA, MMA_HELPER, kernel
from benchmarks.gpu.faults import FOUND
from benchmarks.gpu.session import Session
from compiler.backends.cuda.device_call import DeviceCall
from compiler.backends.cuda.device_code import DeviceCode
from compiler.ir.text.printer import script
from compiler.runtime.measurement import Measurement
from tuner.candidate import Candidate
from tuner.search.make import make_strategy
from tuner.task import Task
from workers.child.runner import ChildRunner
from workers.wire.request import MeasureRequest

# Their candidates use mma.sync in each of its types, ldmatrix, cp.async, and wgmma with the copy
# engine where the architecture has them; the last two, shuffles and vectors.
_SPECS = (
    "matmul:256,256,256,acc_dtype=float32:bfloat16",
    "matmul:256,256,256,acc_dtype=float32:float16",
    "matmul:256,256,256,out_dtype=int32:int8",
    "matmul:256,256,256:float32",
    "softmax:512,512",
    "transpose:1024,1024",
)
_TINY_SPECS = ("matmul:32,32,32,acc_dtype=float32:bfloat16",)
_INSTRUCTIONS = re.compile(
    r"\b(mma\.sync|ldmatrix|cp\.async(?:\.bulk)?|wgmma|shfl\.sync|mbarrier|bar\.sync)"
)
_HANG_SECS = 20.0
"""Time that a process with an endless kernel gets: far more than its start. Chosen."""
_TINY_HANG_SECS = 0.5
_STEPS = 4096
"""Steps of the loops that measure peaks: the rest of such a kernel is then below 0.1%. Chosen."""


def check_device(session: Session, num_candidates: int, *, is_tiny: bool) -> None:
    """Run all checks; add rows for each."""
    _instructions(session, _TINY_SPECS if is_tiny else _SPECS, num_candidates)
    _faults(session, _TINY_HANG_SECS if is_tiny else _HANG_SECS)
    _ceilings(session, is_tiny=is_tiny)


def _instructions(session: Session, specs: Sequence[str], num_candidates: int) -> None:
    """Compare random candidates with the oracle, which computes what descriptions say."""
    target = session.gpu.target
    with ChildRunner() as runner:
        for spec in specs:
            task = Task(lw.ops.from_spec(spec), target)
            asked = make_strategy("random", task, seed=0).ask(num_candidates)
            candidates = [proposal.candidate for proposal in asked]
            request = MeasureRequest(
                workload=script(task.func),
                target=target.name,
                traces=tuple(candidate.trace.to_text() for candidate in candidates),
            )
            for index, measurement in runner.measure(request):
                row = _candidate_row(session, spec, candidates[index], measurement)
                outcome = row["error"] or f"largest error {row['max_error']:.2g}"
                used = ", ".join(row["instructions"])
                session.add(row, f"{spec}, {row['sketch']} ({used}): {outcome}")


def _candidate_row(
    session: Session, spec: str, candidate: Candidate, measurement: Measurement
) -> dict[str, Any]:
    conditions = measurement.conditions
    return {
        "check": "instructions",
        "spec": spec,
        "sketch": candidate.sketch,
        "trace": candidate.trace.to_json(),
        "instructions": _used(session, spec, candidate) if measurement.ok else [],
        "error": measurement.error,
        "message": measurement.message,
        "max_error": measurement.max_error,
        "secs": measurement.run_secs,
        "conditions": None if conditions is None else asdict(conditions),
    }


def _used(session: Session, spec: str, candidate: Candidate) -> list[str]:
    """Return the special instructions of a candidate's kernel; its cubin is in the cache."""
    func = candidate.trace.apply_to(lw.ops.from_spec(spec))
    artifact = lw.build(func, f"{session.gpu.target.name.removesuffix(' -emulated')} -emulated")
    return sorted(set(_INSTRUCTIONS.findall(DeviceCode.from_bytes(artifact.artifact.code).ptx)))


def _faults(session: Session, hang_secs: float) -> None:
    """Run kernels with faults in processes; then the device still has to work in another one."""
    for name in ("illegal", "hang"):
        command = [sys.executable, "-m", "benchmarks.gpu.faults", name, session.gpu.target.name]
        secs = hang_secs if name == "hang" else 60.0
        try:
            done = subprocess.run(
                command, capture_output=True, text=True, timeout=secs, check=False
            )
        except subprocess.TimeoutExpired:
            outcome, is_found = "killed at its deadline", name == "hang"
        else:
            outcome, is_found = (
                (done.stdout or done.stderr)[-500:].strip(),
                done.returncode == FOUND,
            )
        row = {"check": "fault", "fault": name, "is_found": is_found, "outcome": outcome}
        session.add(row, f"fault {name!r}: {'found' if is_found else 'MISSED'}, {outcome}")


def _ceilings(session: Session, *, is_tiny: bool) -> None:
    """Measure the bandwidth of a copy and the peaks of multiply-adds, and how they vary."""
    for name, unit, amount, call in _ceiling_calls(session, is_tiny=is_tiny):
        num_samples = 1 if session.gpu.is_emulated else 10
        samples = [statistics.median(call.sample(None).secs) for _ in range(num_samples)]
        secs, state = statistics.median(samples), session.gpu.state()
        row = {
            "check": "ceiling",
            "name": name,
            "unit": unit,
            "rate": amount / secs / 1e12,
            "secs": secs,
            "samples": samples,
            "range": (max(samples) - min(samples)) / secs,
            "state": None if state is None else asdict(state),
        }
        text = f"{name}: {row['rate']:.3g} {unit}, range of samples {row['range']:.1%}"
        session.add(row, text)


def _ceiling_calls(
    session: Session, *, is_tiny: bool
) -> Iterator[tuple[str, str, float, DeviceCall]]:
    """Yield the name of each ceiling with its unit, the amount of a run, and the run."""
    target = session.gpu.target
    blocks, steps = (1, 2) if is_tiny else (8 * session.gpu.model.num_sms, _STEPS)
    copied = 1 << 10 if is_tiny else 1 << 28  # 1 GiB, far more than the L2 cache
    yield "copy", "TB/s", 8.0 * copied, _bound("copy", COPY, session, copied, copied // 1024)
    threads = 256 * blocks
    ffma = FFMA.replace("STEPS", str(steps))
    flops = 2.0 * 16 * steps * threads
    yield "float32", "TFLOP/s", flops, _bound("ffma", ffma, session, threads, blocks)
    mma = MMA_HELPER + MMA.replace("STEPS", str(steps))
    flops = 2.0 * 16 * 8 * 16 * 8 * steps * threads / 32
    if target.gpu is None or "bfloat16" in target.gpu.peaks:
        yield "mma.sync bfloat16", "TFLOP/s", flops, _bound("mma", mma, session, threads, blocks)


def _bound(name: str, text: str, session: Session, size: int, blocks: int) -> DeviceCall:
    module = kernel(name, text, session.gpu.target, (max(size, 1024), size), (blocks, 256))
    call = module.bind(np.ones(max(size, 1024), np.float32), np.empty(size, np.float32))
    assert isinstance(call, DeviceCall)
    call()
    return call

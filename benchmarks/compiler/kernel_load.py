"""Measure how long a new process takes to load a kernel: beyond Python, and beyond NumPy.

The CPU time of the process is measured, which other load hardly changes.
"""

from __future__ import annotations

import resource
import subprocess
import sys
import tempfile
from pathlib import Path

import loopwright as lw
from benchmarks.report import Metric, report

NUM_PROCESSES = 40
_NUMPY = "import numpy\n"
_LOAD = f"""{_NUMPY}import sys
import loopwright as lw
lw.load_kernel(sys.argv[1])
assert not {{"compiler.ir", "compiler.target", "llvmlite", "pydantic"}} & set(sys.modules)
"""


def main() -> None:
    """Run the benchmark."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "matmul.lwk")
        lw.compile_kernel(lw.ops.matmul(64, 64, 64), "cpu").save(path)
        rows = [
            [_cpu_millis(program, path) for program in ("", _NUMPY, _LOAD)]
            for _ in range(NUM_PROCESSES)
        ]
    empty, numpy, load = (tuple(column) for column in zip(*rows, strict=True))
    report(
        "kernel_load",
        [
            Metric("a process of Python", "ms", empty),
            Metric("with NumPy", "ms", numpy),
            Metric("with a kernel", "ms", load),
            Metric("a kernel, beyond NumPy", "ms", _beyond(load, numpy), goal="<= 30"),
            Metric("a kernel and NumPy, beyond Python", "ms", _beyond(load, empty)),
        ],
    )


def _cpu_millis(program: str, path: Path) -> float:
    before = _cpu_secs()
    subprocess.run([sys.executable, "-c", program, str(path)], check=True)
    return 1e3 * (_cpu_secs() - before)


def _cpu_secs() -> float:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    return usage.ru_utime + usage.ru_stime


def _beyond(longer: tuple[float, ...], shorter: tuple[float, ...]) -> tuple[float, ...]:
    """Return the differences of processes that ran one after the other."""
    return tuple(a - b for a, b in zip(longer, shorter, strict=True))


if __name__ == "__main__":
    main()

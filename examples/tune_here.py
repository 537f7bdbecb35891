"""Tune an operator in this process, without a server, and save the kernel to a file."""

from __future__ import annotations

import sys
from pathlib import Path

import numpy as np

import loopwright as lw

operator = sys.argv[1] if len(sys.argv) > 1 else "mm_relu:128,128,128:float32"
trials = int(sys.argv[2]) if len(sys.argv) > 2 else 64

result = lw.tune(operator, target="cpu -num-cores=1", max_trials=trials, seed=0)
default, best = result.default, result.best
assert default is not None, "only a limit on time may leave it out"
print(f"default {1e3 * default.run_secs:.3f} ms, {default.kind}")
print(f"best    {1e3 * best.run_secs:.3f} ms, {best.kind}, trial {best.number}, by this schedule:")
print(result.best.trace.python())

path = Path("kernel.lwk")
result.build().save(path)
kernel = lw.Module.load(path)  # in any process, without the compiler
arrays = [np.ones(param.shape, param.dtype) for param in kernel.params]
kernel(*arrays)
print(f"{path}: {path.stat().st_size} bytes, {lw.time_evaluator(kernel, *arrays).min_secs:.2e} s")

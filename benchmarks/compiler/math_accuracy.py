"""Measure the largest errors of mathematical functions over the floats, and their times.

Errors are in units of the last place of the result, against NumPy's and SciPy's double precision.
Every float from 2**-27 to 2**18 is tried, the range in which functions vary, and every 16th of the
others. This takes a minute for each function. `--stride 1` tries all 2**32.

    python -m benchmarks.compiler.math_accuracy [--stride N] [NAME ...]
"""

from __future__ import annotations

import argparse
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy import special

import loopwright as lw
from compiler import te
from compiler.ir.core.nodes import Call
from compiler.schedule.schedule import Schedule

Array = NDArray[Any]

CHUNK = 1 << 16
ROUNDS = 50
LARGEST = 2.0**128
NEAR, FAR = 100 << 23, 145 << 23  # the bits of 2**-27 and of 2**18
REFERENCES: dict[str, Callable[..., Array]] = {
    "cos": np.cos,
    "erf": special.erf,
    "exp": np.exp,
    "exp10": special.exp10,
    "exp2": np.exp2,
    "log": np.log,
    "log10": np.log10,
    "log1p": np.log1p,
    "log2": np.log2,
    "pow": np.power,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "sigmoid": special.expit,
    "sin": np.sin,
    "tan": np.tan,
    "tanh": np.tanh,
}


@dataclass
class Worst:
    """The largest error, its argument, and the number of wrong limits (NaN, infinity)."""

    ulp: float = 0.0
    at: tuple[float, ...] = ()
    wrong_limits: int = 0


def kernel(name: str, size: int = CHUNK) -> lw.Module:
    """Return `out = name(x)`, or of x and y, vectorized."""
    arity = 2 if name == "pow" else 1
    inputs = [te.placeholder((size,), "float32", name=n) for n in "XY"[:arity]]

    def body(i: te.Value) -> te.Value:
        return te.Value(Call(name, tuple(x[i].expr for x in inputs), "float32"))

    out = te.compute((size,), body, name="OUT")
    schedule = Schedule(te.create_prim_func([*inputs, out]))
    (loop,) = schedule.get_loops(schedule.get_block("OUT"))
    schedule.vectorize(schedule.split(loop, [None, 16])[1])
    return lw.build(schedule, "cpu -num-cores=1")


def ulps(got: Array, exact: Array) -> tuple[Array, Array]:
    """Return the errors in units of the last place, and a mask of wrong limits.

    Args:
        got: Computed results, in float32.
        exact: Nearly exact results, in float64.
    """
    is_nan = np.isnan(exact)
    wrong = np.isnan(got) != is_nan
    wrong |= (exact == 0) & (np.signbit(got) != np.signbit(exact))
    exact = np.clip(exact, -LARGEST, LARGEST)
    value = np.clip(got.astype(np.float64), -LARGEST, LARGEST)
    exponent = np.frexp(exact)[1].clip(-125, 128)
    errors = np.ldexp(np.abs(value - exact), 24 - exponent)
    return np.where(is_nan | wrong, 0.0, errors), wrong


def arguments(name: str, stride: int) -> Iterator[list[Array]]:
    """Yield chunks of floats with random powers; of tiny and huge floats every `stride`-th."""
    rng = np.random.default_rng(0)
    for sign in (0, 1 << 31):
        for low, high, step in ((0, NEAR, stride), (NEAR, FAR, 1), (FAR, 1 << 31, stride)):
            for start in range(low, high, CHUNK * step):
                patterns = start + step * np.arange(CHUNK) + start // CHUNK % step
                bits = (patterns.clip(low, high - 1) + sign).astype(np.uint32)
                yield (
                    _with_power(bits.view(np.float32), rng)
                    if name == "pow"
                    else [bits.view(np.float32)]
                )


def _with_power(x: Array, rng: np.random.Generator) -> list[Array]:
    """Return bases, mostly positive, and powers whose results are mostly within a float's range."""
    with np.errstate(all="ignore"):
        y = rng.uniform(-150, 150, CHUNK) / np.maximum(np.abs(np.log2(np.abs(x))), 1e-30)
        y = np.where(rng.random(CHUNK) < 0.2, np.rint(y), y).astype(np.float32)
    return [np.where(rng.random(CHUNK) < 0.9, np.abs(x), x), y]


def sweep(name: str, stride: int) -> Worst:
    """Return the worst error of a function."""
    module, reference, worst = kernel(name), REFERENCES[name], Worst()
    out = np.empty(CHUNK, np.float32)
    with np.errstate(all="ignore"):
        for args in arguments(name, stride):
            module(*args, out)
            exact = reference(*(a.astype(np.float64) for a in args))
            # Elsewhere the result is the nearest float, off by half a unit at most.
            (places,) = np.nonzero(out.view(np.int32) != exact.astype(np.float32).view(np.int32))
            if not len(places):
                continue
            errors, wrong = ulps(out[places], exact[places])
            worst.wrong_limits += int(wrong.sum())
            most = int(errors.argmax())
            if errors[most] > worst.ulp:
                at = tuple(float(a[places[most]]) for a in args)
                worst.ulp, worst.at = float(errors[most]), at
    module.close()
    return worst


def nanoseconds(names: Sequence[str]) -> dict[str, list[float]]:
    """Return times for an element, in arrays that fit the second-level cache, a round each.

    Each round times every function, so that a slow moment of the machine affects all of them. The
    time in a round is the shortest of 100 calls.
    """
    size = 1 << 14
    runs = {}
    for name in names:
        module = kernel(name, size)
        rng = np.random.default_rng(0)
        runs[name] = module.bind(*(rng.uniform(0.5, 8, size).astype("f4") for _ in module.params))
    found: dict[str, list[float]] = {name: [] for name in names}
    for name in list(names) * ROUNDS:
        found[name].append(min(_call_nanoseconds(runs[name]) for _ in range(100)) / size)
    return found


def _call_nanoseconds(run: Callable[[], None]) -> int:
    start = time.perf_counter_ns()
    run()
    return time.perf_counter_ns() - start


def main() -> None:
    """Print a table in Markdown."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(REFERENCES))
    parser.add_argument(
        "--stride", type=int, default=16, help="try every N-th of the tiny and huge floats"
    )
    options = parser.parse_args()
    names = options.names or list(REFERENCES)
    times = nanoseconds(names)
    print("| function | largest error in ulp | at | wrong limits | ns an element | median round |")
    print("| --- | --- | --- | --- | --- | --- |")
    for name in names:
        worst = sweep(name, options.stride)
        place = ", ".join(f"{a:.9g}" for a in worst.at)
        print(
            f"| `{name}` | {worst.ulp:.2f} | {place} | {worst.wrong_limits} "
            f"| {min(times[name]):.2f} | {np.median(times[name]):.2f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()

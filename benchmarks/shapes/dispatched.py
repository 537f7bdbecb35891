"""Stored artifacts of searches over ranges."""

from __future__ import annotations

import json
import time
from pathlib import Path
from typing import Any

import loopwright as lw
from benchmarks import RESULTS
from benchmarks.peers.library import NotTunedError
from benchmarks.workloads.shapes import MAX_ROWS, UNSEEN_ROWS, Family
from loopwright import te


def symbolic_program(family: Family) -> lw.PrimFunc:
    """Return a computation with M rows."""
    rows = te.var("M")
    if family.op == "matmul":
        columns, length = family.extents
        a = te.placeholder((rows, length), "float32", name="A")
        b = te.placeholder((length, columns), "float32", name="B")
        k = te.reduce_axis((0, length), name="k")
        product = te.compute(
            (rows, columns), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C"
        )
        return te.create_prim_func([a, b, product], name="matmul")
    (columns,) = family.extents
    x = te.placeholder((rows, columns), "float32", name="A")
    k = te.reduce_axis((0, columns), name="k")
    largest = te.compute((rows,), lambda i: te.max(x[i, k], axis=k), name="largest")
    powers = te.compute((rows, columns), lambda i, j: te.exp(x[i, j] - largest[i]), name="powers")
    k = te.reduce_axis((0, columns), name="k")
    total = te.compute((rows,), lambda i: te.sum(powers[i, k], axis=k), name="total")
    result = te.compute((rows, columns), lambda i, j: powers[i, j] / total[i], name="B")
    return te.create_prim_func([x, result], name="softmax")


def artifact_path(family: Family, threads: int) -> Path:
    """Return the file of an artifact; the facts of its search are beside it, in JSON."""
    return RESULTS / f"shapes-t{threads}" / f"{family.name}.lwk"


def load_facts(family: Family, threads: int) -> dict[str, Any]:
    """Return the facts of the search of a stored artifact.

    Raises:
        NotTunedError: If none is stored.
    """
    path = artifact_path(family, threads).with_suffix(".json")
    if not path.exists():
        raise NotTunedError("no artifact is stored")
    return dict(json.loads(path.read_text(encoding="utf-8")))


def tune_and_store(family: Family, threads: int, trials: int, seed: int) -> None:
    """Tune a computation over its range; store the artifact, and the facts of the search."""
    start = time.perf_counter()
    result = lw.tune(
        symbolic_program(family),
        ranges={"M": (1, MAX_ROWS)},
        target=f"cpu -num-cores={threads}",
        max_trials=trials,
        seed=seed,
    )
    secs = time.perf_counter() - start
    timed = [timed.sizes["M"] for timed in result.times]
    assert not {*timed} & {*UNSEEN_ROWS}, "the search has seen a size of the benchmark"
    path = artifact_path(family, threads)
    path.parent.mkdir(parents=True, exist_ok=True)
    result.artifact.save(path)
    facts = {
        "family": family.name,
        "target": result.target.name,
        "trials": sum(map(len, result.trials)),
        "seed": seed,
        "secs": secs,
        "kernels": len(result.kernels),
        "bytes": len(result.artifact.to_bytes()),
        "loss": result.loss,
        "timed": timed,
        "dispatcher": result.dispatcher,
    }
    path.with_suffix(".json").write_text(json.dumps(facts, indent=1) + "\n", encoding="utf-8")
    print(f"{family.name}: {result}, in {secs:.0f} s", flush=True)

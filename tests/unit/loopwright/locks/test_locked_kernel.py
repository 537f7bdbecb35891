"""`lw.kernel`: just the locked kernel, or a refusal that says what to do."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import loopwright as lw
from loopwright.errors import LockError
from loopwright.locks.lock_file import LockedKernel, LockFile
from loopwright.locks.locked_kernel import code_digest
from tests.targets import here
from tests.unit.loopwright.locks.made import OPERATOR, OTHER_CPU, locked

OFFLINE = """
import socket, sys
def refuse(*args):
    raise AssertionError("a connection was made")
socket.socket.connect = refuse
import numpy as np
import loopwright as lw
a, b = np.random.default_rng(0).random((2, 16, 16), "float32")
kernel = lw.kernel("matmul:16,16,16:float32", lock=sys.argv[1])
c = np.zeros((16, 16), "float32")
kernel(a, b, c)
np.testing.assert_allclose(c, a @ b, rtol=1e-5)
loaded = {name.partition(".")[0] for name in sys.modules}
print(kernel.source, sorted(loaded & {"sqlalchemy", "tuner", "workers", "xgboost"}))
"""


def written(tmp_path: Path, *kernels: LockedKernel) -> Path:
    path = tmp_path / "a.lock"
    LockFile(kernels).save(path)
    return path


def test_the_locked_kernel_is_built_without_a_server_and_without_a_search(tmp_path: Path) -> None:
    path = written(tmp_path, locked("matmul:16,16,16:float32"))
    environment = {**os.environ, "LOOPWRIGHT_CACHE": str(tmp_path / "cache")}
    ran = subprocess.run(
        [sys.executable, "-W", "error", "-c", OFFLINE, str(path)],
        capture_output=True,
        text=True,
        check=False,
        env=environment,
    )
    assert ran.returncode == 0, ran.stderr
    assert ran.stdout == "lock []\n"


def test_the_kernel_has_the_locked_code_and_computes_the_product(tmp_path: Path) -> None:
    entry = locked()
    kernel = lw.kernel(OPERATOR, lock=written(tmp_path, entry), target=here())
    assert code_digest(kernel.artifact) == entry.code_sha256
    assert kernel.source is lw.KernelSource.LOCK
    assert kernel.is_tuned
    a, b = np.ones((16, 24), "float32"), np.full((24, 16), 2, "float32")
    c = np.zeros((16, 16), "float32")
    kernel(a, b, c)
    np.testing.assert_array_equal(c, np.full((16, 16), 48))


def test_constants_are_packed_once(tmp_path: Path) -> None:
    workload = "dense:4,8,16,constant=W"
    path = tmp_path / "a.lock"
    lw.lock(path, lw.tune(workload, target=here(), max_trials=1, progress=False))
    weights = np.random.default_rng(1).random((8, 16), "float32")
    kernel = lw.kernel(workload, lock=path, target=here(), const_params={"W": weights})
    inputs = np.random.default_rng(2).random((4, 16), "float32")
    outputs = np.zeros((4, 8), "float32")
    kernel(inputs, outputs)
    np.testing.assert_allclose(outputs, inputs @ weights.T, rtol=1e-5)


def test_a_number_of_cores_that_was_not_locked_takes_the_kernel_of_the_cpu(tmp_path: Path) -> None:
    path = written(tmp_path, locked(target=here(7)))
    assert lw.kernel(OPERATOR, lock=path).artifact.target == here(7).name
    with pytest.raises(LockError, match=r"not locked for .*-num-cores=3 in .* but for .*=7; pass"):
        lw.kernel(OPERATOR, lock=path, target=here(3))


def test_a_kernel_for_cold_caches_is_not_taken_for_warm_ones(tmp_path: Path) -> None:
    cold = lw.Target(f"{here(7).name} -cache=cold")
    path = written(tmp_path, locked(target=cold))
    with pytest.raises(LockError, match="not locked for"):
        lw.kernel(OPERATOR, lock=path)
    assert lw.kernel(OPERATOR, lock=path, target=cold).artifact.target == cold.name


def test_a_cpu_that_was_not_locked_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path, locked(target=OTHER_CPU))
    with pytest.raises(LockError, match=r"not locked for cpu .*, but for cpu -mcpu=cortex-a72"):
        lw.kernel(OPERATOR, lock=path)


def test_a_function_that_was_not_locked_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path, locked())
    with pytest.raises(LockError, match=r"relu is not in .*, which has matmul \([0-9a-f]{12}\);"):
        lw.kernel("relu:8:float32", lock=path)


def test_another_version_of_the_compiler_is_named(tmp_path: Path) -> None:
    entry = locked().model_copy(
        update={"toolchain": "loopwright-codegen 7, LLVM 21.1.0", "loopwright": "0.0.9"}
    )
    path = written(tmp_path, entry)
    expected = (
        r"is locked for loopwright-codegen 7, LLVM 21.1.0 \(loopwright 0.0.9\), but this is"
        r" loopwright-codegen .*: install that version, or `loopwright lock --rebuild"
    )
    with pytest.raises(LockError, match=expected):
        lw.kernel(OPERATOR, lock=path, target=here())


def test_other_machine_code_is_refused(tmp_path: Path) -> None:
    path = written(tmp_path, locked().model_copy(update={"code_sha256": "0" * 64}))
    with pytest.raises(LockError, match="becomes other machine code here"):
        lw.kernel(OPERATOR, lock=path, target=here())


def test_a_trace_of_another_function_is_refused(tmp_path: Path) -> None:
    other = locked("relu:64:float32")
    entry = locked().model_copy(update={"trace": other.trace, "trace_key": other.trace_key})
    with pytest.raises(LockError, match="refuses the locked schedule"):
        lw.kernel(OPERATOR, lock=written(tmp_path, entry), target=here())


def test_a_trace_with_another_digest_is_refused(tmp_path: Path) -> None:
    entry = locked().model_copy(update={"trace_key": "0" * 64})
    with pytest.raises(LockError, match="is damaged: it has another digest"):
        lw.kernel(OPERATOR, lock=written(tmp_path, entry), target=here())


def test_code_for_another_cpu_has_no_digest() -> None:
    """This host builds it for a basic level of the CPU, and such a CPU for all of its features."""
    assert locked(target=OTHER_CPU).code_sha256 is None

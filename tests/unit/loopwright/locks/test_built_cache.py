"""`lw.kernel` builds once: then it loads the kernel without the compiler, if nothing changed."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import loopwright as lw
from loopwright.locks import built_cache
from loopwright.locks.lock_file import LockFile
from tests.targets import here
from tests.unit.loopwright.locks.made import OPERATOR, locked

LIGHT = """
import sys
import numpy as np
import loopwright as lw
a, b = np.random.default_rng(0).random((2, 16, 16), "float32")
c = np.zeros((16, 16), "float32")
kernel = lw.kernel("matmul:16,16,16:float32", lock=sys.argv[1], target=sys.argv[2])
kernel(a, b, c)
kernel.bind(a, b, c)()
np.testing.assert_allclose(c, a @ b, rtol=1e-5)
heavy = {"compiler.ir", "compiler.target", "llvmlite", "pydantic"} & set(sys.modules)
print(kernel, sorted(heavy))
"""


@pytest.fixture
def lock(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("LOOPWRIGHT_CACHE", str(tmp_path / "cache"))
    path = tmp_path / "a.lock"
    LockFile([locked("matmul:16,16,16:float32"), locked(), locked(target=here(7))]).save(path)
    return path


def _cached(lock: Path) -> list[Path]:
    return sorted((lock.parent / "cache").glob("locked/*"))


def test_the_next_process_needs_no_compiler(lock: Path) -> None:
    command = [sys.executable, "-W", "error", "-c", LIGHT, str(lock), here().name]
    outputs = [
        subprocess.run(command, capture_output=True, text=True, check=True, env=os.environ).stdout
        for _ in range(2)
    ]
    first, second = (output.rpartition(" [")[0] for output in outputs)
    assert first == second
    assert "llvmlite" in outputs[0]
    assert outputs[1].endswith(" []\n")


def test_what_a_build_follows_from_is_the_key(lock: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    keys = [built_cache.key_of(OPERATOR, lock, here().name) for _ in range(2)]
    keys.append(built_cache.key_of(OPERATOR, lock, here(7).name))
    keys.append(built_cache.key_of("matmul:16,16,16:float32", lock, here().name))
    monkeypatch.setattr(built_cache, "CODEGEN_VERSION", 0)
    keys.append(built_cache.key_of(OPERATOR, lock, here().name))
    LockFile([locked()]).save(lock)
    keys.append(built_cache.key_of(OPERATOR, lock, here().name))
    assert len(set(keys)) == len(keys) - 1
    assert None not in keys


def test_a_damaged_kernel_is_built_again(lock: Path) -> None:
    kernel = lw.kernel(OPERATOR, lock=lock, target=here())
    (path,) = _cached(lock)
    good = path.read_bytes()
    path.write_bytes(good[:-100])
    again = lw.kernel(OPERATOR, lock=lock, target=here())
    assert again.artifact == kernel.artifact
    assert path.read_bytes() == good
    a, b = np.ones((16, 24), "float32"), np.full((24, 16), 2, "float32")
    c = np.zeros((16, 16), "float32")
    again.module(a, b, c)
    np.testing.assert_array_equal(c, np.full((16, 16), 48))


def test_a_program_is_no_text_and_is_built(lock: Path) -> None:
    lw.kernel(lw.ops.from_spec(OPERATOR), lock=lock, target=here())
    assert _cached(lock) == []


def test_a_cache_that_cannot_be_written_costs_nothing(
    lock: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("LOOPWRIGHT_CACHE", str(lock))  # a file
    assert lw.kernel(OPERATOR, lock=lock, target=here()).is_tuned


def test_a_missing_lock_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(lw.LockError, match=r"none\.lock"):
        lw.kernel(OPERATOR, lock=tmp_path / "none.lock")

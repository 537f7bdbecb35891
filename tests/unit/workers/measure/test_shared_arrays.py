import os
import signal
import subprocess
import sys
import textwrap
from collections.abc import Iterator

import numpy as np
import pytest

import compiler.ir.core.dtypes  # noqa: F401 - it lets NumPy know bfloat16
from workers.measure import shared_arrays as shelf_module
from workers.measure.shared_arrays import SharedArrays


@pytest.fixture
def slots() -> Iterator[list[int]]:
    slots = [os.memfd_create("test") for _ in range(2)]
    yield slots
    for fd in slots:
        os.close(fd)


def test_arrays_outlive_the_shelf_that_took_them(slots: list[int]) -> None:
    arrays = {
        "a": np.arange(6, dtype="float32").reshape(2, 3),
        "b": np.array(3, dtype="int64"),
        "c": np.array([True, False]),
        "d": np.array([1.5, -2], dtype="bfloat16"),
        "e": np.array([1.5, 448], dtype="float8_e4m3fn"),
    }
    SharedArrays(slots).put("key", arrays)
    found = SharedArrays(slots).find("key")
    assert found is not None
    assert found.keys() == arrays.keys()
    for name, array in arrays.items():
        assert found[name].dtype == array.dtype
        np.testing.assert_array_equal(found[name], array)


def test_a_key_that_nobody_put_is_not_found(slots: list[int]) -> None:
    shelf = SharedArrays(slots)
    shelf.put("key", {"a": np.zeros(3)})
    assert shelf.find("other") is None


def test_the_slot_used_least_recently_is_reused(slots: list[int]) -> None:
    shelf = SharedArrays(slots)
    shelf.put("one", {"a": np.array([1])})
    shelf.put("two", {"a": np.array([2])})
    assert shelf.find("one") is not None
    shelf.put("three", {"a": np.array([3])})
    assert shelf.find("two") is None
    assert {key for key in ("one", "three") if SharedArrays(slots).find(key) is not None} == {
        "one",
        "three",
    }


def test_a_key_that_was_half_written_is_not_found(
    slots: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    def die(*_: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("json.dumps", die)
    with pytest.raises(KeyboardInterrupt):
        SharedArrays(slots).put("key", {"a": np.ones(100_000)})
    monkeypatch.undo()
    assert SharedArrays(slots).find("key") is None
    assert SharedArrays(slots).find("None") is None


def test_what_is_too_large_comes_back_unkept(
    slots: list[int], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(shelf_module, "MAX_BYTES", 100)
    array = np.zeros(101, dtype="int8")
    assert SharedArrays(slots).put("key", {"a": array})["a"] is array
    assert SharedArrays(slots).find("key") is None


def test_without_slots_arrays_come_back_unkept() -> None:
    array = np.zeros(3)
    assert SharedArrays([]).put("key", {"a": array})["a"] is array


def test_native_code_cannot_write_to_what_is_on_the_shelf() -> None:
    program = textwrap.dedent("""
        import ctypes, os
        import numpy as np
        from workers.measure.shared_arrays import SharedArrays
        array = SharedArrays([os.memfd_create("test")]).put("key", {"a": np.zeros(3)})["a"]
        ctypes.memset(array.ctypes.data, 1, 1)
    """)
    path = os.pathsep.join(filter(None, sys.path))
    done = subprocess.run(
        [sys.executable, "-c", program], check=False, env={**os.environ, "PYTHONPATH": path}
    )
    assert done.returncode == -signal.SIGSEGV

"""Arrays of other libraries, by a producer that speaks DLPack as they do."""

from __future__ import annotations

import ctypes
import gc
import weakref
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import loopwright as lw

_POINTER = ctypes.pythonapi.PyCapsule_GetPointer
_POINTER.argtypes, _POINTER.restype = [ctypes.py_object, ctypes.c_char_p], ctypes.c_void_p
_CODE = 20  # where the kind of element stands in a DLTensor


class Producer:
    """An array as another library would export it.

    Args:
        is_versioned: Whether it speaks the protocol of 1.0.
        code: What kind of elements it says it has.
        device: Where it says it is.
    """

    def __init__(
        self,
        array: np.ndarray[Any, Any],
        *,
        is_versioned: bool = False,
        code: int | None = None,
        device: tuple[int, int] = (1, 0),
    ) -> None:
        self.array = array
        self._is_versioned = is_versioned
        self._code = code
        self._device = device

    def __dlpack__(self, *, stream: object = None, **options: Any) -> object:
        if options and not self._is_versioned:
            raise TypeError("an old producer knows no max_version")
        capsule = self.array.__dlpack__(**options)
        if self._code is not None:
            address = _POINTER(capsule, b"dltensor")
            ctypes.c_uint8.from_address(address + _CODE).value = self._code
        return capsule

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._device


def doubled(dtype: str) -> lw.Module:
    return lw.build(
        lw.parse(
            f'@T.prim_func\ndef main(A: T.Buffer((4, 4), "{dtype}"), '
            f'B: T.Buffer((4, 4), "{dtype}")):\n'
            "    for i, j in T.grid(4, 4):\n        B[i, j] = A[i, j] + A[i, j]\n"
        ),
        "cpu -num-cores=1",
    )


def ramp(dtype: str = "float32") -> np.ndarray[Any, Any]:
    return np.arange(16, dtype=np.float32).reshape(4, 4).astype(dtype)


@pytest.mark.parametrize("is_versioned", [True, False])
def test_inputs_and_outputs_of_any_version(is_versioned: bool) -> None:
    out = np.zeros((4, 4), np.float32)
    doubled("float32")(
        Producer(ramp(), is_versioned=is_versioned), Producer(out, is_versioned=is_versioned)
    )
    np.testing.assert_array_equal(out, 2 * ramp())


@pytest.mark.parametrize(
    ("dtype", "code"), [("bfloat16", 4), ("float8_e4m3fn", 10), ("float8_e5m2", 12)]
)
def test_floats_that_numpy_does_not_export(dtype: str, code: int) -> None:
    values = ramp(dtype)
    bits = values.view(f"u{values.itemsize}")
    out = np.zeros_like(bits)
    doubled(dtype)(Producer(bits, code=code), Producer(out, code=code))
    expected = (2 * values.astype(np.float32)).astype(dtype)
    np.testing.assert_array_equal(out, expected.view(bits.dtype))


def test_what_is_read_only_is_no_output() -> None:
    out = np.zeros((4, 4), np.float32)
    out.flags.writeable = False
    with pytest.raises(lw.ArgumentError, match="B is written, and the array is read-only"):
        doubled("float32")(ramp(), Producer(out, is_versioned=True))


class Tensor(Producer):
    """A tensor that makes dense copies as PyTorch's do."""

    def contiguous(self) -> Tensor:
        return Tensor(np.ascontiguousarray(self.array))


def test_a_view_is_refused_with_the_advice_of_its_library() -> None:
    view, out = ramp().T, np.zeros((4, 4), np.float32)
    kernel = doubled("float32")
    with pytest.raises(lw.ArgumentError, match=r"A is not contiguous: pass A\.contiguous\(\)"):
        kernel(Tensor(view), out)
    with pytest.raises(lw.ArgumentError, match="A is not contiguous: pass a dense copy of A"):
        kernel(Producer(view), out)
    with pytest.raises(lw.ArgumentError, match=r"pass np\.ascontiguousarray\(A\)"):
        kernel(view, out)
    with pytest.raises(lw.ArgumentError, match="copy the result into the view"):
        kernel(ramp(), Tensor(out.T))
    kernel(Tensor(view).contiguous(), out)
    np.testing.assert_array_equal(out, 2 * view)


def test_a_view_of_bfloat16_is_refused_alike() -> None:
    view = ramp("bfloat16").view(np.uint16).T
    with pytest.raises(lw.ArgumentError, match=r"pass A\.contiguous\(\)"):
        doubled("bfloat16")(Tensor(view, code=4), np.zeros((4, 4), ml_dtypes.bfloat16))


def test_what_is_elsewhere_or_of_another_kind_is_refused() -> None:
    bits = np.zeros((4, 4), np.uint16)
    kernel = doubled("bfloat16")
    with pytest.raises(lw.ArgumentError, match=r"on device \(2, 0\): copy it to the CPU"):
        kernel(Producer(bits, code=4, device=(2, 0)), bits)
    with pytest.raises(lw.ArgumentError, match="code 3, 16 bits"):
        kernel(Producer(bits, code=3), bits)


def test_a_producer_that_refuses_is_quoted() -> None:
    class Refusing(Producer):
        def __dlpack__(self, **_: Any) -> object:
            raise BufferError("use tensor.detach()")

    with pytest.raises(lw.ArgumentError, match=r"A is a Refusing .* use tensor\.detach\(\)"):
        doubled("float32")(Refusing(ramp()), ramp())


def test_memory_lives_as_long_as_a_bound_kernel_and_no_longer() -> None:
    class Weak(np.ndarray[Any, Any]):
        pass

    bits = np.zeros((4, 4), np.uint16).view(Weak)
    alive = weakref.ref(bits)
    out = np.zeros((4, 4), ml_dtypes.bfloat16)
    run = doubled("bfloat16").bind(Producer(bits, code=4), out)
    del bits
    gc.collect()
    assert alive() is not None
    run()
    del run
    gc.collect()
    assert alive() is None

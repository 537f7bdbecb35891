"""Arrays with TVM's names."""

from __future__ import annotations

import numpy as np
import pytest

from compiler.runtime import nd


def test_an_array_is_an_aligned_copy() -> None:
    values = np.arange(6).reshape(2, 3)
    array = nd.array(values, nd.cpu())
    np.testing.assert_array_equal(array.numpy(), values)
    assert array.ctypes.data % 64 == 0
    values[0, 0] = 9
    assert array[0, 0] == 0


def test_numpy_returns_a_plain_copy() -> None:
    array = nd.array([1.0, 2.0])
    for plain in (array.numpy(), array.asnumpy()):
        assert type(plain) is np.ndarray
        plain[0] = 5
    assert array[0] == 1


def test_an_empty_array_has_its_shape_and_type() -> None:
    array = nd.empty((3, 4), "bfloat16")
    assert (array.shape, array.dtype.name) == ((3, 4), "bfloat16")


def test_there_is_one_cpu() -> None:
    assert repr(nd.cpu()) == "cpu(0)"
    with pytest.raises(ValueError, match=r"there is no cpu\(1\)"):
        nd.cpu(1)
    with pytest.raises(TypeError, match="expected a device"):
        nd.empty((1,), device="cpu")  # type: ignore[arg-type]

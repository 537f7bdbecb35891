"""The contract of `Library`. Subclass `LibraryContract`; the oracle is Python arithmetic."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from workers.libraries.kernel_sets import LibraryCode
from workers.libraries.library import Library, LibraryError

A = np.arange(6, dtype=np.float32).reshape(2, 3)
B = np.arange(12, dtype=np.float32).reshape(3, 4)
PRODUCT = [[sum(float(A[i, k] * B[k, j]) for k in range(3)) for j in range(4)] for i in range(2)]


class LibraryContract:
    """Tests of a library: override the fixture, which starts it on one thread."""

    lacking: str
    """An operator of one input that the library does not support."""

    @pytest.fixture
    def library(self) -> Library:
        raise NotImplementedError

    def to_device(self, array: np.ndarray) -> Any:
        """Return an array in the memory that the library computes in."""
        return array

    def product_of(self, result: Any) -> np.ndarray:
        """Return the result of the product as an array of the host."""
        return np.asarray(result)

    def test_it_has_a_name_and_a_version(self, library: Library) -> None:
        assert any(letter.isdigit() for letter in library.start(1))

    def test_it_has_a_kernel_set(self, library: Library) -> None:
        assert isinstance(library.kernel_set(), LibraryCode)

    def test_it_computes_a_product_each_time_it_runs(self, library: Library) -> None:
        call = library.prepare("matmul:2,4,3", [self.to_device(A), self.to_device(B)])
        for _ in range(2):
            result = self.product_of(call.result(call.run()))
            assert result.dtype == np.float32
            assert result.tolist() == PRODUCT

    def test_it_leaves_its_inputs_alone(self, library: Library) -> None:
        inputs = [A.copy(), B.copy()]
        call = library.prepare("matmul:2,4,3", inputs)
        call.result(call.run())
        assert [i.tolist() for i in inputs] == [A.tolist(), B.tolist()]

    def test_an_operator_that_it_lacks_is_a_library_error(self, library: Library) -> None:
        with pytest.raises(LibraryError):
            library.prepare(self.lacking, [self.to_device(A)])

"""Every library that is installed here keeps the contract of libraries."""

from __future__ import annotations

from collections.abc import Iterator
from importlib.util import find_spec

import numpy as np
import pytest
from threadpoolctl import threadpool_limits

from tests.contracts.library import LibraryContract
from workers.libraries.library import Library
from workers.libraries.load import LIBRARIES, load_library

LACKING = {"numpy": "erf:2,3", "torch": "gather:4,2"}
INSTALLED = [name for name in LACKING if find_spec(name)]


def test_the_libraries_are_these() -> None:
    assert LIBRARIES == ("numpy", "torch", "cublas", "torch-cuda")


@pytest.mark.parametrize("name", INSTALLED)
class TestLibraries(LibraryContract):
    @pytest.fixture
    def library(self, name: str) -> Iterator[Library]:
        # Starting a library changes the threads and the float errors of the whole process.
        with threadpool_limits(), np.errstate():
            loaded = load_library(name)
            loaded.start(1)
            self.lacking = LACKING[name]
            yield loaded

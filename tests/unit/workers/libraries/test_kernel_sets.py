from __future__ import annotations

import pytest

from compiler.target.cpus import CPUS
from workers.libraries.kernel_sets import (
    CORE_TYPE,
    LibraryCode,
    better_settings,
    cpu_level,
    is_below,
    set_level,
)
from workers.libraries.load import load_library

ZEN5, ZEN3, NEHALEM = (CPUS[name].features for name in ("znver5", "znver3", "nehalem"))


def openblas(name: str) -> LibraryCode:
    return LibraryCode(name, CORE_TYPE)


@pytest.mark.parametrize(
    ("cpu", "level"), [("x86-64", 1), ("nehalem", 2), ("znver3", 3), ("znver5", 4)]
)
def test_the_level_of_a_cpu_follows_from_its_features(cpu: str, level: int) -> None:
    assert cpu_level(CPUS[cpu].features) == level


def test_a_library_that_fell_back_is_tried_with_the_kernels_that_the_cpu_can_run() -> None:
    assert better_settings(openblas("Haswell"), ZEN5) == [{CORE_TYPE: "SkylakeX"}]
    assert better_settings(openblas("Nehalem"), ZEN5) == [
        {CORE_TYPE: "SkylakeX"},
        {CORE_TYPE: "Haswell"},
    ]


def test_nothing_is_tried_that_the_cpu_cannot_run_or_the_library_cannot_be_told() -> None:
    assert better_settings(openblas("Zen"), ZEN3) == []
    assert better_settings(openblas("SkylakeX"), ZEN5) == []
    assert better_settings(openblas("Haswell"), NEHALEM) == []
    assert better_settings(openblas("a core of tomorrow"), ZEN5) == []
    assert better_settings(LibraryCode("AVX2"), ZEN5) == []


def test_a_kernel_set_below_the_cpu_is_known_as_such() -> None:
    assert is_below("Haswell", ZEN5)
    assert is_below("AVX2", ZEN5)
    assert not is_below("Haswell", ZEN3)
    assert not is_below("cooperlake", ZEN5)
    assert not is_below("a core of tomorrow", ZEN5), "nothing is said of what is not known"


def test_numpy_says_which_kernels_its_blas_has() -> None:
    numpy = load_library("numpy")
    numpy.start(1)
    found = numpy.kernel_set()
    if found.is_chosen_by:  # OpenBLAS, which comes with NumPy's wheels
        assert set_level(found.name) is not None, found

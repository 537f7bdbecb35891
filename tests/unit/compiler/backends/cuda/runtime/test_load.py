"""A kernel whose driver is too old is refused before a GPU is touched."""

from __future__ import annotations

import pytest

from compiler.backends.cuda.runtime.load import DriverTooOldError, require_driver
from compiler.executor.error import ArtifactError

TOOLCHAIN = "loopwright-cuda 1, NVRTC 13.0.88"


@pytest.mark.parametrize("driver", [(13, 0), (13, 2), (14, 0)])
def test_each_driver_of_the_same_or_a_later_major_version_runs_a_kernel(
    driver: tuple[int, int],
) -> None:
    require_driver("add", TOOLCHAIN, driver)


def test_an_older_driver_is_refused_with_both_versions() -> None:
    with pytest.raises(DriverTooOldError, match=r"NVRTC 13\.0\.88") as caught:
        require_driver("add", TOOLCHAIN, (12, 8))
    assert "CUDA 13.0 or later" in str(caught.value)
    assert "supports CUDA 12.8: update the driver" in str(caught.value)
    assert (caught.value.required, caught.value.supported) == ((13, 0), (12, 8))


def test_an_unknown_driver_is_refused() -> None:
    with pytest.raises(DriverTooOldError, match="an unknown version of CUDA"):
        require_driver("add", TOOLCHAIN, None)


def test_an_artifact_without_a_version_of_nvrtc_is_refused() -> None:
    with pytest.raises(ArtifactError, match="no version of NVRTC"):
        require_driver("add", "no NVRTC", (13, 0))

"""Tile registers are requested from Linux, which may refuse them."""

from __future__ import annotations

import pytest

from compiler.backends.cpu.runtime.tile_permission import FEATURE, request_tiles
from compiler.executor.error import ArtifactError
from compiler.target.host import detected_features


def test_a_refusal_says_what_to_do() -> None:
    if FEATURE in detected_features().split(","):
        request_tiles()
        return
    with pytest.raises(ArtifactError, match=r"Linux refuses .* Build the kernel for a CPU without"):
        request_tiles()

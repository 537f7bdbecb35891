from __future__ import annotations

from typing import Any

import pytest

from loopwright.cli.shared.output import against
from service.wire.models import BaselineRead


def baseline(speedup: float, interval: tuple[float, float] | None, **more: Any) -> BaselineRead:
    return BaselineRead(
        library="numpy",
        version="NumPy 2, OpenBLAS 0.3",
        run_secs=speedup,
        kernel_secs=1.0,
        speedup=speedup,
        interval=interval,
        **more,
    )


@pytest.mark.parametrize(
    ("speedup", "interval", "verdict", "words"),
    [
        (1.28, (1.27, 1.3), "faster", "1.28x faster [1.27 to 1.3]"),
        (0.8, (0.7, 0.9), "slower", "0.8x as fast [0.7 to 0.9]"),
        (0.53, (0.15, 2.0), "inconclusive", "inconclusive (noisy host) [0.15 to 2]"),
        (1.0, (0.98, 1.02), "equal", "equally fast (1x) [0.98 to 1.02]"),
        (1.2, None, "inconclusive", "inconclusive (too few rounds)"),
    ],
)
def test_only_what_the_interval_shows_is_claimed(
    speedup: float, interval: tuple[float, float] | None, verdict: str, words: str
) -> None:
    found = baseline(speedup, interval)
    assert found.verdict == verdict
    assert against(found)["vs NumPy 2, OpenBLAS 0.3"] == words


def test_nothing_is_claimed_of_a_library_below_the_instruction_set_of_the_cpu() -> None:
    found = baseline(
        2.2,
        (2.1, 2.3),
        kernel_set="Haswell",
        setting="1 thread",
        share_of_peak=0.45,
        is_below_cpu=True,
    )
    assert found.verdict == "no_claim"
    rows = against(found)
    assert "not comparable: its Haswell kernels" in rows["vs NumPy 2, OpenBLAS 0.3"]
    assert rows["library"] == "Haswell kernels, 1 thread, 45% of peak"


def test_an_older_server_says_nothing_of_kernel_sets() -> None:
    plain = baseline(1.28, (1.27, 1.3)).model_dump(
        include={"library", "version", "run_secs", "kernel_secs", "speedup", "interval"}
    )
    found = BaselineRead.model_validate(plain)
    assert (found.verdict, found.kernel_set, found.tried) == ("faster", None, ())

from __future__ import annotations

import pytest

from compiler.target.target import Target
from workers.libraries.library import LibraryError
from workers.libraries.load import CHOICE, LIBRARIES, chosen_libraries, libraries_for


@pytest.mark.parametrize(
    ("text", "chosen"),
    [("numpy", ("numpy",)), ("torch, numpy", ("torch", "numpy")), ("none", ()), ("", LIBRARIES)],
)
def test_the_environment_names_the_libraries(
    monkeypatch: pytest.MonkeyPatch, text: str, chosen: tuple[str, ...]
) -> None:
    monkeypatch.setenv(CHOICE, text)
    assert chosen_libraries() == chosen


def test_all_are_chosen_by_default(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv(CHOICE, raising=False)
    assert chosen_libraries() == LIBRARIES


@pytest.mark.parametrize("text", ["nunpy", "numpy,none"])
def test_an_unknown_library_is_refused_with_the_known_ones(
    monkeypatch: pytest.MonkeyPatch, text: str
) -> None:
    monkeypatch.setenv(CHOICE, text)
    with pytest.raises(LibraryError, match=r"LOOPWRIGHT_BASELINES.*none.*numpy, torch"):
        chosen_libraries()


@pytest.mark.parametrize(
    ("target", "expected"),
    [
        ("cpu", ("numpy", "torch")),
        ("cuda -gpu=h200", ("cublas", "torch-cuda")),
        ("cuda -gpu=h200 -emulated", ()),
    ],
)
def test_a_kernel_is_timed_beside_the_libraries_of_its_device(
    target: str, expected: tuple[str, ...]
) -> None:
    assert libraries_for(Target(target), LIBRARIES) == expected

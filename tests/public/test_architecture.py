"""The page on the architecture names paths, rooms and tests that exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / "docs" / "ARCHITECTURE.md").read_text(encoding="utf-8")
BEFORE, GUARANTEES = PAGE.split("\n## Guarantees\n")
PARAGRAPHS = re.sub(r"```.*?```", "", BEFORE, flags=re.DOTALL).split("\n\n")
ITEMS = [item for paragraph in PARAGRAPHS for item in re.split(r"\n(?=- )", paragraph)]
PACKAGES = (
    "compiler",
    "compiler/ir",
    "compiler/schedule",
    "tuner",
    "workers",
    "service",
    "loopwright",
)
NO_ROOMS = {"__pycache__", "dashboard", "recorded", "ir", "schedule"}
HELD_BY = re.findall(r"- `([^`]+)`:\n((?: +`\w+`\n?)+)", GUARANTEES)


def paths(item: str) -> list[str]:
    """Return what stands between backticks and looks like a path."""
    words: list[str] = re.findall(r"`([^`\s]+)`", item)
    return [word for word in words if ("/" in word or word.endswith(".py")) and "<" not in word]


@pytest.mark.parametrize("item", [item for item in ITEMS if paths(item)], ids=lambda i: paths(i)[0])
def test_its_paths_exist(item: str) -> None:
    """A path begins at the top, or at the first path of its item."""
    bases = [ROOT, ROOT / paths(item)[0]]
    routes = {"/artifacts"}
    missing = [
        path
        for path in paths(item)
        if path not in routes and not any((base / path).exists() for base in bases)
    ]
    assert not missing


@pytest.mark.parametrize(("path", "names"), HELD_BY, ids=lambda value: str(value)[:60])
def test_its_guarantees_are_held_by_tests_that_exist(path: str, names: str) -> None:
    text = (ROOT / path).read_text(encoding="utf-8")
    for name in re.findall(r"`(\w+)`", names):
        assert re.search(rf"def {name}\(", text), f"{path} has no {name}"


def test_it_has_guarantees_with_tests() -> None:
    promises = re.findall(r"^- ", GUARANTEES, re.MULTILINE)
    assert len(promises) > 50
    assert len(HELD_BY) >= len(promises)


@pytest.mark.parametrize("package", PACKAGES)
def test_it_names_each_room(package: str) -> None:
    rooms = {
        folder.name
        for folder in (ROOT / package).iterdir()
        if folder.is_dir() and any(folder.glob("*.py"))
    }
    missing = {room for room in rooms - NO_ROOMS if f"`{package}/{room}/`" not in BEFORE}
    assert not missing


def test_its_lines_are_short() -> None:
    long = [number for number, line in enumerate(PAGE.splitlines(), 1) if len(line) >= 120]
    assert not long


def rooms() -> list[Path]:
    """Return the folders of the packages that hold modules."""
    tops = ("compiler", "tuner", "workers", "service", "loopwright")
    modules = [path for top in tops for path in (ROOT / top).rglob("*.py")]
    return sorted({path.parent.relative_to(ROOT) for path in modules if "__" not in path.name})


@pytest.mark.parametrize("room", rooms(), ids=str)
def test_each_room_has_tests_in_the_folder_of_its_name(room: Path) -> None:
    """The tests of a module are in `test_<module>.py`, or else among those of its room."""
    public = Path(*room.parts[1:]) if room.parts[0] == "loopwright" else room
    folders = [ROOT / "tests" / kind / room for kind in ("unit", "integration")]
    folders.append(ROOT / "tests" / "public" / public)
    assert any(next(folder.glob("test_*.py"), None) for folder in folders), folders

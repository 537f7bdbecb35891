"""A variable says what it holds: words that fit any value are no names."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]

WORDS = frozenset({"found", "place", "known", "kept", "own"})

# The folders that are free of these words. A folder that becomes free is added.
FOLDERS = (
    "compiler",
    "loopwright",
    "service",
    "tuner",
    "workers",
)


def bindings(tree: ast.AST) -> Iterator[tuple[int, str]]:
    """Yield the line and the name of each variable, parameter, field and pattern that is bound."""
    for node in ast.walk(tree):
        match node:
            case ast.Name(id=name, ctx=ast.Store()) | ast.arg(arg=name):
                yield node.lineno, name
            case ast.MatchAs(name=str(name)) | ast.MatchStar(name=str(name)):
                yield node.lineno, name
            case ast.MatchMapping(rest=str(name)) | ast.ExceptHandler(name=str(name)):
                yield node.lineno, name
            case _:
                pass


def test_every_kind_of_binding_is_seen() -> None:
    text = """
def f(found, *place, known=1, **kept):
    own: int = 0
    for found, (place, *known) in kept:
        with open(own) as kept:
            [own := found for place in known]
    match found:
        case [place, *known] | {"key": place, **known}:
            pass
"""
    names = " ".join(sorted(name for _, name in bindings(ast.parse(text))))
    assert names == (
        "found found kept kept known known known known own own place place place place place"
    )


@pytest.mark.parametrize("folder", FOLDERS)
def test_a_variable_says_what_it_holds(folder: str) -> None:
    paths = sorted((ROOT / folder).rglob("*.py"))
    assert paths, f"{folder} holds no modules"
    vague = [
        f"{path.relative_to(ROOT)}:{line}: {name}"
        for path in paths
        for line, name in bindings(ast.parse(path.read_text(encoding="utf-8")))
        if name in WORDS
    ]
    assert vague == []

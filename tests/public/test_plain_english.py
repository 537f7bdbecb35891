"""Phrases that the project's texts avoid: documents, help, messages, docstrings and comments."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
FOLDERS = (
    *("compiler", "dashboard/src", "docs", "examples"),
    *("loopwright", "migrations", "service", "tuner", "workers"),
)
SUFFIXES = (".css", ".md", ".py", ".ts", ".tsx")
PHRASES = (
    "(?:are|is|was|were) told",
    "(?:be|found|is known to be) right",
    "(?:fewer|most|of|the fastest|without a) right (?:candidates?|measurements?|trials?)",
    "all that was (?:asked|measured)",
    "amid",
    "as one that knows",
    "by itself",
    "by themselves",
    "by turns",
    "came of it",
    "(?:became|becomes?) of",
    "comes? to nothing",
    "(?:goes|went) away",
    "in good order",
    "meeting point",
    "no schedule is known",
    "nobody(?!`)",  # the Unix account is `nobody`
    "right (?:above|after|before|below|inside)",
    "somebody",
    "takes? leave",
    "tells? (?:it|them) from",
    "the lucky",
    "told (?:apart|from|of)",
    "was right",
    "were right",
    "what (?:came|comes) of",
    "what is (?:asked|known|there|told)",
    "what there (?:is|was)",
    "where there (?:are|is|was|were)",
    "who (?:asks|is told|waits)",
    "whoever",
    "(?:ordered|ranked) rightly",
    "rightly",
)
"""Each phrase with its plain form: "who asks" is the caller, "by itself" is automatically, ..."""


PATTERN = re.compile(
    rf"\b(?:{'|'.join(PHRASES)})\b".replace(" ", r"\s+(?:(?:#|//|\*)\s+)?"), re.IGNORECASE
)


def matches(text: str) -> Iterator[tuple[int, str]]:
    """Yield the line and the words of each phrase, also of one that is broken over two lines."""
    for match in PATTERN.finditer(text):
        yield text.count("\n", 0, match.start()) + 1, " ".join(match[0].split())


def texts() -> list[Path]:
    written = [ROOT / "README.md", ROOT / "CONTRIBUTING.md"]
    for folder in FOLDERS:
        written += [path for path in (ROOT / folder).rglob("*") if path.suffix in SUFFIXES]
    return sorted(written)


def test_the_texts_of_the_project_are_plain_english() -> None:
    found = [
        f"{path.relative_to(ROOT)}:{line}: {words}"
        for path in texts()
        for line, words in matches(path.read_text(encoding="utf-8"))
    ]
    assert found == []


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("# Whoever calls this.", 1),
        ("a\n# what is\n# known of it", 2),
        ("/**\n * What is\n * told. */", 2),
    ],
)
def test_a_phrase_is_found_in_any_case_and_across_lines(text: str, line: int) -> None:
    assert [found for found, _ in matches(text)] == [line]


def test_names_and_longer_words_are_no_phrases() -> None:
    assert list(matches("as the user `nobody`; the smallest element; brightly")) == []

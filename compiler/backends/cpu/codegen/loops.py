"""Loops as text: rotated, and with running sums for multiples of the counter where that pays."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

_MULTIPLE = re.compile(r"  (%\w+) = mul nsw i64 (%\w+), (\d+)$")


@dataclass(frozen=True, slots=True)
class Counter:
    """The counter of a loop: its name, that of its next value, its first value and its end."""

    name: str
    following: str
    begin: str
    end: str


def rotated_loop(
    counter: Counter, labels: tuple[str, str, str, str], body: Sequence[str]
) -> list[str]:
    """Return a loop that tests at its end, since it runs at least once.

    Args:
        counter: What counts its iterations.
        labels: The block before the loop, its first and its last block, and the block behind it.
        body: Its lines.
    """
    before, first, last, after = labels
    sums, lines = _running_sums(counter, body)
    steps = [(counter.name, counter.following, counter.begin, 1), *sums]
    if sums and not _uses("\n".join(lines), counter.name):
        del steps[0]  # nobody asks for the counter itself
    _, following, _, step = steps[0]
    end = counter.end if step == 1 else str(int(counter.end) * step)
    return [
        f"  br label %{first}",
        f"{first}:",
        *(f"  {n} = phi i64 [ {b}, %{before} ], [ {f}, %{last} ]" for n, f, b, _ in steps),
        *lines,
        *(f"  {f} = add nuw nsw i64 {n}, {s}" for n, f, _, s in steps),
        f"  %{after}.test = icmp ult i64 {following}, {end}",
        f"  br i1 %{after}.test, label %{first}, label %{after}",
        f"{after}:",
    ]


def _running_sums(
    counter: Counter, body: Sequence[str]
) -> tuple[list[tuple[str, str, str, int]], list[str]]:
    """Take the multiples of the counter out of the body of an innermost loop of known extent.

    A sum that runs on costs one instruction where a multiple costs two or three, which is felt
    where another thread of the core takes its share of them. Outer loops gain little, and registers
    are scarce there.

    Returns:
        Name, next value, first value and step of each sum, and the lines that are left.
    """
    is_innermost = not any(line.endswith(":") for line in body)
    if not is_innermost or not (counter.begin + counter.end).isdigit():
        return [], list(body)
    sums, lines = [], []
    for line in body:
        found = _MULTIPLE.match(line)
        if found is None or found[2] != counter.name:
            lines.append(line)
        else:
            step = int(found[3])
            sums.append((found[1], f"{found[1]}.next", str(int(counter.begin) * step), step))
    return sums, lines


def _uses(text: str, name: str) -> bool:
    return re.search(rf"{re.escape(name)}\b", text) is not None

"""The text of loops: rotated, and with running sums in place of multiples of the counter.

Example: in an innermost loop of 8 iterations, the multiple `%v1 = mul nsw i64 %i, 12` becomes a
second counter from 0 to 96 in steps of 12. If nothing else uses `%i`, it is the only one:

    loop:
      %v1 = phi i64 [ 0, %before ], [ %v1.next, %loop ]
      ...
      %v1.next = add nuw nsw i64 %v1, 12
      %after.test = icmp ult i64 %v1.next, 96
      br i1 %after.test, label %loop, label %after
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

_MULTIPLE = re.compile(r"  (%\w+) = mul nsw i64 (%\w+), (\d+)$")


@dataclass(frozen=True, slots=True)
class Counter:
    """The counter of a loop: its name, the name of its next value, its first value, and its end."""

    name: str
    following: str
    begin: str
    end: str


def rotated_loop(
    counter: Counter, labels: tuple[str, str, str, str], body: Sequence[str]
) -> list[str]:
    """Return a loop that tests at its end, since it runs at least once.

    Args:
        counter: The counter of its iterations.
        labels: The block before the loop, its first and last block, and the block after it.
        body: Its lines.
    """
    before, first, last, after = labels
    sums, lines = _running_sums(counter, body)
    steps = [(counter.name, counter.following, counter.begin, 1), *sums]
    if sums and not _uses("\n".join(lines), counter.name):
        del steps[0]  # nothing else uses the counter
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
    """Replace the multiples of the counter in an innermost loop of constant extent.

    A running sum costs one instruction, a multiple two or three, which matters if another thread
    runs on the same core. Outer loops gain little, and registers are scarce in them.

    Returns:
        Name, next value, first value and step of each sum, and the other lines.
    """
    is_innermost = not any(line.endswith(":") for line in body)
    if not is_innermost or not (counter.begin + counter.end).isdigit():
        return [], list(body)
    sums, lines = [], []
    for line in body:
        multiple = _MULTIPLE.match(line)
        if multiple is None or multiple[2] != counter.name:
            lines.append(line)
        else:
            name, step = multiple[1], int(multiple[3])
            sums.append((name, f"{name}.next", str(int(counter.begin) * step), step))
    return sums, lines


def _uses(text: str, name: str) -> bool:
    return re.search(rf"{re.escape(name)}\b", text) is not None

"""Add or remove an annotation, which passes read: `annotate` and `unannotate`."""

from __future__ import annotations

from dataclasses import replace

from compiler.ir.core.nodes import (
    Annotations,
    AnnotationValue,
    BlockRealize,
    For,
    Var,
)
from compiler.ir.core.program import PrimFunc
from compiler.schedule.error import Refuse, refusal
from compiler.schedule.tree.tree import Path, block_path, loop_path, replace_at, with_block


def annotate(func: PrimFunc, at: Var | str, key: str, value: AnnotationValue) -> PrimFunc:
    """Annotate a loop, or the block with a name; existing annotations stay.

    Rewrites:
        for i in range(n):   ->   for i in T.serial(n, annotations={key: value}):
            body                      body

    Raises:
        ScheduleError: If the loop or block does not exist.
    """
    refuse = refusal("annotate", func)
    path = _path(func, at, refuse)
    notes = _annotations(path)
    if any(key == existing for existing, _ in notes):
        return func
    return _with_annotations(func, path, (*notes, (key, value)))


def unannotate(func: PrimFunc, at: Var | str, key: str) -> PrimFunc:
    """Remove an annotation from a loop, or from the block with a name.

    Requires:
        The annotation exists.

    Rewrites:
        for i in T.serial(n, annotations={key: value}):   ->   for i in range(n):
            body                                                   body

    Raises:
        ScheduleError: If a requirement does not hold.
    """
    refuse = refusal("unannotate", func)
    path = _path(func, at, refuse)
    notes = _annotations(path)
    if all(key != existing for existing, _ in notes):
        existing = ", ".join(f'"{existing}"' for existing, _ in notes) or "none"
        raise refuse(
            f'there is no annotation "{key}"; there are: {existing}', path[-1], "not_found"
        )
    return _with_annotations(func, path, tuple(note for note in notes if note[0] != key))


def _path(func: PrimFunc, at: Var | str, refuse: Refuse) -> Path:
    return block_path(func, at, refuse) if isinstance(at, str) else loop_path(func, at, refuse)


def _annotations(path: Path) -> Annotations:
    match path[-1]:
        case For(annotations=annotations):
            return annotations
        case BlockRealize(block=block):
            return block.annotations
        case _:
            raise AssertionError("the path leads to a loop or a block")


def _with_annotations(func: PrimFunc, path: Path, notes: Annotations) -> PrimFunc:
    match path[-1]:
        case For() as loop:
            return replace_at(func, path, replace(loop, annotations=notes))
        case BlockRealize(block=block) as realize:
            noted = with_block(realize, replace(block, annotations=notes))
            return replace_at(func, path, noted) if len(path) > 1 else replace(func, body=noted)
        case _:
            raise AssertionError("the path leads to a loop or a block")

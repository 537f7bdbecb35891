"""The programs that a module runs, each once: the tasks to tune for all of it."""

from __future__ import annotations

from collections import defaultdict
from dataclasses import dataclass

from compiler.executor.named_type import named_type
from compiler.ir.analysis.structural import structural_hash
from compiler.ir.core.program import IRModule, PrimFunc
from compiler.ir.modules.inline_calls import Inliner, entries


@dataclass(frozen=True, slots=True)
class ExtractedTask:
    """A program of a module.

    Attributes:
        func: The program, with its calls inlined.
        weight: The number of its runs in one run of all entries.
        names: The functions of the module that are this program.
    """

    func: PrimFunc
    weight: float
    names: tuple[str, ...]


def extract_tasks(module: IRModule) -> list[ExtractedTask]:
    """Return the programs that a module runs, with the number of runs of each.

    Each function that no other calls is an entry. An entry that only calls others, as a model calls
    its operators, is replaced by these; any other is one program, with its calls inlined. Equal
    programs, by their structural hash, are one task.

    Args:
        module: A module of one or more functions.

    Raises:
        TypeError: If it is not a module.
        VerifyError: If a call is not legal.
    """
    if not isinstance(module, IRModule):
        raise TypeError(f"expected an IRModule, not {named_type(module)}")
    inliner = Inliner(module)
    programs: dict[str, list[PrimFunc]] = defaultdict(list)
    for entry in entries(module):
        for func in inliner.parts(entry):
            programs[structural_hash(func)].append(func)
    return [
        ExtractedTask(same[0], float(len(same)), tuple(dict.fromkeys(f.name for f in same)))
        for same in programs.values()
    ]

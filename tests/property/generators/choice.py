"""Random choices of primitives: the blocks and loops of a schedule, and ways to choose one.

Every random choice goes through one function, so that hypothesis (which shrinks) and a seeded
generator (which counts) can make them. Primitives register themselves with `step`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias, TypeVar

from compiler.ir.core.nodes import Block, BlockRealize, Expr, For, IntImm, Var
from compiler.ir.core.visit import walk
from compiler.schedule.schedule import Schedule
from compiler.schedule.trace.handle import BlockRV, LoopRV
from compiler.schedule.tree.tree import blocks

T = TypeVar("T")
Choose = Callable[[Sequence[Any]], Any]


class NotApplicableError(Exception):
    """The program has no block or loop to try a primitive on."""


@dataclass(frozen=True)
class Place:
    """A loop: its handle and its current node."""

    handle: LoopRV
    loop: For

    @property
    def extent(self) -> int:
        return self.loop.extent.value if isinstance(self.loop.extent, IntImm) else 0

    @property
    def is_serial(self) -> bool:
        return self.loop.kind == "serial"


@dataclass(frozen=True)
class Draw:
    """A schedule, and a source of choices."""

    schedule: Schedule
    choose: Choose

    def pick(self, options: Iterable[T]) -> T:
        """Choose one of the options.

        Raises:
            NotApplicableError: If there are no options.
        """
        candidates = list(options)
        if not candidates:
            raise NotApplicableError
        chosen: T = self.choose(candidates)
        return chosen

    def chance(self, one_in: int = 2) -> bool:
        return bool(self.choose([False] * (one_in - 1) + [True]))

    def some(self, options: Iterable[T], most: int) -> list[T]:
        """Choose several different options, in any order."""
        left = list(options)
        count = min(len(left), self.choose(range(1, most + 1)))
        return [left.pop(self.choose(range(len(left)))) for _ in range(count)]

    def realizes(self, where: Callable[[Block], bool] = lambda _: True) -> list[BlockRealize]:
        """Return the blocks below the root, in program order."""
        return [r for r in list(blocks(self.schedule.func))[1:] if where(r.block)]

    def realize(self, where: Callable[[Block], bool] = lambda _: True) -> BlockRealize:
        return self.pick(self.realizes(where))

    def block(self, where: Callable[[Block], bool] = lambda _: True) -> BlockRV:
        return self.handle(self.realize(where))

    def handle(self, realize: BlockRealize) -> BlockRV:
        return self.schedule.get_block(realize.block.name)

    def loops(self, block: BlockRV) -> list[Place]:
        places = []
        for handle in self.schedule.get_loops(block):
            loop = self.schedule.get(handle)
            assert isinstance(loop, For)
            places.append(Place(handle, loop))
        return places

    def loop(self, where: Callable[[Place], bool] = lambda _: True) -> LoopRV:
        """Choose a block, then a loop around it."""
        return self.pick(p for p in self.loops(self.block()) if where(p)).handle


Step: TypeAlias = Callable[[Draw], None]
STEPS: dict[str, Step] = {}


def step(function: Step) -> Step:
    """Register a function that tries one primitive, under the primitive's name."""
    STEPS[function.__name__] = function
    return function


def is_reduction(block: Block) -> bool:
    return any(iter_var.kind == "reduce" for iter_var in block.iter_vars)


def is_leaf(block: Block) -> bool:
    return not any(isinstance(node, BlockRealize) for node in walk(block.body))


def uses(expr: Expr, var: Var) -> bool:
    return any(node is var for node in walk(expr))


def kinds_of(realize: BlockRealize, var: Var) -> set[str]:
    """Return the kinds of a block's iterators that a loop variable gives values to."""
    pairs = zip(realize.iter_values, realize.block.iter_vars, strict=True)
    return {iter_var.kind for value, iter_var in pairs if uses(value, var)}


def perfect_chain(places: Sequence[Place]) -> list[Place]:
    """Return the innermost loops of a nest that directly contain each other."""
    chain: list[Place] = []
    for place in reversed(places):
        if chain and place.loop.body is not chain[0].loop:
            break
        chain.insert(0, place)
    return chain


def divisors(number: int) -> list[int]:
    return [d for d in range(1, number + 1) if number % d == 0]


def iter_extents(block: Block) -> list[int]:
    """Return the extents of a block's iterators, with a number for each variable extent."""
    extents = (iter_var.extent for iter_var in block.iter_vars)
    return [extent.value if isinstance(extent, IntImm) else 4 for extent in extents]

"""The state of a schedule: programs, the referents of handles, and the instructions so far."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from random import Random
from typing import Self

from compiler.error_codes import ScheduleErrorCode
from compiler.ir.core.nodes import (
    AnnotationDict,
    BlockRealize,
    For,
    IntImm,
    Var,
)
from compiler.ir.core.program import IRModule, PrimFunc
from compiler.ir.modules.inline_calls import inline_calls
from compiler.schedule.error import Detail, ScheduleError, refusal
from compiler.schedule.legality.legal_result import (
    checked_step,
    must_be_verified,
    require_legal,
)
from compiler.schedule.legality.thread_memory import require_sound_threads
from compiler.schedule.rewrite.plain_loops.derive_blocks import derive_blocks
from compiler.schedule.rewrite.plain_loops.statements import UnderivableError
from compiler.schedule.schedulable import schedulable
from compiler.schedule.trace.handle import BlockRV, ExprRV, Handle, LoopRV, SpecialLocation, TermRV
from compiler.schedule.trace.instruction import Argument, Decision, Instruction, NoteDict, Ref, Term
from compiler.schedule.tree.tree import block_path, loops_on, realize_at, statements
from compiler.te.value import Value


class State:
    """The state of a schedule, with the methods by which primitives read and change it."""

    def __init__(self, mod: PrimFunc | IRModule, *, seed: int | None = None) -> None:
        if not isinstance(mod, PrimFunc | IRModule):
            raise TypeError(f"expected a PrimFunc or an IRModule to schedule, got {mod!r}")
        functions = inline_calls(mod).functions if isinstance(mod, IRModule) else (mod,)
        if not functions:
            raise ValueError("the module has no function to schedule")
        # The functions that no blocks can be derived of.
        self._without_blocks: dict[str, UnderivableError] = {}
        self._functions = {func.name: self._with_blocks(func) for func in functions}
        self._default_function = _default_of(tuple(self._functions))
        self._working = self._default_function
        self._blocks: dict[BlockRV, tuple[str, str]] = {}
        self._loops: dict[LoopRV, tuple[str, Var]] = {}
        self._values: dict[ExprRV, int] = {}
        self._special_locations: dict[LoopRV, SpecialLocation] = {}
        self._detail: Detail = "detail"
        self._dead: dict[Handle, str] = {}
        # The maps that changed the layouts of parameters, by function and parameter.
        self._layouts: dict[tuple[str, str], tuple[str, ...]] = {}
        self._instructions: list[Instruction] = []
        self._num_handles = 0
        self._rng = Random(seed)
        # Inside of `verified_once`: the functions to verify, each with its form before and the last
        # primitive.
        self._unverified: dict[str, tuple[PrimFunc, str]] | None = None
        self._defers_threads = False

    def _with_blocks(self, func: PrimFunc) -> PrimFunc:
        """Return a function with blocks, which are derived of plain loops if it has none."""
        try:
            return schedulable(derive_blocks(func))
        except UnderivableError as error:
            self._without_blocks[func.name] = error
            return func

    def _require_blocks(self) -> None:
        """Refuse functions without blocks: no primitive would apply to them."""
        for name, error in self._without_blocks.items():
            func = self._functions[name]
            reason = f"{name} has no blocks, and none can be derived: {error.reason}"
            raise ScheduleError("Schedule", reason, func, error.at, "structure") from error

    @property
    def func(self) -> PrimFunc:
        """Return the current function, in its current form.

        Raises:
            ValueError: If there are several functions, and `work_on` has chosen none of them.
        """
        if self._working is None:
            names = ", ".join(self._functions)
            raise ValueError(
                f"the schedule has the functions {names}, and does not know which function to be "
                f'working on: choose one by work_on("{next(iter(self._functions))}"), or pass its '
                "name as func_name"
            )
        return self._functions[self._working]

    @property
    def mod(self) -> IRModule:
        """Return all functions, in their current form."""
        return IRModule(tuple(self._functions.values()))

    def _function(self, primitive: str, name: object) -> PrimFunc:
        """Return a function by its name; None for the current one.

        The only function of a schedule is its `main`, too.
        """
        if name is None or (name == "main" and len(self._functions) == 1):
            return self.func
        if not isinstance(name, str) or name not in self._functions:
            function_names = ", ".join(self._functions)
            reason = f'there is no function "{name}"; the functions are: {function_names}'
            raise self._fail(primitive, reason, code="not_found")
        return self._functions[name]

    def _commit(self, primitive: str, func: PrimFunc) -> None:
        """Accept a changed function, unless it is not a legal program."""
        before = self._functions[func.name]
        after = checked_step(primitive, before, func, with_threads=not self._defers_threads)
        if must_be_verified(primitive, after):
            if self._unverified is None:
                require_legal(primitive, before, after)
            else:
                first, _ = self._unverified.get(func.name, (before, primitive))
                self._unverified[func.name] = first, primitive
        self._functions[func.name] = after

    @contextmanager
    def verified_once(self, *, defers_threads: bool = False) -> Iterator[None]:
        """Verify programs once, at the end of a `with` statement, not after each primitive.

        The verifier looks for races between threads, which takes longer than a primitive. It is for
        steps that succeed or fail together, such as those of a trace.

        Args:
            defers_threads: Whether conflicts of threads are looked for at the end only, too. If
                not, a primitive that causes one is refused, and another one may take its place.

        Raises:
            ScheduleError: If the last primitives made an illegal program of a legal one.
        """
        if self._unverified is not None:
            yield
            return
        self._unverified, self._defers_threads = {}, defers_threads
        try:
            yield
            self._require_legal()
        finally:
            self._unverified, self._defers_threads = None, False

    def _require_legal(self) -> None:
        """Verify the functions that `verified_once` has not verified yet."""
        for name, (before, primitive) in (self._unverified or {}).items():
            if self._defers_threads:
                require_sound_threads(primitive, before, self._functions[name])
            require_legal(primitive, before, self._functions[name])

    def _fail(
        self,
        primitive: str,
        reason: str,
        func: PrimFunc | None = None,
        code: ScheduleErrorCode = "invalid_argument",
    ) -> ScheduleError:
        program = func or self._functions[self._working or next(iter(self._functions))]
        return ScheduleError(primitive, reason, program, program, code, detail=self._detail)

    def copy(self) -> Self:
        """Return a schedule in the same state; handles of one are valid in the other.

        Raises:
            ScheduleError: If the program was not verified yet, and is not legal; see
                `verified_once`.
        """
        self._require_legal()
        new = object.__new__(type(self))
        for name, value in vars(self).items():
            setattr(new, name, value.copy() if isinstance(value, dict | list) else value)
        new._unverified, new._defers_threads = None, False
        new._rng = Random()
        new._rng.setstate(self._rng.getstate())
        return new

    def _adopt(self, other: Self) -> None:
        """Take the state of a copy to which primitives were applied."""
        for name in vars(self):
            setattr(self, name, getattr(other, name))

    # Handles

    def _new_name(self, letter: str) -> str:
        name = f"{letter}{self._num_handles}"
        self._num_handles += 1
        return name

    def _new_block(self, func: PrimFunc, name: str) -> BlockRV:
        handle = BlockRV(self._new_name("b"), name)
        self._blocks[handle] = (func.name, name)
        return handle

    def _new_loop(self, func: PrimFunc, var: Var) -> LoopRV:
        handle = LoopRV(self._new_name("l"), var.name)
        self._loops[handle] = (func.name, var)
        return handle

    def _new_special_location(self, location: SpecialLocation) -> LoopRV:
        handle = LoopRV(self._new_name("l"), location)
        self._special_locations[handle] = location
        return handle

    def _new_value(self, value: int) -> ExprRV:
        handle = ExprRV(self._new_name("v"), value)
        self._values[handle] = value
        return handle

    def _require_alive(self, primitive: str, handle: Handle) -> None:
        if not isinstance(handle, BlockRV | LoopRV | ExprRV):
            raise self._fail(
                primitive,
                f"expected a handle, as get_block and get_loops return them, got {handle!r}",
                code="invalid_handle",
            )
        if handle in self._dead:
            reason = f"handle {handle.name} is dead: {self._dead[handle]} consumed it"
            raise self._fail(primitive, reason, code="invalid_handle")

    def _loop(self, primitive: str, loop: LoopRV) -> tuple[PrimFunc, Var]:
        """Return the function and the variable of a loop."""
        self._require_alive(primitive, loop)
        if loop in self._special_locations:
            location = self._special_locations[loop]
            raise self._fail(
                primitive,
                f"handle {loop.name} stands for the {location}, no loop",
                code="invalid_handle",
            )
        if loop not in self._loops:
            raise self._fail(
                primitive, f"{_shown(loop)} is no loop of this schedule", code="invalid_handle"
            )
        name, var = self._loops[loop]
        return self._functions[name], var

    def _loop_vars(self, primitive: str, loops: Sequence[LoopRV]) -> tuple[PrimFunc, list[Var]]:
        """Return the function that some loops are in, and their variables."""
        located = [self._loop(primitive, loop) for loop in loops]
        if not located:
            raise self._fail(primitive, "no loops are given")
        if any(func is not located[0][0] for func, _ in located):
            raise self._fail(primitive, "the loops are in different functions")
        return located[0][0], [var for _, var in located]

    def _block(self, primitive: str, block: BlockRV) -> tuple[PrimFunc, str]:
        """Return the function and the name of a block."""
        self._require_alive(primitive, block)
        if block not in self._blocks:
            raise self._fail(
                primitive, f"{_shown(block)} is no block of this schedule", code="invalid_handle"
            )
        function, name = self._blocks[block]
        return self._functions[function], name

    def _value(self, primitive: str, value: object) -> int:
        """Return the integer that a value handle, or an expression of handles, stands for."""
        if isinstance(value, ExprRV):
            self._require_alive(primitive, value)
            if value in self._values:
                return self._values[value]
            raise self._fail(
                primitive, f"{_shown(value)} is no value of this schedule", code="invalid_handle"
            )
        if isinstance(value, TermRV):
            return self._term(primitive, value)
        constant = _constant(value)
        if constant is not None:
            return constant
        raise self._fail(primitive, f"expected an integer, got {_shown(value)}")

    def _term(self, primitive: str, term: TermRV) -> int:
        lhs, rhs = self._value(primitive, term.lhs), self._value(primitive, term.rhs)
        match term.op:
            case "+":
                return lhs + rhs
            case "-":
                return lhs - rhs
            case "*":
                return lhs * rhs
            case "//" | "%":
                if rhs == 0:
                    raise self._fail(primitive, f"{lhs} {term.op} 0 is no number")
                return lhs // rhs if term.op == "//" else lhs % rhs

    def _kill(self, primitive: str, handles: Iterable[Handle]) -> None:
        """Mark handles as consumed, and all others of the same blocks or loops."""
        for handle in handles:
            self._dead[handle] = primitive
            if isinstance(handle, LoopRV) and handle in self._loops:
                same = self._loops[handle]
                self._dead.update((h, primitive) for h, at in self._loops.items() if at == same)
            elif isinstance(handle, BlockRV):
                where = self._blocks[handle]
                self._dead.update((h, primitive) for h, at in self._blocks.items() if at == where)

    def _rename_block(self, func: PrimFunc, old: str, new: str) -> None:
        """Make the handles of a block refer to the block with another name."""
        for handle, at in self._blocks.items():
            if at == (func.name, old):
                self._blocks[handle] = (func.name, new)

    def _record(
        self,
        name: str,
        arguments: Mapping[str, object],
        outputs: Sequence[Handle | None] = (),
        decision: Decision | None = None,
    ) -> None:
        """Record an applied instruction."""
        self._instructions.append(
            Instruction(
                name,
                tuple((key, _argument(value)) for key, value in arguments.items()),
                tuple("_" if handle is None else handle.name for handle in outputs),
                decision,
            )
        )

    def remove_rv(self, rand_var: Handle) -> None:
        """Remove a handle: it can't be used any more.

        Raises:
            ScheduleError: If the handle is dead, or of another schedule.
        """
        self._require_alive("remove_rv", rand_var)
        handle_tables = (self._blocks, self._loops, self._values, self._special_locations)
        if not any(rand_var in handles for handles in handle_tables):
            raise self._fail(
                "remove_rv",
                f"{_shown(rand_var)} is of no use to this schedule",
                code="invalid_handle",
            )
        self._dead[rand_var] = "remove_rv"

    def get(self, handle: Handle | TermRV) -> BlockRealize | For | int:
        """Return the current block, loop or integer of a handle.

        Raises:
            ScheduleError: If the handle is dead, or of another schedule.
        """
        if isinstance(handle, ExprRV | TermRV):
            return self._value("get", handle)
        if isinstance(handle, BlockRV):
            func, name = self._block("get", handle)
            return realize_at(block_path(func, name, refusal("get", func)))
        func, var = self._loop("get", handle)
        loops = loops_on(tuple(statements(func.body)))
        for loop in loops:
            if loop.var is var:
                return loop
        raise self._fail("get", f"loop {var.name} is not in the program", func, "invalid_handle")


def _default_of(names: tuple[str, ...]) -> str | None:
    """Return the function that a schedule works on until `work_on`; None if that is open."""
    if len(names) == 1:
        return names[0]
    return "main" if "main" in names else None


def _argument(value: object) -> Argument:
    """Return an argument in the form that an instruction stores."""
    match value:
        case BlockRV(name) | LoopRV(name) | ExprRV(name):
            return Ref(name)
        case TermRV(op, lhs, rhs):
            left, right = _argument(lhs), _argument(rhs)
            assert isinstance(left, Ref | Term | int), "terms are made of values"
            assert isinstance(right, Ref | Term | int), "terms are made of values"
            return Term(op, left, right)
        case AnnotationDict(items):
            return NoteDict(tuple((key, _argument(item)) for key, item in items))
        case Mapping():
            return NoteDict(tuple((str(key), _argument(item)) for key, item in value.items()))
        case list() | tuple():
            return tuple(_argument(item) for item in value)
        case None | bool() | int() | float() | str():
            return value
        case Value() | IntImm():
            return _constant(value)
        case _:
            raise AssertionError(f"arguments are plain data, not {value!r}")


def _constant(value: object) -> int | None:
    """Return the integer that a number, or a constant of the dialect or of `te`, stands for."""
    expr = value.expr if isinstance(value, Value) else value
    number = expr.value if isinstance(expr, IntImm) else expr
    return number if isinstance(number, int) and not isinstance(number, bool) else None


def _shown(handle: object) -> str:
    return (
        f"handle {handle.name}" if isinstance(handle, BlockRV | LoopRV | ExprRV) else repr(handle)
    )

"""Run statements one scalar at a time, for parts of a program that can't run as arrays.

Each node becomes a Python function once, so that a step costs a few of their calls. Numbers are
as in `compiler.ir.interpret.oracle.vectorized_eval`: floats in double precision, integers in the
range of their type.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, MutableMapping
from collections.abc import Set as AbstractSet
from typing import Any, TypeAlias, assert_never

import numpy as np

from compiler.ir.core.dtypes import DType, is_float, smallest_and_largest
from compiler.ir.core.expr_types import dtype_of
from compiler.ir.core.intrinsics import INTRINSICS
from compiler.ir.core.nodes import (
    Allocate,
    BinOp,
    BlockRealize,
    Broadcast,
    Buffer,
    Call,
    Cast,
    Compare,
    Conditional,
    Evaluate,
    Expr,
    FloatImm,
    For,
    If,
    IntImm,
    Let,
    Load,
    Logic,
    Not,
    Ramp,
    Select,
    Seq,
    Stmt,
    Store,
    StringImm,
    Var,
    While,
)
from compiler.ir.core.visit import walk
from compiler.ir.interpret.oracle.vectorized_eval import Array, rounded
from compiler.ir.interpret.while_steps import WhileSteps

Number: TypeAlias = Any  # an int, a float or a bool
Env: TypeAlias = dict[Var, Number]
Value: TypeAlias = Callable[[Env], Number]
Action: TypeAlias = Callable[[Env], None]


def can_run(stmt: Stmt) -> bool:
    """Return whether statements use only scalars, in existing memory."""
    for node in walk(stmt):
        match node:
            case Ramp() | Broadcast() | StringImm() | Allocate():
                return False
            case Call(name) if name not in INTRINSICS and name not in ("likely", "assume"):
                return False
            case BlockRealize(block=block) if block.alloc_buffers or block.match_buffers:
                return False
            case _:
                pass
    return True


class ScalarCode:
    """Statements as Python functions.

    Args:
        memory: The buffers, in wide types; the arrays must stay the same ones.
        widened: Receives the accumulating buffers, whose elements are not rounded yet.
        running_sums: The stores of running sums, which accumulate, too.
        steps: Counts the iterations of `while` loops.
    """

    def __init__(
        self,
        memory: Mapping[Buffer, Array],
        widened: MutableMapping[Buffer, Array],
        running_sums: AbstractSet[Store],
        steps: WhileSteps,
    ) -> None:
        self._memory = memory
        self._widened = widened
        self._running_sums = running_sums
        self._steps = steps
        self._is_in_while = False

    def action(self, stmt: Stmt) -> Action:
        """Return a function that runs a statement."""
        match stmt:
            case Store():
                return self._store(stmt)
            case Evaluate():
                return lambda env: None
            case Let(var, value, body):
                return self._let(var, self.value(value), self.action(body))
            case Seq(stmts):
                return _sequence([self.action(s) for s in stmts])
            case If(condition, then, otherwise):
                other = None if otherwise is None else self.action(otherwise)
                return _choice(self.value(condition), self.action(then), other)
            case While(condition, body):
                return self._while(condition, body)
            case For(var, extent, body):
                return _loop(var, self.value(extent), self.action(body))
            case BlockRealize():
                return self._realize(stmt)
            case Allocate():
                raise AssertionError("the caller checked `can_run`")
            case _:
                assert_never(stmt)

    def value(self, expr: Expr) -> Value:  # noqa: C901 - one case a node
        """Return a function that evaluates an expression."""
        match expr:
            case IntImm(number) | FloatImm(number):
                return lambda env: number
            case Var():
                return lambda env: env[expr]
            case BinOp(op, lhs, rhs):
                return _arithmetic(op, self.value(lhs), self.value(rhs), dtype_of(expr))
            case Compare(op, lhs, rhs):
                return _binary(_COMPARISONS[op], self.value(lhs), self.value(rhs))
            case Logic(op, lhs, rhs):
                a, b = self.value(lhs), self.value(rhs)
                if op == "and":
                    return lambda env: a(env) and b(env)
                return lambda env: a(env) or b(env)
            case Not(inner):
                negated = self.value(inner)
                return lambda env: not negated(env)
            case Select(condition, then, otherwise) | Conditional(condition, then, otherwise):
                test, yes, no = self.value(condition), self.value(then), self.value(otherwise)
                return lambda env: yes(env) if test(env) else no(env)
            case Cast(dtype, inner):
                operand = self.value(inner)
                return lambda env: rounded(np.asarray(operand(env)), dtype).item()
            case Call(name, args, _):
                return _call(name, [self.value(a) for a in args])
            case Load(buffer, indices):
                return self._load(buffer, [self.value(i) for i in indices])
            case Ramp() | Broadcast() | StringImm():
                raise AssertionError("the caller checked `can_run`")
            case _:
                assert_never(expr)

    def _load(self, buffer: Buffer, indices: list[Value]) -> Value:
        item = self._memory[buffer].item
        if len(indices) == 1:
            (index,) = indices
            return lambda env: item(index(env))
        return lambda env: item(*[index(env) for index in indices])

    def _store(self, store: Store) -> Action:
        buffer, array = store.buffer, self._memory[store.buffer]
        indices, value = [self.value(i) for i in store.indices], self.value(store.value)
        is_sum = store in self._running_sums or Load(buffer, store.indices) in walk(store.value)
        if is_float(buffer.dtype) and is_sum and not self._is_in_while:
            self._widened[buffer] = array
        else:
            value = _narrowed(value, buffer.dtype)

        def run(env: Env) -> None:
            number = value(env)
            array[tuple([index(env) for index in indices])] = number

        return run

    def _while(self, condition: Expr, body: Stmt) -> Action:
        """Return a loop in which each store rounds, since its length may depend on the values."""
        was_in_while, self._is_in_while = self._is_in_while, True
        holds, step, count = self.value(condition), self.action(body), self._steps.count
        self._is_in_while = was_in_while

        def run(env: Env) -> None:
            while holds(env):
                count()
                step(env)

        return run

    def _let(self, var: Var, value: Value, body: Action) -> Action:
        def run(env: Env) -> None:
            env[var] = value(env)
            body(env)

        return run

    def _realize(self, realize: BlockRealize) -> Action:
        block = realize.block
        holds = self.value(realize.predicate)
        iterators = [
            (iterator.var, self.value(value), iterator.kind == "reduce")
            for iterator, value in zip(block.iter_vars, realize.iter_values, strict=True)
        ]
        body = self.action(block.body)
        init = None if block.init is None else self.action(block.init)

        def run(env: Env) -> None:
            if not holds(env):
                return
            is_first = True
            for var, value, is_reduced in iterators:
                number = env[var] = value(env)
                is_first = is_first and not (is_reduced and number)
            if init is not None and is_first:
                init(env)
            body(env)

        return run


def _sequence(actions: list[Action]) -> Action:
    def run(env: Env) -> None:
        for action in actions:
            action(env)

    return run


def _choice(condition: Value, then: Action, otherwise: Action | None) -> Action:
    def run(env: Env) -> None:
        if condition(env):
            then(env)
        elif otherwise is not None:
            otherwise(env)

    return run


def _loop(var: Var, extent: Value, body: Action) -> Action:
    def run(env: Env) -> None:
        for number in range(extent(env)):
            env[var] = number
            body(env)

    return run


def _narrowed(value: Value, dtype: DType) -> Value:
    """Return a value rounded to a type; integers are in its range already."""
    if not is_float(dtype) or dtype == "float64":
        return value
    narrow = np.dtype(dtype).type
    return lambda env: float(narrow(value(env)))


def _call(name: str, args: list[Value]) -> Value:
    if name == "likely":
        return args[0]
    reference = INTRINSICS[name].reference
    return lambda env: np.asarray(reference(*[np.float64(arg(env)) for arg in args])).item()


def _binary(function: Callable[[Number, Number], Number], a: Value, b: Value) -> Value:
    return lambda env: function(a(env), b(env))


def _arithmetic(op: str, a: Value, b: Value, dtype: DType) -> Value:
    if is_float(dtype):
        return _binary(_FLOATS[op], a, b)
    exact = _binary(_INTEGERS[op], a, b)
    if op not in ("+", "-", "*", "<<"):
        return exact
    low, high = smallest_and_largest(dtype)
    size = int(high) - int(low) + 1

    def wrapped(env: Env) -> Number:
        number = exact(env)
        return number if low <= number <= high else (number - low) % size + low

    return wrapped


def _divided(a: float, b: float) -> float:
    return a / b if b else float(np.float64(a) / np.float64(b))


def _smaller(a: float, b: float) -> float:
    # As in NumPy, a NaN wins.
    return a if a <= b or a != a else b  # noqa: PLR0124


def _larger(a: float, b: float) -> float:
    return a if a >= b or a != a else b  # noqa: PLR0124


_FLOATS: dict[str, Callable[[Number, Number], Number]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "/": _divided,
    "min": _smaller,
    "max": _larger,
}
_INTEGERS: dict[str, Callable[[Number, Number], Number]] = {
    "+": operator.add,
    "-": operator.sub,
    "*": operator.mul,
    "//": lambda a, b: a // b if b else 0,
    "%": lambda a, b: a % b if b else 0,
    "min": min,
    "max": max,
    "&": operator.and_,
    "|": operator.or_,
    "^": operator.xor,
    "<<": operator.lshift,
    ">>": operator.rshift,
}
_COMPARISONS: dict[str, Callable[[Number, Number], bool]] = {
    "==": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}

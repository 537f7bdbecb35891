"""Replace calls by what they run, so that all below sees functions without calls.

    def main(A, C):                              def main(A, C):
        Y = T.alloc_buffer((8,))                     Y = T.alloc_buffer((8,))
        Module.double(A.data, Y.data)                for i in range(8):
        Module.add_one(Y.data, C.data)    ->             Y[i] = A[i] * 2.0
                                                     for i in range(8):
                                                         C[i] = Y[i] + 1.0

The buffers that a called function allocates become the caller's. Names of blocks are kept, so that
the result is the program that one would write by hand, with its hash: equal programs share their
measurements, whichever way they are written.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from graphlib import CycleError, TopologicalSorter

from compiler.ir.core.copy_stmt import copy_stmt
from compiler.ir.core.function_calls import called_function, calls_in
from compiler.ir.core.limits import MAX_NODES, size_problem
from compiler.ir.core.nodes import Block, BlockRealize, Buffer, MatchBuffer, Seq, Stmt
from compiler.ir.core.program import IRModule, PrimFunc
from compiler.ir.core.replace_buffers import replace_buffers
from compiler.ir.core.visit import map_stmt, walk
from compiler.ir.modules.bind_call import bind_call
from compiler.ir.verify.verify import verify
from compiler.ir.verify.verify_error import VerifyError

# What all functions of a module may come to once calls are replaced: a text of a few kilobytes
# whose functions call each other twice would double with each of them.
_MAX_MODULE_NODES = 4 * MAX_NODES


def entries(module: IRModule) -> tuple[PrimFunc, ...]:
    """Return the functions that no other function of the module calls, as they were written."""
    called = {name for func in module.functions for name in _called_by(func)}
    return tuple(func for func in module.functions if func.name not in called)


def inline_calls(module: IRModule) -> IRModule:
    """Return the entries of a module, each with its calls replaced by what they run.

    A module without calls is returned as it is. What is returned is not verified: see
    `verify_module`.

    Raises:
        VerifyError: If a call is not legal: its function is unknown or calls itself, an argument
            does not fit, a buffer that is written is passed twice, or the call stands in a block.
    """
    if not any(calls_in(func.body) for func in module.functions):
        return module
    return Inliner(module).entries()


def only_entry(module: IRModule) -> PrimFunc:
    """Return the one function that no other calls, with its calls inlined.

    Raises:
        ValueError: If there are several, or none.
        VerifyError: If a call is not legal. It is a ValueError too.
    """
    inlined = inline_calls(module)
    if len(inlined.functions) != 1:
        spelled = "module" if inlined is module else "lw.inline_calls(module)"
        raise ValueError(inlined.choice(spelled))
    return inlined.functions[0]


def verify_module(module: IRModule) -> IRModule:
    """Check the calls of a module and the functions that make them; return them inlined.

    Functions without calls are left to `verify`.

    Raises:
        VerifyError: Naming the first node that is not legal.
    """
    inlined = inline_calls(module)
    for func in inlined.functions:
        if func is not module[func.name]:
            verify(func)
    return inlined


class Inliner:
    """The functions of a module with their calls replaced.

    Args:
        module: The module.

    Raises:
        VerifyError: If a call is not legal.
    """

    def __init__(self, module: IRModule) -> None:
        self._module = module
        self._functions = {func.name: func for func in module.functions}
        self._inlined: dict[str, PrimFunc] = {}
        order = self._callees_first()
        self._check_size(order)
        for name in order:
            self._inlined[name] = self._inline(self._functions[name])

    def entries(self) -> IRModule:
        """Return the entries."""
        return IRModule(tuple(self._inlined[func.name] for func in entries(self._module)))

    def parts(self, func: PrimFunc) -> Iterator[PrimFunc]:
        """Yield what a function runs: itself, or if it only calls others, what each of them runs.

        Args:
            func: A function of the module.
        """
        waiting = [func]
        while waiting:
            part = waiting.pop()
            calls = _sequence_of_calls(part)
            if not calls:
                yield self._inline(part)
            bound = (bind_call(part, call, self._functions[name]) for call, name in calls)
            waiting.extend(reversed([special for special, _ in bound]))

    def _callees_first(self) -> list[str]:
        """Return the names of all functions, each after those that it calls."""
        graph: dict[str, list[str]] = {}
        for func in self._module.functions:
            for call, name in calls_in(func.body):
                if name not in self._functions:
                    names = ", ".join(self._functions)
                    raise VerifyError(
                        f"{func.name} calls {name}, but its module has no such function: expected "
                        f"one of {names}",
                        call,
                        "undefined",
                    )
            graph[func.name] = _called_by(func)
        try:
            return list(TopologicalSorter(graph).static_order())
        except CycleError as error:
            # Each name in the cycle is called by the next one.
            first, second, *others = error.args[1][::-1]
            calls = calls_in(self._functions[first].body)
            call = next(call for call, name in calls if name == second)
            chain = ", which calls ".join((second, *others))
            message = f"{first} calls {chain}: a function can't call itself"
            raise VerifyError(message, call, "call") from None

    def _check_size(self, order: list[str]) -> None:
        """Refuse calls that make a function, or the module, too large, before they are replaced."""
        sizes: dict[str, int] = {}
        total = 0
        for name in order:
            func = self._functions[name]
            _check_limits(func, func.body)
            size = sum(1 for _ in walk(func.body))
            sizes[name] = size + sum(sizes[callee] for _, callee in calls_in(func.body))
            total += sizes[name]
            if sizes[name] > MAX_NODES or total > _MAX_MODULE_NODES:
                raise VerifyError(
                    f"function {name} is too large once its calls are inlined: more than "
                    f"{MAX_NODES} operations, loops and statements, or {_MAX_MODULE_NODES} in "
                    "all functions",
                    func,
                    "limit",
                )

    def _inline(self, func: PrimFunc) -> PrimFunc:
        """Return a function without calls; those that it calls are inlined already."""
        if not calls_in(func.body):
            return func
        buffers: list[Buffer] = list(func.root.alloc_buffers)
        matches: list[MatchBuffer] = list(func.root.match_buffers)

        def visit(stmt: Stmt) -> Stmt:
            called = called_function(stmt)
            if called is not None:
                part = self._part(func, stmt, called[0])
                buffers.extend(part.alloc_buffers)
                matches.extend(part.match_buffers)
                return part.body
            if isinstance(stmt, BlockRealize):
                _check_no_calls(func, stmt)
                return stmt
            return map_stmt(stmt, visit, lambda expr: expr)

        body = visit(func.root.body)
        root = replace(
            func.root,
            body=body,
            reads=(),
            writes=(),
            alloc_buffers=tuple(buffers),
            match_buffers=tuple(matches),
        )
        inlined = replace(func.body, block=root)
        # The next caller copies it: it must not be nested too deeply to be walked.
        _check_limits(func, inlined)
        return replace(func, body=inlined)

    def _part(self, func: PrimFunc, call: Stmt, name: str) -> Block:
        """Return the root block of a called function, on the buffers of the caller."""
        special, passed = bind_call(func, call, self._inlined[name])
        if special.root.annotations:
            raise VerifyError(
                f"{func.name} calls {name}, whose root block has annotations: they would hold for "
                f"all of {func.name}",
                call,
                "call",
            )
        copy = replace_buffers(copy_stmt(special.body), passed)
        assert isinstance(copy, BlockRealize), "a copy is of the same kind"
        return copy.block


def _called_by(func: PrimFunc) -> list[str]:
    return list(dict.fromkeys(name for _, name in calls_in(func.body)))


def _check_limits(func: PrimFunc, body: Stmt) -> None:
    problem = size_problem(body)
    if problem is not None:
        raise VerifyError(f"function {func.name} is too large: {problem}", func, "limit")


def _sequence_of_calls(func: PrimFunc) -> list[tuple[Stmt, str]]:
    """Return the calls that are all that a function does; none if it does anything else."""
    body = func.root.body
    statements = body.stmts if isinstance(body, Seq) else (body,)
    is_sequence = all(called_function(stmt) is not None for stmt in statements)
    return calls_in(body) if is_sequence else []


def _check_no_calls(func: PrimFunc, realize: BlockRealize) -> None:
    for call, name in calls_in(realize):
        raise VerifyError(
            f"{func.name} calls {name} inside block {realize.block.name}: a call is a statement "
            "outside of blocks",
            call,
            "call",
        )

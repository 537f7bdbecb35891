"""Tensor intrinsics: what a hardware instruction computes, and how it is called.

An intrinsic is two programs over the same buffers. The *description* says in loops what is
computed; `Schedule.tensorize` looks for it in a program. The *implementation* does the same at
once, with vectors or an instruction of the machine; it takes the place of what was found:

    import loopwright as lw

    @lw.script.prim_func
    def row_update(A: T.Buffer((1,)), B: T.Buffer((8,)), C: T.Buffer((8,))):
        for j in range(8):
            with T.sblock("update"):
                vj = T.axis.spatial(8, j)
                C[vj] = C[vj] + A[0] * B[vj]

    @lw.script.prim_func
    def row_update_avx2(A: T.Buffer((1,)), B: T.Buffer((8,)), C: T.Buffer((8,))):
        C[0:8] = C[0:8] + T.Broadcast(A[0], 8) * B[0:8]

    lw.TensorIntrin.register("row_update", row_update, row_update_avx2)
    sch.tensorize(j_inner, "row_update")

The buffers of an intrinsic are those that the instruction takes. In the program each is a box of
a larger one: the matrix of a batch, eight elements of a row. The implementation sees the box as
a buffer of its own, strided as the larger one is.

Anything may be wrong with an implementation, so `register` runs both programs on random inputs,
inside larger buffers, and refuses what does not do the same to them. An implementation that can't
be run (its instructions have no reference here) is refused too: its effect cannot be checked. An
implementation of foreign calls (`compiler.ir.core.foreign`) is accepted unchecked, because programs
with it are never built.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import ClassVar, Literal, overload

from compiler import te
from compiler.ir.core.program import PrimFunc
from compiler.schedule.intrinsics.check_intrinsic import intrinsic_problem
from compiler.schedule.intrinsics.describe import describe
from compiler.schedule.intrinsics.shipped_intrinsics import SHIPPED


class TensorIntrinError(ValueError):
    """An unknown intrinsic, or one whose implementation does not match its description."""


@dataclass(frozen=True, slots=True)
class TensorIntrin:
    """A description and an implementation, both over the same buffers.

    Attributes:
        desc: The computation, as loops and blocks.
        impl: The statements that implement it.
    """

    desc: PrimFunc
    impl: PrimFunc

    _registered: ClassVar[dict[str, TensorIntrin]] = {}

    @classmethod
    def register(
        cls, name: str, desc: PrimFunc, impl: PrimFunc, override: bool = False
    ) -> TensorIntrin:
        """Register an intrinsic under a name.

        Args:
            name: The name for `tensorize`.
            desc: The description of the computation.
            impl: The implementation; its parameters are those of `desc`, in the same order.
            override: Whether another intrinsic of that name may be replaced.

        Raises:
            TensorIntrinError: If the name is taken, or the two programs have different effects.
        """
        if not name:
            raise TensorIntrinError("an intrinsic needs a name")
        if (name in cls._registered or name in SHIPPED) and not override:
            raise TensorIntrinError(
                f'intrinsic "{name}" is registered already: override=True replaces it'
            )
        problem = intrinsic_problem(desc, impl)
        if problem is not None:
            raise TensorIntrinError(f'intrinsic "{name}": {problem}')
        intrin = cls(desc, impl)
        cls._registered[name] = intrin
        return intrin

    @overload
    @classmethod
    def get(cls, name: str, allow_missing: Literal[False] = False) -> TensorIntrin: ...
    @overload
    @classmethod
    def get(cls, name: str, allow_missing: bool) -> TensorIntrin | None: ...
    @classmethod
    def get(cls, name: str, allow_missing: bool = False) -> TensorIntrin | None:
        """Return the intrinsic with a name.

        Args:
            name: The registered name.
            allow_missing: Whether to return None if it does not exist.

        Raises:
            TensorIntrinError: If it does not exist.
        """
        if name in SHIPPED and name not in cls._registered:
            cls._registered[name] = cls(*SHIPPED[name]())
        intrin = cls._registered.get(name)
        if intrin is None and not allow_missing:
            names = ", ".join(sorted({*cls._registered, *SHIPPED}))
            raise TensorIntrinError(f'there is no intrinsic "{name}"; there are: {names}')
        return intrin

    @classmethod
    def declare(
        cls,
        tensors: Sequence[te.Tensor],
        *,
        compute: PrimFunc | None = None,
        reset: PrimFunc | None = None,
        update: PrimFunc | None = None,
        override: bool = False,
    ) -> dict[str, TensorIntrin]:
        """Register intrinsics for a tensor expression, and for the parts of its reduction.

        The names are those of the implementations.

        Args:
            tensors: The inputs and the output of the expression, in the order of the parameters.
            compute: Implements all of it.
            reset: Initialises the output, its only parameter.
            update: Adds the terms of the inputs to the output; its parameters are those of
                `compute`.
            override: Whether other intrinsics of these names may be replaced.

        Raises:
            TensorIntrinError: If the expression is not a reduction but has a reset or an update, or
                if an implementation is refused.
        """
        parts = describe(tensors)
        impls = {"compute": compute, "reset": reset, "update": update}
        registered: dict[str, TensorIntrin] = {}
        for part, impl in impls.items():
            if impl is None:
                continue
            desc = parts.get(part)
            if desc is None:
                raise TensorIntrinError(f"{tensors[-1].name} is not a reduction: it has no {part}")
            registered[impl.name] = cls.register(impl.name, desc, impl, override)
        return registered

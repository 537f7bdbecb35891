"""Tensor intrinsics as hardware designers declare them: a tensor expression, and calls.

    w, x = te.placeholder((8, 8)), te.placeholder((8, 8))
    k = te.reduce_axis((0, 8))
    y = te.compute((8, 8), lambda i, j: te.sum(w[i, k] * x[j, k], axis=k))

    def lower(inputs, outputs):
        ww, xx, zz = (b.access_ptr("r") for b in (*inputs, *outputs))
        compute = te.hardware_intrin("gemm8x8", ww, xx, zz)
        reset = te.hardware_intrin("fill_zero", zz)
        update = te.hardware_intrin("fuse_gemm8x8_add", ww, xx, zz)
        return compute, reset, update

    gemm8x8 = te.decl_tensor_intrin(y.op, lower)
    s[C].tensorize(inner, gemm8x8)

A call names an intrinsic of `lw.TensorIntrin`, whose description is matched with the expression
now, and with the program when it is lowered. So a wrong declaration changes no result.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, TypeAlias, get_args

from compiler.executor.named_type import named_type
from compiler.ir.analysis.structural import structural_equal
from compiler.ir.core.dtypes import DType
from compiler.ir.core.nodes import Buffer, IntImm
from compiler.ir.core.program import PrimFunc
from compiler.schedule.intrinsics.describe import describe
from compiler.schedule.intrinsics.match_description import Matcher, MismatchError
from compiler.schedule.intrinsics.tensor_intrin import TensorIntrin, TensorIntrinError
from compiler.te.tensor import Compute, Tensor
from compiler.te_schedule.error import StageError

Part: TypeAlias = Literal["compute", "reset", "update"]
_STEP = "te.decl_tensor_intrin"


@dataclass(frozen=True, slots=True)
class Pointer:
    """The storage of a buffer, as an argument of an intrinsic."""

    buffer: IntrinBuffer


@dataclass(frozen=True, slots=True)
class IntrinBuffer:
    """An input or output of a declared intrinsic."""

    buffer: Buffer

    @property
    def name(self) -> str:
        """Return the name of the tensor."""
        return self.buffer.name

    @property
    def shape(self) -> tuple[object, ...]:
        """Return the extents."""
        return tuple(e.value if isinstance(e, IntImm) else e for e in self.buffer.shape)

    @property
    def dtype(self) -> DType:
        """Return the type of an element."""
        return self.buffer.dtype

    def access_ptr(self, access_mask: str, offset: int = 0) -> Pointer:
        """Return the storage.

        Args:
            access_mask: What the intrinsic does with it: "r", "w" or "rw". The description of the
                intrinsic decides.
            offset: Only 0: an intrinsic takes whole buffers.

        Raises:
            StageError: If the mask or the offset is another one.
        """
        if access_mask not in ("r", "w", "rw") or offset != 0:
            reason = f'access_ptr({access_mask!r}, offset={offset}): expected "r", "w" or "rw"'
            raise StageError(_STEP, f"{reason}, and no offset")
        return Pointer(self)


@dataclass(frozen=True, slots=True)
class HardwareCall:
    """A call of an intrinsic by its name."""

    name: str
    pointers: tuple[Pointer, ...]


def hardware_intrin(name: str, *pointers: Pointer) -> HardwareCall:
    """Call an intrinsic of `lw.TensorIntrin` in a declaration.

    Raises:
        StageError: If there is no such intrinsic, or an argument is no storage of a buffer.
    """
    try:
        TensorIntrin.get(name)
    except TensorIntrinError as error:
        raise StageError(f'te.hardware_intrin("{name}")', str(error), "not_found") from None
    arguments: tuple[object, ...] = pointers
    for pointer in arguments:
        if not isinstance(pointer, Pointer):
            reason = f'{pointer!r} is no storage: expected inputs[0].access_ptr("r")'
            raise StageError(f'te.hardware_intrin("{name}")', reason)
    return HardwareCall(name, pointers)


Implementation: TypeAlias = HardwareCall | PrimFunc
Lowering: TypeAlias = Callable[
    [list[IntrinBuffer], list[IntrinBuffer]],
    Implementation | Sequence[Implementation | None],
]


@dataclass(frozen=True, slots=True)
class DeclaredIntrin:
    """The names of the intrinsics for an expression, and for the parts of its reduction."""

    compute: str | None
    reset: str | None = None
    update: str | None = None


def decl_tensor_intrin(
    op: object, fcompute: Lowering, name: str = "tensor_intrin"
) -> DeclaredIntrin:
    """Declare an intrinsic by what it computes.

    Args:
        op: The operation, `y.op`.
        fcompute: Takes the buffers of the inputs and outputs, and returns what implements the
            operation. For a reduction it may return three parts, of which some may be None:
            `(compute, reset, update)`. The reset sets the output to its start, and the update adds
            to it. Each is a call by `te.hardware_intrin`, or a program over these buffers, which is
            registered under its name as `lw.TensorIntrin.register` does.
        name: The name in errors.

    Raises:
        StageError: If the operation is not made by `te.compute`, or a call does not compute it.
        TensorIntrinError: If a program is refused.
    """
    if not isinstance(op, Compute) or op.num_outputs != 1:
        raise StageError(_STEP, f"{op!r} is no operation of one tensor that te.compute made")
    tensors = [*op.inputs, *op.outputs]
    buffers = [IntrinBuffer(tensor.buffer) for tensor in tensors]
    returned: object = fcompute(buffers[:-1], buffers[-1:])
    parts = list(returned) if isinstance(returned, tuple | list) else [returned]
    names: dict[Part, str | None] = {}
    descriptions = describe(tensors)
    for part, implementation in zip(get_args(Part), parts, strict=False):
        if implementation is not None:
            names[part] = _declared(part, implementation, tensors, descriptions, name)
    if not 1 <= len(parts) <= len(get_args(Part)) or not names:
        raise StageError(_STEP, f"{name}: expected (compute, reset, update), got {len(parts)}")
    return DeclaredIntrin(names.get("compute"), names.get("reset"), names.get("update"))


def _declared(
    part: Part,
    implementation: object,
    tensors: Sequence[Tensor],
    descriptions: Mapping[str, PrimFunc],
    name: str,
) -> str:
    """Return the name of the registered intrinsic for a part."""
    if part not in descriptions:
        raise StageError(_STEP, f"{name}: {tensors[-1].name} is no reduction: it has no {part}")
    match implementation:
        case HardwareCall():
            _require_same(part, implementation, tensors, descriptions[part])
            return implementation.name
        case PrimFunc():
            _register(implementation, descriptions[part])
            return implementation.name
        case _:
            reason = f"the {part} is {named_type(implementation)}: expected a call by"
            raise StageError(_STEP, f"{name}: {reason} te.hardware_intrin, or a program")


def _register(implementation: PrimFunc, description: PrimFunc) -> None:
    """Register a program as an intrinsic, unless it is one already, as if a cell runs again."""
    existing = TensorIntrin.get(implementation.name, allow_missing=True)
    if existing is None or not (
        structural_equal(existing.impl, implementation)
        and structural_equal(existing.desc, description)
    ):
        TensorIntrin.register(implementation.name, description, implementation)


def _require_same(
    part: Part, call: HardwareCall, tensors: Sequence[Tensor], description: PrimFunc
) -> None:
    """Refuse a call that does not compute a part of the declared expression."""
    intrin = TensorIntrin.get(call.name)
    params = intrin.desc.buffers
    if len(call.pointers) != len(params):
        expected = ", ".join(param.name for param in params)
        reason = f"{call.name} takes {expected}: got {len(call.pointers)} argument(s)"
        raise StageError(_STEP, reason)
    matcher = Matcher(params, {})
    try:
        matcher.stmt(description.root.body, intrin.desc.root.body)
    except MismatchError as error:
        reason = f"{call.name} does not compute the {part} of {tensors[-1].name}: {error}"
        raise StageError(_STEP, reason, "intrinsic_mismatch") from None
    # The description of a reset has only the output.
    buffers = description.buffers
    tensor_of = dict(zip(buffers, tensors[len(tensors) - len(buffers) :], strict=True))
    for param, pointer in zip(params, call.pointers, strict=True):
        meant = tensor_of[matcher.places[param].buffer]
        if meant.buffer is not pointer.buffer.buffer:
            reason = (
                f"{call.name} takes {meant.name} as its {param.name}, not {pointer.buffer.name}"
            )
            raise StageError(_STEP, reason, "intrinsic_mismatch")

"""What each instruction of a trace takes and gives: one table.

Recording, replay, the JSON readers and the printed Python all go by it. Names and order of
parameters are TVM's.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Literal, TypeAlias

ParameterKind: TypeAlias = Literal[
    "block",
    "blocks",
    "loop",
    "loops",
    "block_or_loop",
    "loop_or_blocks",
    "factors",
    "int",
    "count",
    "bool",
    "str",
    "optional_str",
    "note",
    "ints",
    "probabilities",
    "buffer",
    "index_map",
    "pad_value",
]
"""What a parameter holds.

buffer      ("read" or "write", its number among the block's regions)
factors     integers, None, values, and what is computed of values
index_map   the text of a lambda
note        the value of an annotation
pad_value   a number, the text of a lambda, or None
"""

HandleKind: TypeAlias = Literal["b", "l", "v"]
"""The first letter of a handle's name: block, loop, value."""


@dataclass(frozen=True, slots=True)
class Parameter:
    """What an instruction takes.

    Args:
        is_optional: Whether it may be left out; it then takes its default.
        is_attribute: Whether TVM keeps it among the attributes of an instruction, not its inputs.
        is_positional: Whether it is printed without its name.
    """

    name: str
    kind: ParameterKind
    is_optional: bool = False
    is_attribute: bool = False
    is_positional: bool = False


@dataclass(frozen=True, slots=True)
class InstructionKind:
    """What one kind of instruction takes and gives.

    Args:
        kind: What TVM calls it in JSON.
        outputs: The kind of handle it gives, if any.
        num_outputs: How many of them: a number, the name of the parameter that says so (by its
            value or its length), or None if the program decides.
        is_pure: Whether it leaves the program as it is, so that it is dead if its outputs are.
        decides: Whether it takes a decision.
    """

    name: str
    kind: str
    parameters: tuple[Parameter, ...]
    outputs: HandleKind | None = None
    num_outputs: int | str | None = 0
    is_pure: bool = False
    decides: bool = False
    required: frozenset[str] = field(init=False, repr=False, compare=False)
    optional: frozenset[str] = field(init=False, repr=False, compare=False)
    _by_name: Mapping[str, Parameter] = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        """Sort the parameters: every argument of every instruction asks."""
        optional = frozenset(p.name for p in self.parameters if p.is_optional)
        by_name = {p.name: p for p in self.parameters}
        object.__setattr__(self, "required", frozenset(by_name) - optional)
        object.__setattr__(self, "optional", optional)
        object.__setattr__(self, "_by_name", by_name)

    def parameter(self, name: str) -> Parameter | None:
        """Return a parameter by its name."""
        return self._by_name.get(name)


def _attribute(name: str, kind: ParameterKind, *, is_optional: bool = False) -> Parameter:
    return Parameter(name, kind, is_optional, is_attribute=True)


def _query(name: str, kind: str, parameter: Parameter, outputs: HandleKind) -> InstructionKind:
    return InstructionKind(name, kind, (parameter,), outputs, None, is_pure=True)


def _sampling(
    name: str,
    kind: str,
    parameters: tuple[Parameter, ...],
    outputs: HandleKind,
    num_outputs: int | str,
) -> InstructionKind:
    return InstructionKind(name, kind, parameters, outputs, num_outputs, is_pure=True, decides=True)


_BLOCK = Parameter("block", "block")
_LOOP = Parameter("loop", "loop")
_LOOPS = Parameter("loops", "loops", is_positional=True)
_AT = Parameter("block_or_loop", "block_or_loop")
_FACTORS = Parameter("factors", "factors")
_KEEP_ITERS = _attribute("preserve_unit_iters", "bool", is_optional=True)
_KEEP_LOOPS = _attribute("preserve_unit_loops", "bool", is_optional=True)
_INDEX = _attribute("index", "int", is_optional=True)
_SCOPE = _attribute("storage_scope", "str")
_READ = _attribute("read_buffer_index", "int")
_WRITE = _attribute("write_buffer_index", "int")
_BUFFER_INDEX = _attribute("buffer_index", "int")
_BUFFER = _attribute("buffer", "buffer")
_INDEX_MAP = Parameter("index_map", "index_map")
_CONSUMERS = Parameter("consumer_blocks", "blocks", is_optional=True)

_SPECS = (
    InstructionKind(
        "get_sblock",
        "GetSBlock",
        (_attribute("name", "str"), _attribute("func_name", "optional_str", is_optional=True)),
        "b",
        1,
        is_pure=True,
    ),
    _query("get_loops", "GetLoops", _BLOCK, "l"),
    _query(
        "get_child_blocks",
        "GetChildBlocks",
        Parameter("block_or_loop", "block_or_loop", is_positional=True),
        "b",
    ),
    _query("get_producers", "GetProducers", _BLOCK, "b"),
    _query("get_consumers", "GetConsumers", _BLOCK, "b"),
    _query("get_output_blocks", "GetOutputBlocks", Parameter("scope_block", "block"), "b"),
    _sampling(
        "sample_perfect_tile",
        "SamplePerfectTile",
        (_LOOP, _attribute("n", "count"), _attribute("max_innermost_factor", "int")),
        "v",
        "n",
    ),
    _sampling(
        "sample_categorical",
        "SampleCategorical",
        (_attribute("candidates", "ints"), _attribute("probs", "probabilities")),
        "v",
        1,
    ),
    _sampling(
        "sample_partitioned_tile",
        "SamplePartitionedTile",
        (
            _LOOP,
            _attribute("n", "count"),
            _attribute("partition_pos", "int"),
            _attribute("innerpart_factor", "int"),
        ),
        "v",
        "n",
    ),
    _sampling("sample_compute_location", "SampleComputeLocation", (_BLOCK,), "l", 1),
    InstructionKind(
        "split",
        "Split",
        (
            _LOOP,
            _FACTORS,
            _KEEP_ITERS,
            _attribute("disable_predication", "bool", is_optional=True),
        ),
        "l",
        "factors",
    ),
    InstructionKind(
        "loop_partition", "LoopPartition", (_LOOP, _FACTORS, _KEEP_ITERS), "l", "factors"
    ),
    InstructionKind("fuse", "Fuse", (_LOOPS, _KEEP_ITERS), "l", 1),
    InstructionKind("merge", "Merge", (_LOOPS,), "l", 1),
    InstructionKind("reorder", "Reorder", (_LOOPS,)),
    InstructionKind(
        "reorder_block_iter_var", "ReorderBlockIterVar", (_BLOCK, Parameter("new_order", "ints"))
    ),
    InstructionKind("add_unit_loop", "AddUnitLoop", (_AT,), "l", 1),
    InstructionKind("parallel", "Parallel", (_LOOP,)),
    InstructionKind("vectorize", "Vectorize", (_LOOP,)),
    InstructionKind("unroll", "Unroll", (_LOOP,)),
    InstructionKind("bind", "Bind", (_LOOP, _attribute("thread_axis", "str"))),
    InstructionKind("compute_at", "ComputeAt", (_BLOCK, _LOOP, _KEEP_LOOPS, _INDEX)),
    InstructionKind("reverse_compute_at", "ReverseComputeAt", (_BLOCK, _LOOP, _KEEP_LOOPS, _INDEX)),
    InstructionKind("compute_inline", "ComputeInline", (_BLOCK,)),
    InstructionKind("reverse_compute_inline", "ReverseComputeInline", (_BLOCK,)),
    InstructionKind(
        "fuse_reduction_epilogue",
        "FuseReductionEpilogue",
        (Parameter("reduction_block", "block"), Parameter("epilogue_block", "block")),
    ),
    InstructionKind("cache_read", "CacheRead", (_BLOCK, _READ, _SCOPE, _CONSUMERS), "b", 1),
    InstructionKind("cache_write", "CacheWrite", (_BLOCK, _WRITE, _SCOPE, _CONSUMERS), "b", 1),
    InstructionKind("cache_inplace", "CacheInplace", (_BLOCK, _READ, _SCOPE), "b", 2),
    InstructionKind("reindex", "ReIndex", (_BLOCK, _BUFFER), "b", 1),
    InstructionKind(
        "reindex_cache_read", "ReindexCacheRead", (_BLOCK, _READ, _SCOPE, _INDEX_MAP), "b", 1
    ),
    InstructionKind(
        "reindex_cache_write", "ReindexCacheWrite", (_BLOCK, _WRITE, _SCOPE, _INDEX_MAP), "b", 1
    ),
    InstructionKind("read_at", "ReadAt", (_LOOP, _BLOCK, _READ, _SCOPE), "b", 1),
    InstructionKind("write_at", "WriteAt", (_LOOP, _BLOCK, _WRITE, _SCOPE), "b", 1),
    InstructionKind("decompose_reduction", "DecomposeReduction", (_BLOCK, _LOOP), "b", 1),
    InstructionKind("decompose_padding", "DecomposePadding", (_BLOCK, _LOOP), "b", 1),
    InstructionKind("rfactor", "RFactor", (_LOOP, _attribute("factor_axis", "int")), "b", 1),
    InstructionKind(
        "blockize", "Blockize", (Parameter("target", "loop_or_blocks"), _KEEP_ITERS), "b", 1
    ),
    InstructionKind(
        "tensorize", "Tensorize", (_AT, _attribute("tensor_intrin", "str"), _KEEP_ITERS)
    ),
    InstructionKind("pad_einsum", "PadEinsum", (_BLOCK, _attribute("padding", "ints"))),
    InstructionKind("rolling_buffer", "RollingBuffer", (_BLOCK, _WRITE)),
    InstructionKind(
        "storage_align",
        "StorageAlign",
        (
            _BLOCK,
            _BUFFER_INDEX,
            _attribute("axis", "int"),
            _attribute("factor", "int"),
            _attribute("offset", "int"),
        ),
    ),
    InstructionKind("set_scope", "SetScope", (_BLOCK, _BUFFER_INDEX, _SCOPE)),
    InstructionKind(
        "transform_layout",
        "TransformLayout",
        (
            _BLOCK,
            _BUFFER,
            _INDEX_MAP,
            _attribute("pad_value", "pad_value", is_optional=True),
            _attribute("assume_injective_transform", "bool", is_optional=True),
        ),
    ),
    InstructionKind("transform_block_layout", "TransformBlockLayout", (_BLOCK, _INDEX_MAP)),
    InstructionKind(
        "annotate", "Annotate", (_AT, _attribute("ann_key", "str"), Parameter("ann_val", "note"))
    ),
    InstructionKind("unannotate", "Unannotate", (_AT, _attribute("ann_key", "str"))),
    InstructionKind("enter_postproc", "EnterPostproc", ()),
)

INSTRUCTION_KINDS: dict[str, InstructionKind] = {spec.name: spec for spec in _SPECS}

OLD_NAMES = {"get_block": "get_sblock"}
"""What instructions were called before; they are read still."""

"""The search space of CPUs: their rules, features and static filter."""

from __future__ import annotations

from compiler.target.cpu import CpuTarget
from compiler.target.target import Target
from tuner.space.features.features import FEATURE_NAMES, SCHEMA_VERSION, features
from tuner.space.filter.static_filter import passes
from tuner.space.rules.auto_inline import AutoInline
from tuner.space.rules.cpu.chains.product_chains import ProductChains
from tuner.space.rules.cpu.chains.row_chains import RowChains
from tuner.space.rules.cpu.flat_columns import FlatColumns
from tuner.space.rules.cpu.library_calls import LIBRARIES, LibraryCalls
from tuner.space.rules.cpu.matrix_vector import MatrixVector
from tuner.space.rules.cpu.multi_level_tiling import MultiLevelTiling
from tuner.space.rules.cpu.packed.packed_products import PackedProducts
from tuner.space.rules.cpu.packed.packed_windows import PackedWindows
from tuner.space.rules.cpu.place_producers import PlaceProducers
from tuner.space.rules.cpu.spatial_blocks import SpatialBlocks
from tuner.space.rules.cpu.special_blocks import SpecialBlocks
from tuner.space.rules.cpu.transposed_copies import TransposedCopies
from tuner.space.rules.cpu.unrolled_choices import UnrolledChoices
from tuner.space.rules.cpu.whole_reductions import WholeReductions
from tuner.space.rules.cpu.window_rows import WindowRows
from tuner.space.rules.decompose_reductions import DecomposeReductions
from tuner.space.rules.winograd_tiles import WinogradTiles
from tuner.space.search_space import RANK, RATIO, FeatureMatrix, Mask, SearchSpace
from tuner.space.tables.knob import Ints
from tuner.space.tables.sketch import Sketch


def _features(sketch: Sketch, choices: Ints, target: Target) -> FeatureMatrix:
    return features(sketch, choices, CpuTarget.of(target))


def _passes(sketch: Sketch, choices: Ints, target: Target) -> Mask:
    return passes(sketch, choices, CpuTarget.of(target))


CPU_SPACE = SearchSpace(
    kind="cpu",
    first_rules=(AutoInline(),),
    rules=(
        WholeReductions(),
        RowChains(),
        WinogradTiles(),
        UnrolledChoices(),
        ProductChains(),
        FlatColumns(),
        PackedWindows(),
        WindowRows(),
        PackedProducts(),
        MatrixVector(),
        MultiLevelTiling(),
        PlaceProducers(),
        SpecialBlocks(),
        TransposedCopies(),
        SpatialBlocks(),
        DecomposeReductions(),
    ),
    optional_rules=tuple(LibraryCalls(library) for library in LIBRARIES),
    feature_version=SCHEMA_VERSION,
    feature_names=(*FEATURE_NAMES, RATIO, RANK),
    estimate="cycles.all",
    estimate_parts=("cycles.total", "cycles.others"),
    features=_features,
    passes=_passes,
)

"""The search space of GPUs: their rules, features and static filter."""

from __future__ import annotations

from compiler.target.cuda import CudaTarget
from compiler.target.target import Target
from tuner.space.features.cuda.features import (
    ESTIMATE,
    FEATURE_NAMES,
    SCHEMA_VERSION,
    features,
)
from tuner.space.filter.cuda_filter import passes
from tuner.space.rules.auto_inline import AutoInline
from tuner.space.rules.cuda.attention_tiles import AttentionTiles
from tuner.space.rules.cuda.cross_thread import CrossThread
from tuner.space.rules.cuda.flat_blocks import FlatBlocks
from tuner.space.rules.cuda.online_attention import OnlineAttention
from tuner.space.rules.cuda.online_tensor_attention import OnlineTensorAttention
from tuner.space.rules.cuda.shared_transposes import SharedTransposes
from tuner.space.rules.cuda.split_sums import SplitSums
from tuner.space.rules.cuda.tensor_attention import TensorAttention
from tuner.space.rules.cuda.tensor_tiles import TensorTiles
from tuner.space.rules.cuda.thread_rows import ThreadRows
from tuner.space.rules.cuda.thread_tiles import ThreadTiles
from tuner.space.rules.cuda.warpgroup_tiles import WarpgroupTiles
from tuner.space.search_space import FeatureMatrix, Mask, SearchSpace
from tuner.space.tables.knob import Ints
from tuner.space.tables.sketch import Sketch


def _features(sketch: Sketch, choices: Ints, target: Target) -> FeatureMatrix:
    return features(sketch, choices, CudaTarget.of(target))


def _passes(sketch: Sketch, choices: Ints, target: Target) -> Mask:
    return passes(sketch, choices, CudaTarget.of(target))


CUDA_SPACE = SearchSpace(
    kind="cuda",
    first_rules=(AutoInline(),),
    rules=(
        OnlineTensorAttention(),
        TensorAttention(),
        OnlineAttention(),
        AttentionTiles(),
        WarpgroupTiles(),
        TensorTiles(),
        ThreadRows(),
        ThreadTiles(),
        CrossThread(),
        SplitSums(),
        SharedTransposes(),
        FlatBlocks(),
    ),
    feature_version=SCHEMA_VERSION,
    feature_names=FEATURE_NAMES,
    estimate=ESTIMATE,
    features=_features,
    passes=_passes,
    estimates_secs=True,
)

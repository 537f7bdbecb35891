"""Every schedule rule of GPUs keeps the contract, after the rules that run before it."""

import pytest

from compiler import ops
from compiler.ir.core.program import PrimFunc
from tests.contracts.schedule_rule import ScheduleRuleContract
from tests.unit.tuner.space.gpu_spaces import H200
from tuner.space.cuda_space import CUDA_SPACE
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
from tuner.space.rules.rule import ScheduleRule

CLASSES = [
    AutoInline,
    OnlineTensorAttention,
    TensorAttention,
    OnlineAttention,
    AttentionTiles,
    WarpgroupTiles,
    TensorTiles,
    ThreadRows,
    ThreadTiles,
    CrossThread,
    SplitSums,
    SharedTransposes,
    FlatBlocks,
]
BUILT_IN = [*CUDA_SPACE.first_rules, *CUDA_SPACE.rules]
PROGRAMS = {
    "matmul": ops.matmul(16, 32, 16),
    "relu": ops.relu(96),
}


def test_these_rules_are_the_built_in_ones() -> None:
    assert [type(rule) for rule in BUILT_IN] == CLASSES


@pytest.mark.parametrize("number", range(len(BUILT_IN)), ids=CUDA_SPACE.rule_names)
class TestRulesOfGpus(ScheduleRuleContract):
    target = H200

    @pytest.fixture
    def rule(self, number: int) -> ScheduleRule:
        return BUILT_IN[number]

    @pytest.fixture
    def earlier(self, number: int) -> list[ScheduleRule]:
        return BUILT_IN[:number]

    @pytest.fixture(params=PROGRAMS)
    def func(self, request: pytest.FixtureRequest) -> PrimFunc:
        return PROGRAMS[request.param]

"""Every schedule rule keeps the contract, after the rules that run before it."""

import pytest

from tests.contracts.schedule_rule import ScheduleRuleContract
from tuner.space.cpu_space import CPU_SPACE
from tuner.space.own_rules import OwnRule
from tuner.space.rules.auto_inline import AutoInline
from tuner.space.rules.cpu.chains.product_chains import ProductChains
from tuner.space.rules.cpu.chains.row_chains import RowChains
from tuner.space.rules.cpu.flat_columns import FlatColumns
from tuner.space.rules.cpu.library_calls import LibraryCalls
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
from tuner.space.rules.rule import ScheduleRule
from tuner.space.rules.winograd_tiles import WinogradTiles

BUILT_IN = [*CPU_SPACE.first_rules, *CPU_SPACE.rules]
KINDS = [
    *(AutoInline, WholeReductions, RowChains, WinogradTiles, UnrolledChoices, ProductChains),
    *(FlatColumns, PackedWindows, WindowRows, PackedProducts, MatrixVector, MultiLevelTiling),
    *(PlaceProducers, SpecialBlocks, TransposedCopies, SpatialBlocks, DecomposeReductions),
]


def test_the_built_in_rules_are_these() -> None:
    assert [type(rule) for rule in BUILT_IN] == KINDS


@pytest.mark.parametrize("number", range(len(BUILT_IN)), ids=[k.__name__ for k in KINDS])
class TestBuiltInRules(ScheduleRuleContract):
    @pytest.fixture
    def rule(self, number: int) -> ScheduleRule:
        return BUILT_IN[number]

    @pytest.fixture
    def earlier(self, number: int) -> list[ScheduleRule]:
        return BUILT_IN[:number]


class TestLibraryCalls(ScheduleRuleContract):
    @pytest.fixture
    def rule(self) -> ScheduleRule:
        return LibraryCalls("blas")


class TestOwnRule(ScheduleRuleContract):
    @pytest.fixture
    def rule(self) -> ScheduleRule:
        return OwnRule("leave_alone", lambda draft: [draft])

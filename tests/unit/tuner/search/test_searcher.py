"""Every proposer keeps the contract."""

import pytest

from tests.contracts.proposer import ProposerContract
from tuner.search.annealing import Annealing
from tuner.search.evolutionary import Evolutionary
from tuner.search.exhaustive import Exhaustive
from tuner.search.local import Local
from tuner.search.make import PROPOSERS
from tuner.search.random import Random
from tuner.search.searcher import Proposer

KINDS = (Annealing, Evolutionary, Exhaustive, Local, Random)


def test_the_proposers_are_these() -> None:
    assert set(PROPOSERS.values()) == set(KINDS)


@pytest.mark.parametrize("kind", KINDS)
class TestProposers(ProposerContract):
    @pytest.fixture(autouse=True)
    def take_kind(self, kind: type[Proposer]) -> None:
        self.kind = kind

    def new(self) -> Proposer:
        return self.kind()

from collections.abc import Iterator

import pytest

from tests.contracts.measurement_store import MeasurementStoreContract
from tuner.store.memory import MemoryStore
from tuner.store.store import MeasurementStore


class TestMemoryStore(MeasurementStoreContract):
    @pytest.fixture
    def store(self) -> Iterator[MeasurementStore]:
        yield from (MemoryStore(),)

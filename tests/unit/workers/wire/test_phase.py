import pytest

from workers.wire.phase import Phase, deadline_secs
from workers.wire.request import MeasureLimits

LIMITS = MeasureLimits(build_timeout_secs=5, run_timeout_secs=30, oracle_timeout_secs=300)


def test_each_phase_has_a_deadline_of_its_own() -> None:
    secs = {phase: deadline_secs(phase, LIMITS, None) for phase in Phase}
    assert secs == {Phase.ORACLE: 300, Phase.BUILD: 5, Phase.CHECK: 30, Phase.TIME: 30}


@pytest.mark.parametrize(
    ("incumbent_secs", "allowed_secs"), [(1e-6, 2.0), (0.1, 5.0), (0.5, 25.0), (10.0, 30)]
)
def test_a_run_is_given_up_when_it_has_lost_by_far(
    incumbent_secs: float, allowed_secs: float
) -> None:
    assert deadline_secs(Phase.CHECK, LIMITS, incumbent_secs) == allowed_secs
    assert deadline_secs(Phase.BUILD, LIMITS, incumbent_secs) == 5

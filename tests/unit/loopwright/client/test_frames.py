"""Tables of trials have all that the API says of a trial."""

from __future__ import annotations

from uuid import UUID

from loopwright.client.frames import COLUMNS, trials_frame
from service.http.openapi_examples import EXAMPLES
from service.wire.models import ConditionsRead, ResourcesRead, TrialRead

JOB = UUID(int=7)
TIMES = {"provisional_secs", "confirmed_secs", "best_secs"}


def test_a_table_has_each_field_of_a_trial_once() -> None:
    nested = {"final", "resources", "conditions"}
    assert sorted(COLUMNS) == sorted(
        {"job", *TIMES}.union(
            TrialRead.model_fields, ResourcesRead.model_fields, ConditionsRead.model_fields
        )
        - nested
    )


def test_a_row_is_what_the_api_said() -> None:
    trial = TrialRead.model_validate(EXAMPLES["TrialRead"])
    (row,) = trials_frame([(JOB, trial)]).to_dict("records")
    own = {name: row[name] for name in TrialRead.model_fields.keys() & row.keys()}
    assert own == {name: getattr(trial, name) for name in own}
    assert row["job"] == str(JOB)
    assert row["provisional_secs"] == row["best_secs"] == min(trial.run_secs)


def test_the_resources_of_a_kernel_are_columns() -> None:
    of_cpu = TrialRead.model_validate(EXAMPLES["TrialRead"])
    used = ResourcesRead(
        registers=40,
        stack_bytes=0,
        spill_bytes=8,
        shared_bytes=4096,
        occupancy=0.5,
        bank_conflicts=2,
    )
    of_gpu = of_cpu.model_copy(update={"resources": used})
    frame = trials_frame([(JOB, of_cpu), (JOB, of_gpu)])
    assert frame["registers"].isna().tolist() == [True, False]
    assert frame.loc[1, list(ResourcesRead.model_fields)].tolist() == [40, 0, 8, 4096, 0.5, 2]


def test_the_conditions_on_a_gpu_are_columns() -> None:
    trial = TrialRead.model_validate(EXAMPLES["TrialRead"])
    timed = ConditionsRead(
        l2="cold", sm_mhz=1755, watts=640.5, celsius=61, slowed_by=("power cap",)
    )
    of_gpu = trial.model_copy(update={"conditions": timed})
    row = trials_frame([(JOB, trial), (JOB, of_gpu)]).loc[1]
    assert (row["l2"], row["sm_mhz"], row["slowed_by"]) == ("cold", 1755, ("power cap",))

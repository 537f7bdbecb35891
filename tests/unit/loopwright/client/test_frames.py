"""Tables of trials have all that the API says of a trial."""

from __future__ import annotations

from uuid import UUID

from loopwright.client.frames import COLUMNS, trials_frame
from service.http.openapi_examples import EXAMPLES
from service.wire.models import TrialRead

JOB = UUID(int=7)
TIMES = {"provisional_secs", "confirmed_secs", "best_secs"}


def test_a_table_has_each_field_of_a_trial_once() -> None:
    assert sorted(COLUMNS) == sorted({"job", *TIMES, *TrialRead.model_fields} - {"final"})


def test_a_row_is_what_the_api_said() -> None:
    trial = TrialRead.model_validate(EXAMPLES["TrialRead"])
    (row,) = trials_frame([(JOB, trial)]).to_dict("records")
    own = {name: row[name] for name in TrialRead.model_fields if name != "final"}
    assert own == {name: getattr(trial, name) for name in own}
    assert row["job"] == str(JOB)
    assert row["provisional_secs"] == row["best_secs"] == min(trial.run_secs)

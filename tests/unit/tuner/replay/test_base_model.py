"""The base model: trained once, found again, and made anew where it is damaged or of other data."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from compiler import ops
from compiler.target.target import Target
from tuner.cost_model.cost_model import Samples
from tuner.cost_model.quality import quality
from tuner.cost_model.xgboost_model import XGBoostModel
from tuner.replay import base_model as module
from tuner.replay import packaged
from tuner.replay.base_model import base_model, packaged_model, write_packaged
from tuner.replay.packaged import packaged_sets, thinned
from tuner.replay.recorded_set import RecordedSet


@pytest.fixture
def few(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> list[int]:
    """Train on two sets only, and count how often; no model comes with the package."""
    trainings: list[int] = []
    monkeypatch.setattr(module, "PACKAGED", tmp_path / "packaged.xz")

    def samples() -> list[Samples]:
        trainings.append(1)
        return [thinned(each.samples(), 64) for each in packaged_sets()[:2]]

    monkeypatch.setattr(packaged, "packaged_samples", samples)
    return trainings


def test_it_is_trained_once_and_found_again(few: list[int], tmp_path: Path) -> None:
    first = base_model(tmp_path)
    assert base_model(tmp_path) == first
    assert (len(few), first.num_tasks) == (1, 2)
    assert XGBoostModel(0, base=first.model).is_trained


def test_other_data_is_another_model(
    few: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = base_model(tmp_path)
    monkeypatch.setattr(module, "SETTINGS", "others")
    assert base_model(tmp_path).fingerprint != first.fingerprint
    monkeypatch.setattr(packaged, "fingerprint", lambda: "other sets")
    base_model(tmp_path)
    assert len(few) == 3


@pytest.mark.parametrize("damage", [b"", b"{}\n", b"\xff\x00", None])
def test_a_damaged_one_is_made_anew(few: list[int], tmp_path: Path, damage: bytes | None) -> None:
    first = base_model(tmp_path)
    (path,) = (p for p in (tmp_path / "models").iterdir() if p.is_file())
    path.write_bytes(path.read_bytes()[:-9] if damage is None else damage)
    assert base_model(tmp_path) == first
    assert len(few) == 2


def test_the_package_has_the_model_of_its_sets() -> None:
    """If not, each machine trains it before its first search: run `benchmarks.tuner.train_base`."""
    found = packaged_model()
    assert found is not None
    assert found.fingerprint == module._fingerprint()
    assert found.num_tasks == len(packaged_sets())
    assert XGBoostModel(0, base=found.model).is_trained


def test_a_packaged_model_is_not_trained_again(few: list[int], tmp_path: Path) -> None:
    made = write_packaged()
    assert base_model(tmp_path / "first") == made
    module.PACKAGED.unlink()
    assert base_model(tmp_path / "first") == made, "it was copied to the directory"
    assert len(few) == 1


def test_a_damaged_or_outdated_packaged_model_is_trained_anew(
    few: list[int], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    made = write_packaged()
    module.PACKAGED.write_bytes(module.PACKAGED.read_bytes()[:-9])
    assert base_model(tmp_path / "first") == made
    assert len(few) == 2
    write_packaged()
    monkeypatch.setattr(module, "SETTINGS", "others")
    assert base_model(tmp_path / "second").fingerprint != made.fingerprint
    assert len(few) == 4


def test_where_nothing_can_be_kept_it_is_still_there(few: list[int], tmp_path: Path) -> None:
    blocked = tmp_path / "file"
    blocked.write_text("no directory")
    assert base_model(blocked).num_tasks == 2


def test_thinning_keeps_the_fastest() -> None:
    samples = packaged_sets()[0].samples()
    few = thinned(samples, 20)
    assert len(few.run_secs) == 20
    assert few.run_secs.min() == samples.run_secs.min()
    known = {row.tobytes() for row in samples.features}
    assert all(row.tobytes() in known for row in few.features)
    assert thinned(samples, 10**6) is samples


def test_it_orders_candidates_of_an_operator_that_it_does_not_know() -> None:
    """Of the sets of other operators, on the candidates of one: far better than chance."""
    known = [s for s in packaged_sets() if s.operator in {"matmul", "conv1d"}]
    other = next(s for s in packaged_sets() if s.name == "conv2d_1x16x56x56x32x3x2x1")
    trained = module._trained([thinned(s.samples(), 96) for s in known], "x")
    samples = other.samples()
    scores = XGBoostModel(0, base=trained.model).predict(samples.features)
    found = quality(scores, samples.run_secs)
    assert found is not None
    assert found.pairwise > 0.75


def test_sets_are_of_tasks_that_this_version_reads() -> None:
    for recorded in packaged_sets():
        assert Target(recorded.target).kind == "cpu"
        assert recorded.task.func.name
        assert np.isfinite(recorded.best_secs)
    assert {"matmul", "conv2d"} <= {s.operator for s in packaged_sets()}
    assert ops.OPERATORS.keys() >= {s.operator for s in packaged_sets()}


def test_sets_of_a_cpu_improve_the_order_of_an_unknown_operator_there() -> None:
    """On a Zen 4, with other operators of both CPUs, and with those of the Zen 3 alone."""
    cpu, operator = "-mcpu=znver4", "matmul"
    products = {"batch_matmul", "dense", "linear_relu", "matmul_bias_relu", "mm_relu"}
    # Others with vectors of 512 bits are left out: they stand for sets of the Zen 4.
    known = [s for s in packaged_sets() if "-mcpu=znver3" in s.target or cpu in s.target]
    others = [s for s in known if s.operator in products]
    wanted = [s for s in packaged_sets() if s.operator == operator and cpu in s.target]
    assert len(wanted) == 3

    def mean_pairwise(training: list[RecordedSet]) -> float:
        trained = module._trained([thinned(s.samples(), 96) for s in training], "x")
        model = XGBoostModel(0, base=trained.model)
        kept = [recorded.kept.samples() for recorded in wanted]
        found = [quality(model.predict(s.features), s.run_secs) for s in kept]
        return float(np.mean([q.pairwise for q in found if q is not None]))

    alone = mean_pairwise([s for s in others if cpu not in s.target])
    assert mean_pairwise(others) > alone + 0.05

from __future__ import annotations

import pytest
from sqlalchemy.exc import NoResultFound

from compiler import ops
from compiler.ir.analysis.structural import structural_equal
from compiler.ir.text.printer import script
from compiler.schedule.error import TraceError
from compiler.script.error import ScriptError
from compiler.target.error import TargetError
from service.common.new_workload import NewWorkload
from service.store import workloads
from service.store.database.database import Database
from service.store.tasks import load_task, parse_candidate, parse_task

TARGET = "cpu -mcpu=znver3 -num-cores=2"


def test_a_stored_workload_is_loaded_as_a_task(database: Database) -> None:
    func = ops.matmul(8, 8, 8)
    with database.write() as session:
        workloads.ensure(session, NewWorkload("key", func.name, script(func), 1024))
    with database.read() as session:
        task = load_task(session, "key", TARGET, 2.5)
    assert structural_equal(task.func, func)
    assert task.target.name == TARGET
    assert task.weight == 2.5


def test_a_workload_that_the_store_lacks_is_an_error(database: Database) -> None:
    with database.read() as session, pytest.raises(NoResultFound):
        load_task(session, "no such key", TARGET)


def test_a_text_or_target_of_another_version_is_an_error() -> None:
    with pytest.raises(ScriptError):
        parse_task("def matmul(", TARGET)
    with pytest.raises(TargetError):
        parse_task(script(ops.matmul(8, 8, 8)), "abacus")


def test_a_trace_of_another_version_is_an_error() -> None:
    with pytest.raises(TraceError):
        parse_candidate("default", {"insts": "none"})

from compiler.graph.reference import run_reference
from tests.integration.compiler.graph.onnx_backend.cases import all_cases
from tests.integration.compiler.graph.onnx_backend.run import run_case


def test_a_case_that_is_read_is_computed_as_onnx_computes_it() -> None:
    outcomes = {case.name: run_case(case, run_reference) for case in all_cases()}
    assert {name: x for name, x in outcomes.items() if x.startswith("wrong")} == {}
    assert sum(outcome == "passed" for outcome in outcomes.values()) >= 50

"""Submitting: what is typed is read at once, and what is wrong is marked where it is."""

from __future__ import annotations

import re

from playwright.sync_api import expect

from tests.browser.conftest import TARGET, OpenTab
from tests.browser.looks import violations

SCRIPT = """\
@T.prim_func
def double(A: T.Buffer((8, 8), "float32"), B: T.Buffer((8, 8), "float32")):
    for i, j in T.grid(8, 8):
        with T.sblock("B"):
            vi, vj = T.axis.remap("SS", [i, j])
            B[vi, vj] = A[vi, vj] * T.float32(2)
"""

NO_LOOPS = """\
@T.prim_func
def one(A: T.Buffer((), "float32")):
    with T.sblock("A"):
        A[()] = T.float32(1)
"""


def test_an_operator_is_read_as_it_is_typed(open_tab: OpenTab) -> None:
    page = open_tab("/submit")
    page.get_by_label("Operator, shape and type").fill("matmul:64,32,16:float32")
    read = page.get_by_role("region", name="Parsed program")
    expect(read).to_contain_text("65.5 kFLOP")
    expect(read).to_contain_text("64 \N{MULTIPLICATION SIGN} 16")
    page.get_by_label("Operator, shape and type").fill("matmull:64")
    expect(read).to_contain_text("matmull")
    expect(read).to_contain_text("Invalid task")
    assert not violations(page)


def test_only_what_the_service_takes_can_be_started(open_tab: OpenTab) -> None:
    page = open_tab("/submit")
    start = page.get_by_role("button", name="Start tuning")
    read = page.get_by_role("region", name="Parsed program")
    operator = page.get_by_label("Operator, shape and type")
    expect(start).to_be_enabled()
    operator.fill("matmull:64")
    expect(start).to_be_disabled()
    expect(start).to_have_accessible_description(re.compile("it is invalid"))
    operator.fill("matmul:64,64,64")
    expect(start).to_be_enabled()
    expect(read).to_contain_text("legal")
    operator.fill("")
    expect(read).not_to_contain_text("legal")
    expect(start).to_be_disabled()
    operator.fill("matmul:64,64,64")
    page.get_by_label("Trials", exact=True).fill("0")
    expect(start).to_be_disabled()
    expect(start).to_have_accessible_description(re.compile("marked fields"))
    page.get_by_label("Trials", exact=True).fill("8")
    expect(start).to_be_enabled()


def test_an_empty_design_space_is_explained(open_tab: OpenTab) -> None:
    page = open_tab("/submit")
    page.get_by_role("button", name="Script", exact=True).click()
    page.get_by_label("Script of a program").fill(NO_LOOPS)
    read = page.get_by_role("region", name="Parsed program")
    expect(read).to_contain_text("measures only the default schedule")


def test_each_example_is_legal(open_tab: OpenTab) -> None:
    page = open_tab("/submit")
    read = page.get_by_role("region", name="Parsed program")
    for example in page.get_by_role("group", name="Examples").get_by_role("button").all():
        example.click()
        expect(read.locator(".task-name")).to_have_text(example.inner_text())
        expect(read).to_contain_text("legal")


def test_a_mistake_in_a_script_is_marked_in_the_text(open_tab: OpenTab) -> None:
    page = open_tab("/submit")
    page.get_by_role("button", name="Script", exact=True).click()
    text = page.get_by_label("Script of a program")
    text.fill(SCRIPT.replace("T.grid(8, 8)", "T.grid(8, 8"))
    wrong = page.locator(".editor .line.wrong")
    expect(wrong).to_contain_text("T.grid(8, 8")
    expect(wrong.locator("mark")).to_have_count(1)
    expect(text).to_have_attribute("aria-invalid", "true")
    assert not violations(page)
    text.fill(SCRIPT)
    expect(wrong).to_have_count(0)
    expect(page.get_by_role("region", name="Parsed program")).to_contain_text("double")


def test_a_target_that_is_not_here_is_told_before_submitting(open_tab: OpenTab) -> None:
    page = open_tab("/submit")
    page.get_by_label("Target").fill("cpu -num-cores=1000")
    read = page.get_by_role("region", name="Parsed program")
    expect(read).to_contain_text(re.compile(r"the workers of this service for \S+ have \d+ cores?"))


def test_a_script_is_tuned_with_its_options(open_tab: OpenTab) -> None:
    page = open_tab("/submit")
    page.get_by_role("button", name="Script", exact=True).click()
    page.get_by_label("Script of a program").fill(SCRIPT)
    page.get_by_label("Target").fill(TARGET)
    page.get_by_label("Trials", exact=True).fill("4")
    page.get_by_label("Strategy").select_option("random")
    page.get_by_label("Warm start").uncheck()
    page.get_by_role("button", name="Start tuning").click()
    expect(page.get_by_role("heading", name="double")).to_be_visible()
    expect(page.get_by_text("random, seed 0")).to_be_visible()


def test_several_tasks_become_a_group(open_tab: OpenTab) -> None:
    page = open_tab("/submit")
    page.get_by_role("button", name="Add a task").click()
    operators = page.get_by_label("Operator, shape and type")
    operators.nth(0).fill("matmul:16,16,16:float32")
    operators.nth(1).fill("relu:64,64")
    page.get_by_label("Weight").nth(1).fill("3")
    assert not violations(page)
    page.get_by_label("Target").fill(TARGET)
    page.get_by_label("Trials", exact=True).fill("32")
    page.get_by_role("button", name="Start 2 jobs").click()
    jobs = page.get_by_role("region", name="Jobs")
    expect(jobs.get_by_role("checkbox")).to_have_count(2)
    expect(jobs.get_by_role("link", name="relu")).to_be_visible()

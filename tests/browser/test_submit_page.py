"""Submitting: what is typed is read at once, and what is wrong is marked where it is."""

from __future__ import annotations

import re
import time
from datetime import UTC, datetime, timedelta

from playwright.sync_api import expect

import loopwright as lw
from examples.serving import Server
from tests.browser.conftest import TARGET, OpenTab
from tests.browser.looks import keep_screenshot, look_at, violations
from tests.patience import PATIENCE_SECS

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


def test_a_job_with_a_window_and_a_webhook_says_why_it_waits_and_what_was_sent(
    open_tab: OpenTab, server: Server
) -> None:
    opens = datetime.now(UTC) + timedelta(hours=3)
    window = f"{opens:%H}:00-{opens + timedelta(hours=1):%H}:00"
    page = open_tab("/submit")
    page.get_by_label("Target").fill(TARGET)
    page.get_by_label("Time window").fill("tonight")
    start = page.get_by_role("button", name="Start tuning")
    expect(start).to_be_disabled()
    page.get_by_label("Time window").fill(window)
    expect(page.get_by_label("Webhook secret")).to_have_count(0)
    page.get_by_label("Webhook address").fill("https://hooks.invalid/tuned")
    expect(page.get_by_label("Webhook secret")).to_have_value(re.compile(r"^whsec_[\w+/]{43}=$"))
    assert not violations(page)
    keep_screenshot(page, "/submit-webhook", "light", 1280)
    start.click()
    expect(page.get_by_text("The job waits for its window.")).to_be_visible()
    expect(page.get_by_role("status")).to_contain_text(f"during {window} UTC, which opens in")
    webhook = page.get_by_role("region", name="Webhook")
    expect(webhook).to_contain_text("hooks.invalid")
    expect(webhook).to_contain_text("Waits for the end of the job")
    assert "/tuned" not in (webhook.text_content() or ""), "the path may be a secret"
    look_at(page, "/job-waits", "light")
    waiting = open_tab("/?state=queued").get_by_role("row").filter(has_text=f"window {window} UTC")
    expect(waiting).to_have_count(1)
    with lw.Client(server.url) as client:
        job = client.job(page.url.rpartition("/")[2])
        job.cancel()
        deadline = time.monotonic() + PATIENCE_SECS
        while not ((read := job.read().webhook) and read.error):
            assert time.monotonic() < deadline, read
            time.sleep(0.1)
    page.reload()
    expect(webhook).to_contain_text("To be delivered")
    expect(webhook).to_contain_text("1 attempt")
    expect(webhook).to_contain_text("The last attempt failed.")
    expect(page.get_by_text("The job waits for its window.")).to_have_count(0)
    look_at(page, "/job-webhook", "light")

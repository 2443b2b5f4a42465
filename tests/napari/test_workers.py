"""Jobs in the background: the newest wins, errors are told, nothing is left running."""

import itertools
import threading
import time

import pytest
from napari_helpers import TIMEOUT

from napari_ecc._workers import Runner, Step


@pytest.fixture
def runner(qtbot):
    made = Runner("test")
    yield made
    made.close()
    qtbot.waitUntil(lambda: not made.running, timeout=TIMEOUT)


def test_the_newest_request_is_answered(runner, qtbot):
    """The one that runs is stopped, those between are never begun, results come in this thread."""
    begun, results = [], []

    def job(number):
        begun.append(number)
        for part in range(5) if number else itertools.count():
            time.sleep(0.01)
            yield Step((number, part), part + 1, 50)

    def keep(step):
        assert threading.current_thread() is threading.main_thread()
        results.append(step.value)

    runner.submit(lambda: job(0), keep)
    qtbot.waitUntil(lambda: bool(results), timeout=TIMEOUT)
    for number in (1, 2, 3):
        runner.submit(lambda number=number: job(number), keep)
    results.clear()
    qtbot.waitUntil(lambda: not runner.running, timeout=TIMEOUT)
    assert begun == [0, 3]
    assert {number for number, _ in results} == {3}
    assert results[-1] == (3, 4)


def test_quick_steps_are_thinned_but_the_last_one_comes(runner, qtbot):
    results = []
    runner.submit(lambda: iter([Step(i) for i in range(10_000)]), results.append)
    qtbot.waitUntil(lambda: not runner.running, timeout=TIMEOUT)
    assert len(results) < 100
    assert results[-1].value == 9999


def test_results_before_an_error_arrive(runner, qtbot):
    results, failed = [], []
    runner.failed.connect(failed.append)

    def job():
        yield from map(Step, range(100))
        raise ValueError("no luck")

    runner.submit(job, lambda step: results.append(step.value))
    qtbot.waitUntil(lambda: bool(failed), timeout=5000)
    assert results[-1] == 99
    assert failed == ["no luck"]


def test_cancel_stops_the_job_and_closes_its_generator(runner, qtbot):
    results, closed = [], threading.Event()

    def job():
        try:
            while True:
                time.sleep(0.01)
                yield Step(1)
        finally:
            closed.set()

    runner.submit(job, results.append)
    qtbot.waitUntil(lambda: bool(results), timeout=TIMEOUT)
    runner.cancel()
    qtbot.waitUntil(lambda: not runner.running, timeout=TIMEOUT)
    assert closed.is_set()


@pytest.mark.parametrize("where", ["job", "callback"])
def test_an_error_is_told_and_the_next_job_runs(runner, qtbot, messages, where):
    failed, results = [], []
    runner.failed.connect(failed.append)

    def broken():
        yield Step(0)
        if where == "job":
            raise ValueError("`image` must be flat, got round")

    def show(step):
        if where == "callback":
            raise RuntimeError("the layer is gone")

    runner.submit(broken, show)
    qtbot.waitUntil(lambda: not runner.running, timeout=TIMEOUT)
    expected = "`image` must be flat, got round" if where == "job" else "the layer is gone"
    assert failed == [expected]
    assert messages == []  # who listens to `failed` tells it
    runner.failed.disconnect()
    runner.submit(broken, show)
    qtbot.waitUntil(lambda: not runner.running, timeout=TIMEOUT)
    assert messages == [expected]
    runner.submit(lambda: iter([Step("fine")]), results.append)
    qtbot.waitUntil(lambda: not runner.running, timeout=TIMEOUT)
    assert results == [Step("fine")]


def test_busy_and_progress(runner, qtbot, monkeypatch):
    monkeypatch.setattr("napari_ecc._workers.SHOW_PROGRESS_AFTER", 0.0)
    monkeypatch.setattr("napari_ecc._workers.FORWARD_EVERY", 0.0)
    from napari.utils import progress

    busy, done, bars = [], [], []
    shown = threading.Semaphore(0)
    runner.busy.connect(busy.append)
    runner.progressed.connect(lambda *parts: done.append(parts))

    def job():
        for part in range(3):
            yield Step(None, part + 1, 3)
            assert shown.acquire(timeout=TIMEOUT / 1000)

    def show(_):
        bars.append(len(progress._all_instances))
        shown.release()

    runner.submit(job, show)
    qtbot.waitUntil(lambda: not runner.running, timeout=TIMEOUT)
    assert busy == [True, False]
    assert done == [(1, 3), (2, 3), (3, 3)]
    assert max(bars) == 1
    assert len(progress._all_instances) == 0


def test_results_arrive_in_order_however_the_event_loop_is_nested(
    make_napari_viewer, qtbot, monkeypatch
):
    """napari's progress bar processes events, in which the next step or the end can arrive."""
    make_napari_viewer(show=True)
    monkeypatch.setattr("napari_ecc._workers.SHOW_PROGRESS_AFTER", 0.0)
    monkeypatch.setattr("napari_ecc._workers.FORWARD_EVERY", 0.0)
    runner = Runner("nested")
    for _ in range(50):
        shown = []

        def job():
            for part in range(1, 7):
                yield Step(part, part, 6)
                time.sleep(0.001)

        def slowly(step, shown=shown):
            time.sleep(0.003)
            shown.append(step.value)

        runner.submit(job, slowly)
        qtbot.waitUntil(lambda: not runner.running, timeout=TIMEOUT)
        assert shown == sorted(shown)
        assert shown[-1] == 6
    runner.close()


def test_a_callback_that_processes_events_is_not_overtaken(runner, qtbot, qapp):
    """Steps and the end of a job wait until the callback has returned."""
    shown, ends = [], []
    runner.busy.connect(ends.append)

    def job():
        for part in range(5):
            yield Step(part)

    def nested(step):
        qtbot.wait(30)
        assert True not in ends[1:]
        assert False not in ends
        shown.append(step.value)

    runner.submit(job, nested)
    qtbot.waitUntil(lambda: not runner.running, timeout=TIMEOUT)
    assert shown == sorted(shown)
    assert shown[-1] == 4
    assert ends == [True, False]


def test_stopping_is_told_and_cancelling_is_not(runner, qtbot):
    stopped = []
    runner.stopped.connect(lambda: stopped.append(True))
    runner.stop()
    assert stopped == []
    for end in (runner.cancel, runner.stop):
        runner.submit(lambda: iter([Step(0)]), lambda _: None)
        end()
    assert stopped == [True]


def test_a_job_in_this_thread_replaces_the_running_one(runner, qtbot, messages):
    results, failed, go = [], [], threading.Event()
    runner.failed.connect(failed.append)

    def slow():
        go.wait(TIMEOUT / 1000)
        yield Step("slow")

    def quick():
        yield Step("quick")
        if wrong:
            raise ValueError("no luck")

    wrong = False
    runner.submit(quick, results.append, "kind")
    qtbot.waitUntil(lambda: not runner.running, timeout=TIMEOUT)
    results.clear()
    runner.submit(slow, results.append)
    runner.submit(quick, results.append, "kind")
    assert results == [Step("quick")]
    go.set()
    qtbot.waitUntil(lambda: not runner.running, timeout=TIMEOUT)
    assert results == [Step("quick")]
    wrong = True
    runner.submit(quick, results.append, "kind")
    assert failed == ["no luck"]
    assert messages == []

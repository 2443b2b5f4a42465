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


@pytest.fixture
def finish(runner, qtbot):
    """Wait until nothing runs."""
    return lambda: qtbot.waitUntil(lambda: not runner.running, timeout=TIMEOUT)


def test_the_newest_request_is_answered(runner, qtbot, finish):
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
    finish()
    assert begun == [0, 3]
    assert {number for number, _ in results} == {3}
    assert results[-1] == (3, 4)


def test_quick_steps_are_thinned_but_the_last_one_comes(runner, finish):
    """Before an error, too."""
    results, failed = [], []
    runner.failed.connect(failed.append)

    def job():
        yield from map(Step, range(10_000))
        raise ValueError("no luck")

    runner.submit(job, results.append)
    finish()
    assert len(results) < 100
    assert results[-1].value == 9999
    assert failed == ["no luck"]


@pytest.mark.parametrize("where", ["job", "callback"])
def test_an_error_is_told_and_the_next_job_runs(runner, finish, messages, where):
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
    finish()
    expected = "`image` must be flat, got round" if where == "job" else "the layer is gone"
    assert failed == [expected]
    assert messages == []  # Who listens to `failed` tells it.
    runner.failed.disconnect()
    runner.submit(broken, show)
    finish()
    assert messages == [expected]
    fine = [Step("fine")]
    runner.submit(lambda: iter(fine), results.append)
    finish()
    assert results == [Step("fine")]


@pytest.fixture
def all_is_shown(monkeypatch):
    """Every step and the progress bar, however little time has passed."""
    monkeypatch.setattr("napari_ecc._workers.SHOW_PROGRESS_AFTER", 0.0)
    monkeypatch.setattr("napari_ecc._workers.FORWARD_EVERY", 0.0)


def test_busy_and_progress(runner, finish, all_is_shown):
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
    finish()
    assert busy == [True, False]
    assert done == [(1, 3), (2, 3), (3, 3)]
    assert max(bars) == 1
    assert len(progress._all_instances) == 0


def test_results_arrive_in_order_however_the_event_loop_is_nested(
    make_napari_viewer, runner, finish, all_is_shown
):
    """napari's progress bar processes events, in which the next step or the end can arrive."""
    make_napari_viewer(show=True)
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
        finish()
        assert shown == sorted(shown)
        assert shown[-1] == 6


def test_a_callback_that_processes_events_is_not_overtaken(runner, qtbot, finish):
    """Steps and the end of a job wait until the callback has returned."""
    shown, ends = [], []
    runner.busy.connect(ends.append)

    def nested(step):
        qtbot.wait(30)
        assert ends == [True]
        shown.append(step.value)

    runner.submit(lambda: map(Step, range(5)), nested)
    finish()
    assert shown == sorted(shown)
    assert shown[-1] == 4
    assert ends == [True, False]


def test_stopping_is_told_and_cancelling_is_not(runner):
    stopped = []
    runner.stopped.connect(lambda: stopped.append(True))
    runner.stop()
    assert stopped == []
    for end in (runner.cancel, runner.stop):
        runner.submit(lambda: iter([Step(0)]), lambda _: None)
        end()
    assert stopped == [True]


def test_a_job_in_this_thread_replaces_the_running_one(runner, finish, messages):
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
    finish()
    results.clear()
    runner.submit(slow, results.append)
    runner.submit(quick, results.append, "kind")
    assert results == [Step("quick")]
    go.set()
    finish()
    assert results == [Step("quick")]
    wrong = True
    runner.submit(quick, results.append, "kind")
    assert failed == ["no luck"]
    assert messages == []

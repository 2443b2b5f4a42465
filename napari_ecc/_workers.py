"""One job at a time in a worker thread: the newest request wins, and every job can be cancelled."""

from __future__ import annotations

import atexit
import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Generator, Hashable, Iterator
from functools import partial
from queue import Empty, SimpleQueue
from typing import Any, NamedTuple
from weakref import WeakSet

from napari.qt.threading import create_worker
from napari.utils import progress
from napari.utils.notifications import show_error
from psygnal import Signal
from qtpy.QtCore import QThreadPool

FORWARD_EVERY = 0.1
"""Seconds between two intermediate results that reach the GUI."""

SHOW_PROGRESS_AFTER = 0.5
"""Seconds after which the progress bar of a job is shown."""

POLL = 0.02
"""Seconds until a job that waits for a call can be cancelled."""

ENDS_WITHIN = 1500
"""Milliseconds that the end of a script waits for workers."""

AT_ONCE = 0.02
"""Seconds below which a job is quick."""

MOST_KINDS = 100
"""Kinds of jobs that a runner knows to be quick."""

log = logging.getLogger(__name__)


class Step(NamedTuple):
    """An intermediate or final result of a job, and how far the job is."""

    value: Any
    done: int = 0
    total: int = 0


PREPARING = Step(None)
"""What a job yields while it waits for kernels that are being compiled."""


class _Failure(NamedTuple):
    error: Exception


Job = Callable[[], Iterator[Step]]
OnStep = Callable[[Step], None]


def _guarded(
    job: Job, cancelled: threading.Event, taken: threading.Event
) -> Generator[Step | _Failure, None, None]:
    """Yield the steps of a job as the GUI takes them; an error is the last step.

    An exception that left a generator worker could end the process.
    """
    steps = job()
    held: Step | None = None
    forwarded = 0.0
    try:
        for step in steps:
            if cancelled.is_set():
                return
            if held is None or held.value is None or step.value is not None:
                held = step
            if taken.is_set() and time.monotonic() - forwarded >= FORWARD_EVERY:
                taken.clear()
                yield held
                held, forwarded = None, time.monotonic()
        if held is not None:
            yield held
    except Exception as error:
        log.debug("a job failed", exc_info=True)
        if held is not None:
            yield held
        yield _Failure(error)
    finally:
        if isinstance(steps, Generator):
            steps.close()


class Runner:
    """Runs jobs in a worker thread, the newest request only.

    A request that comes while a job runs asks that job to stop, and is started when it has; of
    several such requests the last one is. Results of older requests are dropped. Callbacks are
    called in the main thread, in the order of the steps and never nested, even if a callback or
    napari's progress bar processes events. A job's exception is shown as a notification, unless
    `failed` is connected.
    """

    busy = Signal(bool)  # a job has started, or the last one has ended
    preparing = Signal(bool)  # a job waits for its kernels, or no longer
    progressed = Signal(int, int)  # how many parts of how many are done
    failed = Signal(str)  # what went wrong
    stopped = Signal()  # the user has cancelled a job, which has not delivered its last step

    def __init__(self, description: str) -> None:
        self.description = description
        self._generation = 0
        self._pending: tuple[Job, OnStep] | None = None
        self._worker: Any = None
        self._cancelled = threading.Event()
        self._taken = threading.Event()
        self._bar: Any = None
        self._started = 0.0
        self._arrived: deque[Callable[[], None]] = deque()
        self._delivering = False
        self._waits = False
        self._quick: deque[Hashable] = deque(maxlen=MOST_KINDS)
        _runners.add(self)

    @property
    def running(self) -> bool:
        """Whether a job runs or waits to be run."""
        return self._worker is not None or self._pending is not None

    def submit(
        self, job: Job, on_step: OnStep, kind: Hashable = None, *, at_once: bool = True
    ) -> None:
        """Run a job instead of the current one.

        The job returns an iterator of `Step`, best a generator. It runs in another thread and must
        touch neither layers nor widgets; it can be cancelled between steps. `on_step` is called
        with each step, or with the last one of those that came in quick succession.

        A job of a `kind` whose last one was quick runs at once in this thread, as its kernels are
        ready and drawing its results takes longer, unless `at_once` is false. Jobs without a kind
        never do.
        """
        self.cancel()
        timed = partial(self._timed, job, kind)
        if at_once and kind is not None and kind in self._quick:
            generation = self._generation
            for step in _guarded(timed, threading.Event(), self._taken):
                self._deliver(partial(self._on_step, generation, on_step, step))
            return
        self._pending = (timed, on_step)
        if self._worker is None:
            self._start_pending()

    def _timed(self, job: Job, kind: Hashable) -> Iterator[Step]:
        """Run a job, and take note of whether it is quick."""
        start = time.perf_counter()
        yield from job()
        if kind in self._quick:
            self._quick.remove(kind)
        if time.perf_counter() - start < AT_ONCE:
            self._quick.append(kind)

    def cancel(self) -> None:
        """Discard the running and the waiting job."""
        self._pending = None
        self._stop_current()

    def stop(self) -> None:
        """Cancel at the user's request."""
        if self.running:
            self.cancel()
            self.stopped.emit()

    def close(self) -> None:
        """Cancel and disconnect all signals."""
        for signal in (self.busy, self.preparing, self.progressed, self.failed, self.stopped):
            signal.disconnect()
        self.cancel()

    def _stop_current(self) -> None:
        self._generation += 1
        self._cancelled.set()
        if self._worker is not None:
            self._worker.quit()

    def _start_pending(self) -> None:
        assert self._pending is not None
        (job, on_step), self._pending = self._pending, None
        self._cancelled = threading.Event()
        self._started = time.monotonic()
        self._taken.set()
        worker = create_worker(_guarded, job, self._cancelled, self._taken)
        generation = self._generation
        worker.yielded.connect(
            lambda step: self._deliver(partial(self._on_step, generation, on_step, step))
        )
        worker.finished.connect(lambda: self._deliver(self._on_finished))
        self._worker = worker
        self.busy.emit(True)
        worker.start()

    def _deliver(self, event: Callable[[], None]) -> None:
        """Handle an event of the worker after those before it."""
        self._arrived.append(event)
        if self._delivering:
            return
        self._delivering = True
        failure: Exception | None = None
        while self._arrived:
            try:
                self._arrived.popleft()()
            except Exception as error:  # later events, above all the end, must still be handled
                failure = failure or error
        self._delivering = False
        if failure is not None:
            raise failure

    def _on_step(self, generation: int, on_step: OnStep, step: Step | _Failure) -> None:
        self._taken.set()
        if generation != self._generation:
            return
        if (step is PREPARING) != self._waits:
            self._waits = not self._waits
            self.preparing.emit(self._waits)
        if step is PREPARING:
            return
        if isinstance(step, _Failure):
            self._report(step.error)
            return
        try:
            on_step(step)
        except Exception as error:  # the layer may have been removed
            log.debug("a result could not be shown", exc_info=True)
            self._report(error)
        if step.total > 1 and generation == self._generation:
            self._show_progress(step)

    def _report(self, error: Exception) -> None:
        message = str(error) or type(error).__name__
        if not len(self.failed):
            show_error(message)
        self.failed.emit(message)

    def _show_progress(self, step: Step) -> None:
        self.progressed.emit(step.done, step.total)
        if self._bar is None and time.monotonic() - self._started > SHOW_PROGRESS_AFTER:
            self._bar = progress(total=step.total, desc=self.description)
        if self._bar is not None:
            self._bar.update(step.done - self._bar.n)

    def _on_finished(self) -> None:
        self._worker = None
        if self._waits:
            self._waits = False
            self.preparing.emit(False)
        if self._bar is not None:
            self._bar.close()
            self._bar = None
        if self._pending is not None:
            self._start_pending()
        else:
            self.busy.emit(False)


class _UnwantedError(Exception):
    """Nobody waits for results any longer."""


def streamed(
    work: Callable[[Callable[[Any], None]], None], *, joined: bool
) -> Generator[Any, None, None]:
    """Yield what a function passes to its argument, and None while there is nothing new.

    It runs in a thread that does not keep the process alive. What it raises is raised again. When
    the generator is closed, the next result, or None, ends the function; if `joined`, that is
    waited for.
    """
    results: SimpleQueue[Any] = SimpleQueue()
    closed = threading.Event()

    def put(result: Any) -> None:
        if closed.is_set():
            raise _UnwantedError
        if result is not None:
            results.put((result, None))

    def run() -> None:
        error = None
        try:
            work(put)
        except Exception as raised:
            error = raised
        results.put((None, error))

    thread = threading.Thread(target=run, name="ecc-work", daemon=True)
    thread.start()
    try:
        while True:
            try:
                found, error = results.get(timeout=POLL)
            except Empty:
                yield None
                continue
            if error is not None:
                raise error
            if found is None:
                return
            yield found
    finally:
        closed.set()
        if joined:
            thread.join()


def apart(call: Callable[[], Any]) -> Generator[Step, None, Any]:
    """Return the result of a long call, which the job does not wait for when it is cancelled.

    The call then goes on in its thread, one call at a time.
    """

    def work(put: Callable[[Any], None]) -> None:
        with _one_at_a_time:
            put(call())

    for found in streamed(work, joined=False):
        if found is not None:
            return found
        yield Step(None)


_one_at_a_time = threading.Lock()
_runners: WeakSet[Runner] = WeakSet()


@atexit.register
def _end() -> None:
    """End the workers of a script that leaves windows open, before Qt deletes their signals."""
    for runner in _runners:
        runner.close()
    QThreadPool.globalInstance().waitForDone(ENDS_WITHIN)


def result(job: Iterator[Step]) -> Any:
    """Return the value of a job's last step."""
    for step in job:
        last = step
    return last.value

"""One job at a time in a thread: the newest request wins, and every job can be cancelled."""

import logging
import threading
import time
import traceback
from collections import deque
from collections.abc import Callable, Generator, Hashable, Iterator
from functools import partial
from typing import Any, NamedTuple

from napari.utils import progress
from napari.utils.notifications import show_error
from psygnal import EmitLoopError, Signal
from qtpy.QtCore import QTimer

LOOK_EVERY = 5
"""Milliseconds between two looks at what a job has found."""
FORWARD_EVERY = 0.1
"""Seconds between two intermediate results that are shown."""
SHOW_PROGRESS_AFTER = 0.5
"""Seconds after which the progress bar of a job is shown."""
POLL = 0.02
"""Seconds until a job that waits for a call or for kernels can be cancelled."""
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
Job = Callable[[], Iterator[Step]]
OnStep = Callable[[Step], None]


class Work(threading.Thread):
    """A job in a thread that does not keep the process alive; `error` ended it, unless None."""

    def __init__(self, job: Job) -> None:
        super().__init__(name="napari-ecc-job", daemon=True)
        self.cancelled = threading.Event()
        self.error: Exception | None = None
        self._job = job
        self._held: Step | None = None
        self._lock = threading.Lock()

    def run(self) -> None:
        """Hold the last step, or the last one with a value."""
        try:
            steps = self._job()
            for step in steps:
                if self.cancelled.is_set():
                    break
                with self._lock:
                    if self._held is None or self._held.value is None or step.value is not None:
                        self._held = step
            if isinstance(steps, Generator):
                steps.close()
        except Exception as error:
            log.debug("a job failed", exc_info=True)
            self.error = error

    def take(self) -> Step | None:
        """Return the step that is held, once."""
        with self._lock:
            step = self._held
            self._held = None
        return step


class Runner:
    """Runs jobs in a thread, the newest request only.

    A request that comes while a job runs asks that job to stop, and is started when it has; of
    several such requests the last one is. Results of older requests are dropped. Callbacks are
    called in the main thread, in the order of the steps and never nested, even if a callback or
    napari's progress bar processes events. A job's exception is shown as a notification, unless
    `failed` is connected.
    """

    busy = Signal(bool)
    """A job has started, or the last one has ended."""
    preparing = Signal(bool)
    """A job waits for its kernels, or no longer."""
    progressed = Signal(int, int)
    """How many parts of how many are done."""
    failed = Signal(str)
    """What went wrong."""
    stopped = Signal()
    """The user has cancelled a job, which has not delivered its last step."""

    def __init__(self, description: str) -> None:
        self.description = description
        self.details = ""
        """The traceback of the last exception."""
        self._now: tuple[Work, OnStep] | None = None
        self._next: tuple[Work, OnStep] | None = None
        self._timer = QTimer(interval=LOOK_EVERY)
        self._timer.timeout.connect(self._look)
        self._showing = self._waits = False
        self._bar: Any = None
        self._started = self._shown = 0.0
        self._quick: deque[Hashable] = deque(maxlen=MOST_KINDS)

    @property
    def running(self) -> bool:
        """Whether a job runs or waits to be run."""
        return self._now is not None or self._next is not None

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
        work = Work(partial(self._timed, job, kind))
        if at_once and kind is not None and kind in self._quick:
            work.run()
            self._show(work, on_step, ended=True)
            return
        self._next = work, on_step
        if self._now is None:
            self._start()

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
        self._next = None
        if self._now is not None:
            self._now[0].cancelled.set()

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

    def _start(self) -> None:
        assert self._next is not None
        self._now = self._next
        self._next = None
        self._started = time.monotonic()
        self._shown = 0.0
        self.busy.emit(True)
        self._now[0].start()
        self._timer.start()

    def _look(self) -> None:
        """Show what the job has found, unless something is being shown."""
        if self._showing or self._now is None:
            return
        work, on_step = self._now
        ended = not work.is_alive()
        if not ended and time.monotonic() - self._shown < FORWARD_EVERY:
            return
        self._showing = True
        try:
            self._show(work, on_step, ended=ended)
        finally:
            self._showing = False
            if ended:
                self._finish()

    def _show(self, work: Work, on_step: OnStep, *, ended: bool) -> None:
        step = work.take()
        if step is not None and not work.cancelled.is_set():
            self._shown = time.monotonic()
            if (step is PREPARING) != self._waits:
                self._waits = not self._waits
                self.preparing.emit(self._waits)
            if step is not PREPARING:
                try:
                    on_step(step)
                except Exception as error:  # The layer may have been removed.
                    log.debug("a result could not be shown", exc_info=True)
                    self._report(error)
                if step.total > 1 and not work.cancelled.is_set():
                    self._show_progress(step)
        if ended and work.error is not None and not work.cancelled.is_set():
            self._report(work.error)

    def _report(self, error: Exception) -> None:
        message = in_one_line(error)
        self.details = "".join(traceback.format_exception(error))
        if not len(self.failed):
            show_error(message)
        self.failed.emit(message)

    def _show_progress(self, step: Step) -> None:
        self.progressed.emit(step.done, step.total)
        if self._bar is None and time.monotonic() - self._started > SHOW_PROGRESS_AFTER:
            self._bar = progress(total=step.total, desc=self.description)
        if self._bar is not None:
            self._bar.update(step.done - self._bar.n)

    def _finish(self) -> None:
        self._now = None
        self._timer.stop()
        if self._waits:
            self._waits = False
            self.preparing.emit(False)
        if self._bar is not None:
            self._bar.close()
            self._bar = None
        if self._next is not None:
            self._start()
        else:
            self.busy.emit(False)


def in_one_line(error: BaseException) -> str:
    """Return the message of an exception, or of what caused it in a callback of a signal."""
    while isinstance(error, EmitLoopError) and error.__cause__ is not None:
        error = error.__cause__
    lines = str(error).strip().splitlines()
    return lines[0] if lines else type(error).__name__


def apart(call: Callable[[], Any]) -> Generator[Step, None, Any]:
    """Return the result of a long call, which the job does not wait for when it is cancelled.

    The call then goes on in its thread, one call at a time.
    """

    def job() -> Iterator[Step]:
        with _one_at_a_time:
            yield Step(call())

    work = Work(job)
    work.start()
    while work.is_alive():
        work.join(POLL)
        yield Step(None)
    if work.error is not None:
        raise work.error
    step = work.take()
    return step and step.value


_one_at_a_time = threading.Lock()


def result(job: Iterator[Step]) -> Any:
    """Return the value of a job's last step."""
    return deque(job, maxlen=1).pop().value

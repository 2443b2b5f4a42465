"""Fixtures and settings shared by all tests."""

import gc
import os
import random
from collections import defaultdict
from collections.abc import Callable, Generator, Iterable
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest
from hypothesis import HealthCheck, settings
from numba.core import event

settings.register_profile(
    "suite",
    derandomize=True,
    deadline=None,
    max_examples=40,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)
settings.register_profile("many", settings.get_profile("suite"), max_examples=11_500)
settings.load_profile("suite")


TESTS = Path(__file__).parent


class Backend(NamedTuple):
    """An array library that the public functions accept."""

    name: str
    asarray: Callable[[np.ndarray], Any]
    dtypes: frozenset[str]
    kernels: bool = False
    """Whether it has kernels of its own. The fixture `backend` provides these libraries only."""

    def supports(self, dtype: Any) -> bool:
        """Tell whether the library has this dtype, byte order included."""
        return np.dtype(dtype).str in self.dtypes


def _dtype_strings(*names: str) -> frozenset[str]:
    return frozenset(np.dtype(name).str for name in names)


NATIVE = ("bool", "u1", "i1", "u2", "i2", "u4", "i4", "u8", "i8", "f2", "f4", "f8")
SWAPPED = (">u2", ">i2", ">u4", ">i4", ">u8", ">i8", ">f2", ">f4", ">f8")


def _boxed(array: np.ndarray) -> Any:
    from plain import Box

    return Box(array)


def _tensor(array: np.ndarray) -> Any:
    torch = pytest.importorskip("torch", reason="torch is not installed")
    return torch.from_numpy(np.array(array, order="C"))


def _of_jax(array: np.ndarray) -> Any:
    jax = pytest.importorskip("jax", reason="JAX is not installed")
    with jax.enable_x64(True):
        return jax.numpy.asarray(array)


def _chunked(array: np.ndarray) -> Any:
    da = pytest.importorskip("dask.array", reason="dask is not installed")
    return da.from_array(array, chunks=4)


# A new library or backend is one row here.
BACKENDS = {
    row.name: row
    for row in (
        Backend("numpy", np.asarray, _dtype_strings(*NATIVE, *SWAPPED), kernels=True),
        Backend("plain", _boxed, _dtype_strings(*NATIVE, *SWAPPED)),
        Backend("torch", _tensor, _dtype_strings(*NATIVE)),
        Backend("jax", _of_jax, _dtype_strings(*NATIVE)),
        Backend("dask", _chunked, _dtype_strings(*NATIVE, *SWAPPED)),
    )
}


@pytest.fixture(scope="session", params=[row.name for row in BACKENDS.values() if row.kernels])
def backend(request: pytest.FixtureRequest) -> Backend:
    """Libraries with kernels of their own: tests of blocks, layouts, types and sizes."""
    return BACKENDS[request.param]


@pytest.fixture(scope="session", params=list(BACKENDS))
def library(request: pytest.FixtureRequest) -> Backend:
    """Every library: tests of what goes in and comes out."""
    found = BACKENDS[request.param]
    found.asarray(np.zeros(1))  # This skips the test if the library is missing.
    return found


# numba allocates so many objects while it compiles that garbage collection takes a tenth of the
# time with Python's default, 700.
gc.set_threshold(20_000, 10, 10)

# While it compiles, numba raises many errors that it handles itself, and to colour them takes time.
os.environ.setdefault("NUMBA_DISABLE_ERROR_MESSAGE_HIGHLIGHTING", "1")

# Since version 3.11, Python keeps the frames of calls in chunks of 16 KiB. A call across the end of
# a chunk asks the system for another one and returns it afterwards, which takes up to a fifth of
# the time of a compilation, depending on how deep the stack is. The chunk of a large frame has room
# for all that follow.
LARGE_FRAME = 70_000
"""In words; the smallest chunk that holds it has 131,072."""


def _call(function: Callable[[], Any]) -> Any:
    return function()


_call.__code__ = _call.__code__.replace(co_stacksize=LARGE_FRAME)
_in_large_frame = False


@pytest.hookimpl(tryfirst=True)
def pytest_runtestloop(session: pytest.Session) -> Any:
    """Run the loop that others implement, above a large frame."""
    global _in_large_frame
    if _in_large_frame:
        return None
    _in_large_frame = True
    return _call(lambda: session.config.hook.pytest_runtestloop(session=session))


def _values(case: pytest.Item) -> set[tuple[str, int]]:
    """Return the values of the parameters of a case.

    They are told apart by identity, as values may be arrays. All cases share the objects that their
    test lists.
    """
    return {(name, id(value)) for name, value in case.callspec.params.items()}


def _cases_that_cover(items: Iterable[pytest.Item]) -> set[pytest.Item]:
    """Return cases of one test in which every value of each parameter occurs.

    Each is one with the most values that no other has yet, so that they are few.
    """
    cases = list(items)
    random.Random(0).shuffle(cases)
    values = {case: _values(case) for case in cases}
    missing = set().union(*values.values())
    kept = set()
    while missing:
        most = max(len(values[case] & missing) for case in cases)
        case = next(case for case in cases if len(values[case] & missing) == most)
        kept.add(case)
        missing -= values[case]
    return kept


@pytest.hookimpl(wrapper=True)
def pytest_collection(session: pytest.Session) -> Generator[None, Any, Any]:
    """Refuse modules that compile kernels while they are imported.

    Every process of several imports all of them at the same time, so that each compiles the same
    kernels. A fixture or a cached function compiles them in one.
    """
    compilations = event.RecordingListener()
    with event.install_listener("numba:compile", compilations):
        collected = yield
    kernels = {step.data["dispatcher"].py_func.__qualname__ for _, step in compilations.buffer}
    if kernels:
        raise pytest.UsageError(f"kernels were compiled while tests were collected: {kernels}")
    return collected


@pytest.hookimpl(tryfirst=True)  # It runs before cases are selected by their marks.
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Mark the cases of sweeps as slow that the others cover, and begin with the longest files."""
    sweeps = defaultdict(list)
    for item in items:
        if item.get_closest_marker("sweep") and not item.get_closest_marker("slow"):
            sweeps[item.nodeid.partition("[")[0]].append(item)
    for cases in sweeps.values():
        kept = _cases_that_cover(cases)
        for case in cases:
            if case not in kept:
                case.add_marker(pytest.mark.slow)
    items.sort(key=lambda item: _place_of_file(item.path))


# A process of several takes whole files: one that is long is not to be the last.
LONGEST_FILES = ("topology/test_betti.py",)


@cache
def _place_of_file(path: Path) -> int:
    """Return the place of the file of a test among the longest ones, which come first."""
    name = path.relative_to(TESTS).as_posix() if TESTS in path.parents else ""
    return LONGEST_FILES.index(name) if name in LONGEST_FILES else len(LONGEST_FILES)

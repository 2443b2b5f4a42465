"""What is kept for later calls: how long, and when its memory is used again."""

from __future__ import annotations

import gc
import importlib
import importlib.util
import sys
from pathlib import Path
from types import SimpleNamespace
from unittest import mock

import numpy as np
import pytest
from fake_cupy import fake_cupy


@pytest.fixture
def programs():
    """The module, with a stand-in for CuPy that tells when the host waits."""
    cupy = fake_cupy()
    waits: list[str] = []
    stream = SimpleNamespace(
        ptr=0, is_capturing=lambda: False, synchronize=lambda: waits.append("stream")
    )
    device = SimpleNamespace(synchronize=lambda: waits.append("device"))
    cupy.cuda.get_current_stream = lambda: stream
    cupy.cuda.Device = lambda *_: device
    name = "ecc_core._backends.cuda.programs"
    known = {key: module for key, module in sys.modules.items() if key != name}
    with mock.patch.dict(sys.modules, {**known, "cupy": cupy}):
        sys.modules.pop(name, None)
        module = importlib.import_module(name)
    return SimpleNamespace(module=module, stream=stream, waits=waits)


def test_uploads_are_complete_for_every_stream(programs):
    found = programs.module.upload(np.arange(5))
    assert programs.waits == ["stream"]
    np.testing.assert_array_equal(found, np.arange(5))


def test_memory_is_used_again_once_the_device_is_done(programs):
    found = programs.module.upload(np.arange(5))
    view = found[2:]
    programs.waits.clear()
    del found
    gc.collect()
    assert programs.waits == []  # A view of it is left.
    del view
    gc.collect()
    assert programs.waits == ["device"]


def test_memory_lives_on_where_the_host_must_not_wait(programs):
    found = programs.module.upload(np.arange(5))
    programs.waits.clear()
    programs.stream.is_capturing = lambda: True
    del found
    gc.collect()
    assert programs.waits == []
    (kept,) = programs.module.captured
    np.testing.assert_array_equal(kept, np.arange(5))


def test_equal_arguments_of_two_functions_are_told_apart(programs):
    made = []

    @programs.module.plan
    def first(size: int) -> str:
        made.append(size)
        return f"first {size}"

    @programs.module.plan
    def second(size: int) -> str:
        return f"second {size}"

    assert [first(3), second(3), first(3)] == ["first 3", "second 3", "first 3"]
    assert made == [3]
    programs.module.forget_plans()
    first(3)
    assert made == [3, 3]


@pytest.mark.parametrize("large", [False, True])
def test_few_large_arrays_are_kept(programs, large):
    module = programs.module
    made = []

    @module.of_data
    def size_of(data: bytes) -> int:
        made.append(data[:2])
        return len(data)

    most = module.MOST_LARGE if large else module.MOST_SMALL
    padding = b"." * (module.LARGE_BYTES if large else 1)
    arrays = [number.to_bytes(2, "little") + padding for number in range(most + 1)]
    for array in arrays:
        size_of(array)
    made.clear()
    size_of(arrays[-1])
    assert not made
    size_of(arrays[0])
    assert made == [b"\0\0"]


def test_no_other_module_keeps_results():
    """The rules hold only for what this module keeps."""
    folder = Path(importlib.util.find_spec("ecc_core").submodule_search_locations[0])
    files = set((folder / "_backends" / "cuda").glob("*.py"))
    keeping = {file.name for file in files if "cache" in _imported(file)}
    assert keeping == {"programs.py"}


def _imported(file: Path) -> str:
    """The lines of a file that import from functools."""
    lines = file.read_text().splitlines()
    return " ".join(line for line in lines if line.startswith("from functools"))

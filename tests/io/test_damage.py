"""A damaged file gives the right values, or one line and an exit code: nothing else.

Of formats without checksums a flipped bit may change a pixel, or the description of the pixels.
Then the values must be those that the library of the format reads.
"""

import asyncio
import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr
from file_formats import COLOURS, FORMATS
from io_helpers import (
    LEVELS,
    curve_at_levels,
    curves_in,
    noise,
    rows_of,
)
from zarr.core import sync as zarr_sync

from ecc_core._io import zarr_tasks
from ecc_core._io.zarr_tasks import finish_zarr_tasks
from ecc_core.cli import main
from ecc_core.errors import InputFileError
from ecc_core.io import read_file

TIMES = [20, pytest.param(50, marks=pytest.mark.slow)]
"""How often files are cut, and how often a bit is flipped."""
NEEDLESS = 3
"""Cuts after which all that is needed is still there, at most."""
COMMANDS = ("curve", "stack", "batch")

Array = np.ndarray
Curve = list[list[int]]


def damages(folder: Path, times: int) -> Iterator[str]:
    """Damage the files of a folder in one way after the other; yields what was done."""
    whole = {file: file.read_bytes() for file in sorted(folder.rglob("*")) if file.is_file()}
    places = [(file, at) for file, content in whole.items() for at in range(len(content))]
    cuts = [(int(place), None) for place in np.linspace(0, len(places) - 1, times)]
    bits = np.random.default_rng(0).integers(0, 8 * len(places), times).tolist()
    for place, bit in [*cuts, *(divmod(bit, 8) for bit in bits)]:
        file, at = places[place]
        content = bytearray(whole[file])
        if bit is None:
            del content[at:]
        else:
            content[at] ^= 1 << bit
        file.unlink()  # A mapped file must not shrink.
        file.write_bytes(content)
        yield f"{file.name} at {at}: {'cut' if bit is None else f'bit {bit}'}"
        file.unlink()
        file.write_bytes(whole[file])


def outcome(command: str, path: Path, out: Path, capsys: Any) -> Curve | str:
    """The curves that a command writes, or its line."""
    thresholds = ",".join(map(str, LEVELS))
    channel = ["--channel", "0"] if FORMATS[path.name].shape == COLOURS else []
    code = main([command, str(path), "--out", str(out), "--thresholds", thresholds, *channel])
    _, line = capsys.readouterr()
    if code:
        assert code == (1 if command == "batch" else 2), line
        assert not out.exists()
        assert line.count("\n") == 1, line
        return str(line)
    rows = rows_of(out)
    out.unlink()
    return curves_in(rows)


def values_of(path: Path) -> Array | None:
    """The values in a file, or None if it is refused."""
    try:
        return np.array(read_file(path).values)
    except InputFileError as error:
        line = str(error)
    assert line.startswith(f"{path}: ")
    assert "\n" not in line
    return None


@pytest.mark.parametrize("times", TIMES)
@pytest.mark.parametrize("name", FORMATS)
def test_damage(name, times, tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(os, "fsync", lambda _: None)
    shape, write, read = FORMATS[name]
    path = tmp_path / "in" / name
    out = tmp_path / "out.csv"
    path.parent.mkdir()
    image = noise(*shape) // 5 * 4
    write(path, image)
    whole = read(path) if read else image
    np.testing.assert_array_equal(values_of(path), whole)
    needless = 0
    for number, damage in enumerate(damages(path.parent, times)):
        values = values_of(path)
        if values is not None and not np.array_equal(values, whole):
            assert read is not None, damage
            assert number >= times, damage
            np.testing.assert_array_equal(values, read(path), damage)
        needless += number < times and values is not None
        if number % 10 == 0:  # Commands read in the same way.
            found = outcome(COMMANDS[number // 10 % 3], path, out, capsys)
            if values is None:
                assert isinstance(found, str), damage
            else:
                image = values[..., 0] if shape == COLOURS else values
                assert found == [curve_at_levels(image)], damage
    assert needless <= NEEDLESS


@pytest.fixture
def damaged_volume(tmp_path) -> Path:
    """A volume whose chunks are all damaged."""
    path = tmp_path / "v.zarr"
    array = zarr.create_array(path, shape=(64,) * 3, chunks=(8,) * 3, dtype="u1")
    array[:] = noise(64, 64, 64)
    for file in path.rglob("c/*/*/*"):
        file.write_bytes(b"damaged")
    return path


def test_no_chunk_is_read_after_the_error(damaged_volume):
    """What zarr has not read by the end of the process, asyncio would list on stderr."""
    with pytest.raises(InputFileError, match="cannot read chunk"):
        read_file(damaged_volume)
    (loop,) = zarr_sync.loop
    assert not asyncio.all_tasks(loop)


def test_threads_that_meet_damaged_chunks_do_not_wait_for_one_another():
    """Both wait for a chunk that is still read, and not for the waiting of the other thread."""
    reading = asyncio.run_coroutine_threadsafe(asyncio.sleep(0.2), zarr_sync._get_loop())
    threads = [threading.Thread(target=finish_zarr_tasks, daemon=True) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=10)
    assert [thread.is_alive() for thread in threads] == [False, False]
    assert reading.done()


def test_damaged_chunks_are_said_while_others_never_come(damaged_volume, monkeypatch):
    """If a store does not answer, the error does not wait for it, nor cancel its work."""
    monkeypatch.setattr(zarr_tasks, "MOST_SECONDS", 0.2)
    answers = threading.Event()
    request = asyncio.to_thread(answers.wait)
    unanswered = asyncio.run_coroutine_threadsafe(request, zarr_sync._get_loop())
    try:
        with pytest.raises(InputFileError, match="cannot read chunk"):
            read_file(damaged_volume)
        assert not unanswered.done()
    finally:
        answers.set()
    assert unanswered.result(timeout=10)

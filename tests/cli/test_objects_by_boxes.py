"""`ecc objects` of images that are read by boxes: the outputs are those of the image in memory."""

import errno
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import zarr
from io_helpers import write_zarr
from scipy import ndimage
from stack_helpers import failing_after, kill_after

from ecc_core._cli import objects
from ecc_core._io import parts as parts_module
from ecc_core._io.parts import Parts
from ecc_core.cli import main
from ecc_core.errors import InputFileError
from ecc_core.io import write_image

VOLUME = np.random.default_rng(0).integers(0, 100, (24, 19, 24)).astype(np.uint8)
VOLUME = np.clip(3 * ndimage.gaussian_filter(VOLUME.astype(np.float32), 1), 0, 255)
VOLUME = VOLUME.astype(np.uint8)
SMALL = ["--max-memory", "240K", "--workers", "2"]
"""Boxes of a single chunk."""
MOST_KEPT = 30
"""Parts after which a run is killed. It would keep more than 40, some of them again."""


@pytest.fixture(autouse=True)
def by_boxes(monkeypatch: pytest.MonkeyPatch) -> Any:
    """Whether each run of the command, so far, has read boxes."""
    runs: list[bool] = []
    fits = objects.fits_in_memory

    def noted(*given: Any) -> bool:
        runs.append(not fits(*given))
        return not runs[-1]

    monkeypatch.setattr(objects, "fits_in_memory", noted)
    return runs


@pytest.fixture
def image(tmp_path: Path) -> Path:
    return write_zarr(tmp_path / "image.zarr", VOLUME, chunks=(8, 10, 12))


def outputs(folder: Path, name: str) -> dict[str, bytes]:
    """What was written under a name, by path."""
    paths = [path for path in folder.rglob("*") if path.is_file() and name in str(path)]
    written = {}
    for path in paths:
        place = str(path.relative_to(folder)).replace(name, "")
        written[place] = path.read_bytes().replace(name.encode(), b"")
    return written


def command(image: Path, name: str, *options: Any) -> list[str]:
    out = image.with_name(f"{name}.zarr")
    table = image.with_name(f"{name}.csv")
    given = ["--persistence", 25, *options, "--out", out, "--table", table]
    return ["objects", *map(str, [image, *given])]


@pytest.mark.parametrize(
    "options",
    [
        pytest.param(["--superlevel", "--cut", "half"], marks=pytest.mark.slow),
        ["--boundary", "periodic,closed,closed", "--roi", "2:23,:,3:24", "--connectivity", 1],
        pytest.param(["--smooth", 0.7, "--threshold", 150], marks=pytest.mark.slow),
        pytest.param(["--mask", "mask", "--cut", 0.3], marks=pytest.mark.slow),
    ],
    ids=["cut", "periodic region", "smoothed", "masked"],
)
def test_outputs_are_those_in_memory(image, options, by_boxes):
    if "mask" in options:
        shown = np.random.default_rng(1).random(VOLUME.shape) < 0.8
        mask = write_zarr(image.with_name("shown.zarr"), shown.astype(np.uint8), chunks=(9, 9, 9))
        options = [str(mask) if option == "mask" else option for option in options]
    assert main(command(image, "whole", *options)) == 0
    assert main(command(image, "boxes", *options, *SMALL)) == 0
    found = outputs(image.parent, "boxes")
    assert len(found) > 3
    assert by_boxes == [False, True]
    assert found == outputs(image.parent, "whole")


def test_signals(tmp_path, by_boxes):
    """Their labels are the row of an image."""
    signal = write_zarr(tmp_path / "signal.zarr", VOLUME.ravel()[:1000], chunks=(200,))
    assert main(command(signal, "whole")) == 0
    assert main(command(signal, "boxes", "--max-memory", "20K", "--workers", "1")) == 0
    assert by_boxes == [False, True]
    assert outputs(tmp_path, "boxes") == outputs(tmp_path, "whole")


@pytest.mark.slow
def test_printed_table_and_diagram(image, say, tmp_path, by_boxes):
    given = ["objects", image, "--persistence", "25", "--superlevel"]
    assert say(*given, *SMALL) == say(*given)
    assert by_boxes == [True, False]
    plot = tmp_path / "diagram.svg"
    say(*given, *SMALL, "--plot", plot)
    assert plot.read_text().startswith("<?xml")


@pytest.mark.parametrize("kills", [2, pytest.param(20, marks=pytest.mark.slow)])
def test_killed_at_any_moment(image, kills):
    options = ["--superlevel", "--cut", "half"]
    assert main(command(image, "whole", *options)) == 0
    arguments = command(image, "boxes", *options, *SMALL, "--resume")
    rng = np.random.default_rng(0)
    for _ in range(kills):
        wanted = int(rng.integers(1, MOST_KEPT))
        kill_after(arguments, wanted, most=wanted + 2)
    assert main(arguments) == 0
    assert outputs(image.parent, "boxes") == outputs(image.parent, "whole")
    assert not image.with_name("boxes.zarr.parts").exists()


def test_two_runs_for_one_output(image, refuse):
    with Parts(image.with_name("boxes.zarr.parts")).locked():
        message = refuse(*command(image, "boxes", *SMALL))
    assert "in use by another run" in message
    assert not image.with_name("boxes.zarr").exists()


def test_full_disk_keeps_what_is_done(image, refuse, monkeypatch):
    kept = []
    whole_file = parts_module.whole_file

    def full(path):
        if len(kept) > 12:
            raise OSError(errno.ENOSPC, "No space left on device", str(path))
        kept.append(path)
        return whole_file(path)

    monkeypatch.setattr(parts_module, "whole_file", full)
    assert "No space left on device" in refuse(*command(image, "boxes", *SMALL))
    monkeypatch.undo()
    parts = image.with_name("boxes.zarr.parts")
    assert len(list(parts.glob("*.npy"))) == 13
    assert not image.with_name("boxes.zarr").exists()


def test_damaged_chunk(image, refuse):
    chunk = image / "c" / "1" / "1" / "0"
    chunk.write_bytes(chunk.read_bytes()[:9])
    message = refuse(*command(image, "boxes", *SMALL))
    assert "cannot read chunk [8:16, 10:19, 0:12]" in message


@pytest.mark.slow
def test_missing_results_of_an_earlier_run(image, refuse, monkeypatch):
    """`--resume` says what to do; without it, the missing results are computed again."""
    folder = image.with_name("boxes.zarr.parts")
    with failing_after(37, InputFileError("interrupted")):
        assert "interrupted" in refuse(*command(image, "boxes", *SMALL))
    *others, _joined_pieces = sorted(folder.glob("*.npy"), key=lambda path: path.stat().st_size)
    for path in others:
        path.unlink()
    assert "without --resume" in refuse(*command(image, "boxes", *SMALL, "--resume"))
    assert main(command(image, "boxes", *SMALL)) == 0


def test_refusals(image, refuse, tmp_path):
    table = ["objects", image, "--persistence", "25", *SMALL]
    assert "must be .zarr" in refuse(*table, "--out", tmp_path / "labels.tif")
    assert "--resume needs --out" in refuse(*table, "--resume")
    alone = ["objects", image, "--persistence", "25", "--workers", "1", "--max-memory"]
    message = refuse(*alone, "20K")
    assert "its chunks of shape (8, 10, 12) need --max-memory of at least" in message
    needed = re.search(r"at least ([\d.]+K), got 20K\n", message)
    assert main(list(map(str, [*alone, needed[1]]))) == 0


def test_labels_in_an_ome_zarr_image(tmp_path, say, by_boxes):
    path = tmp_path / "image.zarr"
    write_image(path, np.tile(VOLUME, (1, 1, 8)), spacing=0.5, unit="um")
    for name, memory in (("a", "200M"), ("b", "2M")):
        given = ["--persistence", "25", "--max-memory", memory, "--workers", "1"]
        say("objects", path, *given, "--out", f"{{input}}/labels/{name}")
    first, second = (zarr.open_array(path / "labels" / name / "0") for name in "ab")
    assert by_boxes == [False, True]
    assert first.attrs == second.attrs
    np.testing.assert_array_equal(first[:], second[:])

"""``ecc curve --persistence`` of volumes that do not fit in memory."""

import numpy as np
import pytest
from io_helpers import columns, write_zarr
from scipy import ndimage

import ecc_core as ecc
from ecc_core._cli import batch, lasting_by_boxes
from ecc_core.cli import main

NOISE = np.random.default_rng(0).normal(size=(24, 30, 36))
VOLUME = (ndimage.gaussian_filter(NOISE, 1.2) * 600 + 128).clip(0, 255).astype(np.uint8)
LEAST = 40


@pytest.fixture
def image(tmp_path, monkeypatch):
    monkeypatch.setattr(lasting_by_boxes, "available_bytes", lambda: 0)
    return write_zarr(tmp_path / "image.zarr", VOLUME, chunks=(9, 11, 13))


@pytest.mark.parametrize(
    ("boundary", "masked"),
    [("periodic,closed,closed", False), ("periodic", False), ("closed", True), ("periodic", True)],
)
def test_numbers_are_those_in_memory(image, boundary, masked, tmp_path, capsys):
    at = [0, 40, 90, 120, 150, 190]
    flags = ["--superlevel", "--boundary", boundary]
    words = tuple(boundary.split(","))
    options = {"superlevel": True, "boundary": words if len(words) > 1 else boundary}
    if masked:
        options["mask"] = np.random.default_rng(1).random(VOLUME.shape) < 0.9
        write_zarr(tmp_path / "mask.zarr", options["mask"].astype(np.uint8), chunks=(8, 8, 8))
        flags += ["--mask", tmp_path / "mask.zarr"]
    out = tmp_path / "t.csv"
    thresholds = ",".join(map(str, at))
    given = ["curve", image, "--betti", "--persistence", LEAST, "--thresholds", thresholds]
    assert main([*map(str, [*given, *flags, "--out", out])]) == 0
    assert capsys.readouterr().err == ""
    table = columns(out)
    numbers = ecc.betti_curves(VOLUME, at, min_persistence=LEAST, **options).values
    found = [table[f"b{k}"] for k in range(len(numbers))]
    np.testing.assert_array_equal(found, numbers)
    assert f"b{len(numbers)}" not in table
    signs = (-1) ** np.arange(len(numbers))
    np.testing.assert_array_equal(table["euler_number"], signs @ numbers)


def test_stack_counts_them_by_blocks(tmp_path, capsys):
    """The file is never read as a whole, whatever memory is available."""
    path = write_zarr(
        tmp_path / "image.zarr", np.stack([VOLUME, VOLUME[::-1]]), chunks=(1, 9, 11, 13)
    )
    shown = np.random.default_rng(1).random(VOLUME.shape) < 0.9
    mask = write_zarr(tmp_path / "mask.zarr", shown.astype(np.uint8), chunks=(8, 8, 8))
    out = tmp_path / "t.csv"
    given = ["stack", path, "--betti", "--persistence", LEAST, "--thresholds", "40,90,150"]
    given += ["--superlevel", "--axes", "CZYX", "--mask", mask, "--out", out]
    assert main([*map(str, given)]) == 0
    assert capsys.readouterr().err == ""
    assert not out.with_name("t.csv.parts").exists()
    table = columns(out)
    options = {"superlevel": True, "mask": shown, "min_persistence": LEAST}
    volumes = (VOLUME, VOLUME[::-1])
    known = [ecc.betti_curves(volume, [40, 90, 150], **options).values for volume in volumes]
    numbers = np.concatenate(known, axis=1)
    assert table["c"] == [0, 0, 0, 1, 1, 1]
    assert [table["b0"], table["b1"], table["b2"]] == numbers.tolist()
    assert table["euler_number"] == (numbers[0] - numbers[1] + numbers[2]).tolist()


def test_batch_reads_volumes_by_boxes(image, tmp_path, monkeypatch, capsys):
    """A plane beside them is read as a whole; what is known is not read again."""
    by_boxes = []

    def noted(stack, at):
        by_boxes.append(stack.path)
        return lasting_curves(stack, at)

    lasting_curves = lasting_by_boxes.lasting_curves
    monkeypatch.setattr(lasting_by_boxes, "lasting_curves", noted)
    monkeypatch.setattr(batch, "LEAST_KEPT_SECONDS", 0)
    plane = write_zarr(tmp_path / "plane.zarr", VOLUME[0], chunks=(9, 9))
    broken = write_zarr(tmp_path / "zz.zarr", VOLUME, chunks=(9, 11, 13))
    next(path for path in broken.rglob("c/*/*/*") if path.is_file()).write_bytes(b"damaged")
    out = tmp_path / "t.csv"
    given = ["batch", image, plane, broken, "--betti", "--persistence", LEAST, "--out", out]
    given += ["--thresholds", "40,90,150"]
    assert main([*map(str, given)]) == 1
    assert capsys.readouterr().err.count("\n") == 1
    assert by_boxes == [str(image), str(broken)]
    expected = out.read_bytes()
    table = columns(out)
    for row, values in enumerate((VOLUME, VOLUME[0])):
        numbers = ecc.betti_curves(values, [40, 90, 150], min_persistence=LEAST).values
        for k, own in enumerate(numbers):
            assert [float(table[f"b{k} {at}"][row]) for at in (40, 90, 150)] == own.tolist()
    assert main([*map(str, given[:3] + given[4:]), "--resume"]) == 0
    assert by_boxes == [str(image), str(broken)]
    assert out.read_bytes() == expected


@pytest.mark.parametrize(
    ("more", "message"),
    [
        (["--minkowski", "crofton-13"], "must have no --minkowski with --persistence"),
        (["--plot", "t.svg"], "must have no --plot with --persistence"),
        (["--thresholds", "exact"], "must have no --thresholds exact with --persistence"),
        (["--labels", "image"], "must have no --labels with --persistence"),
    ],
)
def test_what_needs_the_volume_in_memory_is_one_line(image, more, message, refuse):
    more = [image if word == "image" else word for word in more]
    said = refuse("curve", image, "--betti", "--persistence", LEAST, *more)
    assert message in said


def test_a_damaged_chunk_is_one_line(image, refuse):
    chunk = next(path for path in image.rglob("c/*/*/*") if path.is_file())
    chunk.write_bytes(b"damaged")
    said = refuse("curve", image, "--betti", "--persistence", LEAST, "--range", "0,255")
    assert str(image) in said

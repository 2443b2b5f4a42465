"""`ecc curve --betti`: columns of Betti numbers beside the Euler characteristic."""

import csv
import io
import json

import gudhi
import imageio.v3 as imageio
import numpy as np
import pytest
import tifffile

import ecc_core as ecc
from ecc_core.cli import main
from ecc_core.io import read_result


@pytest.fixture
def files(tmp_path):
    rng = np.random.default_rng(1)
    image, volume = (rng.integers(0, 256, shape, np.uint8) for shape in ((12, 9), (5, 6, 7)))
    paths = [tmp_path / "image.png", tmp_path / "volume.tif"]
    imageio.imwrite(paths[0], image)
    tifffile.imwrite(paths[1], volume, metadata={"axes": "ZYX"})
    return list(zip(map(str, paths), (image, volume), strict=True))


def test_columns(files, capsys):
    names = [name for name, _ in files]
    assert main(["curve", *names, "--betti", "--thresholds", "9", "--connectivity", "1"]) == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert list(rows[0]) == ["input", "threshold", "euler_number", "b0", "b1", "b2", "connectivity"]
    every = [image for _, image in files]
    bounds = min(map(np.min, every)), max(map(np.max, every))
    for name, image in files:
        curves = ecc.betti_curves(image, 9, range=bounds, connectivity=1)
        found = [row for row in rows if row["input"] == name]
        assert [int(row["euler_number"]) for row in found] == curves.euler.tolist()
        for k in range(3):
            numbers = curves.values[k].tolist() if k < image.ndim else [0] * 9
            assert [int(row[f"b{k}"]) for row in found] == numbers


def test_tables_read_back(files, tmp_path):
    name, image = files[0]
    out = tmp_path / "curve.json"
    assert main(["curve", name, "--betti", "--out", str(out)]) == 0
    assert json.loads(out.read_text())["metadata"]["settings"]["betti"] is True
    np.testing.assert_array_equal(read_result(out).values, ecc.euler_curve(image).values)


def test_of_regions(files, tmp_path, capsys):
    name, image = files[0]
    labels = (image // 100).astype(np.uint8)
    path = tmp_path / "labels.png"
    imageio.imwrite(path, labels)
    arguments = ["curve", name, "--betti", "--labels", str(path), "--thresholds", "0,50,255"]
    assert main(arguments) == 0
    rows = list(csv.DictReader(io.StringIO(capsys.readouterr().out)))
    assert list(rows[0]) == ["input", "label", "threshold", "euler_number", "b0", "b1"]
    known = ecc.region_betti_curves(image, labels, [0, 50, 255])
    assert [int(row["label"]) for row in rows] == np.repeat(known.labels, 3).tolist()
    assert [int(row["euler_number"]) for row in rows] == known.euler.ravel().tolist()
    for k in range(2):
        assert [int(row[f"b{k}"]) for row in rows] == known.values[:, k].ravel().tolist()


@pytest.mark.parametrize("command", ["curve", "batch"])
def test_periodic_images(tmp_path, command):
    field = np.random.default_rng(3).random((5, 6, 7)).astype(np.float32)
    np.save(tmp_path / "field.npy", field)
    out = tmp_path / "t.parquet"
    flags = ["--betti", "--boundary", "periodic", "--thresholds", "0.25,0.5,2"]
    assert main([command, str(tmp_path / "field.npy"), *flags, "--out", str(out)]) == 0
    periodic = {"periodic_dimensions": [True] * 3}
    cubical = gudhi.PeriodicCubicalComplex(top_dimensional_cells=field.astype(float), **periodic)
    cubical.compute_persistence(homology_coeff_field=2)
    curves = ecc.io.read_table(out).curves
    assert curves.boundary == "periodic"
    for k, values in enumerate(curves.values[0]):
        births, deaths = cubical.persistence_intervals_in_dimension(k).reshape(-1, 2).T
        assert values.tolist() == [((births <= t) & (t < deaths)).sum() for t in (0.25, 0.5, 2)]

"""Meshes and the values of their points in files, and the commands that take them."""

import contextlib
import csv
import gzip
from dataclasses import replace

import nibabel
import numpy as np
import pytest
from nibabel import gifti

import ecc_core as ecc
from ecc_core.cli import main
from ecc_core.errors import InputFileError
from ecc_core.io import read_mesh, read_point_values, read_result

POINTS = np.array([[0, 0, 0], [1, 0, 0], [0, 1, 0], [0, 0, 1]], np.float64)
TRIANGLES = np.array([[0, 2, 1], [0, 1, 3], [0, 3, 2], [1, 2, 3]])
VALUES = np.array([1, 3, 2, 4], np.float32)
SUFFIXES = [".gii", ".obj", ".off", ".ply", ".stl"]


def save_gifti(path, **arrays):
    intents = {"points": "POINTSET", "triangles": "TRIANGLE", "values": "SHAPE"}
    parts = [
        gifti.GiftiDataArray(array, f"NIFTI_INTENT_{intents[name]}")
        for name, array in arrays.items()
    ]
    nibabel.save(gifti.GiftiImage(darrays=parts), path)


def save_mesh(path):
    if path.suffix == ".gii":
        save_gifti(path, points=POINTS.astype(np.float32), triangles=TRIANGLES.astype(np.int32))
    else:
        trimesh = pytest.importorskip("trimesh")
        trimesh.Trimesh(POINTS, TRIANGLES, process=False).export(path)


def column(path, name):
    with path.open(newline="") as file:
        return [float(row[name]) for row in csv.DictReader(file)]


@pytest.fixture(params=SUFFIXES)
def mesh_file(tmp_path, request):
    path = tmp_path / f"mesh{request.param}"
    save_mesh(path)
    return path


def test_a_mesh_in_every_format(mesh_file):
    mesh = read_mesh(mesh_file)
    assert mesh.units == ("millimeter" if mesh_file.suffix == ".gii" else None)
    assert mesh.notes == ()
    np.testing.assert_array_equal(np.unique(mesh.points, axis=0), np.unique(POINTS, axis=0))
    found = {frozenset(map(tuple, corners)) for corners in mesh.points[mesh.triangles].tolist()}
    assert found == {frozenset(map(tuple, corners)) for corners in POINTS[TRIANGLES].tolist()}


def test_transform_of_a_file(mesh_file, tmp_path):
    out = tmp_path / "out.npz"
    line = f"transform {mesh_file} --directions 5 --heights 9 --center mean --normalize radius"
    assert main([*line.split(), "--out", str(out), "--plot", str(tmp_path / "out.png")]) == 0
    options = {"center": "mean", "normalize": "radius"}
    mesh = read_mesh(mesh_file)
    expected = ecc.simplicial_transform(mesh.points, mesh.triangles, 5, 9, **options)
    assert read_result(out) == replace(expected, axes="XYZ")


def test_a_seam_of_a_texture_is_no_border(tmp_path):
    pytest.importorskip("trimesh")
    path = tmp_path / "seam.obj"
    corners = ["v 0 0 0", "v 1 0 0", "v 1 1 0", "v 0 1 0"]
    texture = [f"vt {i / 9} 0" for i in range(6)]
    faces = ["f 1/1 2/2 3/3", "f 1/4 3/5 4/6"]
    path.write_text("mtllib missing.mtl\n" + "\n".join([*corners, *texture, *faces]) + "\n")
    mesh = read_mesh(path)
    assert len(mesh.points) == 4
    assert ecc.simplicial_curve(np.zeros(4), mesh.triangles, [0]).values == [1]


def test_points_alone_and_points_without_a_triangle(tmp_path):
    trimesh = pytest.importorskip("trimesh")
    path = tmp_path / "cloud.ply"
    trimesh.PointCloud(POINTS).export(path)
    assert read_mesh(path).triangles.shape == (0, 3)
    save_gifti(
        tmp_path / "more.gii",
        points=POINTS.astype(np.float32),
        triangles=TRIANGLES[:1].astype(np.int32),
    )
    assert read_mesh(tmp_path / "more.gii").notes == ("1 points without a triangle are components",)


@pytest.mark.parametrize("suffix", [".gii", ".npy"])
def test_curve_of_values(tmp_path, suffix):
    values = tmp_path / f"values{suffix}"
    table = tmp_path / "curve.csv"
    save_mesh(tmp_path / "mesh.gii")
    if suffix == ".npy":
        np.save(values, VALUES)
    else:
        save_gifti(values, values=VALUES)
    np.testing.assert_array_equal(read_point_values(values), VALUES)
    line = ["curve", str(tmp_path / "mesh.gii"), "--values", str(values), "--thresholds", "0,2,3,5"]
    assert main([*line, "--superlevel", "--out", str(table)]) == 0
    expected = ecc.simplicial_curve(VALUES, TRIANGLES, [0, 2, 3, 5], superlevel=True)
    assert column(table, "euler_number") == expected.values.tolist()


def test_compressed_gifti_files(tmp_path):
    """nilearn and FreeSurfer write such files."""
    save_mesh(tmp_path / "mesh.gii")
    save_gifti(tmp_path / "values.gii", values=VALUES)
    for name in ("mesh", "values"):
        whole = (tmp_path / f"{name}.gii").read_bytes()
        (tmp_path / f"{name}.gii.gz").write_bytes(gzip.compress(whole))
    mesh = str(tmp_path / "mesh.gii.gz")
    np.testing.assert_array_equal(read_mesh(mesh).triangles, TRIANGLES)
    table = tmp_path / "curve.csv"
    line = ["curve", mesh, "--values", str(tmp_path / "values.gii.gz"), "--out", str(table)]
    assert main([*line, "--thresholds", "0,2,3,5"]) == 0
    expected = ecc.simplicial_curve(VALUES, TRIANGLES, [0, 2, 3, 5])
    assert column(table, "euler_number") == expected.values.tolist()
    (tmp_path / "cut.gii.gz").write_bytes(gzip.compress(b"<?xml")[:-9])
    with pytest.raises(InputFileError, match=r"cut\.gii\.gz: cannot be read as a mesh"):
        read_mesh(tmp_path / "cut.gii.gz")


def test_curves_of_several_meshes_have_common_thresholds(tmp_path):
    for i in range(2):
        save_mesh(tmp_path / f"{i}.gii")
        np.save(tmp_path / f"{i}.npy", VALUES + 10 * i)
    inputs = [str(tmp_path / f"{i}.gii") for i in range(2)]
    table = tmp_path / "curve.csv"
    values = str(tmp_path / "{name}.npy")
    line = ["curve", *inputs, "--values", values, "--thresholds", "3", "--out", str(table)]
    assert main(line) == 0
    assert column(table, "threshold") == 2 * [1, 7.5, 14]


DAMAGED = {
    "truncated.ply": b"ply\nformat binary_little_endian 1.0\nelement vertex 9\n",
    "triangles_lack.ply": b"ply\nformat ascii 1.0\nelement vertex 3\nproperty float x\n"
    b"property float y\nproperty float z\nelement face 2\n"
    b"property list uchar int vertex_indices\nend_header\n0 0 0\n1 0 0\n0 1 0\n3 0 1 2\n",
    "empty.stl": b"",
    "text.off": b"OFF\n3 1 0\n0 0\n",
    "outside.off": b"OFF\n3 1 0\n0 0 0\n1 0 0\n0 1 0\n3 0 1 7\n",
    "broken.gii": b"<?xml version='1.0'?><GIFTI>",
    "entity.gii": b"<?xml version='1.0'?><!DOCTYPE GIFTI [<!ENTITY a 'b'>]><GIFTI/>",
}


@pytest.mark.parametrize("name", DAMAGED)
def test_damaged_meshes(tmp_path, name, capsys):
    pytest.importorskip("trimesh")
    path = tmp_path / name
    path.write_bytes(DAMAGED[name])
    with pytest.raises(InputFileError, match=name):
        read_mesh(path)
    assert main(["transform", str(path), "--out", str(tmp_path / "out.npz")]) == 2
    assert capsys.readouterr().err.count("\n") == 1


REFUSED = {
    "curve {mesh}": "--values must be given for a mesh",
    "curve {mesh} --values {mesh}": "has no values of points",
    "curve {mesh} --values {short}": "must have a value for each of the 4 points",
    "curve {mesh} --values {table}": "must have one value for each point, got (4, 2)",
    "curve {mesh} --values {words}": "words.npy: must have real numbers, got <U1",
    "curve {mesh} --values {objects}": "objects.npy: holds Python objects in dtype object, which",
    "curve {mesh} --values {two}": "two.gii: must have one array of values, got 2",
    "curve {mesh} --values {out}": "--values {out}: type not supported, must be one of .gii, .npy",
    "info {mesh}": "{mesh}: must be an image, got a mesh, of which ecc curve --values and",
    "stack {mesh} --out {table}.csv": "must be an image, got a mesh",
    "objects {mesh} --persistence 1 --table {table}.csv": "must be an image, got a mesh",
    "batch {mesh} --range 0,1 --out {table}.csv": "must be an image, got a mesh",
    "curve {short} --values {short}": "--values must not be given for an image",
    "curve {mesh} --values {short} --betti": "--betti must not be given for a mesh",
    "curve {mesh} --values {short} --boundary periodic": "--boundary must not be given for a mesh",
    "transform {mesh} --spacing 2 --out {out}": "--spacing must not be given for a mesh",
    "transform {short} --center box --out {out}": "--center must not be given for an image",
}


@pytest.mark.parametrize("line", REFUSED)
def test_refused_options(tmp_path, line, capsys):
    save_mesh(tmp_path / "mesh.gii")
    np.save(tmp_path / "short.npy", VALUES[:3])
    np.save(tmp_path / "table.npy", np.zeros((4, 2)))
    np.save(tmp_path / "words.npy", np.array(["a", "b", "c", "d"]))
    np.save(tmp_path / "objects.npy", np.array([{}] * 4), allow_pickle=True)
    twice = [gifti.GiftiDataArray(VALUES) for _ in range(2)]
    nibabel.save(gifti.GiftiImage(darrays=twice), tmp_path / "two.gii")
    arrays = ("short", "table", "words", "objects")
    files = ["mesh.gii", "two.gii", "out.npz", *(f"{name}.npy" for name in arrays)]
    paths = {file.partition(".")[0]: tmp_path / file for file in files}
    assert main(line.format(**paths).split()) in (1, 2)
    assert REFUSED[line].format(**paths) in capsys.readouterr().err


@pytest.mark.parametrize("encoding", ["ascii", "binary"])
def test_a_ply_file_that_ends_early(tmp_path, encoding):
    """It is refused at whatever byte it ends. trimesh reads it up to there."""
    trimesh = pytest.importorskip("trimesh")
    path = tmp_path / "mesh.ply"
    trimesh.Trimesh(POINTS, TRIANGLES, process=False).export(path, encoding=encoding)
    data = path.read_bytes()
    body = data.index(b"end_header") + len(b"end_header") + 1
    read = []
    for size in range(body, len(data) - 4, 5):
        path.write_bytes(data[:size])
        with contextlib.suppress(InputFileError):
            read.append((size, read_mesh(path)))
    assert read == []
    with pytest.raises(InputFileError, match=r"mesh\.ply: "):
        read_mesh(path)


def test_points_that_are_not_finite(tmp_path):
    path = tmp_path / "mesh.gii"
    broken = np.where(POINTS == 1, np.nan, POINTS).astype(np.float32)
    save_gifti(path, points=broken, triangles=TRIANGLES.astype(np.int32))
    with pytest.raises(InputFileError, match=r"mesh\.gii: points must be finite, got .*in row 1"):
        read_mesh(path)

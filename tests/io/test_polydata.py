"""VTK PolyData as VTK 9.7.2 wrote it, and damaged."""

import base64
import csv
import zlib

import numpy as np
import pytest

import ecc_core as ecc
from ecc_core.cli import main
from ecc_core.errors import InputFileError
from ecc_core.io import read_mesh, read_point_values

POINTS = [[0, 0, 0], [1, 0, 0], [1, 1, 0], [0, 1, 0], [0, 0, 1], [2, 0, 0], [3, 0, 0.5]]
"""A square, a triangle at one of its sides, a strip of two triangles, and a line of two edges."""
TRIANGLES = [[0, 1, 2], [0, 2, 3], [0, 1, 4], [0, 3, 4], [3, 4, 2]]
EDGES = [[1, 5], [5, 6]]
LABELS = [1, 2, 3, 4, 5, 6, -7]

TEXT = """\
# vtk DataFile Version 5.1
vtk output
ASCII
DATASET POLYDATA
FIELD FieldData 1
about 1 3 float
0 1 2
POINTS 7 float
0 0 0 1 0 0 1 1 0
0 1 0 0 0 1 2 0 0
3 0 0.5
VERTICES 2 1
OFFSETS vtktypeint64
0 1
CONNECTIVITY vtktypeint64
0
LINES 2 3
OFFSETS vtktypeint64
0 3
CONNECTIVITY vtktypeint64
1 5 6
POLYGONS 3 7
OFFSETS vtktypeint64
0 4 7
CONNECTIVITY vtktypeint64
0 1 2 3 0 1 4
TRIANGLE_STRIPS 2 4
OFFSETS vtktypeint64
0 4
CONNECTIVITY vtktypeint64
0 3 4 2
CELL_DATA 5
FIELD FieldData 1
area 1 5 float
0 1 2 3 4
POINT_DATA 7
SCALARS label short
LOOKUP_TABLE default
1 2 3 4 5 6 -7
METADATA
COMPONENT_NAMES
one%20two

NORMALS Normals float
0 0 1 0 0 1 0 0 1
0 0 1 0 0 1 0 0 1
0 0 1
FIELD FieldData 1
thick%20ness 1 7 double
0 0.125 0.25 0.375 0.5 0.625 0.75
"""
OLDER_BINARY = """
eNqdUctOwkAU5b24X3ET49YIYogrOpSBNA7TplNJWJEiQ2io1LRFt3yan+DSpQsX/oIrnYEhNgQ3TjI593nunTNn+JSvsB/
m4SCKJY5lmkXJGtsXLdCJZJM/bnLoOZz4E+iTgAgaoOeyibZh4FDWx0Ek47mmwCaEM9WCTbzCRZyEOZTU6W5LJUsheK7DA4
GdQu5wdE3RPvaPa62Cbxmnq2eMqR84NhVqh5aeUNYZYA7fhdo6VDXhuroN0I8ZulxgC290tmZYdUXFVFcLsRoEvkP4kNGpU
Janaa+LjVVjV8CmjE21UKrghFSpDHXvCaX0i6ztQbE9RQeETRjxBcbhTMaYLZM0R2Cue3vnTQPSYxTnchFuYsVVVqtX1Rb1
UuP7C0Y0ILv/st2R53KqKDkZUQHJWp63LvPnBIC7/ogwgTxJH8I4O/qiv77jP/YJKfJldL9Sm6xllilJOjhPNrNY/o5/Mfh
q8M3gu8EPg597hB+Z0oF7
"""
"""Version 4.2, with numbers between lines, as base64 of zlib, like the others."""
BINARY = """
eNqdUj1v2zAQleN8APcrDii6FnUSx2PMyFQglCYFkTHgyZBrBhGiWoFFN+iWn9af0DFjhgz5C5la0qERV7BRoVzeHe747t3
hfcDv5hYHmcmivNA40osqL+fY/dQBVyiX5m5p4CLmJB3DgCgiqcJEsLGLIYopG2CU62LmKLAD2dR+wQ6e4HVRZgYC+84fgq
BvERIRcyWxt1FbP9ezGdfzem9/I+/75NzNGNFUxSGVeGzViCiyeqXb0fy40/ncnJ3C32RBC0LBOQ1VPIrVeHsrsJivKE8aU
bb/TdnyeODxENxRLwWX9nS9RlP2PR41WKA2dW8tdEd9H1QaE37J6ETaKHGrnzYT1VxMu7bHHoSUsYkzFna3WWuhLWB3i7Oc
A/oPa4e9UfRAhoSRVGKRTXWB1U25MAhMiC9XyUSRC0Zxpq+zZWG5WvYkbavkIDj8/QpDqsjK36EYJoJTS8nJkEoo5/rj8Wd
zXwJwkQ4Jk8jLxbesqGqW3mXf/4m3nMLc5F9vrZK5rip7kh7OyuW00O/jf3r85fHR45PHZ48v3t9/AEAPwDo=
"""
XML = """
eNrFV9FS4jAUffcrMn11VqhU1JlWJ6WlIogUBQdenAChREOjbRTYr98kQGlREHXd5SHTe3tJzjk9uWnN8+mYglccxYSFlqY
f5LXzsz2zfVstE4oBnz1hS2swOnMQR9qqMH+ga6A34/ieRQMcWVqNcE6xGw4ICjUwwkhk7+d/b1VCXjjUQJ+NnyIcx0yUv/
LHbo305KylJK2d7QFgLleTgQjLBNPBKhYZGcAoQrMFvDJlSC1QR2MRoh574SJ4GfdwdD28fXmiOLa0ggaGLBojbmk9EqJop
oEmCgN8RSSdZYCmlnaoLZcCAPpQ/EpyuJKDKwdoWfhy+tCBJdsO48AQNXalb8v8EmMuAbmgkVvjYTYI7uMEZYORkAuUxyvg
bRzJjL7K1EiIs5kbHpGnbErKF6dJmGpuuTK46SOKInGXoh6m4j9SECrixUWK+PsqF42lynxE+o9A4Il31jV/cHyUWiEjriG
Hi7S4LvTs/cnoFLbY0K9XG4Zzc1t08qVCDElc8R4midjvyP0uA2FDvbjEv1BAmo+FOOQym7c0cQ34hG3j9Os4Taq4idG1HM
rBilHXs0nH6wadO5t2vIax3zyB8Oix5ASfZrLm+OXTSzyQsPrI93qair6Bit164/yKcr5XjVx72nTL12kKAm8lnC8pWkUVz
0CoUNYO7+vXzav7Jqx7rgYo66sC1QsSgiKPw4CPsrtQTdpG9AUDEg6w9NLaXQD0bHVOlW+bQv/8FGYuy+xs23Mzc8nGS1Il
TGk6sUM3izDaeYcZm8yonmDZf6932a5f/y1t6o8ml3A7oXX489YS785mXv8Fo2ZoFg7yhl440Q+LR7pxqudPj7c61wuybcU
ZIta78PdHlF3Y9RN7GnUu4FUD27X4v7s4/30Xp9X5CUMnj9tUJ9T2hrs6MPosDHGfk1fCZ7sfGZsMXVFXk3RLgou8+4VzYQ
WTDYcx5vG3m+ZbhN05QlFRsbbLnNHVVKf+31ZZ3+kM66w3fsmhTR7q9nPLhjUIHd/6abULmZ2/u9pMwRZb3/9A7Yy+5vyN6
kdNvbFLqz7lrpm6K+SGz3dd5ojCWgBLwY9LbuyE9u0WVHaBQvjWB5JnRVZv/P9JcvXe6flZyZvS4dW7rteG9u2lUb4JxLt/
K4AO/LfSbzrW5ldOkJV+QIK6uC/wT6yP2niitwjkd4j68MqtvrxED5p/AZ7t/QEuOfe8
"""


def unpacked(text):
    return zlib.decompress(base64.b64decode(text))


FILES = {
    "text.vtk": TEXT.encode(),
    "older.vtk": unpacked(OLDER_BINARY),
    "binary.vtk": unpacked(BINARY),
    "xml.vtp": unpacked(XML),
}


@pytest.fixture(params=FILES)
def file(tmp_path, request):
    path = tmp_path / request.param
    path.write_bytes(FILES[request.param])
    return path


def test_as_written_by_vtk(file):
    mesh = read_mesh(file)
    np.testing.assert_array_equal(mesh.points, POINTS)
    np.testing.assert_array_equal(mesh.triangles, TRIANGLES)
    np.testing.assert_array_equal(mesh.edges, EDGES)
    assert mesh.notes == ()
    assert mesh.units is None


def test_values_of_points_by_name(file):
    labels = read_point_values(file / "label")
    assert labels.dtype.kind == "i"
    np.testing.assert_array_equal(labels, LABELS)
    np.testing.assert_array_equal(read_point_values(file / "thick ness"), np.arange(7) / 8)
    with pytest.raises(InputFileError, match=r"named as in FILE/\w.*, got 2: \w"):
        read_point_values(file)
    with pytest.raises(InputFileError, match=r"must have one value for each point, got \(7, 3\)"):
        read_point_values(file / "Normals")
    with pytest.raises(InputFileError, match=r"has no area; values of points: .*label"):
        read_point_values(file / "area")  # The array belongs to the cells.


def test_curve_and_transform(file, tmp_path):
    """The edges of triangles are added to the polylines."""
    table = tmp_path / "curve.csv"
    line = ["curve", str(file), "--values", str(file / "label"), "--thresholds", "-8,0,3,9"]
    assert main([*line, "--out", str(table)]) == 0
    with table.open(newline="") as stream:
        found = [int(row["euler_number"]) for row in csv.DictReader(stream)]
    complex_ = [EDGES, TRIANGLES]
    expected = ecc.simplicial_curve(LABELS, complex_, [-8, 0, 3, 9], complete=True).values
    assert found == expected.tolist() == [0, 1, 2, 1]
    out = tmp_path / "transform.npz"
    line = ["transform", str(file), "--directions", "5", "--heights", "9", "--out", str(out)]
    assert main(line) == 0
    expected = ecc.simplicial_transform(POINTS, complex_, 5, 9, complete=True)
    np.testing.assert_array_equal(np.load(out)["values"], expected.values)


ONE_ARRAY = """# vtk DataFile Version 2.0
a triangle, and a point at one of its corners
ASCII
DATASET POLYDATA
POINTS 4 double
0 0 0  1 0 0  0 1 0  0 0 0
POLYGONS 1 4
3 0 1 2
POINT_DATA 4
SCALARS f float
LOOKUP_TABLE default
0 1 2 3
"""


def test_the_only_values_of_a_file(tmp_path, capsys):
    path = tmp_path / "mesh.vtk"
    path.write_text(ONE_ARRAY)
    assert main(["curve", str(path), "--thresholds", "-1,0,1,2,3"]) == 0
    out, err = capsys.readouterr()
    assert [int(row["euler_number"]) for row in csv.DictReader(out.splitlines())] == [0, 1, 1, 1, 2]
    assert "1 points lie where others do, and are not joined with them" in err
    assert "1 points without a triangle are components" in err


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("# vtk", "# vtx", "its first line does not say so"),
        ("ASCII", "OCTAL", "its third line must be ASCII or BINARY"),
        ("POLYDATA", "UNSTRUCTURED_GRID", "must hold POLYDATA, got UNSTRUCTURED_GRID"),
        ("POINTS 4", "POINTS four", "'four' must be a number of points"),
        ("POINTS 4", "POINTS 5", "damaged: could not convert string to float: 'POLYGONS'"),
        ("POINTS 4", "POINTS 4000000000", "which the .* bytes in it cannot hold"),
        ("double", "string", "values of type string are not supported"),
        ("3 0 1 2\nP", "3 0 1 4\nP", "has triangles of points 0 to 4, and 4 points"),
        ("3 0 1 2\nP", "2 0 1 2\nP", "its cells do not follow each other"),
        ("POLYGONS 1 4", "POLYGONS 2 4", "its cells do not follow each other"),
        ("POLYGONS 1 4\n3 0 1 2", "POLYGONS 1 3\n2 0 1", "polygons must have at least 3 points"),
        ("POINT_DATA 4", "POINT_DATA 3", "values of 3 points, and 4 points"),
        ("SCALARS", "SCALES", "not supported: it has a part 'SCALES'"),
        ("0 1 2 3\n", "0.5 1.25 2\n", "3 values instead of 4"),
        ("1 0 0", "nan 0 0", r"points must be finite, got \[nan, 0.0, 0.0\] in row 1"),
    ],
)
def test_bad_parts_of_text(tmp_path, old, new, words, capsys):
    path = tmp_path / "mesh.vtk"
    assert old in ONE_ARRAY
    path.write_text(ONE_ARRAY.replace(old, new, 1))
    with pytest.raises(InputFileError, match=words):
        read_mesh(path)
    assert main(["transform", str(path), "--out", str(tmp_path / "out.npz")]) == 2
    assert capsys.readouterr().err.count("\n") == 1


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("PolyData", "ImageData", "must hold PolyData, got ImageData"),
        ('NumberOfPoints="7"', 'NumberOfPoints="6"', "bytes are described"),
        ('NumberOfPolys="2"', 'NumberOfPolys="-2"', "NumberOfPolys is '-2'"),
        ('NumberOfPolys="2"', 'NumberOfPolys="3"', "bytes are described"),
        ('Name="offsets"', 'Name="ends"', "a piece has no .*offsets"),
        ('"Points" NumberOfComponents="3"', '"Points" NumberOfComponents="2"', "must have 3 comp"),
        ('"Int64"', '"String"', "values of type String are not supported"),
    ],
)
def test_bad_parts_of_xml(tmp_path, old, new, words):
    path = tmp_path / "mesh.vtp"
    content = FILES["xml.vtp"]
    assert old.encode() in content
    path.write_bytes(content.replace(old.encode(), new.encode()))
    with pytest.raises(InputFileError, match=words):
        read_mesh(path)


def everything_in(file):
    return [read_mesh(file), *(read_point_values(file / name) for name in ("label", "thick ness"))]


def test_files_that_end_early(file):
    """They are refused, unless the last number of a text is cut, whose length is not stored."""
    whole = file.read_bytes()
    for size in range(0, len(whole) - len("0.75 \n"), 7):
        file.write_bytes(whole[:size])
        with pytest.raises(InputFileError):
            everything_in(file)


def test_files_with_a_changed_byte_are_read_or_refused(file):
    whole = file.read_bytes()
    rng = np.random.default_rng(0)
    refused = 0
    for place in rng.integers(0, len(whole), 60):
        content = bytearray(whole)
        content[place] ^= rng.integers(1, 256)
        file.write_bytes(content)
        try:
            mesh, *_ = everything_in(file)
        except InputFileError:
            refused += 1
        else:
            assert mesh.triangles.max() < len(mesh.points)
    assert refused > 10

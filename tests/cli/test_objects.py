"""The command `ecc objects`, and `ecc curve --persistence`."""

import nibabel
import numpy as np
import pytest
import tifffile
from io_helpers import columns, columns_of, write_ome_zarr
from scipy import ndimage
from topology_helpers import alive, intervals

import ecc_core as ecc
from ecc_core.cli import main
from ecc_core.io import open_image, read_image, write_image

IMAGE = np.random.default_rng(0).integers(0, 100, (3, 24, 31)).astype(np.uint8)
VOLUME = ndimage.gaussian_filter(IMAGE.astype(np.float32), 1)


def lifetimes(image, least, sign=1):
    """Intervals of the components of persistence `least`, the oldest first."""
    found = intervals(sign * image.astype(np.float64), image.ndim)[0]
    return sign * found[found[:, 1] - found[:, 0] >= least]


@pytest.mark.parametrize("superlevel", [False, True])
@pytest.mark.parametrize(("image", "least"), [(IMAGE[0], 40), (VOLUME, 9.5)], ids=["2-D", "3-D"])
def test_labels_and_table(tmp_path, say, image, least, superlevel):
    out, table, plot = (tmp_path / end for end in ("l.tif", "t.csv", "d.png"))
    options = ["--persistence", least, *(["--superlevel"] if superlevel else [])]
    say("objects", image, *options, "--out", out, "--table", table, "--plot", plot)
    labels = tifffile.imread(out)
    rows = columns(table)
    expected = lifetimes(image, least, -1 if superlevel else 1)
    found = np.stack([rows["birth"], rows["death"]], axis=1)
    np.testing.assert_allclose(np.sort(found, axis=0), np.sort(expected, axis=0), rtol=1e-7)
    np.testing.assert_array_equal(rows["persistence"], np.abs(found[:, 1] - found[:, 0]))
    assert labels.shape == image.shape
    cubes = np.ones((3,) * image.ndim)
    axes = ("z", "y", "x")[-image.ndim :]
    for i, label in enumerate(rows["label"]):
        inside = labels == label
        assert rows["points"][i] == inside.sum()
        assert ndimage.label(inside, cubes)[1] == 1
        extreme = tuple(int(rows[axis][i]) for axis in axes)
        assert labels[extreme] == label
        assert rows["birth"][i] == pytest.approx(image[extreme])
    assert labels.max() == len(rows["label"])
    assert plot.read_bytes().startswith(b"\x89PNG")


@pytest.mark.parametrize(("cut", "rel_height"), [("half", 0.5), ("0.25", 0.25)])
def test_objects_that_are_cut(tmp_path, say, cut, rel_height):
    """The labels are those of the function; the table counts their points."""
    flags = ["--superlevel", "--persistence", 40, "--cut", cut]
    say("objects", IMAGE[0], *flags, "--out", tmp_path / "l.tif", "--table", tmp_path / "t.csv")
    found = ecc.persistent_regions(IMAGE[0], 40, superlevel=True, rel_height=rel_height)
    np.testing.assert_array_equal(tifffile.imread(tmp_path / "l.tif"), found.labels)
    sizes = np.bincount(found.labels.ravel())
    assert columns(tmp_path / "t.csv")["points"] == sizes[1:].tolist()
    assert sizes[0] > IMAGE[0].size / 2


def test_part_threshold_mask_and_printed_table(tmp_path, say):
    part = VOLUME[1:3, 4:20]
    shown = part > 45
    table = tmp_path / "t.json"
    command = ["objects", VOLUME, "--persistence", "5"]
    flags = ["--mask", shown, "--roi", "1:3,4:20,:", "--threshold", "52", "--table", table]
    say(*command, *flags)
    found = columns_of(table)
    assert min(found["z"]) >= 1
    assert min(found["y"]) >= 4
    expected = lifetimes(np.where(shown, part, np.float32(1e9)), 5)
    assert len(found["label"]) == len(expected)
    assert sum(found["points"]) <= (shown & (part <= 52)).sum()
    assert say(*command).startswith("label,birth,death,persistence,merged_into,points,z")


@pytest.mark.parametrize(
    ("boundary", "points"),
    [
        ("closed", [1, 2, 2, 4, 30]),
        ("periodic", [9, 30]),
        ("closed,periodic", [3, 6, 30]),
        ("periodic,closed", [3, 6, 30]),
    ],
)
def test_objects_over_opposite_sides(tmp_path, say, boundary, points):
    """A ring around the torus, and a square that four corners make up."""
    image = np.full((20, 30), 9, np.uint8)
    image[10] = 0
    image[np.ix_([0, 1, -1], [0, -2, -1])] = 0
    flags = ["--persistence", "5", "--threshold", "0", "--boundary", boundary]
    say("objects", image, *flags, "--table", tmp_path / "t.csv")
    assert sorted(columns(tmp_path / "t.csv")["points"]) == points


@pytest.mark.parametrize("by_region", [False, True])
def test_filtered_curves(tmp_path, say, by_region):
    """Curves of the whole image, and of its regions, count only what lasts."""
    labels = np.repeat([1, 0, 5], [10, 1, 20]) * np.ones((24, 1), np.uint8)
    options = ["--betti", "--persistence", "40", "--thresholds", "10,50,90"]
    flags = []
    images = IMAGE[:1]
    if by_region:
        flags = ["--labels", labels]
        images = [np.where(labels == label, IMAGE[0], np.float32(1e9)) for label in (1, 5)]
    say("curve", IMAGE[0], *options, *flags, "--out", tmp_path / "c.csv")
    expected = [alive([lifetimes(image, 40)], (10, 50, 90))[0] for image in images]
    np.testing.assert_array_equal(columns(tmp_path / "c.csv")["b0"], np.concatenate(expected))


STEPS = (2.0, 0.5, 0.25)
WIDE = ndimage.gaussian_filter(np.random.default_rng(1).normal(100, 60, (14, 60, 41)), 2) * 10
PLACES = {"image.nii": "la.nii.gz", "image.ome.tif": "la.ome.tif", "image.zarr": "la.zarr"}
PLACES |= {"image.mha": "la.mha", "image.npy": "la.npy"}


def write(path, image):
    """Write an image with distances in micrometers where its format has them."""
    volume = image.astype(np.float32)
    write_image(path, volume, spacing=STEPS, unit="um", origin=(8.0, -5.0, 2.5))
    return path


@pytest.fixture(scope="module")
def wide(tmp_path_factory):
    """A volume in each format."""
    folder = tmp_path_factory.mktemp("wide")
    for name in PLACES:
        write(folder / name, WIDE)
    return folder


@pytest.mark.parametrize("out", PLACES.values())
@pytest.mark.parametrize("extent", ["image", "roi"])
@pytest.mark.parametrize("image", PLACES)
def test_labels_are_taken_back(tmp_path, wide, say, image, extent, out):
    """Labels of a region lie where it does, in every format for an image in any of them."""
    roi = (slice(3, 13), slice(10, 52), slice(5, 41))
    options = ["--roi", "3:13,10:52,5:41", "--thresholds", "950,1000,1050,"]
    found = ecc.persistent_regions(WIDE[roi].astype(np.float32), 6, threshold=1000)
    expected = ecc.region_curves(WIDE[roi].astype(np.float32), found.labels, [950, 1000, 1050])
    assert len(expected.labels) > 3
    labels = tmp_path / out
    table = tmp_path / "c.csv"
    command = ["objects", wide / image, *options[:2], "--persistence", 6, "--threshold", 1000]
    say(*command, "--extent", extent, "--out", labels)
    whole = np.zeros(WIDE.shape, np.int32)
    whole[roi] = found.labels
    np.testing.assert_array_equal(read_image(labels), whole if extent == "image" else found.labels)
    say("curve", wide / image, *options, "--labels", labels, "--out", table)
    assert columns(table)["euler_number"] == expected.values.ravel().tolist()


@pytest.mark.parametrize("out", ["la.nii", "la.ome.tif", "la.zarr", "la.mha"])
@pytest.mark.parametrize(("level", "shape"), [(0, (12, 40, 30)), (1, (12, 20, 15))])
def test_labels_of_a_level(tmp_path, say, out, level, shape):
    """Labels of a coarser resolution, which have no others, belong to that one."""
    finest = np.repeat(np.repeat(WIDE[:12, :20, :15], 2, axis=1), 2, axis=2)
    levels = [finest.astype(np.float32), finest[:, ::2, ::2].astype(np.float32)]
    steps = [(2, 0.5, 0.5), (2, 1, 1)]
    image = write_ome_zarr(tmp_path / "i.zarr", levels, "ZYX", steps, unit="micrometer")
    at = ["--level", level]
    say("objects", image, *at, "--persistence", 3, "--threshold", 1000, "--out", tmp_path / out)
    labels = open_image(tmp_path / out)
    assert labels.shape == shape
    assert tuple(labels.spacing.values()) == pytest.approx(steps[level])
    say(
        "curve",
        image,
        *at,
        "--labels",
        tmp_path / out,
        "--thresholds",
        "90,100",
        "--out",
        tmp_path / "c.csv",
    )


def test_labels_in_an_ome_zarr_image(tmp_path, say):
    image = write_ome_zarr(tmp_path / "i.zarr", [IMAGE], "ZYX", [STEPS], zarr_format=3)
    say("objects", image, "--persistence", 40, "--out", "{input}/labels/nuclei")
    found = ecc.persistent_regions(IMAGE, 40)
    np.testing.assert_array_equal(read_image(f"{image}/labels/nuclei"), found.labels)


@pytest.mark.parametrize("image", ["image.zarr", "image.ome.tif", "image.nii"])
def test_scaled_labels_are_refused(tmp_path, wide, refuse, image):
    """OME-TIFF states the distance of points, but no place."""
    labels = tmp_path / "l.ome.tif"
    write_image(labels, (WIDE > 1000).astype(np.uint8), spacing=(2, 0.5, 0.5), unit="um")
    said = refuse("curve", wide / image, "--thresholds", "1,", "--labels", labels)
    assert "its header says it is scaled by 2 along X" in said


def test_a_spacing_for_other_axes_is_refused(refuse):
    """Before anything is computed or said of the objects."""
    said = refuse("objects", VOLUME, "--persistence", 9.5, "--spacing", "1,2")
    assert "--spacing must be one number or 3 of them, got [1.0, 2.0]" in said


@pytest.mark.parametrize(
    ("flags", "times"), [([], 1), (["--threshold", "50"], 0), (["--cut", "half"], 0)]
)
def test_background(tmp_path, capsys, flags, times):
    """It is said once that labels have no end, unless there is a threshold."""
    np.save(tmp_path / "i.npy", IMAGE)
    assert main(["objects", str(tmp_path / "i.npy"), "--persistence", "50", *flags]) == 0
    assert capsys.readouterr().err.count("labels cover the background") == times


@pytest.mark.parametrize(
    ("image", "unit", "factor"), [("image.zarr", "nm", 1e3), ("image.nii", "mm", 1e-3)]
)
def test_table_in_units(tmp_path, wide, say, image, unit, factor):
    """Sizes and places of extreme points, by the affine of nibabel where there is one."""
    options = ["--persistence", 6, "--threshold", 1000, "--roi", "3:,10:,5:"]
    table = tmp_path / "t.json"
    say("objects", wide / image, *options, "--unit", unit, "--table", table)
    rows = columns_of(table)
    assert set(rows["unit"]) == {{"nm": "nanometer", "mm": "millimeter"}[unit]}
    volumes = np.array(rows["points"]) * np.prod(STEPS) * factor**3
    np.testing.assert_allclose(rows["volume"], volumes)
    indices = np.stack([rows["z"], rows["y"], rows["x"]], axis=1)
    assert indices.min(axis=0).tolist() >= [3, 10, 5]
    world = np.stack([rows["world_z"], rows["world_y"], rows["world_x"]], axis=1)
    expected = indices * STEPS
    if image.endswith(".nii"):
        affine = nibabel.load(wide / image).affine
        expected = nibabel.affines.apply_affine(affine, indices[:, ::-1])[:, ::-1]
    else:
        world = world - world[0] + expected[0] * factor
    np.testing.assert_allclose(world, expected * factor, rtol=1e-6)

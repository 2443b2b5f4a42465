"""DICOM as its standard means it: frames by position and time, lookup tables, padding, tilt."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pydicom
import pytest
from io_helpers import assert_refused, noise, write_dicom
from pydicom.dataset import Dataset

from ecc_core.io import open_image, read_image


def group(**sequences: Any) -> Dataset:
    """A functional group: each item has the attributes of a dictionary."""
    found = Dataset()
    for name, attributes in sequences.items():
        item = Dataset()
        for attribute, value in attributes.items():
            setattr(item, attribute, value)
        setattr(found, name, [item])
    return found


def write_enhanced(
    path: Path,
    image: np.ndarray,
    positions: Sequence[float],
    content: Sequence[dict[str, Any]] = (),
    **tags: Any,
) -> None:
    """Write frames at positions along z, whose geometry is in functional groups only."""
    shared = group(
        PixelMeasuresSequence={"PixelSpacing": [0.7, 0.6]},
        PlaneOrientationSequence={"ImageOrientationPatient": [1, 0, 0, 0, 1, 0]},
    )
    each = []
    for i, position in enumerate(positions):
        parts: dict[str, Any] = {
            "PlanePositionSequence": {"ImagePositionPatient": [3, 4, position]}
        }
        if content:
            parts["FrameContentSequence"] = content[i]
        each.append(group(**parts))
    groups = {
        "SharedFunctionalGroupsSequence": [shared],
        "PerFrameFunctionalGroupsSequence": each,
    }
    write_dicom(path, image, **groups, **tags)
    dataset = pydicom.dcmread(path)
    for name in ("PixelSpacing", "ImageOrientationPatient", "ImagePositionPatient"):
        delattr(dataset, name)
    dataset.save_as(path)


@pytest.fixture
def path(tmp_path: Path) -> Path:
    return tmp_path / "a.dcm"


def test_frames_by_position(path):
    """The order of highdicom's get_volume: along the normal."""
    image = noise(3, 4, 5)
    places = [2.5, 0, 1.25]
    write_enhanced(path, image, places)
    opened = open_image(path)
    assert (opened.axes, opened.unit) == ("ZYX", "millimeter")
    assert opened.spacing == {"Z": 1.25, "Y": 0.7, "X": 0.6}
    np.testing.assert_array_equal(opened.read(), image[[1, 2, 0]])
    np.testing.assert_array_equal(opened[1:3, 2:4, 1:3], image[[2, 0], 2:4, 1:3])
    assert opened.affine is not None
    # Along right, anterior and superior.
    np.testing.assert_allclose(opened.affine.origin, [-3, -4, 0])
    np.testing.assert_allclose(opened.affine.steps["Z"], [0, 0, 1.25])


def test_uneven_positions_are_refused(path):
    write_enhanced(path, noise(3, 4, 5), [0, 1, 3])
    assert_refused(path, "slices are missing, doubled or unevenly spaced")


@pytest.mark.parametrize("by_index", [False, True])
def test_time_apart_from_space(path, by_index):
    """Two points in time of two slices each, in an order that is neither's."""
    image = noise(4, 4, 5)
    places = [1, 0, 0, 1]
    times = [2, 2, 1, 1]
    content = [{"TemporalPositionIndex": t} for t in times]
    tags: dict[str, Any] = {}
    if by_index:
        content = [{"DimensionIndexValues": [t, 1 + z]} for t, z in zip(times, places, strict=True)]
        pointers = ("FrameReferenceDateTime", "InStackPositionNumber")
        dimensions = []
        for pointer in pointers:
            item = Dataset()
            item.DimensionIndexPointer = pydicom.datadict.tag_for_keyword(pointer)
            dimensions.append(item)
        tags["DimensionIndexSequence"] = dimensions
    write_enhanced(path, image, places, content, **tags)
    opened = open_image(path)
    assert opened.axes == "TZYX"
    np.testing.assert_array_equal(opened.read(), image[[[2, 3], [1, 0]]])
    np.testing.assert_array_equal(opened[1:2, 0:1, 1:3], image[[[1]], 1:3])
    np.testing.assert_array_equal(read_image(path, time=0), image[[2, 3]])


def test_other_dimensions_are_named(path):
    image = noise(4, 4, 5)
    places = [0, 0, 1, 1]
    kinds = [1, 2, 1, 2]
    item = Dataset()
    item.DimensionIndexPointer = pydicom.datadict.tag_for_keyword("EffectiveEchoTime")
    content = [{"DimensionIndexValues": kind} for kind in kinds]
    write_enhanced(path, image, places, content, DimensionIndexSequence=[item])
    opened = open_image(path)
    assert (opened.axes, opened.description.axes[0].name) == ("DZYX", "EffectiveEchoTime")
    np.testing.assert_array_equal(opened.read(), image[[[0, 2], [1, 3]]])


def test_frames_that_nothing_tells_apart(path):
    write_enhanced(path, noise(4, 4, 5), [0, 0, 1, 1])
    assert_refused(path, "has 2 frames at each position, and no one dimension tells them apart")


def test_a_cine_is_time(path):
    tags = {"FrameIncrementPointer": 0x00181063, "FrameTime": 40}
    write_dicom(path, noise(3, 4, 5), **tags)
    opened = open_image(path)
    assert opened.axes == "TYX"
    assert (opened.description.axes[0].step, opened.description.axes[0].unit) == (
        40,
        "millisecond",
    )


@pytest.mark.parametrize("modality", ["CR", "XA"])
def test_lookup_table_of_the_modality(path, modality):
    """apply_modality_lut of pydicom; that of XA is for display."""
    image = noise(4, 5) % 8
    table = Dataset()
    table.LUTDescriptor, table.LUTData = [8, 0, 16], np.arange(800, 0, -100, dtype="<u2").tobytes()
    table.ModalityLUTType = "OD"
    write_dicom(path, image, ModalityLUTSequence=[table], Modality=modality, PixelRepresentation=0)
    dataset = pydicom.dcmread(path)
    expected = dataset.pixel_array
    if modality == "CR":
        expected = pydicom.pixels.apply_modality_lut(expected, dataset)
        assert open_image(path).description.encoding.words() == (
            "stored as uint16, lookup table of OD"
        )
    read = read_image(path)
    assert read.dtype == expected.dtype
    np.testing.assert_array_equal(read, expected)


@pytest.mark.parametrize("slopes", [(1, 1, 1), (2, 2, 2), (0.5, 1, 0.9)])
@pytest.mark.parametrize("limit", [None, -1998])
def test_padding(tmp_path, slopes, limit):
    """Stored values that are no part of the image, whatever the slopes of the slices."""
    image = noise(3, 4, 5, dtype="i2") // 64
    image[:, :2, 1] = -2000
    image[:, 0, 2] = -1999
    tags: dict[str, Any] = {"PixelPaddingValue": -2000}
    if limit is not None:
        tags["PixelPaddingRangeLimit"] = limit
    for place, slope in enumerate(slopes):
        more = {"RescaleSlope": slope, "RescaleIntercept": -1024}
        write_dicom(tmp_path / f"{place}.dcm", image[place], place, **tags, **more)
    is_missing = (image >= -2000) & (image <= (-2000 if limit is None else limit))
    read = read_image(tmp_path)
    np.testing.assert_array_equal(np.ma.getmaskarray(read), is_missing)
    expected = image * np.reshape(slopes, (3, 1, 1)) - 1024
    np.testing.assert_array_equal(read.compressed(), expected[~is_missing])


def test_tilt_is_said_with_its_shear(tmp_path):
    """A gantry tilted by 20 degrees, with tables of 5 mm: dicom2nifti and dcm2niix shear it."""
    angle = np.radians(20)
    turned = [1, 0, 0, 0, np.cos(angle), -np.sin(angle)]
    for place in range(3):
        tags = {"ImageOrientationPatient": turned, "ImagePositionPatient": [0, 0, 5 * place]}
        write_dicom(tmp_path / f"{place}.dcm", noise(4, 5), place, **tags)
    opened = open_image(tmp_path)
    assert opened.spacing["Z"] == pytest.approx(5 * np.cos(angle))
    shift = -5 * np.sin(angle) / 0.5
    assert opened.notes == (
        "its axes are sheared, and lengths take them as perpendicular; from Z to Z they are "
        f"shifted by {shift:.3g} points along Y",
    )
    vectors = np.stack([opened.affine.steps[axis] for axis in "ZYX"])
    volume = np.prod([*opened.spacing.values()])
    assert abs(np.linalg.det(vectors)) == pytest.approx(volume)

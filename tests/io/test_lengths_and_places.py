"""Distances of points in several units, and those of a region and its image."""

import pytest

from ecc_core._io.same_place import check_scale
from ecc_core._io.units import calibrated


def test_distances_are_converted_to_the_unit_of_the_last_axis():
    steps = {"Z": 0.001, "Y": "0.5", "X": 0.25}
    units = {"Z": "mm", "Y": "um", "X": "micron"}
    assert calibrated(steps, units) == ({"Z": 1.0, "Y": 0.5, "X": 0.25}, "micrometer")


def test_axes_whose_unit_is_unknown_are_left_out():
    steps = {"Z": 2, "Y": 0.5, "X": 0.25}
    assert calibrated(steps, {"Y": "um", "X": "um"}) == ({"Y": 0.5, "X": 0.25}, "micrometer")


@pytest.mark.parametrize(("spacing", "fits"), [(1.0098, True), (1.0102, False)])
def test_the_last_of_eleven_points_may_be_off_by_a_tenth_of_a_point(spacing, fits):
    def check():
        check_scale("`mask`", ({"X": spacing}, "mm"), ({"X": 1.0}, "mm"), {"X": 11})

    if fits:
        check()
    else:
        with pytest.raises(ValueError, match=r"`mask` must lie .* scaled by 1.01 along X"):
            check()


def test_distances_in_other_units_are_compared_in_the_same_one():
    region = {"X": 2000.0}, "nanometer"
    check_scale("`mask`", region, ({"X": 2.0}, "micrometer"), {"X": 100})
    with pytest.raises(ValueError, match="scaled by 2 along X"):
        check_scale("`mask`", region, ({"X": 1.0}, "micrometer"), {"X": 100})

"""What results of pairs say: plots, and diagrams for other packages."""

import numpy as np
import pytest
from numpy.testing import assert_array_equal

import ecc_core as ecc


def test_pairs_can_be_shown():
    pairs = ecc.persistence_pairs(np.array([0, 3, 1, 2, 0]), 0)
    table = pairs.to_pandas()
    assert table.value.tolist()[2:] == [0, 3, 1, 2]
    assert table.event.tolist() == ["birth", "death"] * 3
    assert pairs.to_xarray().dims == ("class", "event")
    _, ended, lasting = pairs.plot().get_lines()
    assert_array_equal(np.transpose(ended.get_data()), [[0, 3], [1, 2]])
    assert_array_equal(lasting.get_data(), [[0], [3]])
    assert "<img" in pairs._repr_html_()


@pytest.mark.parametrize("superlevel", [False, True])
def test_diagrams_for_other_packages(superlevel):
    """Deaths of classes that never die: infinity, a value of the image, or none."""
    values = np.array([0, 3, 1, 2, 9], np.uint8)
    image, last = (255 - values, 246) if superlevel else (values, 9)
    low = -255 if superlevel else 0
    pairs = ecc.persistence_pairs(image, 0, superlevel=superlevel)
    assert_array_equal(pairs.to_gudhi(), [[low, np.inf], [low + 1, low + 3]])
    assert_array_equal(pairs.to_gudhi(essential=last), [[low, low + 9], [low + 1, low + 3]])
    assert_array_equal(pairs.to_gudhi(essential="drop"), [[low + 1, low + 3]])
    several = ecc.persistence_pairs(np.stack([image] * 2), superlevel=superlevel)
    assert [len(part) for part in several.to_gudhi(essential="drop")] == [1, 0]
    assert np.isfinite(np.concatenate(several.to_gudhi(essential=last))).all()


def test_a_class_that_never_dies_may_end_where_it_is_born():
    pairs = ecc.persistence_pairs(np.array([2.0, 3.0, 5.0]), 0)
    assert_array_equal(pairs.to_gudhi(essential=2.0), [[2, 2]])


@pytest.mark.parametrize(
    ("essential", "error", "message"),
    [
        ("keep", TypeError, "a number or \"drop\", got 'keep'"),
        (np.nan, ValueError, "no class that never dies is born after, got nan"),
        (-1, ValueError, "born after, got -1"),
        ([3], TypeError, "`essential` must be a real number"),
    ],
)
def test_deaths_that_are_refused(essential, error, message):
    with pytest.raises(error, match=message):
        ecc.persistence_pairs(np.array([0, 3, 1]), 0).to_gudhi(essential=essential)

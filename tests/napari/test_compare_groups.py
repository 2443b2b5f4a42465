"""Groups of curves that are compared: what the models and the actions return, without a window."""

import re

import numpy as np
import pandas as pd
import pytest
from napari.layers import Image
from napari_helpers import noise
from numpy.testing import assert_allclose, assert_array_equal
from scipy.ndimage import gaussian_filter
from skimage.measure import euler_number
from tifffile import imwrite

import ecc_core as ecc
from ecc_core.features import MixedUnitsError, align_curves, permutation_test
from ecc_core.io import CurveTable
from napari_ecc import actions
from napari_ecc._model.compare import compare_groups, joined


def test_groups_by_a_column():
    curves = {name: ecc.euler_curve(noise(k, 1.0), 16) for k, name in enumerate("abcd")}
    features = {"name": ["d", "c", "b", "e"], "dose": [2, 1, 2, 1]}
    found = compare_groups(curves, features=features, by="dose", n_permutations=9)
    assert found.groups == {"none": ["a"], "2": ["b", "d"], "1": ["c"]}
    found = compare_groups(curves, "2", features=features, by="dose", n_permutations=9)
    assert found.groups == {"other": ["a", "c"], "2": ["b", "d"]}
    with pytest.raises(ValueError, match="`by` must be a column of `features`, got 'drug'"):
        compare_groups(curves, features=features, by="drug")
    table = actions.curve_table(curves, features)
    assert list(table.columns[:2]) == ["name", "dose"]
    assert_array_equal(table["dose"], [np.nan, 2, 1, 2])
    assert_array_equal(table["maximum"], actions.curve_table(curves)["maximum"])
    with pytest.raises(ValueError, match="one of the columns"):
        actions.curve_table(curves, {"dose": [1]})
    with pytest.raises(ValueError, match="one row for each"):
        actions.curve_table(curves, {"name": ["a", "a"], "dose": [1, 2]})


def test_groups_are_compared_by_their_means():
    sigmas = {f"fine {k}": 1.0 for k in range(5)} | {f"coarse {k}": 3.0 for k in range(5)}
    images = {name: noise(seed, sigmas[name]) for seed, name in enumerate(sigmas)}
    curves = {name: ecc.euler_curve(image, superlevel=True) for name, image in images.items()}
    found = compare_groups(curves, r"(fine|coarse) \d", n_permutations=499)
    fine = [curve for name, curve in curves.items() if "fine" in name]
    coarse = [curve for name, curve in curves.items() if "coarse" in name]
    expected = permutation_test(fine, coarse, n_permutations=499, rng=0)
    assert found.test.pvalue == expected.pvalue < 0.05
    assert "fine (n = 5) and coarse (n = 5)" in found.in_words()
    _, result, where, note = found.in_words().splitlines()
    assert note.startswith("Valid if the curves are independent")
    assert result.startswith(f"p = {found.test.pvalue:.2g}")
    assert where.startswith("Thresholds that differ")
    assert found.difference_in_words == "fine \N{MINUS SIGN} coarse"
    first, last = found.test.differing()[0][0], found.test.differing()[-1][1]
    assert f"from {first:g} to {last:g}" in found.in_words()
    assert compare_groups(curves).test is None
    assert compare_groups(curves, ".+").in_words().startswith("10 groups. A test needs")
    kinds = ["fine"] * 5 + ["coarse"] * 2 + ["other"] * 3
    features = {"name": list(curves), "kind": kinds}
    third = compare_groups(curves, features=features, by="kind", n_permutations=99)
    assert third.test.units == (5, 2, 3)
    assert third.difference is None
    single = compare_groups({"fine 0": curves["fine 0"]})
    assert_array_equal(single.bands["all"].mean, fine[0].values)


def test_units_are_averaged_and_permuted():
    """Cells of two wells per treatment: two curves a group, of which no p-value is below 1 / 3."""
    wells = ["A1", "A1", "A2", "A2", "A2", "B1", "B2", "B2"]
    images = {f"cell {k}": noise(k, 1 + k // 5) for k in range(8)}
    curves = {name: ecc.euler_curve(image, 16) for name, image in images.items()}
    features = {"name": list(curves), "well": wells, "row": [well[0] for well in wells]}
    found = compare_groups(curves, features=features, by="row", unit="well", n_permutations=99)
    of_each = [curve.thresholds for curve in curves.values()]
    t = np.unique(np.concatenate(of_each))
    heights = pd.DataFrame(
        np.insert(curve.values, 0, 0)[np.searchsorted(curve.thresholds, t, "right")]
        for curve in curves.values()
    )
    means = heights.groupby(wells).mean().to_numpy()  # In the order of the wells' names.
    expected = permutation_test((t, means[:2]), (t, means[2:]))
    assert found.test.units == (2, 2)
    assert found.test.pvalue == expected.pvalue
    assert found.test.statistic == pytest.approx(expected.statistic)
    assert_allclose(found.difference[1], np.mean(means[:2], axis=0) - np.mean(means[2:], axis=0))
    own = found.bands["A"]
    expected = np.mean(means[:2], axis=0)[np.searchsorted(t, own.thresholds)]
    assert_allclose(own.mean, expected)
    assert "A (well = 2) and B (well = 2)" in found.in_words()
    assert "independent" not in found.in_words()
    single = compare_groups(curves, features=features, by="well", unit="well")
    assert single.test is None
    assert_allclose(single.bands["B2"].lower, single.bands["B2"].mean)
    with pytest.raises(ValueError, match="each unit in one group"):
        compare_groups(curves, "(cell) [0-3]", features=features, unit="well")


@pytest.mark.parametrize(
    "pattern", ["", "closed|super", ".*"], ids=["one group", "two groups", "one of each"]
)
def test_curves_that_differ_are_not_compared(pattern):
    closed, periodic = (
        ecc.euler_curve(noise(0, 1.0), 16, boundary=b) for b in ("closed", "periodic")
    )
    curves = {"closed": closed, "superlevel": periodic}
    # However they are grouped, curves must have one boundary.
    with pytest.raises(ValueError, match=r"agree in `boundary`.* 'periodic' in `superlevel`"):
        compare_groups(curves, pattern)


def test_actions_without_a_window():
    layers = [Image(noise(k, 1.5), name=f"image {k}") for k in range(3)]
    curves = actions.layer_curves(layers, thresholds=32, superlevel=False)
    expected = ecc.euler_curve(layers[1].data, curves["image 1"].thresholds)
    assert_array_equal(curves["image 1"].values, expected.values)
    assert not curves["image 1"].superlevel
    table = actions.curve_table(curves)
    assert list(table["name"]) == ["image 0", "image 1", "image 2"]
    assert_array_equal(table["maximum"], [curve.values.max() for curve in curves.values()])
    movie = Image(np.stack([layer.data for layer in layers]), name="movie")
    frames = actions.all_frames(movie, part=np.s_[0, :, :])
    expected = ecc.euler_curve(layers[2].data, frames["movie axis 0 2"].thresholds, superlevel=True)
    assert_array_equal(frames["movie axis 0 2"].values, expected.values)
    with pytest.raises(ValueError, match="one of `threshold` and `slope`"):
        actions.layer_transform(layers[0])


def test_rows_with_equal_texts_are_joined():
    """The command joins tables in the same way: numbers may be stored as texts."""
    table = pd.DataFrame({"name": ["b", "a"], "index": [1, 0]})
    rows = joined(table, {"index": ["0", "1"], "drug": ["none", "taxol"]})
    assert rows["drug"].tolist() == ["taxol", "none"]


def test_the_smoothing_of_a_file_follows_its_spacing(tmp_path):
    """Twice as far in Z: half the standard deviation in points."""
    volume = np.random.default_rng(0).random((6, 9, 8), np.float32)
    options = {"imagej": True, "resolution": (1, 1), "metadata": {"spacing": 2.0, "axes": "ZYX"}}
    imwrite(tmp_path / "volume.tif", volume, **options)
    (curve,) = actions.folder_curves(tmp_path, smoothing=1.0, thresholds=20).values()
    smoothed = gaussian_filter(volume, (0.5, 1.0, 1.0))
    expected = [euler_number(smoothed >= t, 3) for t in curve.thresholds]
    assert_array_equal(curve.values, expected)


def of_wells(*channels):
    """A curve of each channel of eight wells, and what is known of them."""
    places = [(well, channel) for well in [*"abcdefgh"] for channel in channels]
    curves = {
        f"{well} {at}": ecc.euler_curve(noise(k, 1.0), 16) for k, (well, at) in enumerate(places)
    }
    wells = [well for well, _ in places]
    features = {"name": list(curves), "well": wells, "channel": [at for _, at in places]}
    return curves, {**features, "drug": ["y" if well > "d" else "x" for well in wells]}


@pytest.mark.parametrize("unit", ["well", ""])
def test_channels_are_no_replicates(unit):
    """The message is that of the library; one channel, or the average, is compared."""
    curves, features = of_wells("DAPI", "GFP")
    options = {"features": features, "by": "drug", "unit": unit, "n_permutations": 99}
    tables = []
    for _, rows in pd.DataFrame(features).groupby("drug"):
        own = [curves[name] for name in rows["name"]]
        tables.append(CurveTable(align_curves(own), rows))
    units = None
    if unit:
        units = tuple(table.metadata["well"].tolist() for table in tables)
    with pytest.raises(MixedUnitsError) as refused:
        permutation_test(*tables, units=units)
    start = str(refused.value).partition(": choose")[0]
    with pytest.raises(ValueError, match=re.escape(start)) as error:
        compare_groups(curves, **options)
    assert 'choose one, such as `where="channel=DAPI"`, or give `average="channel"`' in str(
        error.value
    )

    alone = {name: curve for name, curve in curves.items() if "DAPI" in name}
    expected = compare_groups(alone, **options)
    found = compare_groups(curves, where="channel=DAPI", **options)
    assert found.sizes == expected.sizes == (4, 4)
    assert found.test.pvalue == expected.test.pvalue
    averaged = compare_groups(curves, average="channel", **options)
    assert averaged.sizes == ((4, 4) if unit else (8, 8))
    with pytest.raises(ValueError, match="no replicates"):  # Bands of one group are refused, too.
        compare_groups(curves, features=features, by="well", unit="well")

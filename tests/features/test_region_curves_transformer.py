"""The scikit-learn transformer of curves of regions."""

import numpy as np
import pandas as pd
import pytest
from io_helpers import write_nifti
from numpy.testing import assert_array_equal
from skimage.measure import euler_number

from ecc_core.errors import InputFileError
from ecc_core.features import RegionCurvesTransformer

LEVELS = np.arange(-1, 12, 2)


def curves(image, labels, ids, levels, *, connectivity, superlevel=False, missing=np.nan):
    """Euler numbers of each region by itself at each level, by scikit-image."""
    found = []
    for label in ids:
        region = labels == label
        if region.any():
            sets = [(image >= t if superlevel else image <= t) & region for t in levels]
            found += [euler_number(each, connectivity) for each in sets]
        else:
            found += [missing] * len(levels)
    return found


def make_pairs(*shapes):
    """Images of noise with regions of noise; the last image lacks region 5."""
    rng = np.random.default_rng(0)
    images = [rng.integers(0, 12, shape) for shape in shapes]
    labels = [rng.choice([0, 2, 5, 9], shape).astype(np.uint8) for shape in shapes]
    labels[-1][labels[-1] == 5] = 0
    return list(zip(images, labels, strict=True))


PLANES = make_pairs((14, 11), (9, 16), (14, 11))
VOLUMES = make_pairs((6, 7, 5), (5, 5, 5))


@pytest.mark.parametrize("superlevel", [False, True])
@pytest.mark.parametrize(
    ("pairs", "connectivity"), [(PLANES, 1), (PLANES, 2), (VOLUMES, 1), (VOLUMES, 3)]
)
def test_features_are_the_euler_numbers_of_each_region(pairs, connectivity, superlevel):
    options = {"connectivity": connectivity, "superlevel": superlevel}
    transformer = RegionCurvesTransformer(LEVELS, **options)
    features = transformer.fit_transform(pairs)
    assert_array_equal(transformer.ids_, [2, 5, 9])
    assert_array_equal(features, [curves(*pair, [2, 5, 9], LEVELS, **options) for pair in pairs])
    assert features.dtype == np.float64
    assert np.isnan(features).sum() == LEVELS.size


def test_given_ids_keep_their_order_and_missing_regions_can_be_zero():
    ids = [9, 30, 5]
    transformer = RegionCurvesTransformer(LEVELS, ids=ids, missing="zero").fit(PLANES[:1])
    features = transformer.transform(PLANES)
    expected = [curves(*pair, ids, LEVELS, connectivity=2, missing=0) for pair in PLANES]
    assert_array_equal(features, expected)
    assert features.dtype == np.int64
    names = transformer.get_feature_names_out()[[0, 6, 7, -1]].tolist()
    assert names == ["region9_ecc0", "region9_ecc6", "region30_ecc0", "region5_ecc6"]


def test_regions_and_range_are_those_of_fit():
    (image, labels), *_ = PLANES
    image = np.where(labels > 0, image / 2, 1000.0)  # Values without a label do not count.
    brighter = image + 1, np.where(labels == 5, 40, labels)
    transformer = RegionCurvesTransformer(5).fit([(image, labels), (image, 0 * labels)])
    assert_array_equal(transformer.thresholds_, np.linspace(0, 5.5, 5))
    ids = [2, 5, 9]
    expected = curves(*brighter, ids, transformer.thresholds_, connectivity=2)
    assert_array_equal(transformer.transform([brighter]), [expected])
    assert np.isnan(transformer.transform([(image, 0 * labels)])).all()
    transformer = RegionCurvesTransformer(5).fit([(image, labels), brighter])
    assert_array_equal(transformer.ids_, [2, 5, 9, 40])
    assert_array_equal(transformer.thresholds_, np.linspace(0, 6.5, 5))


@pytest.mark.parametrize("masked", [False, True])
def test_masks_and_whole_images_are_region_1(masked):
    images = np.stack([image for image, _ in PLANES[::2]])
    masks = np.stack([labels > 0 for _, labels in PLANES[::2]])
    shown = masks if masked else np.ones_like(masks)
    given = list(zip(images, masks, strict=True)) if masked else images
    transformer = RegionCurvesTransformer(LEVELS).fit(given)
    assert_array_equal(transformer.ids_, [1])
    pairs = zip(images, shown, strict=True)
    expected = [curves(*pair, [1], LEVELS, connectivity=2) for pair in pairs]
    assert_array_equal(transformer.transform(given), expected)


@pytest.fixture
def table(tmp_path):
    """Paths of volumes and their labels, by subject."""
    rows = [
        (
            write_nifti(tmp_path / f"{i}_T1w.nii.gz", image.astype(np.int16)),
            write_nifti(tmp_path / f"{i}_dseg.nii.gz", labels),
        )
        for i, (image, labels) in enumerate(VOLUMES)
    ]
    return pd.DataFrame(rows, columns=["image", "labels"], index=["sub-01", "sub-02"])


def test_a_table_of_paths(table):
    transformer = RegionCurvesTransformer(LEVELS).set_output(transform="pandas")
    features = transformer.fit_transform(table)
    assert list(features.index) == ["sub-01", "sub-02"]
    assert features.columns[0] == "region2_ecc0"
    assert transformer.feature_names_in_.tolist() == ["image", "labels"]
    expected = [curves(*pair, [2, 5, 9], LEVELS, connectivity=3) for pair in VOLUMES]
    assert_array_equal(features, expected)
    tuples = list(table.itertuples(index=False, name=None))
    mixed = [(path, labels) for (path, _), (_, labels) in zip(tuples, VOLUMES, strict=True)]
    features = [
        RegionCurvesTransformer(LEVELS).fit_transform(given)
        for given in (table.to_numpy(), tuples, mixed)
    ]
    assert_array_equal(features, [expected] * 3)


def test_labels_that_lie_elsewhere(table, tmp_path):
    mirrored = write_nifti(tmp_path / "x.nii.gz", VOLUMES[1][1], np.diag([-1, 1, 1, 1]))
    table.loc["sub-02", "labels"] = mirrored
    with pytest.raises(ValueError, match="must lie where the image does") as error:
        RegionCurvesTransformer(LEVELS).fit(table)
    assert error.value.__notes__ == [f"in image 1 of `X`, {table.loc['sub-02', 'image']}"]


@pytest.mark.parametrize(
    ("options", "error", "message"),
    [
        ({"missing": 0}, ValueError, '`missing` must be "nan" or "zero", got 0'),
        ({"ids": [0, 2]}, ValueError, r"`ids` must be a list of different positive labels"),
        ({"ids": [2, 2]}, ValueError, r"`ids` must be a list of different positive labels"),
        ({"ids": [2.5]}, TypeError, "`ids` must be integers"),
        ({"connectivity": 3}, ValueError, "`connectivity` must be 1 or 2 for a 2-D image, got 3"),
        ({"thresholds": [1, 0]}, ValueError, "`thresholds`"),
        ({"thresholds": "exact"}, ValueError, "`thresholds`"),
        ({"range": (1, 0)}, ValueError, "`range`"),
        ({"range": (0, 1), "thresholds": [1]}, ValueError, "`range` must be None"),
    ],
)
def test_options_that_fit_refuses(options, error, message):
    with pytest.raises(error, match=message):
        RegionCurvesTransformer(**options).fit(PLANES)


IMAGE = np.zeros((4, 5))
LABELS = np.ones((4, 5), int)


@pytest.mark.parametrize(
    ("pair", "error", "message"),
    [
        ((IMAGE, LABELS[:3]), ValueError, r"`labels` must have the image's shape \(4, 5\)"),
        ((IMAGE, IMAGE), TypeError, "`labels` must have an integer dtype"),
        ((IMAGE, -LABELS), ValueError, "`labels` must not be negative"),
        ((IMAGE, LABELS, LABELS), ValueError, "must have pairs of an image and its labels, got 3"),
        ((IMAGE * np.nan, LABELS), ValueError, "NaN"),
        (("missing.nii", LABELS), InputFileError, r"missing\.nii"),
    ],
)
def test_pairs_that_are_refused(pair, error, message):
    pairs = [(IMAGE, LABELS), pair]
    with pytest.raises(error, match=message) as caught:
        RegionCurvesTransformer(3).fit(pairs)
    noted = "in image 1 of `X`" + (f", {pair[0]}" if isinstance(pair[0], str) else "")
    assert caught.value.__notes__ == [noted]
    transformer = RegionCurvesTransformer(3).fit(pairs[:1])
    with pytest.raises(error, match=message):
        transformer.transform(pairs)


def test_no_labelled_points():
    with pytest.raises(ValueError, match="`range` must be given"):
        RegionCurvesTransformer(3).fit([(IMAGE, 0 * LABELS)])
    features = RegionCurvesTransformer([0], ids=[1]).fit_transform([(IMAGE, 0 * LABELS)])
    assert np.isnan(features).all()


def test_what_was_fitted_to_pairs_takes_no_other_images():
    with pytest.raises(ValueError, match="expecting 2 features"):
        RegionCurvesTransformer([0]).fit(PLANES).transform(np.zeros((2, 5, 6)))
    with pytest.raises(ValueError, match="expecting 5 features"):
        RegionCurvesTransformer([0]).fit(np.zeros((2, 5, 6))).transform(PLANES)

"""Other quantities than the Euler characteristic in the scikit-learn transformers."""

import re

import numpy as np
import pytest
from io_helpers import noise
from numpy.testing import assert_allclose, assert_array_equal
from scipy.ndimage import label
from skimage.measure import euler_number, perimeter_crofton
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

import ecc_core as ecc
from ecc_core.features import EulerCurveTransformer, RegionCurvesTransformer
from ecc_core.quantities import CURVES

IMAGES = np.stack([noise(15, 12, seed=seed) for seed in range(3)])
LEVELS = [60, 120, 200]
ANY = np.ones((3, 3))


def by_name(names, rows):
    """Columns of features, by the name of the functional."""
    prefixes = dict.fromkeys(name.rpartition("_")[0] for name in names)
    columns = np.array([name.rpartition("_")[0] for name in names])
    return {prefix: rows[:, columns == prefix] for prefix in prefixes}


@parametrize_with_checks(
    [EulerCurveTransformer(2, quantity="betti", smooth=0.5, min_persistence=0.1, workers=1)]
)
def test_scikit_learns_own_checks(estimator, check):
    if check.func.__name__ == "check_array_api_input":
        pytest.skip("needs SCIPY_ARRAY_API; the transformer takes NumPy arrays")
    check(estimator)


def expected_of(quantity):
    """Numbers of the sublevel sets of IMAGES by SciPy, scikit-image and NumPy."""
    sets = np.stack([t >= IMAGES for t in LEVELS], axis=1)

    def each(function):
        numbers = [function(one) for one in np.concatenate(sets)]
        return np.reshape(numbers, sets.shape[:2])

    components = each(lambda one: label(one, ANY)[1])
    euler = each(lambda one: euler_number(one, 2))
    if quantity == "betti":
        return {"b0": components, "b1": components - euler}
    if quantity == "minkowski":
        return {"area": each(np.sum) * 6.0, "euler": euler}

    def largest_of(one):
        labels, _ = label(one, ANY)
        return np.bincount(labels.ravel())[1:].max()

    largest = each(largest_of)
    return {"points": each(np.sum), "largest": largest}


@pytest.mark.parametrize("as_list", [False, True], ids=["stack", "list"])
@pytest.mark.parametrize(
    ("quantity", "options", "names"),
    [
        ("betti", {}, ["b0", "b1"]),
        ("minkowski", {"spacing": (2, 3)}, ["area", "perimeter", "euler"]),
        ("components", {}, ["points", "largest", "spanning_0", "spanning_1"]),
    ],
)
def test_features_are_the_numbers_of_the_sets(quantity, options, names, as_list):
    images = [*IMAGES, noise(9, 9)] if as_list else IMAGES
    transformer = EulerCurveTransformer(LEVELS, quantity=quantity, **options)
    rows = transformer.fit_transform(images)[: len(IMAGES)]
    found = by_name(transformer.get_feature_names_out().tolist(), rows)
    assert list(found) == names
    assert transformer.functionals_ == tuple(names)
    expected = expected_of(quantity)
    np.testing.assert_equal({name: found[name] for name in expected}, expected)
    whole = getattr(ecc, CURVES[quantity].of_image)(IMAGES[0], LEVELS, **options)
    assert_array_equal(rows[0], whole.values.ravel())
    assert rows.dtype == whole.values.dtype


@pytest.mark.parametrize("transformer", [EulerCurveTransformer, RegionCurvesTransformer])
def test_other_quantities_are_an_error_that_names_those_there_are(transformer):
    of_regions = transformer is RegionCurvesTransformer
    names = [name for name, one in CURVES.items() if one.of_regions or not of_regions]
    with pytest.raises(ValueError, match="`quantity` must be") as raised:
        transformer([0], quantity="shape").fit([(IMAGES[0], IMAGES[0] > 9)] * 2)
    named = re.findall('"([a-z]+)"', str(raised.value))
    assert named == names


@pytest.mark.parametrize("quantity", CURVES)
def test_the_range_is_that_of_the_values(quantity):
    transformer = EulerCurveTransformer(5, quantity=quantity).fit(IMAGES)
    assert_array_equal(transformer.thresholds_, np.linspace(IMAGES.min(), IMAGES.max(), 5))


def test_options_of_a_quantity():
    """The perimeter of a smooth disk is that of scikit-image, within a twentieth."""
    rows, columns = np.ogrid[-20:21, -20:21]
    disk = (np.hypot(rows, columns) > 15).astype(np.uint8)
    options = {"quantity": "minkowski", "estimator": "crofton-4", "spacing": 0.5}
    found = EulerCurveTransformer([0], **options).fit_transform(disk[None])
    assert_allclose(found[0, 1], 0.5 * perimeter_crofton(disk == 0, directions=4), rtol=0.05)


@pytest.mark.parametrize(("persistence", "expected"), [(0, [3, 2]), (2, [2, 2])])
def test_components_of_less_than_the_least_persistence_do_not_count(persistence, expected):
    bumps = np.array([[[0, 3, 2, 9, 0]] * 2])
    transformer = EulerCurveTransformer(
        [2, 3], quantity="betti", min_persistence=persistence, superlevel=False
    )
    assert transformer.fit_transform(bumps)[0, :2].tolist() == expected


@pytest.mark.parametrize("missing", ["nan", "zero"])
@pytest.mark.parametrize("quantity", ["betti", "minkowski"])
def test_regions_have_the_quantities(quantity, missing):
    """Each region by itself; the second image lacks region 2."""
    labels = noise(3, 15, 12, seed=9) % 3
    labels[1][labels[1] == 2] = 0
    options = {"quantity": quantity, "missing": missing}
    transformer = RegionCurvesTransformer(LEVELS, **options)
    features = transformer.fit_transform(list(zip(IMAGES, labels, strict=True)))
    names = transformer.get_feature_names_out()
    compute = getattr(ecc, CURVES[quantity].of_image)
    for i, (image, places) in enumerate(zip(IMAGES, labels, strict=True)):
        for region in (1, 2):
            own = features[i, [name.startswith(f"region{region}_") for name in names]]
            if (places == region).any():
                masked = compute(image, LEVELS, mask=places == region)
                assert_array_equal(own, masked.values.ravel())
            else:
                assert_array_equal(own, np.nan if missing == "nan" else 0)
    of_counts = np.int64 if quantity == "betti" else np.float64
    assert features.dtype == (np.float64 if missing == "nan" else of_counts)
    first = {"betti": "region1_b0_0", "minkowski": "region1_area_0"}[quantity]
    assert names[0] == first
    default = (
        clone(transformer).set_params(thresholds=3).fit(list(zip(IMAGES, labels, strict=True)))
    )
    seen = IMAGES[labels > 0]
    assert_array_equal(default.thresholds_, np.linspace(seen.min(), seen.max(), 3))


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"quantity": "area"}, '`quantity` must be "euler", "betti", "minkowski" or "components"'),
        ({"min_persistence": 1}, '`min_persistence` must be 0 unless `quantity` is "betti", got 1'),
        ({"spacing": 2, "quantity": "betti"}, "`spacing` must be None unless `quantity` is"),
        (
            {"estimator": "crofton-4"},
            "`estimator` must be 'exact' unless `quantity` is \"minkowski",
        ),
        ({"quantity": "minkowski", "estimator": "crofton-3"}, "`estimator`"),
        ({"quantity": "betti", "connectivity": 3}, "`connectivity` must be 1 or 2"),
    ],
)
def test_what_fit_refuses(options, message):
    with pytest.raises(ValueError, match=message):
        EulerCurveTransformer(LEVELS, **options).fit(IMAGES)


def test_regions_and_mixed_images_that_are_refused():
    pairs = list(zip(IMAGES, IMAGES % 3, strict=True))
    with pytest.raises(ValueError, match='`quantity` must be "euler", "betti" or "minkowski", got'):
        RegionCurvesTransformer(quantity="components").fit(pairs)
    mixed = [IMAGES[0], noise(4, 5, 6)]
    with pytest.raises(ValueError, match="must have images of as many axes as the first one"):
        EulerCurveTransformer(LEVELS, quantity="minkowski").fit_transform(mixed)

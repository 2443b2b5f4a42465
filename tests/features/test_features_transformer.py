"""The scikit-learn transformers."""

import numpy as np
import pandas as pd
import pytest
from level_sets import numbers_at
from numpy.testing import assert_allclose, assert_array_equal
from processes import run_python
from sklearn.base import clone
from sklearn.utils.estimator_checks import parametrize_with_checks

import ecc_core as ecc
from ecc_core.features import (
    EulerCurveTransformer,
    EulerTransformTransformer,
    RegionCurvesTransformer,
    RegionTransformsTransformer,
    track_regions,
)

# The one check that does not run wants SCIPY_ARRAY_API set before SciPy is imported: curves of
# CuPy arrays and tensors come from `euler_curve`, not from this NumPy transformer.
NOT_RUN = {"check_array_api_input"}


def not_met(estimator):
    """Checks that cannot pass, and why."""
    if not isinstance(estimator, RegionTransformsTransformer):
        return {}
    reason = "gives floats: labels are integers, and floats are refused"
    return dict.fromkeys(["check_dtype_object", "check_estimators_dtypes"], reason)


@pytest.fixture(scope="module")
def images():
    return np.random.default_rng(0).normal(size=(10, 12, 9)).astype(np.float32)


def run_check(estimator, check):
    if check.func.__name__ in NOT_RUN:
        pytest.skip("needs SCIPY_ARRAY_API; the transformer takes NumPy arrays")
    check(estimator)


@parametrize_with_checks(
    [
        EulerCurveTransformer(),
        EulerTransformTransformer(3, 5, threshold=0.5),
        RegionCurvesTransformer(9, missing="zero", range=(-1, 1), connectivity=1),
        RegionTransformsTransformer(3, 5),
    ],
    expected_failed_checks=not_met,
)
def test_scikit_learns_own_checks(estimator, check):
    run_check(estimator, check)


@pytest.mark.slow
@parametrize_with_checks(
    [
        EulerCurveTransformer(thresholds=[0.0, 1.0], superlevel=True),
        EulerCurveTransformer(9, range=(-1, 1), connectivity=1, workers=1),
        RegionCurvesTransformer(),
        RegionCurvesTransformer([0.0, 1.0], ids=[7, 1], superlevel=True, workers=1),
        RegionTransformsTransformer(2, [-1.0, 0.0, 1.0], connectivity=1, normalize=None),
    ],
    expected_failed_checks=not_met,
)
def test_scikit_learns_own_checks_of_other_parameters(estimator, check):
    run_check(estimator, check)


@pytest.mark.parametrize("superlevel", [False, True])
@pytest.mark.parametrize("shape", [(10, 12, 9), (3, 5, 6, 4), (3, 120)])
@pytest.mark.parametrize("thresholds", [17, np.arange(-2.0, 2)])
def test_features_are_the_curves(thresholds, shape, superlevel):
    """Images may have values beyond those seen in training."""
    images = np.random.default_rng(1).normal(size=shape)
    options = {"superlevel": superlevel, "connectivity": 1}
    transformer = EulerCurveTransformer(thresholds, **options).fit(images[:-1])
    low = images[:-1].min()
    high = images[:-1].max()
    known = np.linspace(low, high, 17) if isinstance(thresholds, int) else thresholds
    assert_array_equal(transformer.thresholds_, known)
    images = np.concatenate([images, images[:1] + 100, images[:1] - 100])
    features = transformer.transform(images)
    curves = [ecc.euler_curve(image, transformer.thresholds_, **options) for image in images]
    assert_array_equal(features, [curve.values for curve in curves])
    assert features.dtype == np.int64


@pytest.mark.parametrize("plain", [EulerCurveTransformer(9), EulerTransformTransformer(5, 7)])
def test_flattened_images_are_the_same(images, plain):
    flat = images.reshape(10, -1)
    expected = clone(plain).fit_transform(images)
    shaped = clone(plain).set_params(image_shape=(12, 9))
    assert_array_equal(shaped.fit_transform(flat), expected)
    assert_array_equal(shaped.fit_transform(pd.DataFrame(flat)), expected)
    assert not np.array_equal(plain.fit_transform(flat), expected)


@pytest.mark.parametrize(
    ("transformer", "names"),
    [
        (EulerCurveTransformer(2), ["ecc0", "ecc1"]),
        (EulerTransformTransformer(1, 2), ["ect0", "ect1"]),
        (RegionTransformsTransformer(1, 2), ["ect0", "ect1"]),
        (RegionCurvesTransformer([1], ids=[7, 1]), ["region7_ecc0", "region1_ecc0"]),
    ],
)
def test_pandas_output_keeps_the_index(transformer, names):
    rng = np.random.default_rng(3)
    flat = pd.DataFrame(rng.integers(0, 3, (4, 20)), index=list("abcd"))
    if "image_shape" in transformer.get_params():
        transformer.set_params(image_shape=(4, 5))
    expected = clone(transformer).fit_transform(flat)
    table = transformer.set_output(transform="pandas").fit_transform(flat)
    assert list(table.columns) == names
    assert list(table.index) == list("abcd")
    assert_array_equal(table.to_numpy(), expected)


@pytest.fixture(params=["arrays", "paths", "column"])
def several(request, tmp_path):
    """Label images of different shapes, and how they are given."""
    rng = np.random.default_rng(6)
    images = [rng.integers(0, 4, shape) for shape in ((9, 12), (7, 7), (14, 5), (20, 21))]
    paths = [tmp_path / f"{i}.npy" for i in range(4)]
    for path, image in zip(paths, images, strict=True):
        np.save(path, image)
    frame = pd.DataFrame({"file": [str(path) for path in paths]})
    return images, {"arrays": images, "paths": paths, "column": frame}[request.param]


def test_curves_of_images_of_different_shapes(several):
    images, given = several
    transformer = EulerCurveTransformer(5).fit(given)
    assert_array_equal(transformer.thresholds_, np.linspace(0, 3, 5))
    rows = transformer.transform(given)
    at = np.linspace(0, 3, 5)
    expected = [numbers_at(image, at) for image in images]
    assert_array_equal(rows, expected)
    assert_array_equal(clone(transformer).set_params(range=(0, 3)).fit_transform(given), rows)
    assert_array_equal(transformer.transform(images[0][None]), rows[:1])
    whole = RegionCurvesTransformer(5).fit_transform(given)
    assert_array_equal(whole, rows)


@pytest.mark.parametrize("connectivity", [1, 2])
def test_transforms_of_images_of_different_shapes(several, connectivity):
    images, given = several
    options = {"connectivity": connectivity, "spacing": (2, 1)}
    transformer = EulerTransformTransformer(3, 6, threshold=1, **options).fit(given)
    reach = np.hypot(20 * 2, 21) / 2  # The largest image reaches so far.
    assert_allclose(transformer.heights_, np.linspace(-reach, reach, 6))
    features = transformer.transform(given)
    assert features.dtype == np.int64
    expected = [
        ecc.euler_transform(image > 1, 3, transformer.heights_, **options) for image in images
    ]
    assert_array_equal(
        [found.directions for found in expected], [transformer.directions_] * len(images)
    )
    assert_array_equal(features, [found.values.ravel() for found in expected])
    assert transformer.get_feature_names_out()[[0, -1]].tolist() == ["ect0", "ect17"]
    stack = np.stack([images[0], images[0].T.reshape(9, 12)])
    transforms = [ecc.euler_transform(image > 1, 3, 6, **options) for image in stack]
    expected = [found.values.ravel() for found in transforms]
    assert_array_equal(clone(transformer).fit_transform(stack), expected)


@pytest.mark.parametrize("connectivity", [1, 2])
def test_mean_transforms_of_regions(several, connectivity):
    images, given = several
    transformer = RegionTransformsTransformer(3, 4, connectivity=connectivity)
    features = transformer.fit_transform(given)
    assert features.dtype == np.float64
    options = {"connectivity": connectivity, "normalize": "radius"}
    expected = [ecc.region_transforms(image, 3, 4, **options) for image in images]
    assert_array_equal([found.heights for found in expected], [transformer.heights_] * len(images))
    means = [found.values.mean(axis=0) for found in expected]
    assert_allclose(features, [mean.ravel() for mean in means])
    assert not transformer.transform([np.zeros((4, 4), int)]).any()
    plain = RegionTransformsTransformer(3, 4, normalize=None).fit(given)
    transforms = [ecc.region_transforms(image, 3, 4) for image in images]
    assert plain.heights_[-1] == max(found.heights[-1] for found in transforms)


def test_lists_that_are_refused(images, tmp_path):
    shapes = [images[0], images[1][:, :5]]
    with pytest.raises(ValueError, match="`image_shape` must be None for a list of images"):
        EulerCurveTransformer(image_shape=(12, 9)).fit(shapes)
    fitted = EulerCurveTransformer().fit(images)
    with pytest.raises(ValueError, match=r"images of shape \(12, 9\), as in `fit`, got") as raised:
        fitted.transform(shapes)
    assert raised.value.__notes__ == ["in image 1 of `X`"]
    broken = [images[0], np.full((3, 3), np.nan)]
    with pytest.raises(ValueError, match="NaN") as raised:
        EulerCurveTransformer([0.0]).fit_transform(broken)
    assert raised.value.__notes__ == ["in image 1 of `X`"]
    with pytest.raises(ValueError, match=r"nowhere\.npy"):
        EulerCurveTransformer().fit([tmp_path / "nowhere.npy"])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"image_shape": (5, 5)}, r"`image_shape` must fit the rows of `X`, got \(5, 5\) for"),
        ({"connectivity": 3}, "`connectivity` must be 1 or 2 for a 2-D image, got 3"),
        ({"thresholds": [1, 0]}, "`thresholds`"),
        ({"range": (1, 0)}, "`range`"),
    ],
)
def test_what_fit_refuses(images, options, message):
    with pytest.raises(ValueError, match=message):
        EulerCurveTransformer(**options).fit(images)


@pytest.mark.parametrize("kind", [EulerCurveTransformer, EulerTransformTransformer])
def test_what_transform_refuses(images, kind):
    transformer = kind().fit(images)
    with pytest.raises(ValueError, match=r"images of shape \(12, 9\), as in `fit`, got \(12, 8\)"):
        transformer.transform(images[:, :, :8])
    broken = images.copy()
    broken[3, 4, 5] = np.nan
    with pytest.raises(ValueError, match="NaN"):
        transformer.transform(broken)


def test_features_load_no_scikit_learn_before_the_transformer_does():
    code = (
        "import ecc_core as ecc, sys\n"
        "ecc.features.curve_descriptors\n"
        "print('sklearn' in sys.modules, 'pandas' in sys.modules)\n"
        "ecc.features.EulerCurveTransformer\n"
        "print('sklearn' in sys.modules, hasattr(ecc.features, 'nothing'))\n"
    )
    assert run_python(code).stdout.split() == ["False", "False", "True", "False"]


def test_dask_tells_fitted_transformers_apart(images):
    """Otherwise results of two fits that are computed together would be the same."""
    dask = pytest.importorskip("dask.base")
    given = np.abs(images)
    one, other = (EulerCurveTransformer(4).fit(scale * given) for scale in (1, 3))
    assert dask.tokenize(one) != dask.tokenize(other)


def test_what_transformers_of_shapes_refuse(images):
    with pytest.raises(ValueError, match="`heights`"):
        EulerTransformTransformer(heights=[1, 0]).fit(images)
    with pytest.raises(TypeError, match="`labels` must"):
        RegionTransformsTransformer().fit(abs(images))
    with pytest.raises(ValueError, match="Negative values in data"):
        RegionTransformsTransformer().fit(np.full((2, 5, 5), -1))


@pytest.mark.parametrize(
    ("name", "function"),
    [("X", EulerCurveTransformer(4).fit), ("labels", track_regions)],
    ids=["transformer", "track_regions"],
)
def test_objects_that_are_no_arrays_are_refused(name, function):
    """An image of SimpleITK would be a row of all its pixels."""
    sitk = pytest.importorskip("SimpleITK")
    images = [sitk.GetImageFromArray(np.eye(4, dtype=np.uint8))] * 2
    with pytest.raises(TypeError, match=f"`{name}` must be an array, .*GetArrayFromImage"):
        function(images)

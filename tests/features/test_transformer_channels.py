"""Channels and smoothing of images in the scikit-learn transformers, for arrays and files."""

import pickle
import warnings

import numpy as np
import pandas as pd
import pytest
import tifffile
from io_helpers import noise, write_picture
from level_sets import numbers_at
from numpy.testing import assert_allclose, assert_array_equal
from scipy.ndimage import gaussian_filter
from skimage.color import rgb2gray, rgb2hed
from sklearn.base import clone
from sklearn.ensemble import RandomForestClassifier
from sklearn.pipeline import make_pipeline

import ecc_core as ecc
from ecc_core.cli import main
from ecc_core.errors import InputFileError
from ecc_core.features import (
    EulerCurveTransformer,
    EulerTransformTransformer,
    RegionCurvesTransformer,
    RegionTransformsTransformer,
)

TILES = np.stack([noise(20, 17, 3, seed=seed) for seed in range(3)])
LEVELS = np.linspace(0, 1, 7)


def saturation(rgb):
    """A channel that a user defines, of a module, so that it can be pickled."""
    return np.ptp(rgb, axis=-1)


def curves(images, levels):
    """Euler numbers at each level, by scikit-image."""
    return [numbers_at(image, levels) for image in images]


@pytest.fixture(params=["stack", "ragged", "png", "tiff", "npy"])
def tiles(request, tmp_path):
    """Colour tiles, and how a transformer is given them."""
    if request.param == "stack":
        return list(TILES), TILES
    if request.param == "ragged":
        ragged = [TILES[0], TILES[1][:9], TILES[2][:, :11]]
        return ragged, ragged
    paths = [tmp_path / f"{i}.{request.param}" for i in range(len(TILES))]
    write = {"png": write_picture, "tiff": tifffile.imwrite, "npy": np.save}[request.param]
    for path, tile in zip(paths, TILES, strict=True):
        write(path, tile)
    return list(TILES), pd.Series([str(path) for path in paths])


@pytest.mark.parametrize(
    ("channel", "expected"),
    [
        (1, lambda rgb: rgb[..., 1]),
        ("b", lambda rgb: rgb[..., 2]),
        ("gray", rgb2gray),
        ("hematoxylin", lambda rgb: rgb2hed(rgb)[..., 0]),
        ("eosin", lambda rgb: rgb2hed(rgb)[..., 1]),
        ("dab", lambda rgb: rgb2hed(rgb)[..., 2]),
        (saturation, saturation),
    ],
    ids=["number", "colour", "gray", "hematoxylin", "eosin", "dab", "function"],
)
def test_channels_are_those_of_scikit_image(tiles, channel, expected):
    images, given = tiles
    wanted = [expected(image) for image in images]
    levels = np.linspace(*np.quantile(wanted[0], [0.05, 0.95]), 5)
    transformer = EulerCurveTransformer(levels, channel=channel)
    assert_array_equal(transformer.fit_transform(given), curves(wanted, levels))


def test_the_axis_of_the_channels():
    first = np.moveaxis(TILES, -1, 1)
    expected = curves(TILES[..., 2], [90, 120])
    transformer = EulerCurveTransformer([90, 120], channel=2, channel_axis=0)
    assert_array_equal(transformer.fit_transform(first), expected)
    transformer = EulerCurveTransformer([90, 120], channel=2, channel_axis=-3)
    assert_array_equal(transformer.fit_transform(first), expected)
    volumes = noise(2, 5, 6, 7, 2)
    transformer = EulerCurveTransformer([90, 120], channel=1)
    assert_array_equal(transformer.fit_transform(volumes), curves(volumes[..., 1], [90, 120]))
    flat = EulerCurveTransformer([90], channel="r", image_shape=(20, 17, 3))
    assert_array_equal(flat.fit_transform(TILES.reshape(3, -1)), curves(TILES[..., 0], [90]))
    assert flat.image_shape_ == (20, 17)


def test_channels_by_name(tmp_path):
    """The metadata of an OME-TIFF image have its axes C, Z, Y and X and names of channels."""
    image = noise(2, 5, 9, 8)
    path = tmp_path / "cells.ome.tif"
    tifffile.imwrite(path, image, metadata={"axes": "CZYX", "Channel": {"Name": ["DAPI", "GFP"]}})
    expected = curves(image[1:], [90, 120])
    chosen = [EulerCurveTransformer([90, 120], channel=channel) for channel in ("GFP", 1, last_of)]
    assert_array_equal([one.fit_transform([path]) for one in chosen], [expected] * 3)
    with pytest.raises(
        InputFileError, match=r"cells\.ome\.tif: `channel` must be one of 0 to 1, D"
    ):
        EulerCurveTransformer([90], channel="gray").fit([path])


def last_of(image):
    """The second channel of an image whose channels are the last axis, as of scikit-image."""
    assert image.shape == (5, 9, 8, 2)
    return image[..., 1]


@pytest.mark.parametrize("sigma", [1.5, (0, 2)])
@pytest.mark.parametrize("dtype", ["u1", "i4", "f8"])
def test_smoothing_is_that_of_the_command(tmp_path, sigma, dtype):
    images = [noise(20, 17, dtype=dtype, seed=seed) for seed in range(2)]
    precision = np.float32 if np.can_cast(dtype, np.float32) else np.float64
    smooth = [gaussian_filter(image.astype(precision), sigma) for image in images]
    levels = np.quantile(smooth[0], [0.2, 0.5, 0.8])
    transformer = EulerCurveTransformer(levels, smooth=sigma)
    found = transformer.fit_transform(images)
    assert_array_equal(found, curves(smooth, levels))
    paths = [tmp_path / f"{i}.npy" for i in range(2)]
    for path, image in zip(paths, images, strict=True):
        np.save(path, image)
    assert_array_equal(clone(transformer).fit_transform(paths), found)
    out = tmp_path / "out.npz"
    widths = ",".join(map(str, np.atleast_1d(sigma)))
    flags = ["--smooth", widths, "--thresholds", ",".join(map(repr, levels.tolist()))]
    command = ["curve", str(paths[0]), *flags, "--out", str(out.with_suffix(".json")), "--quiet"]
    assert main(command) == 0
    table = ecc.io.read_table(out.with_suffix(".json")).curves
    assert_array_equal(table.values.ravel(), found[0])


def test_channels_of_other_transformers():
    """Shapes and regions have the channels and the smoothing that images have."""
    hematoxylin = rgb2hed(TILES)[..., 0].astype("f4")
    stain = np.stack([gaussian_filter(tile, 1) for tile in hematoxylin])
    options = {"channel": "hematoxylin", "smooth": 1}
    level = float(np.median(stain))
    shapes = EulerTransformTransformer(3, 5, threshold=level, **options)
    expected = EulerTransformTransformer(3, 5, threshold=level).fit_transform(stain)
    found = shapes.fit_transform(TILES.astype("f4") / np.float32(255))
    assert_allclose(found, expected, atol=2)  # Optical densities of float32 are rounded.
    labels = noise(3, 20, 17) % 3
    pairs = list(zip(TILES / 255, labels, strict=True))
    levels = np.quantile(stain, [0.3, 0.7])
    plain = list(zip(stain.astype("f8"), labels, strict=True))
    assert_allclose(
        RegionCurvesTransformer(levels, **options).fit_transform(pairs),
        RegionCurvesTransformer(levels).fit_transform(plain),
        atol=2,
    )


def test_a_pipeline_of_tiles():
    """Pipelines are cloned, pickled and used for prediction."""
    model = make_pipeline(
        EulerCurveTransformer(8, channel=saturation, smooth=1), RandomForestClassifier(5)
    )
    model.fit(TILES, [0, 1, 0])
    again = pickle.loads(pickle.dumps(model))
    assert_array_equal(again.predict(TILES), model.predict(TILES))
    copy = clone(model).set_params(eulercurvetransformer__channel="eosin")
    assert copy[0].get_params()["smooth"] == 1
    assert copy.fit(TILES, [0, 1, 0])[0].get_feature_names_out()[-1] == "ecc7"


@pytest.mark.parametrize("given", ["stack", "ragged"])
def test_a_warning_of_colours_that_are_taken_for_volumes(given):
    """The warning is that of `euler_curve`, and comes once."""
    images = {"stack": TILES, "ragged": [TILES[0], TILES[1][:9]]}[given]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        EulerCurveTransformer(4).fit_transform(images)
    messages = [str(warning.message) for warning in caught]
    assert messages == [
        "an image of `X`, of shape (20, 17, 3), is taken for a volume: "
        "choose one of its colours with `channel`"
    ]
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        EulerCurveTransformer(4, channel="gray").fit_transform(images)
    assert not caught


GRAY = noise(2, 20, 17)


@pytest.mark.parametrize(
    ("options", "images", "error", "message"),
    [
        ({"channel": "red"}, TILES, ValueError, "`channel` must be one of 0 to 2, r, g, b, gray"),
        ({"channel": 3}, TILES, ValueError, "`channel` must be one of 0 to 2"),
        ({"channel": 0}, GRAY, ValueError, "`channel` must be None for images without an axis"),
        ({"channel": "dab"}, GRAY[..., None], ValueError, "must not be 'dab' for images without"),
        ({"channel": "dab"}, TILES * 1.0, ValueError, "dab needs colours from 0 to 1 if they"),
        ({"channel": "dab"}, TILES.astype(int), ValueError, "dab needs colours of type uint or"),
        ({"channel": np.mean}, TILES, ValueError, "`channel` must return an image of 1 to 3 axes"),
        ({"channel_axis": 0}, TILES, ValueError, "`channel_axis` must be None without `channel`"),
        ({"channel": 0, "channel_axis": 3}, TILES, ValueError, "`channel_axis` must be an axis of"),
        ({"smooth": -1}, GRAY, ValueError, "`smooth` must be a positive number of points"),
        ({"smooth": (1, 1, 1)}, GRAY, ValueError, "`smooth` must be one number or 2 of them"),
        ({"smooth": "much"}, GRAY, TypeError, "`smooth` must be a number"),
    ],
)
def test_what_is_refused(options, images, error, message):
    with pytest.raises(error, match=message) as caught:
        EulerCurveTransformer([1], **options).fit(images)
    assert caught.value.__notes__ == ["in image 0 of `X`"]


def test_transparent_colours_have_no_stain():
    opaque = np.concatenate([TILES, np.full((3, 20, 17, 1), 255, np.uint8)], axis=-1)
    transformer = EulerCurveTransformer([0.01], channel="eosin")
    assert_array_equal(transformer.fit_transform(opaque), transformer.fit_transform(TILES))
    opaque[1, 0, 0, 3] = 254
    with pytest.raises(ValueError, match="eosin is not defined where colours are transparent"):
        transformer.fit(opaque)


@pytest.mark.parametrize("kind", [EulerCurveTransformer, RegionCurvesTransformer])
def test_errors_name_the_file_and_options_that_exist(tmp_path, kind):
    """No message offers what a transformer does not have."""
    path = tmp_path / "tile.png"
    write_picture(path, TILES[0])
    series = tmp_path / "series.tif"
    with tifffile.TiffWriter(series, ome=True) as writer:
        writer.write(GRAY[0])
        writer.write(GRAY[1])
    times = tmp_path / "times.tif"
    tifffile.imwrite(times, GRAY, imagej=True, metadata={"axes": "TYX"})

    def message_for(file):
        given = [file] if kind is EulerCurveTransformer else [(file, GRAY[0] // 200)]
        with pytest.raises(InputFileError) as caught:
            kind([0]).fit(given)
        assert str(caught.value).startswith(f"{file}: ")
        return str(caught.value)

    assert "choose one with `channel`: 0 to 2, r, g, b, gray" in message_for(path)
    assert "`ecc_core.io.read_image` returns" in message_for(series)
    assert "has 2 points in time" in message_for(times)
    with pytest.raises(InputFileError, match=r"tile\.png: a label image must have one channel"):
        RegionTransformsTransformer().fit([path])
    with pytest.raises(InputFileError, match=r"tile\.png: a label image must have one channel"):
        RegionCurvesTransformer([0]).fit([(GRAY[0], path)])
    with pytest.raises(ValueError, match="choose one with `channel`"):
        RegionCurvesTransformer([0]).fit([(TILES[0], GRAY[0])])


def test_masked_points_are_left_out():
    """Stacks and lists are masked as in `euler_curve`; smoothing would need masked values."""
    masked = np.ma.masked_greater(GRAY, 200)
    expected = [ecc.euler_curve(image, [90, 255]).values for image in masked]
    assert expected[0][1] < 0
    transformer = EulerCurveTransformer([90, 255])
    of_first = [
        transformer.fit_transform(given)[0]
        for given in (masked, list(masked), [masked[0], masked[1][:9]])
    ]
    assert_array_equal(of_first, [expected[0]] * 3)
    with pytest.raises(ValueError, match="`smooth` needs an image without masked"):
        EulerCurveTransformer([90], smooth=1).fit(masked)

"""scikit-learn transformers: curves and transforms of images as features."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.utils import Tags

from ecc_core.curves import euler_curve
from ecc_core.features._images import ImageList, ImageTransformer, image_noted, item_of
from ecc_core.features._preparation import Channel, is_path, read_labels
from ecc_core.features._quantities import (
    function_of,
    names_of_features,
    options_of,
    quantity_named,
)
from ecc_core.results import CurveResult
from ecc_core.transforms import euler_transform, region_transforms


class EulerCurveTransformer(ImageTransformer):
    """Euler characteristic curves of images as features, with thresholds set by `fit`.

    With another `quantity`, the features are Betti numbers, Minkowski functionals or sizes of
    components at the thresholds.

    Parameters
    ----------
    thresholds : int or (m,) array, default 64
        Number of thresholds, evenly spaced over `range`, or an increasing array of thresholds.
    range : (low, high), optional
        Only if `thresholds` is an int. Default: the smallest and largest value in `fit`.
    image_shape : tuple of int, optional
        Shape of the images if rows contain flattened images. Otherwise a row of a 2-D array is a
        1-D image (a signal).
    channel : int, str or callable, optional
        Which channel to take of images that have several: its number; for files also its name, if
        they name channels, such as "DAPI"; and for colours (red, green, blue and perhaps an opaque
        alpha) "r", "g", "b"; "gray", their luminance as by `skimage.color.rgb2gray`; or
        "hematoxylin", "eosin" or "dab", the densities of these stains as by
        `skimage.color.rgb2hed`. A function gets each image with its channels, if any, as the last
        axis, and returns the image without them; it can be pickled if it is defined in a module.
    channel_axis : int, optional
        The axis of the channels in each image of an array. Default: the last one. Files other than
        NPY and NPZ say which axis it is.
    smooth : float or one for each axis, optional
        Standard deviation in points of a Gaussian by which each image, or the channel, is first
        smoothed, as by ``ecc curve --smooth``: `scipy.ndimage.gaussian_filter` in float32, or in
        float64 if float32 cannot represent the values.
    quantity : str, default "euler"
        "euler", "betti", "minkowski" or "components", as in the commands. Other quantities than
        "euler" have several numbers at each threshold, in the order of their names: those of
        :func:`ecc_core.betti_curves` (``b0``, ``b1``, ...), of
        :func:`ecc_core.minkowski_curves` (such as ``area``, ``perimeter`` and ``euler``) or of
        :func:`ecc_core.component_curves` (``points``, ``largest``, ``spanning_0``, ...).
    min_persistence : float, default 0
        As for :func:`ecc_core.betti_curves`, with ``quantity="betti"``.
    spacing, estimator
        As for :func:`ecc_core.minkowski_curves`, with ``quantity="minkowski"``. The spacing of
        files is not used.
    connectivity, superlevel, workers
        As for :func:`ecc_core.euler_curve`.

    Attributes
    ----------
    thresholds_ : (m,) array
        The thresholds.
    functionals_ : tuple of str
        Names of the numbers at each threshold: ``("euler",)``, or those of another quantity.
    image_shape_ : tuple of int or None
        Shape of one image, or of one channel of it; None for a list of images of different shapes
        or of paths.
    n_features_in_ : int
        Length of the first axis of one image, or number of points of a flattened one. Not for such
        a list.
    feature_names_in_ : array of str
        Names of the columns, if a data frame was given to `fit`.

    Raises
    ------
    TypeError, ValueError
        For images that are not finite real numbers, images of another shape than in `fit`, a wrong
        `image_shape`, channels that images do not have, a parameter of another quantity, and as for
        the functions of the quantity. A note to the error names the image.
    ImportError, InputFileError
        If a file cannot be read, as for :func:`ecc_core.io.read_image`.

    Warns
    -----
    UserWarning
        If images look like colours but are taken for volumes, because `channel` is None.

    See Also
    --------
    ecc_core.euler_curve : the curve of one image or a batch

    Examples
    --------
    >>> import numpy as np
    >>> from ecc_core.features import EulerCurveTransformer
    >>> images = np.random.default_rng(0).random((3, 16, 16))
    >>> transformer = EulerCurveTransformer(5, range=(0, 1)).fit(images)
    >>> transformer.transform(images)[:, -1]  # at the last threshold the set is the whole image
    array([1, 1, 1])
    >>> flat = images.reshape(3, -1)
    >>> EulerCurveTransformer(5, image_shape=(16, 16)).fit_transform(flat).shape
    (3, 5)
    >>> transformer.get_feature_names_out()
    array(['ecc0', 'ecc1', 'ecc2', 'ecc3', 'ecc4'], dtype=object)

    Holes and components of a stain in colour images, after smoothing:

    >>> tiles = np.random.default_rng(0).integers(0, 256, (3, 32, 32, 3), np.uint8)
    >>> transformer = EulerCurveTransformer(
    ...     2, range=(0, 0.1), channel="hematoxylin", smooth=1, quantity="betti"
    ... )
    >>> transformer.fit_transform(tiles).shape
    (3, 4)
    >>> transformer.get_feature_names_out().tolist()
    ['b0_0', 'b0_1', 'b1_0', 'b1_1']
    """

    _passed = "connectivity", "superlevel", "workers"

    def __init__(
        self,
        thresholds: int | ArrayLike = 64,
        *,
        range: tuple[float, float] | None = None,
        image_shape: tuple[int, ...] | None = None,
        channel: Channel = None,
        channel_axis: int | None = None,
        smooth: float | Sequence[float] | None = None,
        quantity: str = "euler",
        min_persistence: float = 0,
        spacing: ArrayLike | None = None,
        estimator: str = "exact",
        connectivity: int | None = None,
        superlevel: bool = False,
        workers: int | None = None,
    ) -> None:
        self.thresholds = thresholds
        self.range = range
        self.image_shape = image_shape
        self.channel = channel
        self.channel_axis = channel_axis
        self.smooth = smooth
        self.quantity = quantity
        self.min_persistence = min_persistence
        self.spacing = spacing
        self.estimator = estimator
        self.connectivity = connectivity
        self.superlevel = superlevel
        self.workers = workers

    def _images(self, X: Any, *, reset: bool) -> Iterable[Any]:
        """Return batches of images: an array is one batch, and so is each image of a list."""
        images = super()._images(X, reset=reset)
        return replace(images, batched=True) if isinstance(images, ImageList) else [images]

    def _set(self, images: Iterable[Any]) -> None:
        quantity_named(self.quantity)
        bounds = self.range
        if np.ndim(self.thresholds) == 0 and bounds is None:
            bounds = self._range_of(images)
        first: Any = next(iter(images))
        # The curve of a single point checks the thresholds and options.
        point = first[(slice(1),) * first.ndim]
        found = self._result(point, self.thresholds, bounds)
        self.thresholds_ = found.thresholds
        self.functionals_ = found._functionals

    def _range_of(self, images: Iterable[Any]) -> tuple[float, float]:
        """Return the smallest and the largest value of images, without masked points and NaN."""
        ends = []
        for i, image in enumerate(images):
            with image_noted(i, item_of(images, i)):
                ends.append(euler_curve(image, 2, axis=_spatial(image)).thresholds)
        return np.min(ends), np.max(ends)

    def _options(self) -> dict[str, Any]:
        return {**super()._options(), **options_of(self)}

    def _result(self, image: Any, *at: Any) -> CurveResult:
        thresholds, bounds = at
        compute = function_of(self.quantity)
        found: CurveResult = compute(
            image, thresholds, range=bounds, axis=_spatial(image), **self._options()
        )
        return found

    def _rows(self, found: CurveResult) -> NDArray[Any]:
        if found._functionals != self.functionals_:
            raise ValueError(
                "`X` must have images of as many axes as the first one in `fit`, "
                f"with the numbers {self.functionals_}, got {found._functionals}"
            )
        return found.values.reshape(-1, len(self._names()))

    def _names(self) -> list[str]:
        return names_of_features(self.functionals_, len(self.thresholds_))


def _spatial(batch: Any) -> tuple[int, ...]:
    """Return the axes of a batch of images that are spatial."""
    return tuple(range(1, batch.ndim))


class _TransformTransformer(ImageTransformer):
    """Euler characteristic transforms as features, in the order of directions, then heights."""

    _prefix = "ect"
    directions: int | ArrayLike
    heights: int | ArrayLike
    range: tuple[float, float] | None
    directions_: NDArray[np.float64]
    heights_: NDArray[np.float64]

    def _set(self, images: Iterable[Any]) -> None:
        bounds = self.range
        if bounds is None and np.ndim(self.heights) == 0 and not isinstance(images, np.ndarray):
            reach = max(found.heights[-1] for found in self._results(images, 1, 2, None))
            bounds = -reach, reach
        found = self._result(next(iter(images)), self.directions, self.heights, bounds)
        self.directions_ = found.directions
        self.heights_ = found.heights

    def _at(self) -> tuple[NDArray[Any], ...]:
        return self.directions_, self.heights_


class EulerTransformTransformer(_TransformTransformer):
    """Euler characteristic transforms (ECT) of shapes as features.

    Parameters
    ----------
    directions : int or (k, d) array, default 16
        As for :func:`ecc_core.euler_transform`.
    heights : int or (n,) array, default 32
        As for :func:`ecc_core.euler_transform`.
    threshold : float, default 0
        The shape consists of the points with values above it.
    range : (low, high), optional
        Only if `heights` is an int. Default: half the diagonal of the largest image, to either
        side.
    image_shape, channel, channel_axis, smooth
        As for :class:`EulerCurveTransformer`.
    connectivity, spacing, workers
        As for :func:`ecc_core.euler_transform`.

    Attributes
    ----------
    directions_ : (k, d) array
    heights_ : (n,) array
    image_shape_, n_features_in_, feature_names_in_
        As for :class:`EulerCurveTransformer`.

    Raises
    ------
    TypeError, ValueError
        For images that are not finite real numbers, images of another shape than in `fit`, a wrong
        `image_shape`, and as for :func:`ecc_core.euler_transform`.

    Examples
    --------
    >>> import numpy as np
    >>> from ecc_core.features import EulerTransformTransformer
    >>> images = np.zeros((2, 16, 16))
    >>> images[0, 4:9, 3:12] = images[1, 2:14, 2:14] = 1
    >>> EulerTransformTransformer(4, 8).fit_transform(images).shape
    (2, 32)
    """

    _passed = "connectivity", "spacing", "workers"

    def __init__(
        self,
        directions: int | ArrayLike = 16,
        heights: int | ArrayLike = 32,
        *,
        threshold: float = 0,
        range: tuple[float, float] | None = None,
        image_shape: tuple[int, ...] | None = None,
        channel: Channel = None,
        channel_axis: int | None = None,
        smooth: float | Sequence[float] | None = None,
        connectivity: int | None = None,
        spacing: ArrayLike | None = None,
        workers: int | None = None,
    ) -> None:
        self.directions = directions
        self.heights = heights
        self.threshold = threshold
        self.range = range
        self.image_shape = image_shape
        self.channel = channel
        self.channel_axis = channel_axis
        self.smooth = smooth
        self.connectivity = connectivity
        self.spacing = spacing
        self.workers = workers

    def _result(self, image: Any, *at: Any) -> Any:
        *sampling, bounds = at
        return euler_transform(image > self.threshold, *sampling, range=bounds, **self._options())


class RegionTransformsTransformer(_TransformTransformer):
    """Mean Euler characteristic transform of the objects of label images, as features.

    Every object is treated as if it stood alone. Images without objects have the features 0. The
    input are integers from 0, as the tags of the estimator say to scikit-learn.

    Parameters
    ----------
    directions, heights, range, normalize, connectivity, spacing, workers
        As for :func:`ecc_core.region_transforms`, with 16 directions, 32 heights and
        ``normalize="radius"`` by default.
    image_shape : tuple of int, optional
        As for :class:`EulerCurveTransformer`.

    Attributes
    ----------
    directions_ : (k, d) array
    heights_ : (n,) array
        By default -1 to 1 in units of each object's radius; otherwise those of the first image in
        `fit`, and in a list of images of the one with the largest object.
    image_shape_, n_features_in_, feature_names_in_
        As for :class:`EulerCurveTransformer`.

    Raises
    ------
    TypeError, ValueError
        For images of another shape than in `fit`, a wrong `image_shape`, and as for
        :func:`ecc_core.region_transforms`.

    Examples
    --------
    >>> import numpy as np
    >>> from ecc_core.features import RegionTransformsTransformer
    >>> labels = np.zeros((1, 16, 16), int)
    >>> labels[0, 1:5, 2:9], labels[0, 8:15, 4:6] = 1, 2
    >>> RegionTransformsTransformer(4, 8).fit_transform(labels).shape
    (1, 32)
    """

    _negative = False
    _colours = "pass label images without channels"
    _passed = "normalize", "connectivity", "spacing", "workers"

    def __init__(
        self,
        directions: int | ArrayLike = 16,
        heights: int | ArrayLike = 32,
        *,
        range: tuple[float, float] | None = None,
        normalize: Literal["radius"] | None = "radius",
        image_shape: tuple[int, ...] | None = None,
        connectivity: int | None = None,
        spacing: ArrayLike | None = None,
        workers: int | None = None,
    ) -> None:
        self.directions = directions
        self.heights = heights
        self.range = range
        self.normalize = normalize
        self.image_shape = image_shape
        self.connectivity = connectivity
        self.spacing = spacing
        self.workers = workers

    def _prepare(self, item: Any) -> NDArray[Any]:
        return read_labels(item) if is_path(item) else np.asarray(item)

    def _rows(self, found: Any) -> NDArray[Any]:
        mean: NDArray[Any] = found.values.sum(axis=0) / max(len(found.labels), 1)
        return mean.reshape(1, -1)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.categorical = True  # Labels are integers that stand for regions.
        return tags

    def _result(self, image: Any, *at: Any) -> Any:
        *sampling, bounds = at
        return region_transforms(image, *sampling, range=bounds, **self._options())

"""A scikit-learn transformer that computes curves."""

from __future__ import annotations

import math
from typing import Any, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted, validate_data

from ecc_core.curves import euler_curve

__all__ = ["EulerCurveTransformer"]


class EulerCurveTransformer(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Euler characteristic curves of images as features, with thresholds set by `fit`.

    Parameters
    ----------
    thresholds : int or (m,) array, default 64
        Number of thresholds, evenly spaced over `range`, or an increasing array of thresholds.
    range : (low, high), optional
        Only if `thresholds` is an int. Default: the smallest and largest value in `fit`.
    image_shape : tuple of int, optional
        Shape of the images if rows contain flattened images. Otherwise a row of a 2-D array is a
        1-D image (a signal).
    connectivity, superlevel, workers
        As for :func:`ecc_core.euler_curve`.

    Attributes
    ----------
    thresholds_ : (m,) array
        The thresholds.
    image_shape_ : tuple of int
        Shape of one image.
    n_features_in_ : int
        Length of the first axis of one image, or number of points of a flattened one.
    feature_names_in_ : array of str
        Names of the columns, if a data frame was given to `fit`.

    Raises
    ------
    TypeError, ValueError
        For images that are not finite real numbers, images of another shape than in `fit`, a wrong
        `image_shape`, and as for :func:`ecc_core.euler_curve`.

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
    """

    def __init__(
        self,
        thresholds: int | ArrayLike = 64,
        *,
        range: tuple[float, float] | None = None,
        image_shape: tuple[int, ...] | None = None,
        connectivity: int | None = None,
        superlevel: bool = False,
        workers: int | None = None,
    ) -> None:
        self.thresholds = thresholds
        self.range = range
        self.image_shape = image_shape
        self.connectivity = connectivity
        self.superlevel = superlevel
        self.workers = workers

    def fit(self, X: ArrayLike, y: Any = None) -> Self:
        """Set the thresholds.

        Parameters
        ----------
        X : (n, h), (n, h, w) or (n, h, w, d) array
            Images, or rows of flattened images.
        y : ignored

        Returns
        -------
        self
        """
        images = self._images(X, reset=True)
        shape = images.shape[1:]
        number = np.ndim(self.thresholds) == 0
        bounds = self.range
        if number and bounds is None:
            bounds = images.min(), images.max()
        # The curve of a single point checks the thresholds and options.
        point = images[:1, *(slice(1),) * len(shape)]
        curve = euler_curve(
            point,
            self.thresholds,
            range=bounds,
            connectivity=self.connectivity,
            superlevel=self.superlevel,
            axis=tuple(np.arange(1, images.ndim)),
            workers=self.workers,
        )
        self.thresholds_ = curve.thresholds
        self.image_shape_ = shape
        return self

    def transform(self, X: ArrayLike) -> NDArray[np.int64]:
        """Compute the curves.

        Parameters
        ----------
        X : array
            Images of the same shape as in `fit`.

        Returns
        -------
        (n, m) int64 array
        """
        check_is_fitted(self)
        images = self._images(X, reset=False)
        if images.shape[1:] != self.image_shape_:
            raise ValueError(
                f"`X` must have images of shape {self.image_shape_}, as in `fit`, "
                f"got {images.shape[1:]}"
            )
        return euler_curve(
            images,
            self.thresholds_,
            connectivity=self.connectivity,
            superlevel=self.superlevel,
            axis=tuple(np.arange(1, images.ndim)),
            workers=self.workers,
        ).values

    def get_feature_names_out(self, input_features: ArrayLike | None = None) -> NDArray[np.object_]:
        """Names of the features: ``ecc0``, ``ecc1``, ..., one per threshold.

        Parameters
        ----------
        input_features : ignored

        Returns
        -------
        (m,) array of str
        """
        check_is_fitted(self)
        return np.array([f"ecc{i}" for i in np.arange(len(self.thresholds_))], dtype=object)

    def _images(self, X: ArrayLike, *, reset: bool) -> NDArray[Any]:
        array: NDArray[Any] = validate_data(self, X, reset=reset, allow_nd=True, dtype="numeric")
        if self.image_shape is None:
            return array
        shape = tuple(self.image_shape)
        if array.ndim != 2 or math.prod(shape) != array.shape[1]:
            raise ValueError(
                f"`image_shape` must fit the rows of `X`, got {shape} for shape {array.shape}"
            )
        return array.reshape(-1, *shape)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        tags.transformer_tags.preserves_dtype = []  # curves are integers
        return tags

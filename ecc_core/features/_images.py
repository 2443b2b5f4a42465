"""The base of transformers, and the images that they take: arrays, lists of them, and files."""

import math
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from typing import Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray
from sklearn.base import BaseEstimator, TransformerMixin
from sklearn.utils import Tags
from sklearn.utils.validation import check_is_fitted, validate_data

from ecc_core._io.open import open_image
from ecc_core._io.select import choose


@dataclass(frozen=True)
class ImageList:
    """Arrays, or paths of files, which are read each time."""

    items: list[Any]
    shape: tuple[int, ...] | None = None  # that of all images, if they must have one
    batched: bool = False  # whether each image is a batch of one

    def __iter__(self) -> Iterator[NDArray[Any]]:
        for i, item in enumerate(self.items):
            with _image_noted(i):
                array = choose(open_image(item)).read_all() if is_path(item) else np.asarray(item)
                _check_shape(array.shape, self.shape)
            yield array[None] if self.batched else array


class ImageTransformer(TransformerMixin, BaseEstimator):  # type: ignore[misc]
    """Features of images, or of rows of flattened images.

    A transformer says what it computes of an image, where, and which features these are.
    """

    _prefix: ClassVar[str]  # how the names of features begin
    _negative: ClassVar[bool] = True  # whether images can have negative values
    _passed: ClassVar[tuple[str, ...]]  # parameters that the function of an image takes as they are
    image_shape: tuple[int, ...] | None
    image_shape_: tuple[int, ...] | None
    thresholds_: NDArray[Any]

    def _set(self, images: Iterable[Any]) -> None:
        """Set what features are computed at: thresholds, or directions and heights."""
        raise NotImplementedError

    def _at(self) -> tuple[NDArray[Any], ...]:
        """Return the same."""
        return (self.thresholds_,)

    def _result(self, image: Any, *at: Any) -> Any:
        """Return the curves or the transform of an image; `at` ends with a range."""
        raise NotImplementedError

    def _options(self) -> dict[str, Any]:
        return {name: getattr(self, name) for name in self._passed}

    def _rows(self, found: Any) -> NDArray[Any]:
        """Return the features of a result, (1, m)."""
        return found.values.reshape(1, -1)

    def fit(self, X: Any, y: Any = None) -> Self:
        """Set what features are computed at: thresholds, or directions and heights.

        Parameters
        ----------
        X : (n, h), (n, h, w) or (n, h, w, d) array, or list
            Images, or rows of flattened images. In a list, images may have different shapes, or be
            paths of files, which are read one at a time by each method. A column of a data frame
            may hold such paths.
        y : ignored

        Returns
        -------
        self
        """
        self._set(self._images(X, reset=True))
        return self

    def transform(self, X: Any) -> NDArray[Any]:
        """Compute the features.

        Parameters
        ----------
        X : array or list
            As for `fit`. In an array, images must have the same shape as in `fit`.

        Returns
        -------
        (n, m) array
            int64, or float64 for means over regions, and where missing regions are NaN.
        """
        check_is_fitted(self)
        found = self._results(self._images(X, reset=False), *self._at(), None)
        return np.concatenate([self._rows(one) for one in found])

    def _results(self, images: Iterable[Any], *at: Any) -> Iterator[Any]:
        """Yield the result of each image."""
        for i, image in enumerate(images):
            with _image_noted(i):
                found = self._result(image, *at)
            yield found

    def _images(self, X: Any, *, reset: bool) -> Iterable[Any]:
        listed = _as_list(X)
        if listed is not None:
            if self.image_shape is not None:
                raise ValueError(
                    f"`image_shape` must be None for a list of images, got {self.image_shape}"
                )
            if reset:
                self.image_shape_ = None
                self.__dict__.pop("n_features_in_", None)  # of an earlier `fit`
                self.__dict__.pop("feature_names_in_", None)
            return replace(listed, shape=self.image_shape_)
        array: NDArray[Any] = validate_data(
            self,
            X,
            reset=reset,
            allow_nd=True,
            dtype="numeric",
            ensure_non_negative=not self._negative,
        )
        if self.image_shape is not None:
            shape = tuple(self.image_shape)
            if array.ndim != 2 or math.prod(shape) != array.shape[1]:
                raise ValueError(
                    f"`image_shape` must fit the rows of `X`, got {shape} for shape {array.shape}"
                )
            array = array.reshape(-1, *shape)
        if reset:
            self.image_shape_ = array.shape[1:]
        else:
            _check_shape(array.shape[1:], self.image_shape_)
        return array

    def _names(self) -> list[str]:
        return [f"{self._prefix}{i}" for i in range(math.prod(map(len, self._at())))]

    def get_feature_names_out(self, input_features: ArrayLike | None = None) -> NDArray[np.object_]:
        """Names of the features: a prefix and a number.

        Parameters
        ----------
        input_features : ignored

        Returns
        -------
        (m,) array of str
            Such as ``ecc0``, ``ecc1``, ... for curves, ``region7_ecc0``, ... for the curves of
            regions, and ``ect0``, ``ect1``, ... for transforms.
        """
        check_is_fitted(self)
        return np.array(self._names(), dtype=object)

    def __sklearn_tags__(self) -> Tags:
        tags = super().__sklearn_tags__()
        tags.input_tags.three_d_array = True
        tags.input_tags.positive_only = not self._negative
        tags.transformer_tags.preserves_dtype = []  # features have a dtype of their own
        return tags


def _as_list(X: Any) -> ImageList | None:
    """Return images that are paths or have different shapes; None for anything else."""
    rows = X.to_numpy() if hasattr(X, "to_numpy") else X
    if isinstance(rows, np.ndarray) and rows.dtype.kind in "OU":
        rows = rows.ravel().tolist() if rows.ndim == 1 or rows.shape[1] == 1 else rows
    if not isinstance(rows, list | tuple) or not rows:
        return None
    if all(map(is_path, rows)):
        return ImageList([*rows])
    shapes = {getattr(row, "shape", None) for row in rows}
    return ImageList([*rows]) if len(shapes) > 1 and None not in shapes else None


def _check_shape(shape: tuple[int, ...], expected: tuple[int, ...] | None) -> None:
    """Refuse an image of another shape than all images in `fit`."""
    if expected is not None and shape != expected:
        raise ValueError(f"`X` must have images of shape {expected}, as in `fit`, got {shape}")


def is_path(part: Any) -> bool:
    return isinstance(part, str | os.PathLike)


@contextmanager
def _image_noted(i: int) -> Iterator[None]:
    """Add a note to errors that says which image they are of."""
    try:
        yield
    except (TypeError, ValueError) as error:
        error.add_note(f"in image {i} of `X`")
        raise

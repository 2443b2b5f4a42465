"""The base classes of quantities: all that other modules need to know of one."""

from abc import ABC, abstractmethod
from argparse import Namespace
from collections.abc import Sequence, Set
from dataclasses import dataclass
from typing import Any, ClassVar, Generic, Literal, NamedTuple, TypeVar

import numpy as np

from ecc_core._arrays.request import Request
from ecc_core._blocks.boxes import BoxValues
from ecc_core._blocks.planes import Array
from ecc_core._request.boundary import COUNTS, Domain
from ecc_core._request.filtration import Filtration
from ecc_core.quantities.windows import WindowMeasures
from ecc_core.results import curve_facts

EULER_NUMBER = "euler_number"
"""The column of the Euler characteristic."""

OwnT = TypeVar("OwnT")


class Function(NamedTuple):
    """A public function and where it computes, for the table in the README."""

    name: str
    lazy: bool = False  # Whether it takes dask arrays, and computes them block by block.
    lazy_limit: str = ""  # What it computes of dask arrays, if not everything.
    device: str = "yes"  # On CUDA devices: "yes", "yes, ..." with a limit, or "no".
    plain: bool = False  # Whether it computes slowly on devices without kernels.


@dataclass(frozen=True)
class Joins:
    """The way in which the values of an image are computed from those of its boxes."""

    how: Literal["add", "glue", "not"]
    """"add" if values add up, after cells that lie in several boxes are subtracted; "glue" if boxes
    are reduced to pieces that are glued where they touch; "not" if boxes cannot be joined."""
    reason: str = ""
    """The reason for "not", for the messages of commands."""
    boundaries: Domain = COUNTS
    """The boundaries for which boxes can be joined."""
    regions: bool = True
    """Whether the values of regions that extend over several boxes are joined, too."""


class Quantity:
    """The base of all quantities."""

    name: ClassVar[str]
    """One word, which is also the name of options and fields."""
    position: ClassVar[int] = 100
    """A number that orders options, columns and rows of quantities, lowest first."""
    boundaries: ClassVar[Domain] = COUNTS
    joins: ClassVar[Joins]
    result: ClassVar[Any]
    """The type of the result for an image."""
    functions: ClassVar[tuple[Function, ...]]

    @property
    def results(self) -> tuple[Any, ...]:
        """The types of all results."""
        return (self.result,)


class NoOptions(NamedTuple):
    """The options of a quantity that has none of its own."""


class Option(NamedTuple):
    """The option of the commands that adds a quantity. It has the name of the quantity."""

    help: str
    choices: tuple[str, ...] = ()
    """The values that the option takes. If there are none, it is a flag."""
    usual: str = ""
    """The value of the option if it is given without one."""
    note: str = ""
    """A note that commands print if the option is given without a value."""
    column: str = ""
    """The column of tables that has the value of the option."""


class CurveQuantity(Quantity, ABC, Generic[OwnT]):
    """A quantity of the sets of an image at many thresholds: a curve, or several of them.

    `OwnT` is the type of its own options, besides :class:`ecc_core._request.options.ImageOptions`.
    """

    # Names.
    title: ClassVar[str]
    about: ClassVar[str] = ""
    """A list of its curves in words, for commands and docks."""
    columns: ClassVar[tuple[str, ...]]
    """Names of the curves in tables."""
    with_euler: ClassVar[bool] = True
    """Whether the Euler characteristic comes with it."""

    # Public functions.
    of_image: ClassVar[str]
    """The name of the function of images."""
    of_regions: ClassVar[str] = ""
    """The name of the function of regions, "" if there is none."""
    region_result: ClassVar[Any] = None
    has_lengths: ClassVar[bool] = False
    """Whether functions take `spacing`."""
    exact: ClassVar[bool] = False
    """Whether thresholds may be "exact"."""

    # Commands.
    option: ClassVar[Option | None] = None
    own_options: ClassVar[tuple[str, ...]] = ()
    """Other options of the commands, which have no effect without the quantity."""
    point_bytes: ClassVar[int] = 0
    """Bytes of memory for each point of a block, in addition to several copies of the block."""
    no_density: ClassVar[str] = ""
    """The reason why its values are not divided by the size of the image, "" if they are."""

    @property
    def results(self) -> tuple[Any, ...]:
        if self.region_result is None:
            return (self.result,)
        return (self.result, self.region_result)

    @abstractmethod
    def boxes(
        self,
        at: Array,
        filtration: Filtration,
        own: OwnT,
        *,
        dtype: np.dtype[Any] | None = None,
        masked: bool = False,
        workers: int | None = 1,
    ) -> BoxValues:
        """Return the computation for the boxes of an image.

        If boxes are glued, these are `BoxPieces` of :mod:`ecc_core._blocks.glued`. Only they need
        the dtype of the image, and whether the image has a mask.
        """

    @abstractmethod
    def own_of(self, arguments: Namespace, spacing: Any) -> OwnT:
        """Return the quantity's own options from the arguments of a command."""

    def facts(self, filtration: Filtration, own: OwnT) -> dict[str, Any]:
        """Return the fields of results that record how they were computed."""
        return curve_facts(filtration)

    def window_size(self, shape: tuple[int, ...], filtration: Filtration, own: OwnT) -> float:
        """Return the length, area or volume of an image, by which densities are divided."""
        raise NotImplementedError

    def window_boxes(self, at: Array, filtration: Filtration, own: OwnT) -> WindowMeasures | None:
        """Return what is measured of windows of an image besides the Euler characteristic."""
        return None

    def of_windowed_regions(
        self, request: Request, at: Array, own: OwnT
    ) -> tuple[Array, Array, dict[str, Any]]:
        """Return ids and values of regions that are windows of an image, and more fields."""
        raise NotImplementedError

    def columns_among(self, columns: Set[str]) -> tuple[str, ...]:
        """Return the columns of the quantity in a table, () if any before the last are missing."""
        own = tuple(name for name in self.columns if name in columns)
        is_complete = own == self.columns[: len(own)]
        return own if is_complete else ()

    def ndim_of(self, columns: Sequence[str]) -> int | None:
        """Return the number of axes of an image whose curves have these columns.

        None if images with any number of axes have the same columns.
        """
        return None

"""What a quantity is: all that memory, blocks, commands, tables and docks need to know of it."""

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
    """A public function, and where it computes; the table in the README says so."""

    name: str
    lazy: bool = False  # whether it takes dask arrays, and computes them block by block
    lazy_limit: str = ""  # what of them it computes
    device: str = "yes"  # on CUDA devices: "yes", "yes, ..." with a limit, or "no"
    plain: bool = False  # whether it computes slowly on devices without kernels


@dataclass(frozen=True)
class Joins:
    """How the numbers of the boxes of an image give those of the image."""

    how: Literal["add", "glue", "not"]
    """They add up, once what lies in several boxes is taken off; or boxes are reduced to pieces,
    which are glued where they touch; or neither."""
    reason: str = ""
    """Why neither, which commands say of an image that is not in memory."""
    boundaries: Domain = COUNTS
    """Where boxes can be joined."""
    regions: bool = True
    """Whether those of regions, which can extend over several boxes, are joined, too."""


class Quantity:
    """What all quantities say: where they are defined, and how boxes are joined."""

    name: ClassVar[str]
    """One word, which is also that of options and fields."""
    position: ClassVar[int] = 100
    """Where its options, columns and rows stand among those of others: least numbers come first."""
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
    """The option of the commands that adds a quantity, which is called as the quantity is."""

    help: str
    choices: tuple[str, ...] = ()
    """The values that it takes; without any it takes none."""
    usual: str = ""
    """The value that it has where it is given without one."""
    note: str = ""
    """What the commands say then."""
    column: str = ""
    """The column of tables that has the value."""


class CurveQuantity(Quantity, ABC, Generic[OwnT]):
    """A quantity of the sets of an image at many thresholds: a curve, or several of them.

    `OwnT` is the type of its own options, besides :class:`ecc_core._request.options.ImageOptions`.
    """

    # what it is called
    title: ClassVar[str]
    about: ClassVar[str] = ""
    """What it consists of, for commands and docks."""
    columns: ClassVar[tuple[str, ...]]
    """Names of the curves in tables."""
    with_euler: ClassVar[bool] = True
    """Whether the Euler characteristic comes with it."""

    # the public functions
    of_image: ClassVar[str]
    of_regions: ClassVar[str] = ""
    """"" if there is none."""
    region_result: ClassVar[Any] = None
    has_lengths: ClassVar[bool] = False
    """Whether functions take `spacing`."""
    exact: ClassVar[bool] = False
    """Whether thresholds may be "exact"."""

    # the commands
    option: ClassVar[Option | None] = None
    own_options: ClassVar[tuple[str, ...]] = ()
    """Other options of the commands, which have no effect without it."""
    point_bytes: ClassVar[int] = 0
    """What it takes for each point of a block, besides several copies of it."""
    no_density: ClassVar[str] = ""
    """Why it has no density, which divides by the size of the image; "" if it has."""

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
        """Return what is computed of the boxes of an image.

        These are `BoxPieces` of :mod:`ecc_core._blocks.glued` if boxes are glued. Only they need to
        know the dtype of the image, and whether some of its points are masked.
        """

    @abstractmethod
    def own_of(self, arguments: Namespace, spacing: Any) -> OwnT:
        """Return the options for the arguments of a command."""

    def facts(self, filtration: Filtration, own: OwnT) -> dict[str, Any]:
        """Return what results say of how they were computed."""
        return curve_facts(filtration)

    def window_size(self, shape: tuple[int, ...], filtration: Filtration, own: OwnT) -> float:
        """Return the length, area or volume of an image as a window, by which densities divide."""
        raise NotImplementedError

    def window_boxes(self, at: Array, filtration: Filtration, own: OwnT) -> WindowMeasures | None:
        """Return what is counted in windows of an image, besides the Euler characteristic."""
        return None

    def of_windowed_regions(
        self, request: Request, at: Array, own: OwnT
    ) -> tuple[Array, Array, dict[str, Any]]:
        """Return ids, values, and more facts of regions that are windows of an image in memory."""
        raise NotImplementedError

    def columns_among(self, columns: Set[str]) -> tuple[str, ...]:
        """Return the columns of a table that hold one image's curves; () if some are missing."""
        own = tuple(name for name in self.columns if name in columns)
        complete = own == self.columns[: len(own)]
        return own if complete else ()

    def ndim_of(self, columns: Sequence[str]) -> int | None:
        """Return the number of axes of an image whose curves have these columns; None if any."""
        return None

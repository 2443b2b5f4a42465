"""What is known of boxes of an image of which pairs of birth and death are listed."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import Any, NamedTuple, Self

import numpy as np
from numpy.typing import NDArray

from ecc_core._backends.components import Kind, kind_of
from ecc_core._backends.cpu.betti.launch import order_plan
from ecc_core._backends.cpu.betti.pair_joins import Face
from ecc_core._backends.cpu.encoders.order import unsigned, values_of
from ecc_core._backends.cpu.encoders.plans import Plan
from ecc_core._backends.pair_options import PairOptions, Pairs, Places
from ecc_core._request.persistence import lasting

Array = NDArray[Any]
Side = tuple[int, int]
"""Axis, and 0 for the low or 1 for the high side."""

FRAME = -1
"""The place of the frame around the image."""


class Events(NamedTuple):
    """Points at which components begin or end."""

    values: Array
    enters: NDArray[np.bool_]
    """Whether each point enters."""
    places: Places
    """The places of points in the image, in C order."""


class Box(NamedTuple):
    """A box of an image with three axes, in whose coordinates pieces are joined."""

    start: tuple[int, ...]
    shape: tuple[int, ...]
    whole: tuple[int, ...]
    """The shape of the image."""

    @property
    def steps(self) -> tuple[int, ...]:
        """Distances of neighbouring points along each axis of the image, in places."""
        _, rows, columns = self.whole
        return (rows * columns, columns, 1)

    def in_image(self, places: Array) -> Places:
        """Convert places in the box to those in the image; the frame keeps its own."""
        index = np.unravel_index(np.maximum(places, 0), self.shape)
        moved = (along + first for along, first in zip(index, self.start, strict=True))
        found = sum(along * step for along, step in zip(moved, self.steps, strict=True))
        return np.where(places < 0, FRAME, found).astype(np.int64)

    def first(self, side: Side) -> int:
        """Return the place of the first point on a side."""
        axis, high = side
        point = list(self.start)
        if high:
            point[axis] += self.shape[axis] - 1
        return sum(along * step for along, step in zip(point, self.steps, strict=True))

    def flipped(self) -> Box:
        ends = zip(self.start, self.shape, self.whole, strict=True)
        start = tuple(whole - first - length for first, length, whole in ends)
        return Box(start, self.shape, self.whole)


class Graph(NamedTuple):
    """The part of a forest that is not final."""

    births: Array
    """Keys at which the k nodes begin, uint64. Of the complement, node 0 is the frame."""
    places: Places
    """The points at which they begin."""
    edges: Array
    """Pairs of nodes, (m, 2) int32."""
    keys: Array
    """The keys at which these are joined, (m,) uint64."""
    edge_places: Places
    """The points with which edges enter, (m,)."""
    faces: dict[Side, Array]
    """For each open side the nodes of its points, int32."""


class PairPiece(NamedTuple):
    """The pairs within a box, and what is needed to join it with others."""

    box: Box
    faces: dict[Side, Array]
    """For each open side the keys of its points, in the order in which they enter."""
    graph: Graph
    pairs: Pairs
    """The pairs that are final and last long enough."""


@dataclass(frozen=True)
class Pairing(PairOptions):
    """How boxes are joined: the order in which points enter, and what lies around the image."""

    @classmethod
    def of(cls, options: PairOptions) -> Self:
        return cls(*(getattr(options, field.name) for field in fields(options)))

    @cached_property
    def kind(self) -> Kind:
        return kind_of(self.filtration, complement=self.dimension > 0)

    @cached_property
    def plan(self) -> Plan:
        return order_plan(self.dtype, self.filtration, self.masked)

    @cached_property
    def wraps(self) -> tuple[bool, ...]:
        """Along which of three axes the image is periodic."""
        lead = 3 - self.filtration.ndim
        return (False,) * lead + self.filtration.boundary.wraps

    @property
    def has_layer(self) -> bool:
        """Whether sides of the complement stay open along axes that are not periodic."""
        return self.kind.complement and any(self.wraps)

    def stays_open(self, axis: int) -> bool:
        """Whether both sides of the image are open along an axis, until the end."""
        return self.wraps[axis] or (self.has_layer and axis >= 3 - self.filtration.ndim)

    def open_sides(self, box: Box) -> list[Side]:
        """Return the sides beyond which the image continues."""
        sides = []
        for axis in range(3):
            if self.stays_open(axis) or box.start[axis] > 0:
                sides.append((axis, 0))
            if self.stays_open(axis) or box.start[axis] + box.shape[axis] < box.whole[axis]:
                sides.append((axis, 1))
        return sides

    def ordered(self, keys: Array) -> Array:
        """Convert keys to the order in which points enter, or back."""
        return keys.dtype.type(self.plan.top) - keys if self.kind.complement else keys

    def events(self, keys: Array, places: Places, whole: Sequence[int]) -> Events:
        """Return what is known of points by their keys, in the order in which they enter."""
        keys = self.ordered(keys.astype(self.plan.key_dtype))
        enters = np.ones(keys.size, np.bool_)
        if self.masked or self.dtype.kind == "f":
            enters = keys != self.plan.never
        bits = keys.astype(unsigned(self.dtype))
        if self.filtration.superlevel:
            bits = ~bits
        if self.kind.complement:
            places = math.prod(whole) - 1 - places
        return Events(values_of(bits, self.dtype), enters, places)

    def listed(self, begins: Events, ends: Events | None = None) -> Pairs:
        """Return the pairs of components that begin and end; without ends, of essential classes."""
        if ends is None:
            never = np.zeros(begins.places.size, np.bool_)
            ends = Events(begins.values, never, begins.places)
        elif self.kind.complement:
            begins, ends = ends, begins
        lasts = begins.values != ends.values
        if self.least > 0:
            lasts &= lasting(begins.values, ends.values, self.least)
        kept = begins.enters & (lasts | self.short | ~ends.enters)
        deaths = np.where(ends.enters, ends.places, -1)
        return Pairs(begins.values[kept], ends.values[kept], begins.places[kept], deaths[kept])


def together(parts: Sequence[Pairs]) -> Pairs:
    return Pairs(*map(np.concatenate, zip(*parts, strict=True)))


def face_of(nodes: dict[Side, Array], piece: PairPiece, side: Side) -> Face:
    """Return the points of a side, whose nodes are given."""
    return Face(
        nodes=nodes[side],
        keys=piece.faces[side].astype(np.uint64),
        first=piece.box.first(side),
    )


def layout_of(
    box: Box, axis: int, wraps: Sequence[bool]
) -> tuple[tuple[int, ...], tuple[bool, ...]]:
    """Return the steps along both axes of a face, and along which of them opposite sides touch."""
    along = [other for other in range(3) if other != axis]
    return tuple(box.steps[i] for i in along), tuple(bool(wraps[i]) for i in along)

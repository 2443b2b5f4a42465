"""Orthants of directions: which neighbours a point's cells span to, for the kernels.

Images of fewer than three axes have one slice, or one slice and one row, and `axes` is 0 there.
See :mod:`ecc_core._orthants`.
"""

from __future__ import annotations

from typing import Any

from ecc_core._backends.cpu.compiling import subroutine


@subroutine(error_model="numpy")
def orthant_signs(orthant: Any) -> Any:
    """Signs of the directions along (slices, rows, columns)."""
    return 1 - ((orthant >> 1) & 2), 1 - (orthant & 2), 1 - ((orthant << 1) & 2)


@subroutine(error_model="numpy")
def orthant_frame(orthant: Any, axes: Any, cubes: Any) -> Any:
    """Steps to the neighbours that cells span to, and the padded index of the first position.

    `cubes` is 1 for the T-construction, whose steps are those on the complement.
    """
    signs = orthant_signs(orthant)
    toward = 2 * cubes - 1
    steps = (toward * signs[0] * axes[0], toward * signs[1] * axes[1], toward * signs[2] * axes[2])
    # The cube that stands for a corner lies before it along s, the first one in the padding.
    shifts = (
        axes[0] * (1 - cubes * (signs[0] > 0)),
        axes[1] * (1 - cubes * (signs[1] > 0)),
        axes[2] * (1 - cubes * (signs[2] > 0)),
    )
    return steps, shifts

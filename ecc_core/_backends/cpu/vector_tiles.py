"""Square tiles of an image, copied with their axes swapped."""

from __future__ import annotations

from typing import Any

from llvmlite import ir

from ecc_core._backends.cpu import llvm

TILE = 16  # elements along each side; a power of two

_I32 = ir.IntType(32)


def _transposed(builder: Any, rows: list[Any]) -> list[Any]:
    """Swap the off-diagonal quarters of the tile, then those of its quarters, and so on."""
    rows = list(rows)
    size = TILE // 2
    while size:
        upper = [k if not k & size else TILE + k - size for k in range(TILE)]
        lower = [k + size if not k & size else TILE + k for k in range(TILE)]
        for i in range(TILE):
            if not i & size:
                pair = rows[i], rows[i + size]
                for at, picked in ((i, upper), (i + size, lower)):
                    places = ir.Constant(ir.VectorType(_I32, TILE), picked)
                    rows[at] = builder.shuffle_vector(*pair, places)
        size //= 2
    return rows


@llvm.operation()
def transpose_tile(builder: Any, address: Any, step: Any, out: Any, at: Any, out_step: Any) -> None:
    """Copy 16 by 16 elements: ``out[at + i * out_step + j]`` becomes element i of row j.

    Row j lies in memory at ``address + j * step``, in bytes, and has the dtype of `out`.
    """
    vector = ir.VectorType(out.element, TILE).as_pointer()
    rows = []
    for j in range(TILE):
        here = builder.add(address, builder.mul(step, llvm.I64(j)))
        rows.append(builder.load(builder.inttoptr(here, vector), align=out.element.width // 8))
    for i, row in enumerate(_transposed(builder, rows)):
        out.store(row, builder.add(at, builder.mul(out_step, llvm.I64(i))))

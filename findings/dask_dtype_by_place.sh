#!/usr/bin/env bash
# dask.array.zeros, ones and empty take a dtype as second argument, where NumPy has it, and ignore it without a word: masks
# and labels that are made in this way are float64, and take two to eight times the memory.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3.11 -m venv "$folder/env"
"$folder/env/bin/pip" install --quiet "dask[array]==2026.8.0" "numpy==2.4.6"
"$folder/env/bin/python" - <<'PYTHON'
from importlib.metadata import version

import dask.array as da
import numpy as np

print({name: version(name) for name in ("dask", "numpy")})
for name in ("zeros", "ones", "empty"):
    by_place = getattr(da, name)((4, 4), np.int32, chunks=2)
    by_name = getattr(da, name)((4, 4), dtype=np.int32, chunks=2)
    of_numpy = getattr(np, name)((4, 4), np.int32)
    found = {"dask by place": by_place, "dask by name": by_name, "NumPy by place": of_numpy}
    print(name, {kind: str(array.dtype) for kind, array in found.items()})
    assert by_place.dtype == by_place.compute().dtype == np.float64
    assert by_name.dtype == by_name.compute().dtype == of_numpy.dtype == np.int32
PYTHON

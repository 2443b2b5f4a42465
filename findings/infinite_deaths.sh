#!/usr/bin/env bash
# Distances of diagrams with classes that never die: GUDHI matches them, persim leaves them out, and
# POT calls the problem infeasible and returns 0.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3.11 -m venv "$folder/env"
"$folder/env/bin/pip" install --quiet "gudhi==3.13.0" "persim==0.4.1" "POT==0.9.7.post1" "numpy==2.4.6"
"$folder/env/bin/python" - <<'PYTHON'
import warnings
from importlib.metadata import version

import gudhi
import numpy as np
import ot
import persim

print({name: version(name) for name in ("gudhi", "persim", "POT", "numpy")})
first, second = np.array([[0.0, np.inf], [1.0, 2.0]]), np.array([[3.0, np.inf]])
with warnings.catch_warnings(record=True) as seen:
    warnings.simplefilter("always")
    found = gudhi.bottleneck_distance(first, second), persim.bottleneck(first, second)
print("bottleneck distance of GUDHI, persim:", found)
print("warnings:", {str(one.message) for one in seen})
assert found == (3.0, 0.5)
assert any("non-finite death" in str(one.message) for one in seen)

second = np.array([[3.0, np.inf], [1.0, 2.0]])
with warnings.catch_warnings(record=True) as seen:
    warnings.simplefilter("always")
    cost = np.abs(first[:, None] - second[None]).max(axis=-1)
    total = ot.emd2([0.5, 0.5], [0.5, 0.5], cost)
print("cost:", cost.tolist(), "emd2:", total)
print("warnings:", {str(one.message) for one in seen})
assert np.isnan(cost[0, 0])
assert total == 0
assert any("infeasible" in str(one.message) for one in seen)
PYTHON

#!/usr/bin/env bash
# QuantImPy divides Minkowski functionals by constants, estimates them, and counts the last row and
# column for less. The version that pip installs on Python 3.11 does not import with NumPy 2.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3.11 -m venv "$folder/env"
"$folder/env/bin/pip" install --quiet "quantimpy==0.2.6" "numpy==2.4.6"
if "$folder/env/bin/python" -c "import quantimpy.minkowski" 2> "$folder/errors"; then
    echo "quantimpy 0.2.6 imports with NumPy 2.4.6: this has changed" && exit 1
fi
echo "with NumPy 2.4.6: $(tail -n 1 "$folder/errors")"
"$folder/env/bin/pip" install --quiet "numpy==1.26.4"
"$folder/env/bin/python" - <<'PYTHON'
from importlib.metadata import version

import numpy as np
from quantimpy.minkowski import functionals

print("quantimpy", version("quantimpy"), "with NumPy", version("numpy"))
square = np.pad(np.ones((8, 8), bool), 2)
area, perimeter, euler = functionals(square)
print("square of side 8:", area, perimeter, euler)
assert area == 64
assert abs(perimeter * 2 * np.pi - 32) > 2  # an estimate, which rounds the corners off
assert np.isclose(euler * np.pi, 1)

y, x = np.mgrid[-40:41, -40:41]
_, perimeter, _ = functionals(y**2 + x**2 <= 30**2)
print("disk of radius 30:", perimeter)
assert np.isclose(perimeter * 2 * np.pi, 2 * np.pi * 30, rtol=0.01)

z, y, x = np.mgrid[-20:21, -20:21, -20:21]
volume, surface, breadth, euler = functionals(z**2 + y**2 + x**2 <= 15**2)
print("ball of radius 15:", volume, surface, breadth, euler)
assert volume == 14147
assert np.isclose(surface * 8, 4 * np.pi * 15**2, rtol=0.01)
assert np.isclose(breadth * np.pi, 2 * 15, rtol=0.02)
assert np.isclose(euler * 4 * np.pi / 3, 1)

full = functionals(np.ones((6, 6), bool))
print("image of 6 x 6 that is full:", full)
assert full == (25, 0, 0)
diagonal = np.pad(np.eye(2, dtype=bool), 2)
print("two points that touch at a corner:", functionals(diagonal)[2] * np.pi)
assert np.isclose(functionals(diagonal)[2] * np.pi, 2)
noise = np.pad(np.random.default_rng(0).random((12, 12, 12)) < 0.4, 2)
number = functionals(noise)[3] * 4 * np.pi / 3
print("Euler number of noise in 3-D:", number)  # no integer
assert not np.isclose(number, round(number))
PYTHON

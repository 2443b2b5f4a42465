#!/usr/bin/env bash
# numpy.linspace between numbers whose distance is subnormal leaves the interval: the step is rounded to a multiple of
# the smallest number and then multiplied, so that the numbers run past the last one, which is set at the end. They are
# not sorted, as bins and thresholds must be; numpy.histogram refuses such an array and so counts nothing.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3.11 -m venv "$folder/env"
"$folder/env/bin/pip" install --quiet "numpy==2.4.6"
"$folder/env/bin/python" - <<'PYTHON'
import numpy as np

print("numpy", np.__version__)
tiny = np.finfo(np.float64).smallest_subnormal
for last in (199, 255, 400):
    levels = np.linspace(0, last * tiny, 256) / tiny
    expected = np.linspace(0, last, 256)
    print(f"256 numbers from 0 to {last} times the smallest: the last two are {levels[-2:].tolist()}")
    furthest = np.abs(levels - expected).max()
    print(f"    sorted: {bool((np.diff(levels) >= 0).all())}, furthest from where it should be: {furthest:.1f}")
    assert (furthest > 1) == (last != 255)

edges = np.linspace(0, 199 * tiny, 256)
try:
    np.histogram([0.0, 100 * tiny], edges)
except ValueError as error:
    print("numpy.histogram with these edges -", error)
else:
    raise AssertionError("the edges are increasing")
PYTHON

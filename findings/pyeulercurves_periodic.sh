#!/usr/bin/env bash
# pyEulerCurves takes periodic_boundary as True or as a tuple without a word and ignores it: a
# constant image on a torus has the Euler characteristic 0, and it says 1. A list is a TypeError.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3.11 -m venv "$folder/env"
"$folder/env/bin/pip" install --quiet "pyEulerCurves==0.5.post0"
"$folder/env/bin/python" - <<'PYTHON'
from importlib.metadata import version

import numpy as np
from pyEulerCurves import ECC_from_bitmap

image = np.zeros((3, 4))
found = {}
for boundary in (False, True, (True, True)):
    found[boundary] = ECC_from_bitmap(periodic_boundary=boundary, workers=1).fit_transform(image)
try:
    ECC_from_bitmap(periodic_boundary=[True, True], workers=1).fit_transform(image)
    refused = False
except TypeError as error:
    refused = str(error)
print("pyEulerCurves", version("pyEulerCurves"), found, "a list:", refused)
assert all(curve == [[0.0, 1]] for curve in found.values())
assert refused
PYTHON

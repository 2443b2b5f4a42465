#!/usr/bin/env bash
# mahotas.euler does not count corners at the border: an image full of True has the number 0.25.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3.11 -m venv "$folder/env"
"$folder/env/bin/pip" install --quiet "mahotas==1.4.19" "numpy==2.4.6"
"$folder/env/bin/python" - <<'PYTHON'
import mahotas
import numpy as np

full = np.ones((6, 6), bool)
print("mahotas", mahotas.__version__)
print("full image:", mahotas.euler(full), "with a margin:", mahotas.euler(np.pad(full, 1)))
assert mahotas.euler(full) == 0.25
assert mahotas.euler(np.pad(full, 1)) == 1
diagonal = np.pad(np.eye(2, dtype=bool), 1)
print("two points that touch at a corner:", mahotas.euler(diagonal), mahotas.euler(diagonal, 4))
assert (mahotas.euler(diagonal), mahotas.euler(diagonal, 4)) == (1, 2)
PYTHON

#!/usr/bin/env bash
# connected-components-3d does not join components across a periodic boundary when all foreground lies in one row of
# the last axis; a pixel anywhere else makes it do so.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3.11 -m venv "$folder/env"
"$folder/env/bin/pip" install --quiet "connected-components-3d==4.1.1" "numpy==2.4.6"
"$folder/env/bin/python" - <<'PYTHON'
from importlib.metadata import version

import cc3d
import numpy as np

print({name: version(name) for name in ("connected-components-3d", "numpy")})


def components(image, connectivity):
    """The number of components of an image with periodic boundaries."""
    return int(cc3d.connected_components(image, connectivity=connectivity, periodic_boundary=True).max())


row = np.zeros((4, 6), np.uint8)
row[1, [0, 5]] = 1  # neighbours across the boundary: one component
with_another = row.copy()
with_another[3, 3] = 1  # one more component
column = np.ascontiguousarray(row.T)
volume = row[np.newaxis]
for name, image, connectivity, expected, right in (
    ("a row, 4 neighbours", row, 4, 2, 1),
    ("a row, 8 neighbours", row, 8, 2, 1),
    ("a row of a volume, 6 neighbours", volume, 6, 2, 1),
    ("a column, 4 neighbours", column, 4, 1, 1),
    ("a row and another pixel, 4 neighbours", with_another, 4, 2, 2),
):
    found = components(image, connectivity)
    print(f"{name}: {found} components, {right} would be right")
    assert found == expected
PYTHON

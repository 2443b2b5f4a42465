#!/usr/bin/env bash
# trimesh reads an ASCII PLY file that ends early without an error: the mesh lacks the last triangles, or
# points, that the header announces. A truncated binary PLY file is refused.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3.11 -m venv "$folder/env"
"$folder/env/bin/pip" install --quiet "trimesh==5.2.0" "numpy==2.4.6"
"$folder/env/bin/python" - <<'PYTHON'
from importlib.metadata import version
from io import BytesIO

import trimesh

print("trimesh", version("trimesh"))
sphere = trimesh.creation.icosphere(subdivisions=2)


def shape_of(data):
    """Numbers of points and triangles, or the error."""
    try:
        mesh = trimesh.load(BytesIO(data), file_type="ply", process=False)
    except Exception as error:
        return type(error).__name__
    return len(mesh.vertices), len(mesh.faces)


whole = {kind: sphere.export(file_type="ply", encoding=kind) for kind in ("ascii", "binary")}
found = {kind: shape_of(data) for kind, data in whole.items()}
lines = whole["ascii"].rstrip().split(b"\n")
short = shape_of(b"\n".join(lines[:-100]) + b"\n")
binary = shape_of(whole["binary"][:-100])
print("whole:", found, "ASCII without its last 100 lines:", short)
print("binary without its last 100 bytes:", binary)
assert found == {"ascii": (162, 320), "binary": (162, 320)}
assert short == (162, 220)
assert isinstance(binary, str)
PYTHON

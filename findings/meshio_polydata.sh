#!/usr/bin/env bash
# meshio.read ends the program at a surface in VTK's older format: SystemExit is no Exception.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3.11 -m venv "$folder/env"
"$folder/env/bin/pip" install --quiet "meshio==5.3.5" "numpy==2.4.6" "vtk==9.7.2"
cd "$folder"
cat > square.vtk <<'VTK'
# vtk DataFile Version 3.0
a square of two triangles
ASCII
DATASET POLYDATA
POINTS 4 float
0 0 0
1 0 0
1 1 0
0 1 0
POLYGONS 2 8
3 0 1 2
3 0 2 3
VTK
"$folder/env/bin/python" - <<'PYTHON'
from importlib.metadata import version

import meshio
from vtkmodules.vtkIOLegacy import vtkPolyDataReader

print("meshio", version("meshio"), "vtk", version("vtk"))
reader = vtkPolyDataReader()
reader.SetFileName("square.vtk")
reader.Update()
surface = reader.GetOutput()
assert (surface.GetNumberOfPoints(), surface.GetNumberOfPolys()) == (4, 2)
print("VTK reads 4 points and 2 triangles")
try:
    meshio.read("square.vtk")
except Exception as error:
    raise SystemExit(f"meshio raises {type(error).__name__} now, which `except Exception` catches")
except SystemExit as end:
    print(f"meshio.read raises SystemExit({end.code}), which `except Exception` does not catch")
else:
    raise SystemExit("meshio reads it now")
PYTHON

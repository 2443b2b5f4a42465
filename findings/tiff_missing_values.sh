#!/usr/bin/env bash
# Missing values of TIFF by tifffile and imagecodecs: points that LERC masks are read as 0, and the
# nodata value 32767 of GDAL is dropped for int16, so that tiles that were never written are 0.
set -euo pipefail
folder=$(mktemp -d)
trap 'rm -rf "$folder"' EXIT
python3.11 -m venv "$folder/env"
"$folder/env/bin/pip" install --quiet "tifffile==2026.3.3" "imagecodecs==2026.3.6" "numpy==2.4.6"
cd "$folder"
env/bin/python - <<'PYTHON'
from importlib.metadata import version

import imagecodecs
import numpy as np
import tifffile

print({name: version(name) for name in ("tifffile", "imagecodecs", "numpy")})
image = np.full((16, 16), 7, np.float32)
image[2:5, 3:6] = np.nan
tifffile.imwrite("lerc.tif", image, compression="lerc")
read = tifffile.imread("lerc.tif")
content = open("lerc.tif", "rb").read()
with tifffile.TiffFile("lerc.tif") as file:
    (at,), (count,) = file.pages[0].dataoffsets, file.pages[0].databytecounts
_, valid = imagecodecs.lerc_decode(content[at : at + count], masks=True)
print("NaN written:", np.isnan(image).sum(), "read:", np.isnan(read).sum(), "zeros:", (read == 0).sum())
print("masked by imagecodecs, if asked:", (~valid.astype(bool)).sum())
assert np.isnan(image).sum() == 9
assert (np.isnan(read).sum(), (read == 0).sum()) == (0, 9)
assert (~valid.astype(bool)).sum() == 9

found = {}
for nodata in (-9999, 127, 32767):
    options = {"extratags": [(42113, "s", 0, str(nodata), True)], "metadata": None}
    tifffile.imwrite("a.tif", np.zeros((16, 16), np.int16), **options)
    with tifffile.TiffFile("a.tif") as file:
        found[nodata] = file.pages[0].nodata
print("nodata written and read, int16:", found)
assert found == {-9999: -9999, 127: 127, 32767: 0}
PYTHON

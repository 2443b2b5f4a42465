#!/bin/sh
# Usage: check_oldest.sh [FOLDER]
# Run the tests of curves, statistics and files with the oldest versions that pyproject.toml allows,
# without torch and napari, in a virtual environment in FOLDER. Needs uv and Python 3.11.
set -eu
folder=${1:-$(mktemp -d)}
cd "$(dirname "$0")/.."
uv venv --quiet --python 3.11 "$folder"
python=$folder/bin/python
extras=io,features,dask,nifti,dicom,nrrd,mrc,netcdf,fits,n5,czi,lif,parquet,xarray,anndata
uv pip install --quiet --python "$python" --resolution lowest-direct ".[$extras]"
uv pip freeze --python "$python" | grep -v '^napari-ecc' >"$folder/oldest.txt"
uv pip install --quiet --python "$python" --constraint "$folder/oldest.txt" distributed gudhi h5netcdf hypothesis \
    imaris-ims-file-reader npy2bdv packaging pylibCZIrw pytest pytest-xdist pytest-xvfb pyyaml scikit-image simpleitk
# The oldest pynrrd uses names that NumPy deprecates, and a check of the oldest scikit-learn subtracts
# floats from integers in place.
PYTHONPATH=$PWD "$python" -m pytest -n 2 -q -p no:cacheprovider -W ignore::DeprecationWarning \
    -k "not check_positive_only_tag_during_fit" tests/arrays tests/curves tests/features tests/geometry \
    tests/io tests/request tests/surfaces tests/testing tests/transforms

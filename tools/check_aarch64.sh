#!/bin/sh
# Usage: check_aarch64.sh [FOLDER]
# Run check_numbers.py on an emulated ARM processor, before a release: about 5 minutes. On Debian or
# Ubuntu, without root: packages of the other architecture and the emulator are unpacked in FOLDER.
set -eu
folder=${1:-$(mktemp -d)}
root=$(cd "$(dirname "$0")/.." && pwd)
mkdir -p "$folder/lists/partial" "$folder/cache/archives/partial" "$folder/system" "$folder/emulator"
cd "$folder"
touch status
apt="apt-get -qq -o APT::Architecture=arm64 -o APT::Architectures=arm64 -o APT::Sandbox::User=$(id -un)
 -o Dir::State=$folder -o Dir::State::status=$folder/status -o Dir::Cache=$folder/cache"
# shellcheck disable=SC2086 # options
{
    $apt update
    $apt install --no-install-recommends --download-only -y python3-minimal libpython3-stdlib \
        libstdc++6 libgomp1 >/dev/null
}
for package in cache/archives/*.deb; do dpkg --extract "$package" system; done
apt-get -qq download qemu-user-static
dpkg --extract qemu-user-static_*.deb emulator
python=$(find system/usr/bin -name 'python3.[0-9]*' | head -n 1)
version=${python##*python}

python3 -m pip install --quiet --target packages --only-binary=:all: --python-version "$version" \
    --implementation cp --platform manylinux_2_28_aarch64 --platform manylinux2014_aarch64 \
    "$(cd "$root" && python3 -c 'import tomllib as t; d = t.load(open("pyproject.toml", "rb")); print(next(x for x in d["project"]["dependencies"] if "numba" in x))')"
PYTHONPATH=$folder/packages NUMBA_CACHE_DIR=$folder/numba \
    emulator/usr/bin/qemu-aarch64-static -L system "$python" "$root/tools/check_numbers.py"

#!/bin/sh
# What tests need of the system: Qt's libraries and a display (Xvfb) for napari windows, g++, which
# compiles the CUDA kernels for the CPU, and chromium for the page "Try it". On Debian, what is missing
# is named and then installed, as root, or named only: the tests that need it skip.
set -eu
packages="chromium g++ xvfb libegl1 libgl1 libgl1-mesa-dri libxkbcommon-x11-0 libxcb-cursor0 libxcb-icccm4
libxcb-keysyms1 libxcb-image0 libxcb-render-util0 libxcb-shape0 libxcb-randr0 libdbus-1-3"

command -v dpkg-query >/dev/null || {
    echo "Tests need chromium, g++, Xvfb and Qt's libraries; those that lack them skip." >&2
    exit 0
}
missing=""
for package in $packages; do
    case $(dpkg-query --show --showformat='${Status}' "$package" 2>/dev/null) in
        *"ok installed") ;;
        *) missing="$missing $package" ;;
    esac
done
[ -n "$missing" ] || exit 0
install="apt-get install --no-install-recommends$missing"
if [ "$(id -u)" != 0 ]; then
    echo "Tests of the napari plugin, the CUDA kernels or the site skip until you: sudo $install" >&2
    exit 0
fi
echo "Installing system packages that tests need: $install" >&2
export DEBIAN_FRONTEND=noninteractive
apt-get update -qq
# shellcheck disable=SC2086 # a list of names
apt-get install -qq -y --no-install-recommends $missing >/dev/null

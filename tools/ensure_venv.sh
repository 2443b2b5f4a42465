#!/bin/sh
# Usage: ensure_venv.sh PYTHON VENV
# Make the virtual environment VENV with the interpreter PYTHON, unless it is there. On Debian, what the
# system lacks for that is named and then installed, as root, or named only.
set -eu
python=$1
venv=$2

if "$venv/bin/python" -m pip --version >/dev/null 2>&1; then
    exit 0
fi
if ! "$python" -c 'import ensurepip' 2>/dev/null; then
    if [ "$(id -u)" = 0 ] && command -v apt-get >/dev/null; then
        echo "Installing system packages: apt-get install python3 python3-venv" >&2
        export DEBIAN_FRONTEND=noninteractive
        apt-get update -qq
        apt-get install -qq -y --no-install-recommends python3 python3-venv >/dev/null
    else
        echo "$python with ensurepip is needed; on Debian: apt-get install python3 python3-venv" >&2
        exit 1
    fi
fi
if ! "$python" -c 'import sys; sys.exit(sys.version_info < (3, 11))'; then
    echo "Python 3.11 or newer is needed, got $("$python" -V); name one: make PYTHON=python3.12" >&2
    exit 1
fi
"$python" -m venv --clear "$venv"

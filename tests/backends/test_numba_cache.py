"""Several processes that compile into one empty cache at once."""

import os
import subprocess
import sys

import numba
import pytest
from processes import run_python

import ecc_core as ecc
from ecc_core._backends.cpu import compiling, kernel_cache

KERNEL = """
import math
import numpy as np
from ecc_core._backends.cpu import compiling

@compiling.kernel()
def double(x):
    return x * 2

@compiling.kernel()
def exponentials(x):
    found = np.empty(x.size)
    for i in range(x.size):
        found[i] = math.exp(x[i])
    return found

@compiling.kernel(error_model="numpy", fastmath={"reassoc", "contract", "nsz"})
def sums(factor, values, count):
    one = values.dtype.type(1)
    total = slope = spread = one - one
    for p in range(count):
        odds = factor * values[0, p]
        share = one / (one + odds)
        change = values[1, p] * (odds * share * share)
        total += values[1, p] * share
        slope += change
        spread += change * (factor - values[0, p])
    return total, slope, spread

@compiling.kernel(error_model="numpy")
def sums_of_rows(factors, values):
    found = np.empty((factors.size, 3), values.dtype)
    for i in range(factors.size):
        count = (values.shape[1] - i) // 8 * 8
        found[i, 0], found[i, 1], found[i, 2] = sums(factors[i], values, count)
    return found
"""


@pytest.fixture
def environment(tmp_path):
    """Variables for processes that import a kernel and have an empty cache."""
    (tmp_path / "kernel_module.py").write_text(KERNEL)
    paths = os.pathsep.join([str(tmp_path), *filter(None, sys.path)])
    return {**os.environ, "NUMBA_CACHE_DIR": str(tmp_path / "cache"), "PYTHONPATH": paths}


def double(x):
    return x * 2


# All processes wait until the last is ready, so that they write to the cache at the same time.
CALLS = """
import sys
import numpy as np
import kernel_module
print("ready", flush=True)
sys.stdin.readline()
for dtype in sys.argv[1:]:
    assert kernel_module.double(np.dtype(dtype).type(3)) == 6
print(sum(kernel_module.double.stats.cache_hits.values()))
"""
DTYPES = ["f4", "f8", "i4"]
# The kernel takes memory of numba's runtime, and calls a function of C.
LOADED = """
import sys
import numpy as np
import kernel_module
from numba.core import entrypoints
from numba.core.runtime import nrtdynmod

compile_runtime = nrtdynmod.create_nrt_module
compiled = []
nrtdynmod.create_nrt_module = lambda *given: compiled.append(given) or compile_runtime(*given)
found = kernel_module.exponentials(np.array([0.0, 1.0]))
np.testing.assert_allclose(found, [1, np.e])
# Initializing entry points reads the metadata of all packages.
print("numba.np.arraymath" in sys.modules, len(compiled), entrypoints._already_initialized)
"""


def test_compiled_code_is_loaded_without_what_compiles_it(environment):
    """Importing the compiler would take longer than the rest of a process's first call."""
    command = [sys.executable, "-c", LOADED]
    said = []
    for _ in range(2):
        done = subprocess.run(
            command, env=environment, text=True, capture_output=True, check=False, timeout=300
        )
        said.append((done.stdout, done.stderr))
    assert said == [("True 1 True\n", ""), ("False 0 False\n", "")]


COLLECTED = """
import gc, sys
import kernel_module
from numba import float64
{"on": gc.enable, "off": gc.disable}[sys.argv[1]]()
starts = []
gc.callbacks.append(lambda phase, _: starts.append(phase == "start"))
kernel_module.exponentials.compile((float64[::1],))
print(gc.isenabled(), sum(starts))
"""


@pytest.mark.parametrize("state", ["on", "off"])
def test_garbage_is_not_collected_while_a_kernel_is_compiled(environment, state):
    """What was made meanwhile is looked at once, at the end, if garbage is collected at all."""
    command = [sys.executable, "-c", COLLECTED, state]
    enabled, starts = subprocess.run(
        command, env=environment, text=True, capture_output=True, check=True, timeout=300
    ).stdout.split()
    assert enabled == str(state == "on")
    assert int(starts) <= 1


WAITING = """
import gc, threading
import kernel_module
from numba import float64
from numba.core.compiler_lock import global_compiler_lock
compiling = threading.Thread(target=kernel_module.exponentials.compile, args=((float64[::1],),))
with global_compiler_lock:
    compiling.start()
    compiling.join(1)
    print(gc.isenabled())
compiling.join()
print(gc.isenabled())
"""


def test_garbage_is_collected_while_a_thread_waits_to_compile(environment):
    """A child that is forked meanwhile has no thread that would start the collector again."""
    done = subprocess.run(
        [sys.executable, "-c", WAITING],
        env=environment,
        text=True,
        capture_output=True,
        check=True,
        timeout=300,
    )
    assert done.stdout.split() == ["True", "True"]


SUMS = """
import numpy as np
import kernel_module
generator = np.random.default_rng(0)
values = generator.random((2, 4096), np.float32)
factors = generator.random(40, np.float32)
print(kernel_module.sums_of_rows(factors, values).tobytes().hex())
"""


def test_loaded_code_rounds_as_compiled_code_does(environment):
    """A sum in any order is added in one order, by the process that compiles it and by others."""
    compiled, loaded = (run_python(SUMS, **environment) for _ in range(2))
    assert compiled.returncode == 0, compiled.stderr
    assert loaded.stdout == compiled.stdout


def test_processes_share_an_empty_cache(environment, tmp_path):
    piped = dict.fromkeys(("stdin", "stdout", "stderr"), subprocess.PIPE)
    for count in (3, 1):  # The last one reads what the others have left.
        orders = [[*DTYPES[i:], *DTYPES[:i]] for i in range(count)]
        command = [sys.executable, "-W", "error", "-c", CALLS]
        processes = [
            subprocess.Popen([*command, *order], env=environment, text=True, **piped)
            for order in orders
        ]
        for process in processes:
            assert process.stdout.readline() == "ready\n"
        for process in processes:
            process.stdin.write("go\n")
            process.stdin.flush()
        hits = []
        for process in processes:
            out, errors = process.communicate(timeout=300)
            assert process.returncode == 0, errors
            hits.append(int(out))
        assert list(tmp_path.rglob("*.nbc"))
        assert not list(tmp_path.rglob("*.tmp*"))
    assert hits[0] > 0


def test_one_signature_never_leads_to_the_code_of_another(tmp_path):
    """Two processes have read an empty index; the first writes its code last."""
    kind = type(compiling.kernel()(double)._cache._cache_file)

    class Second(kind):
        def _load_index(self):
            return {}

    class First(kind):
        def _save_data(self, name, data):
            Second(str(tmp_path), "march", "stamp").save("float64", "code for float64")
            super()._save_data(name, data)

    First(str(tmp_path), "march", "stamp").save("float32", "code for float32")
    after = kind(str(tmp_path), "march", "stamp")
    assert after.load("float32") in (None, "code for float32")
    assert after.load("float64") in (None, "code for float64")
    after.save("float64", "code for float64")
    after.save("float32", "code for float32")
    assert after.load("float32") == "code for float32"
    assert after.load("float64") == "code for float64"


VERSIONS = """
import sys

import numpy as np

from ecc_core._backends.cpu.compiling import kernel


def version(listed):
    @kernel()
    def squares(values):
        if listed:
            return values * values
        return (values * values).sum()

    return squares


versions = {"sum": version(False), "list": version(True)}
for name in sys.argv[1:]:
    print(int(np.sum(versions[name](np.array([3])))))
"""


def test_versions_of_a_function_that_several_processes_compile(environment, tmp_path):
    """Each is compiled by a process of its own, and a third one loads both."""
    script = tmp_path / "versions.py"
    script.write_text(VERSIONS)
    environment = {**environment, "NUMBA_CACHE_DIR": str(tmp_path / "cache")}

    def say(*names):
        command = [sys.executable, script, *names]
        return subprocess.check_output(command, env=environment, text=True).split()

    assert say("sum") == ["9"]
    assert say("list") == ["9"]
    assert say("sum", "list") == ["9", "9"]


@pytest.fixture
def cached(tmp_path, monkeypatch):
    """A function that compiles `double` anew, or finds it in an empty folder."""
    monkeypatch.setattr(numba.config, "CACHE_DIR", str(tmp_path))
    # numba reads the environment again when it compiles for the first time.
    monkeypatch.setenv("NUMBA_CACHE_DIR", str(tmp_path))

    def call():
        monkeypatch.setattr(kernel_cache, "_warned", False)
        dispatcher = compiling.kernel()(double)
        assert dispatcher(3) == 6
        return sum(dispatcher.stats.cache_hits.values())

    return call


@pytest.mark.parametrize("suffix", ["nbc", "nbi"])
@pytest.mark.parametrize("damage", ["flip", "cut", "empty"])
def test_damaged_files_are_written_again(cached, tmp_path, suffix, damage):
    assert (cached(), cached()) == (0, 1)
    (path,) = tmp_path.rglob(f"*double*.{suffix}")
    content = bytearray(path.read_bytes())
    if damage == "flip":
        content[len(content) // 2] ^= 4
    path.write_bytes(content[: {"flip": None, "cut": 100, "empty": 0}[damage]])
    with pytest.warns(RuntimeWarning, match=rf"not cached.*{path.name} is damaged"):
        assert cached() == 0
    assert cached() == 1


def test_files_that_cannot_be_read(cached, tmp_path):
    cached()
    (path,) = tmp_path.rglob("*double*.nbi")
    path.unlink()
    path.mkdir()
    with pytest.warns(RuntimeWarning, match="kernels are not cached, so .*Is a directory"):
        assert cached() == 0


def test_no_folder_at_all(cached, monkeypatch):
    monkeypatch.delenv("NUMBA_CACHE_DIR")
    monkeypatch.setattr(numba.config, "CACHE_LOCATOR_CLASSES", "UserProvidedCacheLocator")
    monkeypatch.setattr(numba.config, "CACHE_DIR", "")
    with pytest.warns(RuntimeWarning, match="not cached.*no locator available") as found:
        assert cached() == 0
    assert len(found) == 1


FULL_DISK = """
import resource, warnings
import kernel_module
resource.setrlimit(resource.RLIMIT_FSIZE, (64, 64))
with warnings.catch_warnings(record=True) as found:
    warnings.simplefilter("always")
    for number in (1.5, 2):
        assert kernel_module.double(number) == 2 * number
assert len(found) == 1, found
assert "File too large" in str(found[0].message)
"""


@pytest.mark.skipif(sys.platform == "win32", reason="needs resource limits")
def test_a_full_disk(environment, tmp_path):
    done = run_python(FULL_DISK, options=("-B",), **environment)
    assert done.returncode == 0, done.stderr
    assert not [path for path in (tmp_path / "cache").rglob("*") if path.is_file()]


def test_kernels_are_in_one_folder(tmp_path):
    """Of an empty cache, `ecc info` tells the size; a second process compiles nothing."""
    program = (
        "import numpy as np, ecc_core as ecc; ecc.euler_number(np.eye(3, dtype=bool)); "
        "from ecc_core.cli import main; main(['info', '--system'])"
    )
    sizes = []
    for _ in range(2):
        done = run_python(program, NUMBA_CACHE_DIR=str(tmp_path))
        (line,) = [line for line in done.stdout.splitlines() if line.startswith("kernels")]
        assert line.endswith(f"MB in {tmp_path}")
        sizes.append(float(line.split()[1]))
    assert sizes[0] == sizes[1] > 0


def test_steps_tell_what_they_compile():
    names = []
    ecc.warmup(block=True, progress=names.append)
    assert names[0] == "curves, uint8 2-D"
    assert len(names) == len(set(names)) > 20


def test_no_compiler_is_one_clear_line():
    program = "from ecc_core.cli import main; raise SystemExit(main(['warmup']))"
    done = run_python(program, NUMBA_DISABLE_JIT="1")
    assert done.returncode == 2
    assert done.stderr.startswith("ecc: error: NUMBA_DISABLE_JIT must be 0 or unset")
    assert done.stderr.count("\n") == 1


@pytest.mark.parametrize("writable", [True, False])
def test_the_folder_is_in_the_package_or_that_of_the_user(writable, monkeypatch):
    monkeypatch.setattr(numba.config, "CACHE_DIR", "")
    monkeypatch.setattr(kernel_cache.os, "access", lambda *_: writable)
    folder = kernel_cache.cache_folder()
    assert folder.is_relative_to(kernel_cache.PACKAGE) == writable
    assert (kernel_cache.PACKAGE / "curves.py").exists()
    assert "napari-ecc" in folder.parts or writable

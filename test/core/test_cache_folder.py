"""Cache folder of compiled functions: the user's cache, a private temporary folder, or none."""

import os
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ThreadPoolExecutor, TimeoutError
from pathlib import Path

import pytest

from arm_dynamics.core import compiled_math
from arm_dynamics.core.files import file_lock

pytest.importorskip("numba")
ROOT = Path(__file__).resolve().parents[2]
PROGRAM = """\
from arm_dynamics.core import compiled_math as scalar
assert scalar.clip(3.0, -1.0, 2.0) == 2.0
print(scalar.cache_folder(), scalar.clip._cache.cache_path, sep="\\n")
"""
NOWHERE = "/dev/null/below_a_file"
"""Folder that cannot be created, even by root."""


def cache_folders(temporary, **environment):
    """Return (folder that was chosen, folder that numba uses) of a separate process."""
    surroundings = {**os.environ, "PYTHONPATH": str(ROOT), "TMPDIR": str(temporary), **environment}
    done = subprocess.run(
        [sys.executable, "-c", PROGRAM],
        env=surroundings, check=False, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout.split("\n")[:2]


def private(temporary):
    return temporary / f"arm_dynamics-{os.getuid()}"


def test_compiled_functions_are_stored_in_the_users_cache(tmp_path):
    chosen, used = cache_folders(tmp_path, XDG_CACHE_HOME=str(tmp_path / "cache"))
    assert Path(chosen).parent == tmp_path / "cache/arm_dynamics"
    assert Path(used).parent == Path(chosen)
    assert list(Path(used).glob("compiled_math.clip*.nbi"))
    assert not private(tmp_path).exists()


@pytest.mark.quick(1)
@pytest.mark.parametrize("variable", ["XDG_CACHE_HOME", "HOME"])
def test_an_unwritable_cache_is_replaced_by_a_private_folder(tmp_path, variable):
    given = {"XDG_CACHE_HOME": "", "HOME": NOWHERE} | {variable: NOWHERE}
    chosen, used = cache_folders(tmp_path, **given)
    assert Path(chosen).parent == private(tmp_path)
    assert Path(used).parent == Path(chosen)
    assert private(tmp_path).stat().st_mode & 0o777 == 0o700


@pytest.mark.quick(1)
@pytest.mark.parametrize("trap", ["open to all", "link", "file"])
def test_a_temporary_folder_writable_by_others_is_not_used(tmp_path, trap):
    if trap == "open to all":
        private(tmp_path).mkdir()
        private(tmp_path).chmod(0o777)
    elif trap == "link":
        (tmp_path / "elsewhere").mkdir(mode=0o700)
        private(tmp_path).symlink_to(tmp_path / "elsewhere")
    else:
        private(tmp_path).touch()
    assert cache_folders(tmp_path, XDG_CACHE_HOME=NOWHERE) == ["None", "None"]
    assert not list(tmp_path.rglob("*.nbi"))


def test_a_user_without_home_gets_a_private_folder(tmp_path, monkeypatch):
    def homeless():
        raise RuntimeError("Could not determine home directory.")

    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(Path, "home", homeless)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    assert compiled_math.cache_folder.__wrapped__().parent == private(tmp_path)


def test_two_processes_store_compiled_functions_one_after_the_other(tmp_path, monkeypatch):
    """Concurrently, numba names both symbols alike, and may later run the wrong function."""
    monkeypatch.setattr(compiled_math, "cache_folder", lambda: tmp_path)
    monkeypatch.setattr(compiled_math, "is_keyed", lambda _: True)
    function = compiled_math.compiled(lambda x: 2 * x)
    with ThreadPoolExecutor(1) as other:
        with file_lock(tmp_path / "lock"):
            found = other.submit(function, 1.5)
            while not function.signatures:  # until the function is compiled
                time.sleep(0.01)
            with pytest.raises(TimeoutError):
                found.result(timeout=0.2)
            assert not list(tmp_path.rglob("*.nbi"))
        assert found.result(timeout=180) == 3.0
    assert list(tmp_path.rglob("*.nbi"))


LOGGED = """\
import sys
from arm_dynamics.core import compiled_math as scalar
scalar.NOTICE = 0.0
scalar.numba.njit(lambda x: x + 1.0)(1.0)
sys.stderr.write("others' functions are compiled\\n")
scalar.clip(3.0, -1.0, 2.0)
scalar.sign(1.0)
sys.stderr.write("after a pause\\n")
scalar.PAUSE = 0.0
scalar.maximum(1.0, 2.0)
"""


def test_a_long_compilation_is_logged_once_until_a_pause(tmp_path):
    ended = subprocess.run(
        [sys.executable, "-c", LOGGED], env={**os.environ, "XDG_CACHE_HOME": str(tmp_path)},
        check=True, capture_output=True, text=True, timeout=300,
    )  # fmt: skip
    before, after = ended.stderr.split("others' functions are compiled\n")
    assert before == ""
    for part in after.split("after a pause\n"):
        assert part.count("arm_dynamics compiles for this machine") == 1
        assert str(tmp_path) in part

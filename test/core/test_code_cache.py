"""Compiled code is loaded only from folders that no other user can write; damaged code is
recompiled.
"""

import os
import shutil
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

from arm_dynamics.core import code_cache, compiled_math
from arm_dynamics.core.code_cache import UntrustedFolder, require_private

pytest.importorskip("numba")
store = pytest.importorskip("arm_dynamics.batch.kernels.kernel_cache")
ROOT = Path(__file__).resolve().parents[2]
PROGRAM = """\
import numpy as np
from arm_dynamics.core import code_cache
from arm_dynamics.core.compiled_math import is_finite
print(is_finite(np.ones(2)), code_cache.cache_folder(), len(is_finite.stats.cache_hits))
"""
WAITING_PROGRAM = """\
import numpy as np
from arm_dynamics.core.compiled_math import all_finite
print("imported", flush=True)
input()
all_finite(np.ones(2), np.ones(2), np.ones(2))
print(sum(all_finite.stats.cache_misses.values()))
"""
USER_PROGRAM = """\
import user_equations
from arm_dynamics.core.compiled_math import clip
print(user_equations.scaled(2.0), clip(3.0, -1.0, 1.0), len(clip.stats.cache_hits))
"""
USER_EQUATIONS = """\
from arm_dynamics.core.compiled_math import compiled
from user_helpers import GAIN, square
@compiled
def scaled(x):
    return GAIN * square(x)
"""
USER_HELPERS = """\
from arm_dynamics.core.compiled_math import compiled
GAIN = {gain}
@compiled
def square(x):
    return {square}
"""
KERNEL = "import numba\n@numba.njit(cache=True)\ndef f(x):\n    return x + 1\n"


def run(program, cache, *words, **environment):
    """Return output and warnings of a separate process; TMPDIR is the parent of the cache."""
    around = {**os.environ, "PYTHONPATH": str(ROOT), "XDG_CACHE_HOME": str(cache), **environment}
    around["TMPDIR"] = str(cache.parent)
    done = subprocess.run(
        [sys.executable, "-W", "always", "-c", program, *map(str, words)],
        env=around, check=False, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout.split(), done.stderr


def make_private(folder):
    folder.mkdir(mode=0o700, parents=True)
    return folder


@pytest.mark.parametrize("mode", [0o770, 0o707, 0o755])
def test_a_folder_accessible_to_others_is_rejected(tmp_path, mode):
    folder = make_private(tmp_path / "code")
    require_private(folder)
    folder.chmod(mode)
    text = rf"{folder} has owner = .*, mode = {mode:04o}; expected owner .*, mode 0700; .*chmod go-"
    with pytest.raises(UntrustedFolder, match=text):
        require_private(folder)


@pytest.mark.parametrize("mode", [0o775, 0o757])
def test_a_folder_below_one_that_others_can_write_is_rejected(tmp_path, mode):
    folder = make_private(tmp_path / "open/between/code")
    (tmp_path / "open").chmod(mode)
    with pytest.raises(UntrustedFolder, match=rf"folder {tmp_path / 'open'} has .*{mode:04o}"):
        require_private(folder)
    (tmp_path / "open").chmod(mode | 0o1000)  # sticky: no other user can rename its contents
    require_private(folder)


def test_a_folder_of_another_user_is_rejected_also_for_root(tmp_path, monkeypatch):
    folder, another = make_private(tmp_path / "code"), os.getuid() + 1
    monkeypatch.setattr(os, "getuid", lambda: another)
    with pytest.raises(UntrustedFolder, match=rf"expected owner {code_cache._user_name(another)}"):
        require_private(folder)


def test_processes_that_start_together_compile_a_function_once(tmp_path):
    around = {**os.environ, "PYTHONPATH": str(ROOT), "XDG_CACHE_HOME": str(tmp_path / "cache")}
    command, pipe = [sys.executable, "-c", WAITING_PROGRAM], subprocess.PIPE
    processes = [
        subprocess.Popen(command, env=around, stdin=pipe, stdout=pipe, text=True) for _ in range(3)
    ]
    try:
        assert [p.stdout.readline() for p in processes] == 3 * ["imported\n"]
        for process in processes:
            process.stdin.write("\n")
            process.stdin.flush()
        misses = [int(p.communicate(timeout=120)[0]) for p in processes]
    finally:
        for process in processes:
            process.kill()
    assert sorted(misses) == [0, 0, 1]


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a folder away")
def test_root_does_not_run_code_of_a_users_cache(tmp_path):
    folder = make_private(tmp_path / "home/cache/code")
    os.chown(tmp_path / "home", 12345, -1)
    with pytest.raises(UntrustedFolder, match=f"folder {tmp_path / 'home'} has owner = 12345"):
        require_private(folder)


def test_links_are_followed_and_all_their_folders_checked(tmp_path):
    folder = make_private(tmp_path / "open/code")
    (tmp_path / "link").symlink_to("open/code")
    require_private(tmp_path / "link")
    (tmp_path / "open").chmod(0o777)
    with pytest.raises(UntrustedFolder, match=f"{tmp_path / 'open'} "):
        require_private(tmp_path / "link")
    (tmp_path / "other").mkdir()
    (tmp_path / "other/link").symlink_to(folder)
    (tmp_path / "open").chmod(0o755)
    (tmp_path / "other").chmod(0o777)  # another user can replace the link
    with pytest.raises(UntrustedFolder, match=f"{tmp_path / 'other'} "):
        require_private(tmp_path / "other/link")


def test_nothing_is_read_from_or_written_to_an_untrusted_cache(tmp_path):
    cache = tmp_path / "cache"
    (first, kept, _), _ = run(PROGRAM, cache)
    for place in sorted(Path(kept).rglob("*.nbc")):
        place.write_bytes(b"unpickling runs this")
    (cache / "arm_dynamics").chmod(0o777)
    before = {p: p.stat().st_mtime_ns for p in cache.rglob("*")}
    (second, chosen, _), text = run(PROGRAM, cache)
    assert (first, second, chosen) == ("True", "True", "None")
    assert before == {p: p.stat().st_mtime_ns for p in cache.rglob("*")}
    assert text.count("RuntimeWarning") == 1, text
    for word in ("arm_dynamics has owner = ", "mode = 0777", "chmod go-w", "XDG_CACHE_HOME"):
        assert word in text


def test_a_kernel_that_others_could_have_written_is_recompiled(tmp_path, monkeypatch):
    monkeypatch.setattr(store, "_folder", lambda: tmp_path)

    def once():
        store._LOADED.clear()
        source = store.ModuleSource(KERNEL, (1.0,))
        made = store.cached_module("test", lambda: source, lambda made: made.f(1.0))
        assert made.f(1.0) == 2.0
        return Path(made.__file__), len(made.f.stats.cache_hits)

    path, hits = once()
    assert (hits, once()[1]) == (0, 1)
    for there in (path, tmp_path / "kernel_test.json", tmp_path / "kernel_test.checked"):
        there.write_text(there.read_text())
        there.chmod(0o620)
        once()
        assert there.stat().st_mode & 0o777 == 0o600
    for code in tmp_path.rglob("*.nb?"):
        code.write_bytes(with_flipped_bit(code.read_bytes()))
    with pytest.warns(RuntimeWarning, match="is not loaded"):
        assert once()[1] == 0


def test_folders_and_files_are_private_for_every_umask(tmp_path):
    before = os.umask(0)
    try:
        run(PROGRAM, tmp_path / "cache/of/mine")
    finally:
        os.umask(before)
    (kept,) = (tmp_path / "cache/of/mine/arm_dynamics").iterdir()
    made = [kept, *kept.parents[:4], *kept.rglob("*.nb?")]
    assert len(made) > 6
    assert {path.stat().st_mode & 0o077 for path in made} == {0}


def test_a_change_of_a_users_helpers_is_effective_in_the_next_process(tmp_path):
    """Machine code on disk would contain the old helper function and the old constant."""
    folder, cache = tmp_path / "user", tmp_path / "cache"
    folder.mkdir()
    (folder / "user_equations.py").write_text(USER_EQUATIONS)
    paths = os.pathsep.join([str(ROOT), str(folder)])
    found = []
    for gain, square in ((3.0, "x * x"), (3.0, "x * x"), (5.0, "x * x"), (5.0, "2.0 * x * x")):
        text = USER_HELPERS.format(gain=gain, square=square)
        (folder / "user_helpers.py").write_text(text)
        shutil.rmtree(folder / "__pycache__", ignore_errors=True)
        (value, _, hits), _ = run(USER_PROGRAM, cache, PYTHONPATH=paths)
        found.append((float(value), int(hits)))
    assert found == [(12.0, 0), (12.0, 1), (20.0, 1), (40.0, 1)]  # clip is loaded from disk
    assert not list(cache.rglob("*scaled*"))


def with_flipped_bit(data):
    middle = len(data) // 2
    return data[:middle] + bytes([data[middle] ^ 0x10]) + data[middle + 1 :]


DAMAGE = {
    "empty": lambda data: b"",
    "truncated": lambda data: data[: len(data) // 2],
    "a bit flipped": with_flipped_bit,
    "no digest": lambda data: data[:-32],
    "another pickle": lambda data: b"\x80\x04K\x01.",
}


@pytest.mark.parametrize("suffix", ["nbi", "nbc"])
def test_damaged_code_is_recompiled(tmp_path, monkeypatch, suffix):
    """Without the check numba raises unpickling errors, or runs damaged code."""
    monkeypatch.setattr(compiled_math, "cache_folder", lambda: tmp_path)
    monkeypatch.setattr(compiled_math, "is_keyed", lambda _: True)

    def once():
        doubled = compiled_math.compiled(lambda x: 2 * x)
        assert doubled(1.5) == 3.0
        return doubled, len(doubled.stats.cache_hits)

    once()
    assert once()[1] == 1
    for name, damage in DAMAGE.items():
        for path in tmp_path.rglob(f"*.{suffix}"):
            path.write_bytes(damage(path.read_bytes()))
        code_cache._warn_once.cache_clear()
        with pytest.warns(RuntimeWarning, match=r"is not loaded .* it is compiled again"):
            assert once()[1] == 0, name
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            assert once()[1] == 1, name


def test_a_file_of_another_user_is_ignored(tmp_path, monkeypatch):
    path = tmp_path / "file"
    code_cache.write_private(path, code_cache.sealed(b"code"))
    code_cache.require_sound(path)
    path.chmod(0o620)
    with pytest.raises(PermissionError, match="mode = 0620"):
        code_cache.require_sound(path)
    path.chmod(0o600)
    (tmp_path / "link").symlink_to(path)
    with pytest.raises(PermissionError):
        code_cache.require_sound(tmp_path / "link")
    another = os.getuid() + 1
    monkeypatch.setattr(os, "getuid", lambda: another)
    with pytest.raises(PermissionError, match="expected a file of"):
        code_cache.require_sound(path)


def test_a_full_disk_only_disables_the_cache(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(compiled_math, "cache_folder", lambda: tmp_path)
    monkeypatch.setattr(compiled_math, "is_keyed", lambda _: True)
    monkeypatch.setattr(code_cache, "write_private", full)
    with pytest.warns(RuntimeWarning, match="is not kept in"):
        assert compiled_math.compiled(lambda x: 3 * x)(1.5) == 4.5

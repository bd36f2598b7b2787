"""Compiled code is loaded only from where this user alone can write; damaged code is made again."""

import os
import subprocess
import sys
import warnings
from pathlib import Path

import pytest

from arm_dynamics.core import code_cache, compiled_math
from arm_dynamics.core.code_cache import UntrustedFolder, require_private

pytest.importorskip("numba")
store = pytest.importorskip("arm_dynamics.batch.kernels.kernel_cache")
ROOT = Path(__file__).resolve().parent.parent
LAW = """\
import sys
from pathlib import Path
from arm_dynamics.core import code_cache
sys.path.insert(0, str(Path(sys.argv[1])))
import law
print(law.twice(1.5), code_cache.cache_folder(), len(law.twice.stats.cache_hits))
"""
TWICE = """\
from arm_dynamics.core.compiled_math import NUMBER, compiled_for
@compiled_for(NUMBER)
def twice(x):
    return 2 * x
"""
KERNEL = "import numba\n@numba.njit(cache=True)\ndef f(x):\n    return x + 1\n"


def run(program, cache, *words, **environment):
    """Output and warnings of a process of its own; temporary files beside its cache."""
    around = {**os.environ, "PYTHONPATH": str(ROOT), "XDG_CACHE_HOME": str(cache), **environment}
    around["TMPDIR"] = str(cache.parent)
    done = subprocess.run(
        [sys.executable, "-W", "always", "-c", program, *map(str, words)],
        env=around, check=False, capture_output=True, text=True, timeout=120,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    return done.stdout.split(), done.stderr


@pytest.fixture
def law(tmp_path):
    """A module with one function, in a folder of its own."""
    folder = tmp_path / "module"
    folder.mkdir()
    (folder / "law.py").write_text(TWICE)
    return folder


def made_private(folder):
    folder.mkdir(mode=0o700, parents=True)
    return folder


@pytest.mark.parametrize("mode", [0o770, 0o707, 0o755])
def test_a_folder_that_is_open_to_others_is_rejected(tmp_path, mode):
    folder = made_private(tmp_path / "code")
    require_private(folder)
    folder.chmod(mode)
    said = rf"{folder} has owner = .*, mode = {mode:04o}; expected owner .*, mode 0700; .*chmod go-"
    with pytest.raises(UntrustedFolder, match=said):
        require_private(folder)


@pytest.mark.parametrize("mode", [0o775, 0o757])
def test_so_is_one_below_a_folder_that_others_can_write(tmp_path, mode):
    folder = made_private(tmp_path / "open/between/code")
    (tmp_path / "open").chmod(mode)
    with pytest.raises(UntrustedFolder, match=rf"folder {tmp_path / 'open'} has .*{mode:04o}"):
        require_private(folder)
    (tmp_path / "open").chmod(mode | 0o1000)  # sticky: nobody else can rename what is below
    require_private(folder)


def test_so_is_what_belongs_to_another_user_even_for_root(tmp_path, monkeypatch):
    folder, another = made_private(tmp_path / "code"), os.getuid() + 1
    monkeypatch.setattr(os, "getuid", lambda: another)
    with pytest.raises(UntrustedFolder, match=rf"expected owner {code_cache._user_name(another)}"):
        require_private(folder)


@pytest.mark.skipif(os.getuid() != 0, reason="only root can give a folder away")
def test_root_does_not_run_what_lies_in_a_users_cache(tmp_path):
    folder = made_private(tmp_path / "home/cache/code")
    os.chown(tmp_path / "home", 12345, -1)
    with pytest.raises(UntrustedFolder, match=f"folder {tmp_path / 'home'} has owner = 12345"):
        require_private(folder)


def test_links_are_followed_and_their_folders_looked_at(tmp_path):
    folder = made_private(tmp_path / "open/code")
    (tmp_path / "link").symlink_to("open/code")
    require_private(tmp_path / "link")
    (tmp_path / "open").chmod(0o777)
    with pytest.raises(UntrustedFolder, match=f"{tmp_path / 'open'} "):
        require_private(tmp_path / "link")
    (tmp_path / "other").mkdir()
    (tmp_path / "other/link").symlink_to(folder)
    (tmp_path / "open").chmod(0o755)
    (tmp_path / "other").chmod(0o777)  # where somebody else may lay another link
    with pytest.raises(UntrustedFolder, match=f"{tmp_path / 'other'} "):
        require_private(tmp_path / "other/link")


def test_nothing_is_read_from_or_written_to_an_untrusted_cache(tmp_path, law):
    cache = tmp_path / "cache"
    (first, kept, _), _ = run(LAW, cache, law)
    for place in sorted(Path(kept).rglob("*.nbc")):
        place.write_bytes(b"whoever unpickles this runs it")
    (cache / "arm_dynamics").chmod(0o777)
    before = {p: p.stat().st_mtime_ns for p in cache.rglob("*")}
    (second, chosen, _), said = run(LAW, cache, law)
    assert (first, second, chosen) == ("3.0", "3.0", "None")
    assert before == {p: p.stat().st_mtime_ns for p in cache.rglob("*")}
    assert said.count("RuntimeWarning") == 1, said
    for word in ("arm_dynamics has owner = ", "mode = 0777", "chmod go-w", "XDG_CACHE_HOME"):
        assert word in said


def test_a_kernel_that_others_could_have_written_is_made_again(tmp_path, monkeypatch):
    monkeypatch.setattr(store, "_folder", lambda: tmp_path)

    def once():
        store._LOADED.clear()
        made = store.cached_module("test", lambda: KERNEL, lambda made: made.f(1.0))
        assert made.f(1.0) == 2.0
        return Path(made.__file__), len(made.f.stats.cache_hits)

    path, hits = once()
    assert (hits, once()[1]) == (0, 1)
    for there in (path, path.with_suffix(".checked")):
        there.write_text(there.read_text())
        there.chmod(0o620)
        once()
        assert there.stat().st_mode & 0o777 == 0o600
    for code in tmp_path.rglob("*.nb?"):
        code.write_bytes(flipped(code.read_bytes()))
    with pytest.warns(RuntimeWarning, match="is not loaded"):
        assert once()[1] == 0


def test_folders_and_files_are_made_private_whatever_the_umask(tmp_path, law):
    before = os.umask(0)
    try:
        run(LAW, tmp_path / "cache/of/mine", law)
    finally:
        os.umask(before)
    (kept,) = (tmp_path / "cache/of/mine/arm_dynamics").iterdir()
    made = [kept, *kept.parents[:4], *kept.rglob("*.nb?")]
    assert len(made) > 6
    assert {path.stat().st_mode & 0o077 for path in made} == {0}


def flipped(data):
    middle = len(data) // 2
    return data[:middle] + bytes([data[middle] ^ 0x10]) + data[middle + 1 :]


DAMAGE = {
    "empty": lambda data: b"",
    "truncated": lambda data: data[: len(data) // 2],
    "a bit flipped": flipped,
    "no digest": lambda data: data[:-32],
    "another pickle": lambda data: b"\x80\x04K\x01.",
}


@pytest.mark.parametrize("suffix", ["nbi", "nbc"])
def test_damaged_code_counts_as_absent_and_is_made_again(tmp_path, monkeypatch, suffix):
    """Numba itself raises one of its pickles' errors, or runs what was damaged."""
    monkeypatch.setattr(compiled_math, "cache_folder", lambda: tmp_path)

    def once():
        law = compiled_math.compiled(lambda x: 2 * x)
        assert law(1.5) == 3.0
        return law, len(law.stats.cache_hits)

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


def test_a_file_of_another_user_counts_as_absent(tmp_path, monkeypatch):
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


def test_a_full_disk_costs_the_cache_and_no_more(tmp_path, monkeypatch):
    def full(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(compiled_math, "cache_folder", lambda: tmp_path)
    monkeypatch.setattr(code_cache, "write_private", full)
    with pytest.warns(RuntimeWarning, match="is not kept in"):
        assert compiled_math.compiled(lambda x: 3 * x)(1.5) == 4.5

"""The command ``arm-dynamics``, each call a process of its own."""

import subprocess
import sys

import pytest
from conftest import chain

from arm_dynamics import resources
from arm_dynamics.cli import list_arms

BROKEN = """<robot name="broken">
  <link name="base"/>
  <link name="arm"><inertial><mass value="-1"/>
    <inertia ixx="1" iyy="1" izz="1" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <joint name="J1" type="revolute"><parent link="base"/><child link="arm"/>
    <axis xyz="0 0 0"/></joint>
</robot>
"""


def command(*arguments):
    return subprocess.run(
        [sys.executable, "-m", "arm_dynamics.cli.main", *map(str, arguments)],
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )


def test_audit_of_a_good_arm_ends_with_0():
    done = command("audit", "five_dof")
    assert (done.returncode, done.stderr) == (0, "")
    assert "five_dof.urdf" in done.stdout


def test_audit_of_a_broken_file_tells_all_its_faults_and_ends_with_2(tmp_path):
    file = tmp_path / "broken.urdf"
    file.write_text(BROKEN)
    done = command("audit", file)
    assert done.returncode == 2
    for word in ("-1", "axis", "limit", "line 3", "J1"):
        assert word in done.stdout
    assert done.stderr == ""


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (["audit", "no_such.urdf"], "no_such.urdf"),
        (["audit", "six_dof"], "six_dof"),
        (["audit", "a" * 5000], "aaa"),
        (["audit", "/"], "'/'"),
    ],
)
def test_what_is_not_there_is_one_line_and_2(arguments, word):
    done = command(*arguments)
    assert done.returncode == 2
    assert len(done.stderr.strip().splitlines()) == 1
    assert word in done.stderr
    assert done.stdout == ""


def test_a_folder_or_binary_is_no_urdf(tmp_path):
    file = tmp_path / "binary.urdf"
    for content in (b"\xff\xfe\x00\x80", b"\x7fELF\x02\x01\x00\xff"):
        file.write_bytes(content)
        done = command("audit", file)
        assert done.returncode == 2
        assert "binary.urdf: 1 error" in done.stdout
        assert "not well-formed XML" in done.stdout
        assert done.stderr == ""


def test_joints_to_lock_come_before_or_after_the_file():
    done = command("audit", "--lock", "R2", "--lock", "R5", "five_dof")
    assert (done.returncode, done.stderr) == (0, "")
    done = command("audit", "--lock", "R2", "five_dof", "--lock", "R9")
    assert done.returncode == 2
    assert "'R9' is to be locked" in done.stdout
    assert "'R2'" not in done.stdout


def test_list_shows_the_bundled_arms():
    done = command("list")
    assert done.returncode == 0
    for word in ("five_dof", "dc_motor", "5: R1", "R5", "-1.1"):
        assert word in done.stdout


def test_the_list_is_readable_and_names_the_unit_of_a_prismatic_joint(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "100")
    assert list_arms.run([]) == 0
    lines = capsys.readouterr().out.splitlines()
    assert max(map(len, lines)) <= 100
    assert {"mass [kg]", "initial pose [rad, m]"} <= {cell.strip() for cell in lines[1].split("┃")}
    assert len(lines) == 4 + len(resources.names("urdf", ".urdf")), "one line an arm"
    arm = chain({"kind": "prismatic", "lower": 0.0, "upper": 0.5}, {})
    assert list_arms.row("rail", arm)[-1] == "0 m, 0"


@pytest.mark.parametrize("arguments", [["dance"], [], ["audit"], ["list", "--nonsense"]])
def test_a_wrong_call_ends_with_2_and_shows_the_usage(arguments):
    done = command(*arguments)
    assert done.returncode == 2
    assert "usage: arm-dynamics" in done.stderr
    assert "Traceback" not in done.stderr


def test_help_names_every_command():
    done = command("--help")
    assert done.returncode == 0
    for name in ("audit", "list", "sim"):
        assert name in done.stdout

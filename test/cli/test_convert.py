"""``arm-dynamics convert``: locked joints, files that exist, formats."""

import pytest

from arm_dynamics import load_arm
from arm_dynamics.cli.main import main


def converted(capsys, *arguments):
    """Return exit code and output of the command."""
    with pytest.raises(SystemExit) as end:
        main(["convert", *map(str, arguments)])
    return end.value.code or 0, "".join(capsys.readouterr())


def test_a_locked_joint_is_fixed_in_both_formats(capsys, tmp_path):
    for form in ("urdf", "mjcf"):
        file = tmp_path / f"so101.{form}"
        code, output = converted(
            capsys, "so101", "--lock", "gripper", "--to", form, "--output", file
        )
        assert (code, f"{file}: 5 joints" in output) == (0, True)
        arm = load_arm(file)
        assert arm.joint_names == load_arm("so101").joint_names[:5]
        assert "gripper_link" in arm.urdf


def test_an_existing_file_is_kept_and_a_format_is_required(capsys, tmp_path):
    file = tmp_path / "arm.xml"
    file.write_text("mine")
    code, output = converted(capsys, "two_link", "--to", "mjcf", "--output", file)
    assert (code, "exists already" in output, file.read_text()) == (2, True, "mine")
    assert converted(capsys, "two_link")[0] == 2
    code, output = converted(capsys, file, "--to", "urdf", "--output", tmp_path / "new.urdf")
    assert (code, "not well-formed XML" in output) == (2, True)

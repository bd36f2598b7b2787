"""The commands of the calibration tutorial, on an emulated SO-101 in virtual time."""

import re
import shlex
from pathlib import Path

import numpy as np
import pytest
from hardware_terminal import User, VirtualLine
from virtual_time import install_virtual_time

from arm_dynamics import load_arm
from arm_dynamics.cli.hardware import emulate
from arm_dynamics.cli.main import main
from arm_dynamics.hardware import register_bus
from arm_dynamics.identification.excitation import excitation_search

pytestmark = pytest.mark.hardware

DOCS = Path(__file__).parents[2] / "docs"
PAGE = (DOCS / "calibrate_so101.md").read_text("utf-8")
LINES = "\n".join(re.findall(r"```bash\n(.*?)```", PAGE, re.DOTALL)).splitlines()
COMMANDS = [shlex.split(line)[1:] for line in LINES if line.startswith("arm-dynamics ")]
SHORT = {"40": "6", "20": "3", "50": "10", "30": "7"}
"""Durations [s] of the page → durations of the test."""


def test_the_page_shows_the_figures_of_its_commands():
    drawn = {words[words.index("--figure") + 1] for words in COMMANDS if "--figure" in words}
    shown = {Path(name).name for name in re.findall(r"\]\((images/tutorial/.*?)\)", PAGE)}
    assert drawn == shown == {file.name for file in (DOCS / "images" / "tutorial").iterdir()}


def shortened(words):
    """Return a command with short durations."""
    return [SHORT.get(word, word) if before in ("--seconds", "--duration") else word
             for before, word in zip(["", *words], words, strict=False)]  # fmt: skip


def consent(user):
    user.wait("Enable torque? Type yes:")
    user.press("yes\n")
    user.wait("torque is disabled")


def errors(printed):
    """Return the RMS errors [mrad] of the last column but one."""
    return np.array([float(row.split("│")[-3]) for row in printed.splitlines() if "mrad" in row])


@pytest.mark.slow
def test_the_identified_urdf_predicts_the_motion_that_was_not_fitted(tmp_path, monkeypatch, capsys):
    monkeypatch.setattr(excitation_search, "RANDOM_STARTS", 20)
    monkeypatch.setattr(excitation_search, "EVALUATIONS", 100)
    monkeypatch.chdir(tmp_path)
    time, found = install_virtual_time(monkeypatch), []
    assert COMMANDS[0][:2] == ["hardware", "emulate"]
    args = emulate.command_parser().parse_args(COMMANDS[0][2:])
    body = emulate.build_emulated_arm(args, load_arm(args.arm), "feetech")
    line = VirtualLine(time, body.motors, body)
    monkeypatch.setattr(register_bus, "SerialPort", line.open)
    for words in COMMANDS[2:-1]:  # scan and gravity calibration have tests
        if words[:2] == ["hardware", "check"]:
            continue
        line.arm.hold_at(line.arm.state.q)  # the fallen arm rests
        with monkeypatch.context() as patch:
            user = User(patch, consent, time) if words[:2] == ["hardware", "run"] else None
            with pytest.raises(SystemExit) as ended:
                main(shortened(words))
            printed, errors_printed = capsys.readouterr()
            output = user.leave() if user else printed
        assert not ended.value.code, (words, output, errors_printed)
        if words[0] == "compare":
            found.append(errors(output))
    before, after = found
    assert before.size == after.size == 6
    assert (after < 0.4 * before).all()
    drawn = {file.name for file in tmp_path.glob("*.png")}
    assert drawn == {"excite.png", "before.png", "after.png"}

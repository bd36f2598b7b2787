"""Python of the documentation runs unchanged, and its tables agree with the code."""

import re
import shlex
import sys
from importlib.metadata import EntryPoint
from math import exp, inf
from pathlib import Path

import pytest

from arm_dynamics import Command, Plant, State, load_arm
from arm_dynamics.cli import record
from arm_dynamics.cli.main import main
from arm_dynamics.control.config import build_controller
from arm_dynamics.core import plugins
from arm_dynamics.dynamics import rigid_body as dynamics
from arm_dynamics.model.audit import audit_urdf
from arm_dynamics.model.load import parse_arm
from arm_dynamics.safety.safety_settings import PARAMETERS as SAFETY
from arm_dynamics.simulation.actuators.dc_motor import PARAMETERS

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted(ROOT.glob("docs/*.md"))]
PRINTED = r"(?:\n\nIt prints:\n\n```text\n(.*?)```)?"
BLOCKS = [
    pytest.param(page, block, printed, id=f"{page.stem}-{k}")
    for page in PAGES
    for k, (block, printed) in enumerate(
        re.findall(rf"```python\n(.*?)```{PRINTED}", page.read_text("utf-8"), re.DOTALL)
    )
]
OTHERS = "gymnasium|mujoco|pydrake|roboticstoolbox"
"""Other programs of the pages, which need not be installed."""


def test_the_pages_contain_examples():
    assert {block.values[0].name for block in BLOCKS} >= {"README.md", "motors.md", "my_motors.md"}


@pytest.mark.parametrize(("page", "block", "printed"), BLOCKS)
def test_example_runs(page, block, printed, capsys, tmp_path, monkeypatch):
    """URDFs of the page are written to the current folder as <name>.urdf."""
    for program in re.findall(rf"^(?:import|from) ({OTHERS})\b", block, re.MULTILINE):
        pytest.importorskip(program)
    monkeypatch.chdir(tmp_path)
    for text in urdfs(page):
        (tmp_path / f"{parse_arm(text).name}.urdf").write_text(text)
    for name, text in modules(page).items():
        (tmp_path / name).write_text(text)
        monkeypatch.delitem(sys.modules, name.removesuffix(".py"), raising=False)
    monkeypatch.syspath_prepend(tmp_path)
    exec(compile(block, page.name, "exec"), {})
    output = capsys.readouterr().out
    if page.stem == "other_programs":
        (printed,) = re.findall(r"```text\n(.*?)```", page.read_text("utf-8"), re.DOTALL)
    if printed:
        assert_printed(output, printed)


def test_tutorials_show_what_their_examples_print():
    index = (ROOT / "docs/index.md").read_text("utf-8").split(":caption: ")[1]
    tutorials = {name for name in index.split() if (ROOT / f"docs/{name}.md").is_file()}
    assert {"getting_started", "first_move", "simulate_and_tune"} <= tutorials
    examples = [block.values for block in BLOCKS if block.values[0].stem in tutorials]
    assert [
        (page.name, code) for page, code, shown in examples if "print(" in code and not shown
    ] == []


CONSOLE = [
    pytest.param(
        re.findall(r"```console\n(.*?)```", page.read_text("utf-8"), re.DOTALL), id=page.stem
    )
    for page in PAGES
    if "```console\n" in page.read_text("utf-8")
]


@pytest.mark.parametrize("blocks", CONSOLE)
def test_commands_print_what_the_page_shows(blocks, capsys, tmp_path, monkeypatch):
    """The lines below a command are among the lines of its output, in this order."""
    monkeypatch.chdir(tmp_path)
    for block in blocks:
        for part in block.split("$ ")[1:]:
            command, *expected = part.splitlines()
            program, *words = shlex.split(command, comments=True)
            assert program == "arm-dynamics"
            with pytest.raises(SystemExit) as end:
                main(words)
            assert not end.value.code, command
            output = iter(capsys.readouterr().out.splitlines())
            for line in expected:
                assert_printed(next(o for o in output if o.split()[:2] == line.split()[:2]), line)


def assert_printed(output, expected):
    """Compare the words of two texts; numbers may differ by two units of their last digit."""
    number = r"-?\d+(?:\.\d+)?(?:e[-+]?\d+)?"
    assert re.sub(number, "#", output).split() == re.sub(number, "#", expected).split()
    for found, text in zip(re.findall(number, output), re.findall(number, expected), strict=True):
        digits, _, exponent = text.partition("e")
        unit = 10.0 ** (int(exponent or 0) - len(digits.partition(".")[2]))
        unit = unit if "." in digits or exponent else 0.0  # counts are exact
        assert abs(float(found) - float(text)) <= 2.001 * unit, f"{found} instead of {text}"


def test_a_page_with_another_number_is_rejected():
    assert_printed("a 1.01 (4, 2e-3)", "a 1.00\n(4, 1e-3)")
    for output in ("a 1.03 (4, 2e-3)", "a 1.00 (5, 2e-3)", "b 1.00 (4, 2e-3)", "a 1.0 (4, 5e-3)"):
        with pytest.raises(AssertionError):
            assert_printed(output, "a 1.00 (4, 1e-3)")


def modules(page):
    """Return the Python blocks that a reader of the page saves, by file name."""
    saved = r"Save it as `(\w+\.py)`\.\n\n```python\n(.*?)```"
    return dict(re.findall(saved, page.read_text("utf-8"), re.DOTALL))


def test_the_controller_of_the_page_is_registered_and_accepts_its_gains(tmp_path, monkeypatch):
    page = ROOT / "docs" / "write_a_controller.md"
    ((name, text),) = modules(page).items()
    (tmp_path / name).write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "soft_pd", raising=False)
    (toml,) = re.findall(r"```toml\n(.*?)```", page.read_text("utf-8"), re.DOTALL)
    group, name, target = re.search(r'"([\w.]+)"\]\n(\w+) = "my_package\.(.*)"', toml).groups()
    entry = EntryPoint(name, target, group)
    found = {"arm_dynamics.controllers": [entry]}
    monkeypatch.setattr(plugins, "entry_points", lambda group: found.get(group, []))
    plugins._installed.cache_clear()
    (yaml,) = re.findall(r"```yaml\n(.*?)```", page.read_text("utf-8"), re.DOTALL)
    (tmp_path / "my_gains.yaml").write_text(yaml)
    words = ["--arm", "puma560", "--controller", name, "--gains", str(tmp_path / "my_gains.yaml")]
    try:
        controller = build_controller(load_arm("puma560"), None, tmp_path / "my_gains.yaml")
        assert record.run([str(tmp_path / "run"), *words, "--duration", "0.1"]) == 0
    finally:
        plugins._installed.cache_clear()
    assert type(controller).__name__ == "SoftPd"
    assert controller.gains["k"].tolist() == [10.0, 120.0, 10.0, 10.0, 10.0, 10.0]
    assert controller.controller_gains["cutoff"] == 80.0


def test_the_actuator_of_the_page_moves_an_arm(tmp_path, monkeypatch):
    page = ROOT / "docs" / "write_an_actuator.md"
    ((name, text),) = modules(page).items()
    (tmp_path / name).write_text(text)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "lagged_drive", raising=False)
    (toml,) = re.findall(r"```toml\n(.*?)```", page.read_text("utf-8"), re.DOTALL)
    group, name, target = re.search(r'"([\w.]+)"\]\n(\w+) = "my_package\.(.*)"', toml).groups()
    found = {group: [EntryPoint(name, target, group)]}
    monkeypatch.setattr(plugins, "entry_points", lambda group: found.get(group, []))
    plugins._installed.cache_clear()
    (urdf,) = urdfs(ROOT / "docs" / "my_motors.md")
    try:
        arm = parse_arm(urdf).with_actuator(name, joints=["elbow"], time_constant=0.05)
        plant, state = Plant(arm), State.of(arm.configuration("initial"))
        hold = dynamics.gravity(arm, state.q)
        states = [plant.step(state, Command.checked("effort", hold, 2), 1e-3, n) for n in (50, 400)]
    finally:
        plugins._installed.cache_clear()
    assert type(arm.actuators[1]).__name__ == "LaggedDrive"
    torque = arm.act_names.index("elbow.torque")
    assert states[0].act[torque] == pytest.approx(hold[1] * (1 - exp(-1)), rel=1e-6)
    assert states[1].act[torque] == pytest.approx(hold[1] * (1 - exp(-8)), rel=1e-6)


def urdfs(page):
    return re.findall(r"```xml\n(<\?xml.*?)```", page.read_text("utf-8"), re.DOTALL)


def test_the_urdf_of_the_tutorial_has_the_motors_of_its_text(tmp_path):
    (text,) = urdfs(ROOT / "docs" / "my_motors.md")
    assert audit_urdf(text, tmp_path) == ()
    arm = parse_arm(text)
    assert [joint.actuator for joint in arm.joints] == ["dc_motor", "ideal"]
    assert arm.actuators[0].constants["gear_ratio"] == 50.0
    assert arm.tool_frame == "tool"
    (tmp_path / "my_arm.urdf").write_text(text)
    given = ["--arm", str(tmp_path / "my_arm.urdf"), "--payload", "0.2", "--duration", "0.2"]
    assert record.run([str(tmp_path / "my_run"), *given]) == 0


def test_link_targets_exist():
    for page in [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")]:
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text("utf-8")):
            assert (page.parent / target).exists(), f"{page.name} → {target}"


FOREIGN = {"pin", "ros2: command not found", "ros2 topic list", "Permission denied", "sim", "scan"}
"""Messages of other programs, quoted on the page of symptoms."""


def test_the_messages_of_the_symptoms_exist_in_the_code():
    page = (ROOT / "docs" / "troubleshooting.md").read_text("utf-8")
    code = "".join(source.read_text("utf-8") for source in ROOT.glob("arm_dynamics/**/*.py"))
    symptoms = [line.split("|")[1] for line in page.splitlines() if line.startswith("| ")]
    quoted = {text for symptom in symptoms for text in re.findall("`([^`]+)`", symptom)}
    assert len(quoted) > 12
    assert sorted(text for text in quoted - FOREIGN if text not in code) == []


def row(parameter):
    """Return a parameter's line in the table of docs/motors.md."""
    default = "required" if parameter.default is None else f"{parameter.default:g}"
    allowed = "any" if parameter.lower == parameter.above == -inf else parameter.range_text
    words = parameter.unit, default.replace("inf", "∞"), allowed, parameter.description
    return f"| `{parameter.name}` | {' | '.join(words)} |"


def test_every_motor_parameter_is_listed_and_appears_in_an_equation():
    page = (ROOT / "docs" / "motors.md").read_text("utf-8")
    listed, terms = page.split("## Parameters")[1].split("## Terms")
    lines = [line for line in listed.splitlines() if line.startswith("| `")]
    assert lines == [row(parameter) for parameter in PARAMETERS]
    terms = terms.split("## Simplifications")[0]
    assert [p.name for p in PARAMETERS if f"`{p.name}`" not in terms] == []


def test_every_safety_parameter_is_listed_with_default_and_unit():
    page = (ROOT / "docs" / "hardware.md").read_text("utf-8").split("## Parameters")[1]
    table = page.split("| parameter `safety.…` |")[1].split("\n\n")[0]
    listed = [line.split(" | ")[:3] for line in table.splitlines() if line.startswith("| `")]
    assert listed == [[f"| `{p.name}`", f"{p.default:g}", p.unit] for p in SAFETY]

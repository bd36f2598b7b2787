"""The documentation's Python runs as it stands, and its tables are the code's."""

import re
from math import inf
from pathlib import Path

import pytest

from arm_dynamics.actuators.dc_motor_constants import PARAMETERS
from arm_dynamics.cli import record
from arm_dynamics.model.audit import audit
from arm_dynamics.model.load import parse_arm

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted(ROOT.glob("docs/*.md"))]
BLOCKS = [
    pytest.param(page, block, id=f"{page.stem}-{k}")
    for page in PAGES
    for k, block in enumerate(
        re.findall(r"```python\n(.*?)```", page.read_text("utf-8"), re.DOTALL)
    )
]


def test_there_are_examples():
    assert {block.values[0].name for block in BLOCKS} >= {"README.md", "motors.md", "my_motors.md"}


@pytest.mark.parametrize(("page", "block"), BLOCKS)
def test_example_runs(page, block, capsys, tmp_path, monkeypatch):
    """Where the page has URDFs, they lie in the present folder as <name>.urdf."""
    monkeypatch.chdir(tmp_path)
    for text in urdfs(page):
        (tmp_path / f"{parse_arm(text).name}.urdf").write_text(text)
    exec(compile(block, page.name, "exec"), {})
    printed = capsys.readouterr().out
    if "worst joint error" in printed:
        assert float(printed.split()[-2]) < 0.02


def urdfs(page):
    return re.findall(r"```xml\n(<\?xml.*?)```", page.read_text("utf-8"), re.DOTALL)


def test_the_urdf_of_an_own_arm_has_the_motors_that_its_page_tells(tmp_path):
    (text,) = urdfs(ROOT / "docs" / "my_motors.md")
    assert audit(text, tmp_path) == ()
    arm = parse_arm(text)
    assert [joint.actuator for joint in arm.joints] == ["dc_motor", "ideal"]
    assert arm.actuators[0].constants["gear_ratio"] == 50.0
    assert arm.tool_frame == "tool"
    (tmp_path / "my_arm.urdf").write_text(text)
    given = ["--arm", str(tmp_path / "my_arm.urdf"), "--payload", "0.2", "--duration", "0.2"]
    assert record.run([str(tmp_path / "my_run"), *given]) == 0


def test_links_lead_somewhere():
    for page in [*ROOT.glob("*.md"), *ROOT.glob("docs/*.md")]:
        for target in re.findall(r"\]\(([^)#:]+)\)", page.read_text("utf-8")):
            assert (page.parent / target).exists(), f"{page.name} → {target}"


def row(parameter):
    """A parameter's line in the table of docs/motors.md."""
    default = "required" if parameter.default is None else f"{parameter.default:g}"
    allowed = "any" if parameter.lower == parameter.above == -inf else parameter.allowed
    words = parameter.unit, default.replace("inf", "∞"), allowed, parameter.description
    return f"| `{parameter.name}` | {' | '.join(words)} |"


def test_every_motor_parameter_is_listed_and_appears_in_a_term():
    page = (ROOT / "docs" / "motors.md").read_text("utf-8")
    listed, terms = page.split("## Parameters")[1].split("## Terms")
    lines = [line for line in listed.splitlines() if line.startswith("| `")]
    assert lines == [row(parameter) for parameter in PARAMETERS]
    terms = terms.split("## What is simplified")[0]
    assert [p.name for p in PARAMETERS if f"`{p.name}`" not in terms] == []

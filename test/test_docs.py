"""The documentation's Python runs as it stands, and its tables are the code's."""

import re
from math import inf
from pathlib import Path

import pytest

from arm_dynamics.actuators.dc_motor_constants import PARAMETERS

ROOT = Path(__file__).parent.parent
PAGES = [ROOT / "README.md", *sorted(ROOT.glob("docs/*.md"))]
BLOCKS = [
    pytest.param(page.name, block, id=f"{page.stem}-{k}")
    for page in PAGES
    for k, block in enumerate(
        re.findall(r"```python\n(.*?)```", page.read_text("utf-8"), re.DOTALL)
    )
]


def test_there_are_examples():
    assert {block.values[0] for block in BLOCKS} >= {"README.md", "motors.md"}


@pytest.mark.parametrize(("page", "block"), BLOCKS)
def test_example_runs(page, block, capsys):
    exec(compile(block, page, "exec"), {})
    printed = capsys.readouterr().out
    if "worst joint error" in printed:
        assert float(printed.split()[-2]) < 0.02


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

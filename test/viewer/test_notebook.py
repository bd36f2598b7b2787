"""HTML of arms, simulations, recordings and pages in notebooks."""

import sys
from types import SimpleNamespace
from xml.etree import ElementTree

import numpy as np
import pytest
from conftest import five_dof

from arm_dynamics import Simulation, load_arm
from arm_dynamics.model.arm_html import HEIGHT, WIDTH, arm_svg
from arm_dynamics.recording import Recording
from arm_dynamics.viewer.show import in_notebook, show

SVG = "{http://www.w3.org/2000/svg}"


def drawing(text):
    return ElementTree.fromstring(text[text.index("<svg") : text.index("</svg>") + 6])


@pytest.mark.parametrize("name", ["five_dof", "two_link_pb", "so101"])
def test_an_arm_is_drawn_with_each_joint_inside_the_picture(name):
    arm = load_arm(name)
    root = drawing(arm._repr_html_())
    marks = [e for kind in ("circle", "rect") for e in root.findall(f"{SVG}{kind}")]
    assert {e.find(f"{SVG}title").text for e in marks} == {*arm.joint_names, arm.tool_frame}
    lines = root.findall(f"{SVG}line")
    assert len(lines) == arm.nv + 1
    for line in lines:
        assert 0 <= float(line.get("x1")) <= WIDTH
        assert 0 <= float(line.get("y2")) <= HEIGHT
    for joint in arm.joint_names:
        assert joint in arm._repr_html_()


def test_a_simulation_is_drawn_in_its_present_configuration():
    simulation = Simulation(five_dof())
    before = simulation._repr_html_()
    simulation.reset([0.5, -0.8, 0.4, 0.3, 0.2])
    after = simulation._repr_html_()
    assert "t = 0.002 s" in after
    assert arm_svg(five_dof(), simulation.state.q) in after
    assert arm_svg(five_dof(), simulation.state.q) not in before


def test_a_recording_is_drawn_as_curves_with_gaps():
    time = np.linspace(0, 5, 1001)
    q = np.column_stack([np.sin(time), np.cos(time)])
    q[10:20, 1] = np.nan
    nothing = np.full_like(q, np.nan)
    recording = Recording(
        ("a<b>", "J2"), time, q, nothing, nothing, (), np.empty((1001, 0)), {}, arm=None
    )
    text = recording._repr_html_()
    curves = drawing(text).findall(f"{SVG}polyline")
    assert [c.find(f"{SVG}title").text for c in curves] == ["a<b>", "J2"]
    points = [tuple(map(float, p.split(","))) for p in curves[0].get("points").split()]
    assert 100 < len(points) <= 400
    assert points[0][0] < points[-1][0]
    assert "1001 states in 5 s" in text
    assert "nan" not in text


def test_show_embeds_the_page_only_in_a_notebook(monkeypatch, capsys):
    assert not in_notebook()
    shell = SimpleNamespace(kernel=object())
    monkeypatch.setitem(sys.modules, "IPython", SimpleNamespace(get_ipython=lambda: shell))
    assert in_notebook()
    with show(five_dof(), port=0) as page:
        assert f'<iframe src="{page.url}"' in page._repr_html_()
        assert page.url in capsys.readouterr().out
    del shell.kernel
    with show(five_dof(), port=0) as page:
        assert "iframe" not in page._repr_html_()

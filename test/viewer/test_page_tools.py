"""Plots, theme, camera, motors and named poses of a page, as a browser uses them."""

import asyncio
import csv
import io
import math
from contextlib import nullcontext
from types import SimpleNamespace

import numpy as np
import pytest
from browser import Client, Panel
from test_viewer import eventually, start

from arm_dynamics.core.status_summary import StatusSummary
from arm_dynamics.viewer.plot import ALL, TOOL
from arm_dynamics.viewer.scene_stage import ABOVE_FLOOR, THEMES
from arm_dynamics.viewer.skeleton import tip
from arm_dynamics.viewer.table import motors_html


@pytest.fixture
def page():
    with start(control=True) as page:
        yield page


def fill(page, count=5):
    for k in range(count):
        page.show(
            (0.1 * k, 0.2, 0.1), (4, 5, 6), reference=(0, 0, 0.1), time=k * 1.0,
            signals={"command: effort": np.array([7.0, 8.0, k])},
        )  # fmt: skip
    page._canvas._plot.draw(page._history)


def test_any_signal_and_any_joint_can_be_plotted(page):
    plot = page._canvas._plot
    fill(page)
    plot.choose("command: effort")
    plot.draw(page._history)
    assert [curve[-1] for curve in plot._chart.data] == [0, 7, 8, 4]
    plot._joint.value = "slide"
    plot.draw(page._history)
    assert np.isnan(plot._chart.data[1]).all()
    assert plot._chart.data[3].tolist() == [0, 1, 2, 3, 4]
    plot._joint.value = ALL
    plot.choose(TOOL)
    plot.draw(page._history)
    newest = [curve[-1] for curve in plot._chart.data[1:]]
    assert newest == pytest.approx(tip(plot._chain, (0.4, 0.2, 0.1)))


def test_a_paused_plot_stands_and_continues(page):
    plot = page._canvas._plot
    fill(page)
    with Panel(page.url) as panel:
        panel.push("Pause plot")
        panel.wait_for(lambda: "Continue plot" in panel.offered, "no pause")
        before = plot._chart.data[1].tolist()
        page.show((1, 0, 0), time=9.0)
        plot.draw(page._history)
        assert plot._chart.data[1].tolist() == before
        panel.push("Continue plot")
        panel.wait_for(lambda: "Pause plot" in panel.offered, "no end of the pause")
        plot.draw(page._history)
        assert plot._chart.data[1][-1] == 1.0


def test_the_plotted_time_is_exported_as_csv_to_one_browser(page):
    fill(page)
    with Client(page.url) as client, Client(page.url) as other:
        other.until_quiet(0.2)
        rows = [m for m in client.until_quiet(0.2) if m["type"] == "GuiButtonGroupMessage"]
        (plot,) = [m for m in rows if "Export CSV" in m["props"]["options"]]
        client.send("GuiUpdateMessage", uuid=plot["uuid"], updates={"value": "Export CSV"})
        messages = client.until_quiet(0.5)
        assert [m["filename"] for m in messages if m["type"] == "FileTransferStartDownload"] == [
            "arm.csv"
        ]
        assert not [m for m in other.until_quiet(0.2) if "FileTransfer" in m["type"]]
    table = list(csv.DictReader(io.StringIO(page._canvas._plot.csv())))
    assert [row["time [s]"] for row in table] == ["0.0", "1.0", "2.0", "3.0", "4.0"]
    assert [row["position.yaw"] for row in table] == [repr(0.1 * k) for k in range(5)]
    assert table[3]["velocity.slide"] == "6.0"
    assert table[3]["error.yaw"] == repr(-0.1 * 3)
    assert table[3]["command: effort.slide"] == "3.0"
    assert float(table[0]["tool.x [m]"]) == tip(page._canvas._plot._chain, (0.0, 0.2, 0.1))[0]
    assert "effort.yaw" not in table[0]


def test_a_theme_changes_panel_and_scene(page):
    with Panel(page.url) as panel:
        panel.set("Theme", "light")
        grid = page.scene.get_handle_by_name("/floor")
        assert eventually(lambda: tuple(grid.plane_color) == THEMES["light"].plane)
    with Client(page.url) as client:
        themes = [
            m["dark_mode"]
            for m in client.until_quiet(0.3)
            if m["type"] == "ThemeConfigurationMessage"
        ]
    assert themes[-1] is False


def test_the_camera_stays_above_the_floor(page):
    with Client(page.url) as client:
        client.until_quiet(0.3)
        (handle,) = page._server.get_clients().values()
        lowest = page.scene.get_handle_by_name("/floor").position[2] + ABOVE_FLOOR * page.reach
        for height, shown in ((1.5, 1.5), (-3.0, lowest)):
            client.send(
                "ViewerCameraMessage", wxyz=(1, 0, 0, 0), position=(1, 1, height), fov=1.0,
                near=0.1, far=9.0, image_height=100, image_width=100, look_at=(0, 0, 0.2),
                up_direction=(0, 0, 1),
            )  # fmt: skip
            at = pytest.approx(shown)
            assert eventually(lambda at=at: handle.camera.position[2] == at)
        assert handle.camera.position[:2].tolist() == [1, 1]
        np.testing.assert_allclose(handle.camera.look_at, (0, 0, 0.2), atol=1e-9)


def test_a_browser_without_the_initial_camera_is_not_lifted(page):
    """Its first positions are those of an empty scene, perhaps below the floor."""
    camera = SimpleNamespace(position=np.array([0.0, 0.0, -5.0]), look_at=np.zeros(3))
    callbacks = []
    camera.on_update = callbacks.append
    page._canvas.stage._keep_above_floor(SimpleNamespace(camera=camera, atomic=nullcontext))
    for height, shown in ((-5.0, -5.0), (2.0, 2.0)):
        camera.position = np.array([0.0, 0.0, height])
        asyncio.run(callbacks[0](camera))
        assert camera.position[2] == shown
    camera.position = np.array([0.0, 0.0, -5.0])
    asyncio.run(callbacks[0](camera))
    assert -1 < camera.position[2] < 1


def test_the_motors_are_listed_with_their_faults():
    status, sample = StatusSummary(), SimpleNamespace(voltage=[12.0, math.nan], temperature=None)
    assert status.motor_states(["a", "b"]) == {}
    assert motors_html(["a", "b"], SimpleNamespace(voltage=None, temperature=None), {}) == ""
    status.take("hardware: a", True, "OK", {"torque": "on"})
    status.take("hardware: b", False, "overload <1>", {"torque": "off"})
    states = status.motor_states(["a", "b"])
    assert states == {"a": ("torque on", True), "b": ("overload <1>", False)}
    text = motors_html(["a", "b"], sample, states)
    assert "12.0" in text
    assert "torque on" in text
    assert "overload &lt;1&gt;" in text
    assert "nan" not in text


def test_a_named_pose_moves_the_sliders_and_commands_it():
    targets = []
    poses = {"zero": (0, 0, 0), "up": (0.5, -0.4, 0.2)}
    with start(interactive=True, poses=poses) as page, Panel(page.url) as panel:
        page.on_target(targets.append)
        panel.push("up")
        panel.wait_for(lambda: targets and targets[-1] == poses["up"], "no target")
        panel.wait_for(lambda: list(panel.sliders.values()) == [0.5, -0.4, 0.2], "no slider")


@pytest.mark.parametrize(
    ("kind", "content"),
    [
        ("TransformControlsUpdateMessage", {"wxyz": (1, 0, 0, 0), "position": (0, math.nan, 0)}),
        ("TransformControlsUpdateMessage", {"wxyz": (math.inf, 0, 0, 0), "position": (0, 0, 0)}),
    ],
)
def test_a_pose_that_is_not_finite_is_rejected(page, caplog, kind, content):
    handle = page.scene.add_transform_controls("/target")
    with Client(page.url) as client:
        (found,) = [m for m in client.until_quiet(0.3) if m["type"] == "TransformControlsMessage"]
        client.send(kind, name="/target", owner=found["owner"], **content)
        assert eventually(lambda: "expected numbers that are finite" in caplog.text)
    assert handle.position.tolist() == [0, 0, 0]

"""The viewer page, tested over its port and its messages like a browser."""

import asyncio
import logging
import math
import re
import socket
import sys
import time
from importlib import import_module
from pathlib import Path
from threading import Thread
from types import SimpleNamespace
from urllib.error import HTTPError
from urllib.parse import urlsplit
from urllib.request import urlopen

import mimic_arm
import numpy as np
import pytest
import trimesh
from browser import Client, Panel
from hypothesis import given
from hypothesis import strategies as st
from websockets.exceptions import InvalidStatus

from arm_dynamics import load_arm
from arm_dynamics.collision import Scene, SceneObject
from arm_dynamics.core.errors import ConfigError, InvalidValue, UnknownName
from arm_dynamics.dynamics.kinematics.frames import link_poses
from arm_dynamics.model.load import parse_arm
from arm_dynamics.model.solids import Shape
from arm_dynamics.viewer import ArmPage, show
from arm_dynamics.viewer.drawing import load_visuals
from arm_dynamics.viewer.plot import QUANTITIES, RATE, TOOL, WINDOW, History, HistorySample
from arm_dynamics.viewer.scene_stage import VIEW, _aim, page_reach
from arm_dynamics.viewer.server import fault, may_connect, policy
from arm_dynamics.viewer.skeleton import Skeleton, tip
from arm_dynamics.viewer.sliders import slider_range
from arm_dynamics.viewer.table import short, status_html, table_html

NAMES = ("yaw", "lift", "slide")
LIMITS = ((-math.inf, math.inf), (-1.2, 0.7), (0.0, 0.3))
URDF = """<robot name="small">
  <link name="base"><visual><geometry><cylinder radius="0.1" length="0.05"/></geometry></visual>
  </link>
  <link name="turret"><visual><origin xyz="0 0 0.1" rpy="0.2 0 0"/>
    <geometry><box size="0.1 0.1 0.2"/></geometry></visual></link>
  <link name="arm"><visual><geometry><sphere radius="0.05"/></geometry></visual></link>
  <link name="rod"/><link name="finger"/><link name="tool"/>
  <joint name="yaw" type="continuous"><parent link="base"/><child link="turret"/>
    <origin xyz="0 0 0.2" rpy="0 0 0.3"/><axis xyz="0 0 2"/></joint>
  <joint name="lift" type="revolute"><parent link="turret"/><child link="arm"/>
    <origin xyz="0.1 0 0.2" rpy="-1.5 0.4 0"/><axis xyz="0 0.6 0.8"/>
    <limit lower="-1.2" upper="0.7" effort="1" velocity="1"/></joint>
  <joint name="slide" type="prismatic"><parent link="arm"/><child link="rod"/>
    <origin xyz="0.3 0 0" rpy="0 1 0"/><axis xyz="1 0 0"/>
    <limit lower="0" upper="0.3" effort="1" velocity="1"/></joint>
  <joint name="grip" type="revolute"><parent link="rod"/><child link="finger"/>
    <origin xyz="0 0.1 0"/><axis xyz="0 1 0"/><mimic joint="lift" multiplier="-2" offset="0.1"/>
    <limit lower="-3" upper="3" effort="1" velocity="1"/></joint>
  <joint name="end" type="fixed"><parent link="finger"/><child link="tool"/>
    <origin xyz="0 0 0.15"/></joint>
</robot>"""


def start(**options):
    options = {"limits": LIMITS, "tool_frame": "tool", "port": 0, **options}
    return ArmPage(URDF, NAMES, **options)


@pytest.fixture
def page():
    with start() as page:
        yield page


@pytest.fixture
def sliders():
    with start(interactive=True, initial=(0.1, -0.2, 0.05)) as page:
        yield page


def port_of(page):
    return urlsplit(page.url).port


def eventually(condition, seconds=5.0):
    end = time.monotonic() + seconds
    while not condition() and time.monotonic() < end:
        time.sleep(0.01)
    return condition()


def listeners(port):
    """Return the addresses, in the format of the kernel, that listen on ``port``."""
    rows = [
        row.split()
        for table in ("/proc/net/tcp", "/proc/net/tcp6")
        if Path(table).exists()
        for row in Path(table).read_text().splitlines()[1:]
    ]
    return {
        row[1].split(":")[0] for row in rows if row[3] == "0A" and row[1].endswith(f":{port:04X}")
    }


def test_the_page_listens_only_on_the_loopback(page):
    assert listeners(port_of(page)) == {"0100007F"}


def test_serves_the_page(page):
    with urlopen(page.url) as answer:
        assert answer.status == 200
        assert b"<html" in answer.read().lower()


def test_connections_without_a_valid_request_are_not_logged(page, caplog):
    for request in (b"", b"HEAD / HTTP/1.1\r\nHost: localhost\r\n\r\n"):
        with socket.create_connection(("127.0.0.1", port_of(page))) as connection:
            connection.sendall(request)
            connection.shutdown(socket.SHUT_WR)
            connection.settimeout(10)
            while connection.recv(1024):  # until the server has closed it
                pass
    assert caplog.text == ""


def test_the_actual_port_is_reported_when_the_requested_one_is_busy(page, caplog):
    busy = port_of(page)
    with start(port=busy) as second:
        assert port_of(second) != busy
        assert f"port {busy} is busy" in caplog.text
        with urlopen(second.url) as answer:
            assert answer.status == 200


def test_close_frees_the_port():
    page = start()
    port = port_of(page)
    page.close()
    page.close()
    with socket.create_server(("127.0.0.1", port)):
        pass


@pytest.mark.parametrize(
    ("options", "error", "words"),
    [
        ({"port": 70000}, InvalidValue, "port = 70000"),
        ({"host": "192.0.2.1"}, InvalidValue, "192.0.2.1"),
        ({"tool_frame": "hand"}, UnknownName, "unknown link of the URDF 'hand'; known: arm"),
        ({"limits": LIMITS[:2]}, InvalidValue, "limits: length = 2; expected 3"),
        ({"limits": (*LIMITS[:2], (1, 0))}, InvalidValue, "limits of slide: lower = 1"),
        ({"initial": (0, 0)}, InvalidValue, "initial"),
    ],
)
def test_invalid_arms_are_rejected(options, error, words):
    with pytest.raises(error, match=words):
        start(**options)


def test_invalid_urdfs_are_rejected():
    with pytest.raises(InvalidValue, match="expected a URDF whose geometry can be drawn"):
        ArmPage("<robot", NAMES, limits=LIMITS, tool_frame="tool", port=0)
    with pytest.raises(UnknownName, match="'elbow'"):
        ArmPage(URDF, ("elbow",), limits=LIMITS[:1], tool_frame="tool", port=0)


@pytest.mark.parametrize("missing", ["viser", "yourdfpy"])
def test_without_viser_the_required_extra_is_named(monkeypatch, missing):
    monkeypatch.setitem(sys.modules, missing, None)
    with pytest.raises(ConfigError, match=r"python.* -m pip install 'viser>=.*' 'yourdfpy>="):
        start()


def test_an_arm_is_shown_from_python(capsys):
    """In its initial configuration, or another one; sliders call back with their values."""
    arm, targets = load_arm("five_dof"), []
    with show(arm, port=0, interactive=True) as page:
        assert capsys.readouterr().out == f"five_dof: {page.url}\n"
        assert page.joint_names == arm.joint_names
        page.on_target(targets.append)
        page.set_target([0.1] * 5)
        assert eventually(lambda: targets)
        page.show(arm.configuration("zero"), time=1.0)
    with pytest.raises(InvalidValue, match=r"q: shape = \(2,\); expected"):
        show(arm, [0.0, 1.0], port=0)


def test_show_accepts_arrays_and_rejects_wrong_lengths(page):
    page.show(np.zeros(3), np.ones(3, dtype=np.float32), [1, 2, 3], {"a": "b"}, (0, 0, 0))
    for arguments in ({"q": [0, 0]}, {"q": [0] * 3, "v": [0]}, {"q": [0] * 3, "effort": [0] * 4}):
        with pytest.raises(InvalidValue, match="expected"):
            page.show(**arguments)
    with pytest.raises(InvalidValue, match=r"q\[1\] = nan"):
        page.show([0, math.nan, 0])


def test_show_costs_little_without_a_browser(page):
    q = np.zeros(3)
    costs = []
    for k in range(2000):
        begin = time.perf_counter()
        page.show(q + k, q, q, {"a": "b"}, q, time=k / 30)
        costs.append(time.perf_counter() - begin)
    assert np.median(costs) < 1e-4


def test_a_browser_receives_the_motion_of_the_arm(page):
    with Client(page.url) as client:
        client.until_quiet()
        page.show([0.5, 0.2, 0.1], status={"simulated time": "12 s"}, time=1.0)
        messages = client.until_quiet()
    moved = {m["name"] for m in messages if m["type"] == "SetOrientationMessage"}
    assert {"/arm/turret", "/arm/turret/arm", "/arm/turret/arm/rod/finger"} == moved
    assert {m["name"] for m in messages if m["type"] == "SetPositionMessage"} == {
        "/arm/turret/arm/rod"
    }
    assert "12 s" in str(messages)


def test_an_update_between_the_check_and_the_wait_of_the_sender_is_sent(page, monkeypatch):
    """viser sets an event in the thread of the update, too, which could freeze the page."""
    loop = asyncio.new_event_loop()
    buffer = import_module("viser.infra._infra").AsyncMessageBuffer(loop, persistent_messages=True)
    messages = [import_module("viser._messages").ResetGuiMessage() for _ in range(2)]

    def update():
        thread = Thread(target=buffer.push, args=(messages.pop(),))
        thread.start()
        thread.join()

    def update_before_the_wait():
        monkeypatch.undo()
        update()
        return loop

    async def first():
        return await buffer.window_generator(1).__anext__()

    monkeypatch.setattr(buffer.message_event, "_get_loop", update_before_the_wait)
    sent = loop.create_task(first())
    loop.run_until_complete(asyncio.wait([sent], timeout=1))
    update()
    loop.run_until_complete(asyncio.wait([sent], timeout=1))
    assert sent.done()
    loop.close()


def test_unchanged_states_send_no_messages(page):
    with Client(page.url) as client:
        page.show([0.5, 0.2, 0.1], time=1.0)
        client.until_quiet()
        for _ in range(20):
            page.show([0.5, 0.2, 0.1], time=1.0)
            time.sleep(0.01)
        assert client.until_quiet() == []


def test_the_last_state_reaches_the_panel(page):
    with Client(page.url) as client:
        client.until_quiet()
        for k in range(10):  # faster than the refresh of the panel
            page.show([k / 10, 0, 0], time=k / 100)
            time.sleep(0.02)
        assert "+0.9000" in str(client.until_quiet())


def test_the_reference_ghost_is_visible_only_if_it_differs(page):
    page.show([0, 0, 0.1], reference=[0.5, 0, 0.1])
    canvas = page._canvas
    canvas.draw(page._shown.sample, {}, page._history)
    assert canvas._ghost.visible
    page.show([0, 0, 0.1], reference=[0.001, 0, 0.1])
    canvas.draw(page._shown.sample, {}, page._history)
    assert not canvas._ghost.visible


def test_drawing_errors_are_logged_once_and_never_raised(page, monkeypatch, caplog):
    def broken(*_):
        raise RuntimeError("no paint")

    monkeypatch.setattr(page._canvas, "draw", broken)
    with Client(page.url):
        for k in range(5):
            page.show([0, 0, k / 100])
            time.sleep(0.05)
        assert eventually(lambda: "no paint" in caplog.text)
        assert caplog.text.count("no paint") == 1


def test_a_view_only_page_has_no_controls_of_motion(page):
    with Client(page.url) as client:
        messages = client.until_quiet()
    assert "tool frame" in str(messages)
    inputs = {m["props"]["label"] for m in messages if m["type"].startswith("Gui") and "value" in m}
    assert inputs == {"Clear path", "Joint", "Last 10 s", "Plot", "Theme"}
    assert not any("TransformControls" in m["type"] for m in messages)
    with pytest.raises(InvalidValue, match="interactive=True"):
        page.on_target(print)


def test_the_emergency_stop_of_a_page_is_a_red_button_that_calls_back():
    """It is the only control of a view-only page that affects the arm."""
    pressed = []
    with (
        start(on_emergency_stop=lambda: pressed.append("stop")) as page,
        Client(page.url) as client,
    ):
        button = client.press("EMERGENCY STOP")
        assert eventually(lambda: pressed == ["stop"])
    assert button["props"]["color"] == "red"


def test_sliders_call_back_within_the_limits(sliders):
    targets = []
    sliders.on_target(targets.append)
    with Client(sliders.url) as client:
        messages = client.until_quiet()
        found = [m for m in messages if m["type"] == "GuiSliderMessage"]
        assert [m["props"]["label"] for m in found] == list(NAMES)
        assert [m["value"] for m in found] == [0.1, -0.2, 0.05]
        client.send("GuiUpdateMessage", uuid=found[1]["uuid"], updates={"value": 0.4})
        assert eventually(lambda: targets == [(0.1, 0.4, 0.05)])
        client.send("GuiUpdateMessage", uuid=found[1]["uuid"], updates={"value": 99.0})
        assert eventually(lambda: targets[-1] == (0.1, 0.7, 0.05))
        joints = sliders._canvas.controls.sliders
        assert [slider.value for slider in joints._sliders] == [0.1, 0.7, 0.05], "not as used"
        client.send("GuiUpdateMessage", uuid=found[0]["uuid"], updates={"value": -50})
        assert eventually(lambda: targets[-1] == (-math.pi, 0.7, 0.05))
        count = len(targets)
        client.send("GuiUpdateMessage", uuid=found[0]["uuid"], updates={"value": math.nan})
        time.sleep(0.3)
        assert len(targets) == count


def test_a_touch_after_show_moves_one_joint(sliders):
    """The sliders follow the arm until a touch, then again once the arm is at its target."""
    targets, q = [], np.array([0.3, 0.2, 0.01])
    sliders.on_target(targets.append)
    sliders.show(q)
    with Panel(sliders.url) as panel:
        panel.wait_for(lambda: list(panel.sliders.values()) == q.tolist(), "sliders do not follow")
        panel.set(next(iter(panel.sliders)), 0.5)
        panel.wait_for(lambda: targets, "no target")
        assert targets == [(0.5, 0.2, 0.01)]
        draw = sliders._canvas.controls.sliders.follow
        draw([0.4, 0.2, 0.01])  # still moving
        assert sliders._canvas.controls.sliders.target == targets[0]
        draw([0.5, 0.2, 0.01])
        sliders.show([0.6, 0.1, 0.02])
        panel.wait_for(
            lambda: list(panel.sliders.values()) == [0.6, 0.1, 0.02], "sliders do not follow"
        )
    assert len(targets) == 1


def test_slider_updates_cause_no_callback(sliders):
    """Prismatic joints in m; values are rounded to the slider's step."""
    targets = []
    sliders.on_target(targets.append)
    joints = sliders._canvas.controls.sliders
    joints.show((0.123456, 9.0, 0.0123456))
    assert joints.target == (0.123, 0.7, 0.0123)
    joints.send_again()
    assert joints.target == (0.123, 0.7, 0.0123)
    assert targets == []
    joints.set((0.5, 0.0, 0.1))
    assert targets[-1] == (0.5, 0.0, 0.1)


def test_a_slider_that_a_browser_moved_stays_until_its_callback(sliders):
    targets = []
    sliders.on_target(targets.append)
    joints = sliders._canvas.controls.sliders
    joints._sliders[0]._impl.value = 0.4  # as viser, which then calls back in another thread
    joints.show((0.2, 0.0, 0.05))
    assert joints.target == (0.4, 0.0, 0.05)
    joints._moved(SimpleNamespace(client=object()))
    assert targets == [(0.4, 0.0, 0.05)]
    joints.show((0.2, 0.0, 0.05))
    assert joints.target == (0.2, 0.0, 0.05)


@pytest.mark.quick(3)
@pytest.mark.parametrize(
    "updates",
    [
        {"value": math.nan}, {"value": math.inf}, {"value": "1.0"}, {"value": None},
        {"value": [1.0]}, {"value": True}, {}, [], {"min": -9.0}, {"value": 0.1, "removed": True},
    ],
)  # fmt: skip
def test_a_browser_can_send_a_slider_nothing_but_a_finite_value(sliders, caplog, updates):
    slider = sliders._canvas.controls.sliders._sliders[0]
    assert fault(slider._impl, updates)
    assert fault(slider._impl, {"value": 1}) == ""
    with Client(sliders.url) as client:
        client.until_quiet(0.2)
        client.send("GuiUpdateMessage", uuid=slider._impl.uuid, updates=updates)
        assert eventually(lambda: "rejected" in caplog.text or updates == [])
    assert (slider.value, slider.min) == (0.1, -math.pi)


def test_actions_report_their_result(sliders):
    def fail():
        raise InvalidValue("no")

    actions = {"Do": lambda: "done it", "Fail": fail, "Later": lambda: ""}
    row = sliders.add_controls().add_actions("Arm", actions, ("Do", "Fail"))
    assert row.offered == ("Do", "Fail")
    with Client(sliders.url) as client:
        messages = client.until_quiet(0.5)
        groups = [m for m in messages if m["type"] == "GuiButtonGroupMessage"]
        (group,) = [m for m in groups if m["props"]["label"] == "Arm"]
        for name, word in (("Do", "done it"), ("Fail", "rejected: no"), ("Do", "done it")):
            client.send("GuiUpdateMessage", uuid=group["uuid"], updates={"value": name})
            assert eventually(lambda word=word: word in sliders.feedback.html)
        row.offer("Fail")
        client.send("GuiUpdateMessage", uuid=group["uuid"], updates={"value": "Do"})
        client.send("GuiUpdateMessage", uuid=group["uuid"], updates={"value": "Fail"})
        assert eventually(lambda: "rejected: no" in sliders.feedback.html)


def test_a_page_of_another_host_cannot_move_the_arm(sliders):
    """Even with the token: no connection is opened, so no message is read."""
    foreign = f"http://localhost:{port_of(sliders)}"  # the same server under another name
    with pytest.raises(InvalidStatus, match="403"):
        Client(sliders.url, foreign)
    with Client(sliders.url, f"http://127.0.0.1:{port_of(sliders)}") as client:
        assert client.until_quiet()


@given(st.floats(-9, 9) | st.just(-math.inf), st.floats(0, 9) | st.just(math.inf))
def test_slider_ranges_are_finite_and_within_the_limits(lower, width):
    upper = math.inf if math.isinf(lower) and math.isinf(width) else max(lower, -9) + width
    low, high = slider_range(lower, upper)
    assert math.isfinite(low)
    assert math.isfinite(high)
    assert lower <= low <= high <= upper


def test_a_request_of_a_public_address_is_rejected(page, monkeypatch, caplog):
    opened = []
    monkeypatch.setattr("viser._viser.ViserTunnel", lambda *a: opened.append(a))
    with Client(page.url) as client, caplog.at_level(logging.WARNING):
        client.send("ShareUrlRequest")
        assert eventually(lambda: "public address rejected" in caplog.text)
        messages = client.until_quiet()
    assert opened == []
    assert page._server.request_share_url() is None
    themes = [m for m in messages if m["type"] == "ThemeConfigurationMessage"]
    assert [theme["show_share_button"] for theme in themes] == [False]


def test_pages_of_other_hosts_are_rejected(page):
    with Client(page.url, origin=page.url) as client:
        assert client.until_quiet()
    with pytest.raises(InvalidStatus, match="403"):
        Client(page.url, "http://evil.test")


@pytest.mark.parametrize(
    ("origin", "host", "bound", "allowed"),
    [
        (None, "127.0.0.1:1", "127.0.0.1", True),
        (None, "localhost:1", "127.0.0.1", True),
        (None, "[::1]:1", "::1", True),
        (None, "evil.test:1", "127.0.0.1", False),  # a DNS name of this address
        (None, "127.0.0.1.evil.test", "127.0.0.1", False),
        (None, "", "127.0.0.1", False),
        (None, None, "127.0.0.1", False),
        (None, "a b", "0.0.0.0", False),
        (None, "10.0.0.5:1", "0.0.0.0", True),
        ("http://127.0.0.1:1", "127.0.0.1:1", "127.0.0.1", True),
        ("http://localhost:9", "localhost:9", "127.0.0.1", True),
        ("http://localhost:9", "127.0.0.1:1", "127.0.0.1", False),  # another server on this machine
        ("http://127.0.0.1:9", "127.0.0.1:1", "127.0.0.1", False),
        ("http://[::1]:9", "[::1]:9", "::1", True),
        ("http://evil.test:1", "evil.test:1", "127.0.0.1", False),  # a DNS name of this address
        ("http://127.0.0.1.evil.test", "127.0.0.1:1", "127.0.0.1", False),
        ("null", "127.0.0.1:1", "127.0.0.1", False),
        ("http://10.0.0.5:1", "10.0.0.5:1", "0.0.0.0", True),
        ("http://evil.test", "10.0.0.5:1", "0.0.0.0", False),
    ],
)
def test_only_local_and_allowed_hosts_may_connect(origin, host, bound, allowed):
    assert may_connect(origin, host, bound) is allowed


def test_tool_path_and_history_are_bounded(page):
    trace, history = page._canvas.trace, page._history
    for k in range(3000):
        page.show([k / 10, 0, 0.1], time=k / 100)
        if k % 50 == 0:
            trace.extend(history)
    trace.extend(history)
    trace.draw()
    assert 100 < len(trace) <= WINDOW * RATE + 1
    assert page._canvas.trace._line.points.shape[0] == len(trace) - 1
    trace.clear()
    trace.extend(history)
    assert len(trace) == 0
    page.show([0, 0, 0], time=0.0)  # a reset of the simulation clears both
    trace.extend(history)
    assert len(history) == len(trace) == 1


def test_the_tool_path_at_rest_is_one_point(page):
    for k in range(100):
        page.show([1, 0, 0.1], time=k / 10)
    page._canvas.trace.extend(page._history)
    assert len(page._canvas.trace) <= 1


def test_history_keeps_the_window():
    history = History()
    for k in range(100):
        history.add(HistorySample(k * 1.0, np.zeros(1)))
    assert [s.time for s in history] == [89.0 + k for k in range(11)]


@pytest.mark.parametrize("quantity", QUANTITIES)
def test_plot_shows_the_chosen_quantity(page, quantity):
    plot = page._canvas._plot
    rows = (
        (1, 2, 3), (4, 5, 6), (7, 8, 9), (-1, 1, 1), (0, 3, 4), (12, 11, 10), (25, 26, 27),
    )  # fmt: skip
    values = dict(zip(QUANTITIES, rows, strict=True))
    motors = {"voltage": rows[5], "temperature": rows[6]}
    for k in range(5):
        page.show((1, 2, 3), (4, 5, 6), (7, 8, 9), None, (0, 3, 4), time=k * 1.0, **motors)
    plot.draw(page._history)
    plot.choose(quantity)
    plot.draw(page._history)
    times, *curves = plot._chart.data
    assert times.tolist() == [-4, -3, -2, -1, 0]
    assert tuple(curve[-1] for curve in curves) == values[quantity]


def test_only_reported_quantities_can_be_plotted(page):
    """Voltages and temperatures of some joints; NaN marks missing values, others must be finite."""
    plot = page._canvas._plot
    page.show([0] * 3, time=0.0, voltage=[math.nan] * 3)
    page.show([0] * 3, time=1.0, voltage=[math.nan] * 3)
    plot.draw(page._history)
    position, velocity, effort, error, tool = plot._choice.options
    assert tool == TOOL
    assert (position, velocity) == ("position [rad, m]", "velocity [rad/s, m/s]")
    assert (effort, error) == ("effort [N·m, N]", "error [rad, m]")
    page.show([0] * 3, time=2.0, voltage=[1.0, math.nan, 3.0])
    plot.draw(page._history)
    assert plot._choice.options[5:] == ("voltage [V]",)
    for bad in ([math.inf, 0, 0], [1.0]):
        with pytest.raises(InvalidValue, match="temperature"):
            page.show([0] * 3, temperature=bad)


def scaled(factor):
    """Return a URDF scaled by ``factor``, on a pedestal below its base frame."""

    def larger(match):
        return f'{match[1]}="' + " ".join(str(factor * float(x)) for x in match[2].split()) + '"'

    text = re.sub(r'(xyz|size|radius|length)="([^"]*)"', larger, URDF)
    pedestal = f'<visual><origin xyz="0 0 {-0.5 * factor}"/><geometry><box size="1 1 {factor}"/>'
    return text.replace('<link name="base">', f'<link name="base">{pedestal}</geometry></visual>')


@pytest.mark.parametrize("factor", [0.05, 1.0, 300.0])
def test_the_camera_shows_arms_of_any_size_above_the_floor(factor):
    visuals = load_visuals(scaled(factor), None)
    limits = [*LIMITS[:2], (0.0, 0.3 * factor)]
    found = page_reach(Skeleton(visuals, NAMES), limits, np.zeros(3), visuals)
    assert found.floor == pytest.approx(-factor)
    visuals.update_cfg(dict.fromkeys(NAMES, 0.0))
    corners = np.concatenate([
        trimesh.transform_points(mesh.bounding_box.vertices, visuals.scene.graph.get(node)[0])
        for name, mesh in visuals.scene.geometry.items()
        for node in visuals.scene.graph.geometry_nodes[name]
    ])  # fmt: skip
    away = np.linalg.norm(corners - found.center, axis=1).max()
    assert 0.4 * found.radius < away <= found.radius * 1.001
    camera = SimpleNamespace()
    for aspect in (16 / 9, 390 / 844):
        _aim(camera, found, aspect)
        toward = (found.center - camera.position) @ -VIEW
        wide = toward * math.tan(camera.fov / 2) * min(1.0, aspect)
        assert 0.8 * found.radius < wide < (2.0 if aspect > 1 else 3.0) * found.radius
        assert camera.near < toward - found.radius < camera.far


def test_long_names_are_shortened_in_the_table():
    """Start and end are shown, the full name in a tooltip; prismatic joints have m and no deg."""
    long = "the_left_shoulder_pan_joint_of_arm_2"
    sample = HistorySample(0.0, np.array([0.5, 0.1]), np.zeros(2), np.zeros(2))
    page = table_html([long, "lift"], [(0, 1), (0, 1)], sample, ("rad", "m"))
    assert f"title='{long}'" in page
    assert f"{short(long)}<" in page
    assert len(short(long)) == 12
    ur5 = ("shoulder_pan_joint", "shoulder_lift_joint", "elbow_joint", "wrist_1_joint")
    assert [short(name) for name in ur5] == [
        "shoulder_pan", "shou…er_lift", "elbow_joint", "wrist_1",
    ]  # fmt: skip
    assert re.findall(r"<th [^>]*>([^<]*)", page) == ["rad, m", "deg", "1/s", "N·m, N"]
    assert "position between" in page
    assert "+28.6" in page
    assert "+5.7" not in page


def test_names_and_status_cannot_inject_html():
    sample = HistorySample(0.0, np.array([0.5]))
    page = table_html(["<script>"], [(0, 1)], sample) + status_html({"<b>": "<script>"})
    assert "<script>" not in page
    assert "50.0%" in page


@given(st.tuples(st.floats(-7, 7), st.floats(-1.2, 0.7), st.floats(0, 0.3)))
def test_skeleton_agrees_with_yourdfpy(q):
    reference = SKELETON_URDF
    reference.update_cfg(dict(zip(NAMES, q, strict=True)))
    skeleton = Skeleton(reference, NAMES)
    point = (0.3, -0.2, 0.1)
    for name, pose in skeleton.poses(q).items():
        expected = (reference.get_transform(name, "base") @ [*point, 1])[:3]
        # yourdfpy rounds angles below 1e-8 rad to zero
        np.testing.assert_allclose(pose.apply(point), expected, atol=1e-7)
    expected = reference.get_transform("tool", "base")[:3, 3]
    np.testing.assert_allclose(tip(skeleton.chain("tool"), q), expected, atol=1e-7)


def test_chains_of_mimic_joints_are_drawn_at_the_poses_of_the_arm():
    arm, q = parse_arm(mimic_arm.text()), [0.3, -0.2, 0.4]
    expected = link_poses(arm, q)
    skeleton = Skeleton(load_visuals(arm.urdf, None), arm.joint_names)
    for link, pose in skeleton.poses(q).items():
        np.testing.assert_allclose(pose.position, expected[link][0], atol=1e-12)


@pytest.mark.parametrize("path", ["/", "/nothing", "/%2e%2e/secret"])
def test_every_response_has_frame_and_content_headers(page, path):
    """Other pages cannot embed it, and it loads nothing from other hosts."""
    try:
        headers = urlopen(page.url + path).headers
    except HTTPError as error:
        assert path != "/"
        headers = error.headers
    assert headers["X-Frame-Options"] == "DENY"
    assert headers["X-Content-Type-Options"] == "nosniff"
    assert headers["Referrer-Policy"] == "no-referrer"
    rules = dict(part.split(" ", 1) for part in headers["Content-Security-Policy"].split("; "))
    assert rules["default-src"] == rules["frame-ancestors"] == rules["script-src-attr"] == "'none'"
    assert rules["connect-src"].split()[3:] == [f"{s}://{page.url[7:]}" for s in ("ws", "wss")]
    assert "unsafe-eval" not in rules["script-src"].replace("'wasm-unsafe-eval'", "")
    assert "*" not in headers["Content-Security-Policy"]


@pytest.mark.parametrize("host", [None, "", "a b", "x; script-src *", "h\r\nX: y", "a'b", "*"])
def test_no_host_name_changes_the_content_policy(host):
    assert policy(host) == policy(None)


SKELETON_URDF = load_visuals(URDF, None)


def test_the_status_is_updated_without_a_new_state(page):
    """As of a paused simulator, which publishes diagnostics but no states."""
    page.show_status({"state": "before the first state"})
    page.show(np.zeros(3), status={"state": "running"})
    with Client(page.url) as client:
        assert eventually(lambda: "running" in page._canvas._status.content)
        page.show_status({"state": "paused"})
        assert eventually(lambda: "paused" in page._canvas._status.content)
        assert client


def test_objects_of_a_scene_are_shown_and_replaced(page):
    scene = Scene((SceneObject("crate", Shape("box", (0.2, 0.3, 0.4)), (1.0, 0.0, 0.2)),))
    page.show_scene(Scene((SceneObject("floor", Shape("ground", ())), *scene)))
    floor, crate = page._canvas._objects
    np.testing.assert_allclose(crate.position, (1.0, 0.0, 0.2))
    np.testing.assert_allclose(np.ptp(crate.vertices, axis=0), (0.2, 0.3, 0.4))
    assert floor.position[2] < 0  # the page's floor stays visible
    page.show_scene(scene)
    assert [shape.name for shape in page._canvas._objects] == ["/scene/0"]
    page.show_scene(Scene())
    assert page._canvas._objects == []

"""Sliders of the Puma page: commands of the servos, in real time and with irregular clocks."""

import signal
import subprocess
import sys
import time
from itertools import pairwise
from math import inf, nan, pi

import numpy as np
import pytest
from conftest import shown
from PIL import Image
from test_viewer import Client, eventually, port_of

from arm_dynamics.core.errors import ConfigError, InvalidValue, UnknownName
from arm_dynamics.demos import puma560, registry
from arm_dynamics.demos.puma560 import TOUR, Servos, Session, SliderScript
from arm_dynamics.demos.writer import KEY
from arm_dynamics.simulation.actuators.rate_limited import rate_limited_step
from arm_dynamics.viewer import ArmPage

ARM = puma560.servo_arm()
REST = (0.0,) * 6


@pytest.fixture
def servos():
    return Servos(ARM)


@pytest.fixture
def page(servos):
    with puma560.open_page(servos, 0) as page:
        yield page


def edit(page, joint, label, text):
    """Fill a field as a browser does, and wait for the result."""
    fields = page.parameters
    before = fields.message
    fields._fields[joint, label].value = text
    assert eventually(lambda: fields.message != before)
    return fields.message


# Servos ---------------------------------------------------------------------------------------


def test_sliders_move_the_joints_at_the_limited_speed(servos):
    servos.follow((1.0, 0.0, 0.0, 9.0, 0.0, -2.0))
    state = servos.advance(0.25)
    assert state.q.tolist() == [0.25, 0.0, 0.0, 0.25, 0.0, 0.0]
    assert servos.desired.tolist() == [1.0, 0.0, 0.0, 2 * pi, 0.0, 0.0]
    state = servos.advance(100.0)
    assert state.q.tolist() == [1.0, 0.0, 0.0, 2 * pi, 0.0, 0.0]


def test_the_sliders_ignore_the_arms_position_limits(servos):
    """The joints move from 0 to 2 pi for any limits of the arm; efforts are gravity torques."""
    servos.follow((5.0,) * 6)
    servos.advance(10.0)
    state = servos.advance(1e-3)
    assert state.q.tolist() == [5.0] * 6
    assert (state.q > ARM.upper).any()
    assert np.abs(state.tau).max() < 100


def test_new_limits_do_not_change_an_earlier_command(servos):
    servos.follow((4.0, 1.0, 0.0, 0.0, 0.0, 0.0))
    servos.advance(0.5)
    servos.change("J1", "max_position", 0.3)
    assert servos.advance(1.0).q[0] == 1.5
    servos.follow((0.3, 0.8, 0.0, 0.0, 0.0, 0.0))  # J1's slider is at its new end
    assert servos.advance(2.5).q.tolist() == [4.0, 0.8, 0.0, 0.0, 0.0, 0.0]
    servos.follow((0.2, 0.8, 0.0, 0.0, 0.0, 0.0))
    assert servos.advance(9.0).q[0] == 0.2
    servos.change("J1", "max_position", 5.0)
    assert servos.advance(9.0).q[0] == 0.2


def test_a_slider_moved_back_commands_again(servos):
    """The same position under new limits: 3 rad, which was clipped to 2.5 rad before."""
    servos.change("J1", "max_position", 2.5)
    servos.follow((3.0, 0.0, 0.0, 0.0, 0.0, 0.0))
    servos.advance(0.1)
    servos.change("J1", "max_position", 2.0)
    servos.change("J1", "max_position", 5.0)
    assert servos.desired[0] == 2.5
    servos.follow((3.0, 0.0, 0.0, 0.0, 0.0, 0.0))
    assert servos.desired[0] == 3.0


def test_a_velocity_limit_acts_immediately(servos):
    servos.follow((6.0, 0.0, 0.0, 0.0, 0.0, 0.0))
    servos.advance(0.5)
    servos.change("J1", "max_velocity", 4.0)
    assert servos.advance(0.5).q[0] == 2.5
    servos.change("J1", "max_velocity", 0.0)
    assert servos.advance(9.0).q[0] == 2.5


@pytest.mark.parametrize(
    ("name", "number"),
    [
        ("min_position", -0.1), ("min_position", 2.1), ("max_position", 6.3), ("max_position", nan),
        ("max_velocity", 100.5), ("max_velocity", -1.0), ("max_velocity", inf),
    ],
)  # fmt: skip
def test_invalid_parameters_are_rejected_and_the_previous_ones_kept(servos, name, number):
    servos.change("J2", "max_position", 2.0)
    before = servos.parameters
    with pytest.raises(InvalidValue, match=rf"J2.*{name} = "):
        servos.change("J2", name, number)
    assert servos.parameters == before


# Time -----------------------------------------------------------------------------------------


def test_real_time_follows_an_irregular_clock(servos):
    """Time between two states is that of the clock; zero if the clock jumps back."""
    times = [5.0, 5.013, 5.213, 5.213, 3.0, 3.5, 3.5001, 4.0]
    clock, shown = iter(times), []
    servos.follow((2.0, 0.3, 0.0, 0.0, 0.0, 0.0))
    gaps = [max(0.0, b - a) for a, b in pairwise(times)]
    puma560.play(servos, shown.append, sum(gaps) - 1e-9, lambda: next(clock), lambda _: None)
    q = [0.0, 0.0]
    expected = [tuple(q)]
    for gap in gaps:
        q = [rate_limited_step(*pair, 1.0, gap) for pair in zip(q, (2.0, 0.3), strict=True)]
        expected.append(tuple(q))
    assert [tuple(state.q[:2].tolist()) for state in shown] == expected
    assert shown[-1].time == pytest.approx(sum(gaps))
    assert shown[4].q.tolist() == shown[3].q.tolist()


def test_the_scripted_motion_is_tracked_at_the_velocity_limit():
    """No servo is faster than 1 rad/s, and each reaches its target."""
    axes = shown("puma560").figures[0].figure.axes
    for i, joint in enumerate(axes):
        commanded, simulated = joint.lines
        time, q = simulated.get_data()
        speeds = np.abs(np.diff(q) / np.diff(time))
        assert speeds.max() == pytest.approx(1.0)
        assert q[-1] == 0.0 == commanded.get_ydata()[-1]
        assert set(commanded.get_ydata()) == {target[i] for _, target in TOUR} | {0.0}


def test_a_session_stores_only_the_ends_of_standstill(servos):
    session = Session()
    for k in range(30):
        servos.follow((0.1 * (10 <= k < 20),) * 6)
        session.add(servos.advance(0.05))
    times = [state.time for state in session.states]
    np.testing.assert_allclose(times, [0.05, 0.5, 0.55, 0.6, 1.0, 1.05, 1.1, 1.5])


def test_the_scripted_motion_moves_the_sliders_of_the_page(servos, page):
    tour = SliderScript(page.set_target)
    tour(0.4)
    assert page._canvas.controls.sliders.target == (0.0,) * 6
    tour(3.0)
    assert page._canvas.controls.sliders.target == TOUR[1][1]
    assert servos.advance(100.0).q.tolist() == list(TOUR[1][1])
    page._canvas.controls.sliders.set((9.0, *TOUR[1][1][1:]))  # the user has control again
    tour(3.5)
    assert servos.advance(100.0).q.tolist() == [2 * pi, *TOUR[1][1][1:]]


# The page -------------------------------------------------------------------------------------


def test_a_browser_moves_a_slider_and_the_arm_follows(servos, page):
    with Client(page.url) as client:
        sliders = [m for m in client.until_quiet(0.5) if m["type"] == "GuiSliderMessage"]
        assert [m["props"]["label"] for m in sliders] == list(ARM.joint_names)
        assert [(m["props"]["min"], m["props"]["max"]) for m in sliders] == [(0.0, 2 * pi)] * 6
        client.send("GuiUpdateMessage", uuid=sliders[2]["uuid"], updates={"value": 1.5})
        assert eventually(lambda: servos.advance(1e-6).act[4] == 1.5)
        puma560.show_state(page, servos, servos.advance(0.4))
        messages = client.until_quiet(0.5)
    assert "+0.4000" in str(messages)
    assert "J3" in page._shown.status["moving"]
    assert any(m["type"] == "SetOrientationMessage" for m in messages)


def test_a_browser_edits_parameters(servos, page):
    page.parameters.settled = 0.05
    with Client(page.url) as client:
        texts = {
            m["props"]["label"] + str(k): m["uuid"]
            for k, m in enumerate(
                m for m in client.until_quiet(0.5) if m["type"] == "GuiTextMessage"
            )
        }
        assert len(texts) == 18
        velocity = texts["velocity [rad/s]2"]
        client.send("GuiUpdateMessage", uuid=velocity, updates={"value": "2"})
        client.send("GuiUpdateMessage", uuid=velocity, updates={"value": "25"})
        assert eventually(lambda: servos.parameters["J1"]["max_velocity"] == 25.0)
        assert "J1: velocity [rad/s] = 25" in str(client.until_quiet(0.5))
        client.send("GuiUpdateMessage", uuid=velocity, updates={"value": "2500"})
        messages = str(client.until_quiet(0.5))
        assert "max_velocity = 2500 rad/s; expected at least 0 and at most 100" in messages
        assert "'updates': {'value': '25'}" in messages
    assert servos.parameters["J1"]["max_velocity"] == 25.0


@pytest.mark.quick(2)
@pytest.mark.parametrize(
    ("label", "text", "words"),
    [
        ("min [rad]", "3", "min_position = 3 rad; expected at most max_position = 2 rad"),
        ("min [rad]", "-1", "min_position = -1 rad; expected at least 0 and at most 6.28319"),
        ("max [rad]", "7", "max_position = 7 rad; expected at least 0 and at most 6.28319"),
        (
            "velocity [rad/s]",
            "101",
            "max_velocity = 101 rad/s; expected at least 0 and at most 100",
        ),
        ("velocity [rad/s]", "fast", "expected a number"),
        ("velocity [rad/s]", "", "expected a number"),
        ("max [rad]", "nan", "expected a finite number"),
        ("max [rad]", "<b>", "&lt;b&gt;"),
    ],
)
def test_invalid_edits_are_rejected_on_the_page(servos, page, label, text, words):
    page.parameters.settled = 0.01
    assert "J4: max [rad] = 2" in edit(page, "J4", "max [rad]", "2")
    before, shown = servos.parameters, page.parameters.text("J4", label)
    message = edit(page, "J4", label, text)
    assert "rejected" in message
    assert words in message
    assert eventually(lambda: page.parameters.text("J4", label) == shown)
    assert servos.parameters == before
    assert "J4: velocity [rad/s] = 3" in edit(page, "J4", "velocity [rad/s]", "3")


def test_sliders_follow_the_limits_without_commanding(servos, page):
    page.parameters.settled = 0.01
    sliders = page._canvas.controls.sliders
    sliders.set((4.0, 0.0, 0.0, 0.0, 0.0, 0.0))
    servos.advance(10.0)
    edit(page, "J1", "max [rad]", "1.5")
    edit(page, "J1", "min [rad]", "0.5")
    assert sliders.ranges[0] == (0.5, 1.5)
    assert sliders.target[0] == 1.5
    assert servos.advance(10.0).q[0] == 4.0
    sliders.set((1.5, 2.0, 0.0, 0.0, 0.0, 0.0))
    assert servos.advance(10.0).q[:2].tolist() == [4.0, 2.0]
    sliders.set((1.0, 2.0, 0.0, 0.0, 0.0, 0.0))
    assert servos.advance(10.0).q[:2].tolist() == [1.0, 2.0]


def test_unknown_controls_are_rejected(page):
    with pytest.raises(UnknownName, match="'J7'"):
        page.set_range("J7", 0, 1)
    with pytest.raises(InvalidValue, match="J1: lower = 2"):
        page.set_range("J1", 2, 1)
    with pytest.raises(InvalidValue, match=r"target: shape = .*expected \(6,\)"):
        page.set_target([0.0])
    with (
        ArmPage(ARM.urdf, ARM.joint_names, limits=[(0, 1)] * 6, tool_frame="tool", port=0) as still,
        pytest.raises(InvalidValue, match="interactive=True"),
    ):
        still.add_parameters("Parameters", {}, print)


# The command ----------------------------------------------------------------------------------


@pytest.mark.slow
def test_the_command_ends_after_its_duration_and_reports_a_busy_port(
    page, capsys, caplog, tmp_path
):
    begin = time.monotonic()
    module = registry.load_demo("puma560")
    assert registry.find_demo("puma560").live
    port = str(port_of(page))
    assert module.run(["--port", port, "--duration", "0.7", "--output", str(tmp_path)]) == 0
    assert time.monotonic() - begin > 0.7
    assert f"port {port_of(page)} is busy" in caplog.text
    output = capsys.readouterr().out
    assert "http://127.0.0.1:" in output
    assert str(port_of(page)) not in output
    assert str(tmp_path) in output.replace("\n", "")
    with Image.open(tmp_path / "puma560_session.png") as picture:
        assert KEY in picture.text
        assert picture.width == 1120


def test_an_impossible_folder_is_rejected_before_the_page_opens(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="--output"):
        puma560.run(["--output", str(tmp_path / "file")])


@pytest.mark.parametrize(
    ("bad", "error", "words"),
    [
        (["--duration", "-1"], ConfigError, "--duration = -1 s; expected"),
        (["--duration", "soon"], ConfigError, "--duration = soon s; expected"),
        (["--speed", "1"], SystemExit, "2"),
        (["--port", "70000"], ConfigError, "--port = 70000; expected"),
    ],
)
def test_invalid_options_are_rejected(bad, error, words):
    with pytest.raises(error, match=words):
        puma560.run(bad)


@pytest.mark.slow
def test_ctrl_c_ends_the_command_with_a_figure(tmp_path):
    command = [sys.executable, "-m", "arm_dynamics.cli.main", "demo", "puma560", "--port", "0"]
    command += ["--output", str(tmp_path)]
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert "http://127.0.0.1:" in process.stdout.readline()
    time.sleep(0.2)
    process.send_signal(signal.SIGINT)
    output, errors = process.communicate(timeout=180)
    assert process.returncode == 0, errors
    assert "stopped" in output
    assert [file.name for file in tmp_path.iterdir()] == ["puma560_session.png"]
    assert "Traceback" not in errors

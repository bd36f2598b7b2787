"""Demonstrations: equations behind the results, and contents of the figures."""

import runpy
import sys
from functools import cache
from pathlib import Path

import draw
import five_dof
import four_joint
import numpy as np
import puma560_fall
import pytest
import two_link
from conftest import shown
from PIL import Image

from arm_dynamics.cli.main import main
from arm_dynamics.core.errors import ConfigError, InvalidValue, UnknownName
from arm_dynamics.core.figure_style import figure, label
from arm_dynamics.core.state import Command
from arm_dynamics.demos import registry, three_link, writer
from arm_dynamics.demos.constant_command import release_from_rest, simulate_constant_command
from arm_dynamics.demos.demo_result import Animation, DemoFigure, DemoResult, format_row
from arm_dynamics.demos.planar import animate
from arm_dynamics.demos.writer import POINT_CAPACITY, content, digest
from arm_dynamics.dynamics import rigid_body
from arm_dynamics.dynamics.kinematics.frames import joint_origins, tool_position
from arm_dynamics.model.load import load_arm

DATA = Path(__file__).parents[1] / "data"
G = 9.81
ALL = registry.DEMOS | draw.GALLERY


@cache
def fall(damping=0.0):
    return three_link.simulate(damping)


@cache
def pendulum(name="two_link"):
    return two_link.simulate(name)


@cache
def turning(damping=0.0):
    return four_joint.simulate(damping)


@cache
def braked():
    return five_dof.braked(seconds=3.0)


@cache
def disconnected():
    return five_dof.disconnected()


@cache
def puma(interface):
    return puma560_fall.simulate(interface)


def table(file, nv):
    """Return times (n,), positions (n, nv) and the last column (n,) of a CSV file."""
    rows = np.loadtxt(DATA / file, delimiter=",", skiprows=1)
    return rows[:, 0], rows[:, 1 : 1 + nv], rows[:, -1]


def at(trace, times):
    """Return the indices of the samples at ``times``."""
    indices = np.round(times / trace.time[1]).astype(int)
    np.testing.assert_allclose(trace.time[indices], times, atol=1e-9)
    return indices


# --- motion records ---


def test_joints_and_tool_of_a_stretched_arm():
    arm = load_arm("two_link")
    np.testing.assert_allclose(
        joint_origins(arm, [0, np.pi / 2]), [[0, 0, 0], [1, 0, 0], [1, 0, 1]], atol=1e-12
    )
    for name in ("five_dof", "four_joint", "puma560"):
        arm, q = load_arm(name), load_arm(name).configuration("initial")
        points = joint_origins(arm, q)
        assert points.shape == (arm.nv + 1, 3)
        np.testing.assert_array_equal(points[-1], tool_position(arm, q))


def test_work_of_a_linearly_increasing_power():
    """∫ c t dt = c t² / 2, exactly by the trapezoidal rule."""
    np.testing.assert_allclose(fall().work(3 * fall().time), 1.5 * fall().time ** 2, atol=1e-12)


@pytest.mark.parametrize(
    "times",
    [
        {"seconds": 1.0, "interval": 0.01, "dt": 0.003},
        {"seconds": 1.0, "interval": 0.3, "dt": 0.1},
        {"seconds": 1.0, "interval": 0.1, "dt": -0.1},
        {"seconds": float("nan"), "interval": 0.1, "dt": 0.1},
    ],
)
def test_times_that_are_not_multiples_are_rejected(times):
    arm = load_arm("two_link")
    with pytest.raises(InvalidValue):
        simulate_constant_command(arm, *release_from_rest(arm, arm.configuration("zero")), **times)


# --- three_link ---


def test_initial_accelerations_of_the_falling_three_link():
    np.testing.assert_allclose(three_link.first_acceleration(fall()), [-G, G, 0], atol=1e-12)


def test_free_fall_equals_the_reference_data():
    times, q, energy = table("three_link/freefall_g9p81.csv", 3)
    np.testing.assert_allclose(fall().time, times, atol=1e-12)
    np.testing.assert_allclose(fall().q, q, rtol=0, atol=1e-9)
    np.testing.assert_allclose(fall().energy, energy, rtol=0, atol=1e-9)


def test_the_energy_loss_is_the_work_of_friction():
    """E(0) - E(t) = ∫ |q̇|² dt for tau = -q̇, up to the trapezoidal rule."""
    braked = fall(three_link.FRICTION)
    lost = braked.energy[0] - braked.energy
    assert (np.diff(lost) >= 0).all()
    work = braked.work((braked.v**2).sum(axis=1))
    np.testing.assert_allclose(work, lost, atol=2e-4 * lost[-1])
    assert lost[-1] > 30


def test_friction_changes_the_acceleration_immediately():
    """q̈ = M⁻¹ (-g - q̇) along the fall."""
    braked = fall(three_link.FRICTION)
    slope = (braked.v[201] - braked.v[199]) / (2 * three_link.INTERVAL)
    expected = rigid_body.aba(braked.arm, braked.q[200], braked.v[200], -braked.v[200])
    np.testing.assert_allclose(slope, expected, atol=0.02 * np.abs(expected).max())


# --- two_link ---


def test_the_two_link_pendulum_equals_the_reference_data_and_loses_energy():
    times, q, energy = table("two_link/unactuated_unit.csv", 2)
    np.testing.assert_allclose(pendulum().time, times, atol=1e-12)
    np.testing.assert_allclose(pendulum().q, q, rtol=0, atol=1e-9)
    np.testing.assert_allclose(pendulum().energy, energy, rtol=0, atol=1e-9)
    assert (np.diff(pendulum().energy) < 0).all()


def test_energy_loss_of_both_variants_is_the_work_of_friction():
    """E(0) - E(t) = ∫ b |q̇|² dt; the arms differ only in their second rod."""
    small = pendulum("two_link_pb")
    assert np.linalg.norm(small.points[0, 2] - small.points[0, 1]) == pytest.approx(0.6)
    for trace in (pendulum(), small):
        lost = trace.energy[0] - trace.energy
        assert (np.diff(lost) > 0).all()
        work = trace.work(0.1 * (trace.v**2).sum(axis=1))
        np.testing.assert_allclose(work, lost, atol=1e-3 * lost[-1])


# --- four_joint ---


def test_momentum_about_the_vertical_and_energy_are_conserved():
    free = turning()
    np.testing.assert_allclose(four_joint.yaw_momentum(free), 0.14430, atol=1e-4)
    assert np.ptp(four_joint.yaw_momentum(free)) < 1e-10
    assert np.ptp(free.energy) < 1e-6
    assert np.ptp(free.v[:, 0]) > 1  # while the velocity changes


def test_the_momentum_loss_is_the_impulse_of_the_yaw_friction():
    """p₁(t) = p₁(0) - b (q₁(t) - q₁(0))."""
    slow = turning(four_joint.FRICTION)
    momentum = four_joint.yaw_momentum(slow)
    expected = momentum[0] - four_joint.FRICTION * (slow.q[:, 0] - slow.q[0, 0])
    np.testing.assert_allclose(momentum, expected, atol=1e-9)
    assert (np.diff(slow.energy) < 0).all()


# --- five_dof ---


def test_braked_fall_equals_the_reference_data():
    times, q, _ = table("five_dof/ideal_zero_voltage_dop853.csv", 5)
    found = at(braked(), times[::2])
    np.testing.assert_allclose(braked().q[found], q[::2], rtol=0, atol=1e-9)


def test_shorted_windings_turn_all_lost_energy_into_heat():
    """E(0) - E(t) = ∫ Σ Ra i² dt: without voltage and end stops only windings dissipate energy."""
    lost = braked().energy[0] - braked().energy[-1]
    assert lost == pytest.approx(five_dof.heat(braked())[-1], rel=2e-3)
    assert (np.diff(braked().energy) < 0).all()


def test_current_of_a_shorted_motor():
    """i = -Ke w / Ra, at the start of the last time step."""
    expected = -braked().v * [10, 10, 10, 1, 1]
    np.testing.assert_allclose(five_dof.current(braked())[5:], expected[5:], atol=1e-3)


def test_disconnected_fall_is_free_up_to_the_first_stop():
    times, q, _ = table("five_dof/passive_no_motor_dop853.csv", 5)
    free = disconnected()
    beyond = ((free.q < free.arm.lower) | (free.q > free.arm.upper)).any(axis=1)
    first = free.time[np.argmax(beyond)]
    assert 0.3 < first < 0.5
    before = times < first
    np.testing.assert_allclose(free.q[at(free, times[before])], q[before], rtol=0, atol=1e-9)
    np.testing.assert_allclose(free.energy[~beyond & (free.time < first)], free.energy[0])
    assert free.energy[-1] < free.energy[0] - 10  # energy dissipated by the end stops
    assert (free.q[:, 1] < free.arm.upper[1] + 0.5).all()


# --- puma560 ---


def test_friction_holds_exactly_the_joints_whose_gravity_torque_is_smaller():
    """At rest joint i stays while |g_i| is below its breakaway effort."""
    slow = puma("voltage")
    weight = np.abs(rigid_body.gravity(slow.arm, slow.q[0]))
    dry = [actuator.breakaway_effort for actuator in slow.arm.actuators]
    held = {n for n, w, d in zip(slow.arm.joint_names, weight, dry, strict=True) if w < d}
    assert set(puma560_fall.stuck(slow)) == held == {"J1", "J4", "J5", "J6"}


def test_elbow_of_the_puma_stops_where_friction_exceeds_gravity():
    slow = puma("voltage")
    assert (slow.v[-50:, 2] == 0).all()
    assert np.ptp(slow.q[-50:, 2]) == 0
    weight = abs(rigid_body.gravity(slow.arm, slow.q[-1])[2])
    assert weight < slow.arm.actuators[2].breakaway_effort


def test_the_holding_voltage_holds_the_arm():
    """Only without dry friction; a voltage larger by a tenth does not hold it."""
    arm = load_arm("puma560").with_motors(coulomb_friction=0.0)
    q = np.array(puma560_fall.START)
    start, _ = release_from_rest(arm, q)
    volts = puma560_fall.holding_voltage(arm, q)
    held = simulate_constant_command(
        arm, start, command("voltage", volts), seconds=0.5, interval=0.1, dt=5e-4
    )
    np.testing.assert_allclose(held.q[-1], q, atol=1e-9)
    pushed = simulate_constant_command(
        arm, start, command("voltage", 1.1 * volts), seconds=0.5, interval=0.1, dt=5e-4
    )
    assert np.abs(pushed.q[-1] - q).max() > 1e-3


def command(interface, value):
    return Command.checked(interface, value, len(value))


# --- drawings ---


@pytest.mark.figures
@pytest.mark.parametrize("name", ALL)
def test_figures_are_complete(name):
    """Axis labels have units, lines have finite points."""
    show = shown(name)
    assert show.title
    assert show.figures
    assert all(what and value and "nan" not in value for what, value in show.key_figures)
    for picture in show.figures:
        assert picture.caption.endswith(".")
        assert picture.name.startswith(name)
        contents = content(picture)
        for frame in [contents] if "axes" in contents else contents["moments"].values():
            assert frame["title"]
            for axes in frame["axes"]:
                _check(axes)


def _check(axes):
    """Units on the axes that are labeled, finite points in every line."""
    assert axes["y"].endswith("]")
    assert axes["x"] == "" or axes["x"].endswith("]")
    assert axes["lines"]
    for line in axes["lines"]:
        points = np.array([line[key] for key in "xyz" if key in line])
        assert np.isfinite(points).all()
        assert points.shape[1] >= 1


@pytest.mark.figures
@pytest.mark.parametrize(
    ("name", "picture", "lines"),
    [
        ("three_link", "three_link_fall", [3, 3, 3, 3]),
        ("three_link", "three_link_path", [22, 22]),
        ("three_link", "three_link_drift", [5]),
        ("two_link", "two_link_swing", [2, 2, 2, 2, 3, 3]),
        ("two_link", "two_link_poses", [8, 8]),
        ("four_joint", "four_joint_fall", [4, 4, 3, 3, 1, 1]),
        ("four_joint", "four_joint_space", [3, 3]),
        ("two_link", "two_link_joints", [4, 4, 4, 2, 2, 2, 4, 4, 4, 2, 2, 2]),
        ("two_link", "two_link_workspace", [3, 5]),
        ("two_link", "two_link_paths", [4, 6, 3, 3, 3, 3]),
        ("two_link", "two_link_tool_poses", [13, 13, 13, 13]),
        ("two_link", "two_link_hold", [5, 5, 3, 3]),
        ("four_joint", "four_joint_reach", [17, 8, 8]),
        ("four_joint", "four_joint_shortcut", [8, 2, 3, 8]),
        ("four_joint", "four_joint_table", [2, 2]),
        ("five_dof_task", "five_dof_task_square", [4, 3]),
        ("five_dof_task", "five_dof_task_torques", [5, 5, 5]),
        ("five_dof", "five_dof_fall", [5, 5, 5, 5, 1, 1]),
        ("five_dof", "five_dof_power", [5, 3]),
        ("swing_up", "swing_up_motion", [2, 2, 6, 6]),
        ("obstacles", "obstacles_motion", [2, 4]),
        ("push", "push_motion", [1, 1, 2, 2]),
        ("fast_square", "fast_square_motion", [3, 3, 5]),
        ("moving_target", "moving_target_motion", [4]),
        ("puma560", "puma560_session", [2] * 6),
        ("puma560_fall", "puma560_fall", [6, 6, 6, 6, 1, 1]),
        ("identification", "identification_square", [3, 2, 3, 3]),
    ],
)
def test_the_figures_contain_every_curve(name, picture, lines):
    (found,) = (p for p in shown(name).figures if p.name == picture)
    assert [len(axes.lines) for axes in found.figure.axes] == lines


@pytest.mark.figures
def test_curves_show_the_recorded_motion():
    axes = shown("two_link").figures[0].figure.axes
    for column, trace in enumerate((pendulum(), pendulum("two_link_pb"))):
        for line, q in zip(axes[column].lines, trace.q.T, strict=True):
            np.testing.assert_array_equal(line.get_ydata(), q)
        np.testing.assert_array_equal(axes[4 + column].lines[2].get_ydata(), trace.energy)


@pytest.mark.figures
def test_integrators_of_higher_order_drift_less():
    (drift,) = (p for p in shown("three_link").figures if p.name == "three_link_drift")
    worst = {line.get_label(): line.get_ydata().max() for line in drift.figure.axes[0].lines}
    assert worst["rk4"] < 1e-3 * worst["velocity_verlet"] < 1e-3 * worst["explicit_euler"]
    assert worst["velocity_verlet"] == pytest.approx(0.0396, rel=0.01)  # published


@pytest.mark.figures
def test_the_animation_shows_the_motion_of_the_arms():
    (moving,) = (p for p in shown("three_link").figures if isinstance(p, Animation))
    moving.update(40)
    for axes, trace in zip(moving.figure.axes, (fall(), fall(three_link.FRICTION)), strict=True):
        drawn = np.array(axes.lines[1].get_data())
        np.testing.assert_allclose(drawn, trace.points[200][:, [0, 2]].T, atol=1e-12)
    assert "t =  2.00 s" in moving.figure.get_suptitle()
    assert (moving.frames - 1) / moving.rate == pytest.approx(fall().time[-1])


@pytest.mark.figures
def test_gallery_is_current():
    """Update the gallery with ``make gallery``."""
    gallery = runpy.run_path(str(Path(__file__).parents[2] / "docs" / "gallery.py"))
    assert list(gallery["faults"]({name: shown(name) for name in ALL})) == []


def test_numbers_as_text_have_no_negative_zero():
    assert format_row(np.array([-1e-16, 1.005, -2])) == "0.00, 1.00, -2.00"


# --- files ---


def small():
    """Return a result with one figure and one short animation."""
    arm = load_arm("two_link")
    trace = simulate_constant_command(
        arm, *release_from_rest(arm, arm.configuration("zero")), seconds=0.2, interval=0.01, dt=0.01
    )
    drawn, ((axes,),) = figure("A line", 1, 1, 3.0)
    axes.plot([0.0, 1.0], [0.0, 2.0])
    label(axes, "time [s]", "angle [rad]")
    moving = animate("moving", "It moves.", "Moving", [trace, trace], ["left", "right"])
    return DemoResult("Small", (DemoFigure("line", "A line.", drawn), moving), (("one", "1 m"),))


def test_files_contain_a_description_of_their_content(tmp_path):
    show = small()
    result = writer.write_figures(show, tmp_path / "deep" / "folder")
    assert [file.name for file in result.files] == ["line.png", "moving.gif"]
    with Image.open(result.files[0]) as png:
        assert png.text[writer.KEY] == digest(content(show.figures[0]))
        assert png.width == 1120
        assert len(np.unique(np.asarray(png.convert("L")))) > 10
    with Image.open(result.files[1]) as gif:
        assert gif.info["comment"].decode() == digest(content(show.figures[1]))
        assert gif.n_frames == 5
        assert gif.info["duration"] == 50
        assert gif.size == (800, 360)
        assert gif.convert("RGB").getpixel((2, 2)) == (255, 255, 255)
        first = np.asarray(gif.convert("RGB")).copy()
        gif.seek(4)
        assert (np.asarray(gif.convert("RGB")) != first).any()


def test_the_description_is_short_and_keeps_the_end_points():
    drawn, ((axes,),) = figure("Many", 1, 1, 3.0)
    axes.plot(np.arange(1000), np.arange(1000) ** 2, label="squares")
    (line,) = content(DemoFigure("many", "Many.", drawn))["axes"][0]["lines"]
    assert line["label"] == "squares"
    assert (line["x"][0], line["y"][-1], len(line["x"])) == (0, 999**2, POINT_CAPACITY)


def test_a_changed_point_changes_the_digest():
    assert digest({"x": [1.0, 2.0]}) != digest({"x": [1.0, 2.0000001]})


# --- the command ---


def run(*arguments):
    with pytest.raises(SystemExit) as ended:
        main(["demo", *map(str, arguments)])
    return ended.value.code


def test_the_gallery_lists_its_figures_and_names_a_wrong_one(capsys):
    assert draw.main([]) == 0
    output = capsys.readouterr().out
    assert all(name in output for name in draw.GALLERY)
    assert draw.main(["three_link"]) == 2
    assert "draw.py: unknown demonstration 'three_link'; known: five_dof" in capsys.readouterr().err


@pytest.mark.figures
def test_the_gallery_draws_into_a_folder(tmp_path, capsys, monkeypatch):
    figures = shown("two_link")
    monkeypatch.setattr(two_link, "show", lambda: figures)
    assert draw.main(["two_link", "--output", str(tmp_path)]) == 0
    assert "two_link_pb: energy after 10 s" in capsys.readouterr().out
    names = sorted(file.name for file in tmp_path.iterdir())
    assert names == sorted(f"{picture.name}.png" for picture in figures.figures)


@pytest.mark.figures
def test_the_command_writes_figures_and_prints_their_paths(tmp_path, capsys, monkeypatch):
    monkeypatch.chdir(tmp_path)
    drawn = shown("three_link")
    monkeypatch.setattr(three_link, "show", lambda: drawn)
    assert run("three_link") == 0
    printed = capsys.readouterr().out
    folder = tmp_path / "arm_dynamics_demo" / "three_link"
    assert str(folder) in printed.replace("\n", "")
    assert "energy lost with friction" in printed
    names = sorted(file.name for file in folder.iterdir())
    assert names == sorted(writer.file_name(picture) for picture in drawn.figures)
    assert all(name in printed for name in names)
    for file in folder.iterdir():
        Image.open(file).verify()


def test_without_a_name_all_demonstrations_are_listed(capsys):
    assert run() == 0
    printed = capsys.readouterr().out
    assert all(name in printed for name in registry.DEMOS)


def test_an_unknown_name_lists_the_demonstrations(capsys):
    assert run("six_dof") == 2
    message = capsys.readouterr().err
    assert "'six_dof'" in message
    assert all(name in message for name in registry.DEMOS)
    with pytest.raises(UnknownName):
        registry.load_demo("six_dof")


def test_an_impossible_folder_is_rejected_before_the_computation(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(three_link, "show", lambda: pytest.fail("computed"))
    file = tmp_path / "file"
    file.write_text("")
    for folder in (file, file / "below"):
        assert run("three_link", "--output", folder) == 2
        message = capsys.readouterr().err
        assert str(folder) in message
        assert "--output" in message
        assert len(message.splitlines()) == 1
    assert file.read_text() == ""


def test_a_folder_with_the_name_of_a_figure_is_named(tmp_path):
    (tmp_path / "line.png").mkdir()
    with pytest.raises(ConfigError, match=r"line\.png"):
        writer.write_figures(small(), tmp_path)


@pytest.mark.parametrize("arguments", [["--output"], ["--dance"], ["three_link", "x"]])
def test_an_invalid_call_shows_the_usage(arguments, capsys):
    assert run(*arguments) == 2
    assert "usage: arm-dynamics demo" in capsys.readouterr().err


def test_without_matplotlib_the_required_extra_is_named(monkeypatch, capsys):
    drawing = ("arm_dynamics.demos.", "arm_dynamics.core.figure_style")
    for name in [n for n in sys.modules if n.startswith(drawing)]:
        if name != "arm_dynamics.demos.registry":
            monkeypatch.delitem(sys.modules, name)
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert run("three_link") == 2
    message = capsys.readouterr().err
    assert "-m pip install 'matplotlib>=" in message
    assert "matplotlib" in message


def test_a_live_demonstration_receives_the_remaining_arguments(monkeypatch):
    calls = []
    page = type("Page", (), {"run": staticmethod(lambda rest: calls.append(rest) or 7)})
    monkeypatch.setitem(registry.DEMOS, "page", registry.Demo("page", "a page", live=True))
    monkeypatch.setattr(registry, "load_demo", lambda name, demos: page)
    assert run("page", "--port", "0") == 7
    assert calls == [["--port", "0"]]

"""Stability analysis: linearization, discrete maps and limits against theory and simulation."""

import re
from dataclasses import replace
from math import inf, pi, sqrt

import five_dof_gains
import numpy as np
import pytest
from conftest import chain, five_dof
from hypothesis import given
from hypothesis import strategies as st
from published_gains import (
    DIVERGED_RATIO,
    PUBLISHED_P,
    published_loop,
    published_stability_limit,
)
from scipy.linalg import expm

from arm_dynamics import load_arm
from arm_dynamics.batch.stability.discrete_map import discrete_map
from arm_dynamics.batch.stability.stability_report import (
    analyze_stability,
    controlled_loop,
    largest_stable_dt,
    stable_parts,
    stable_set,
)
from arm_dynamics.cli import stability as command_line
from arm_dynamics.cli.main import main
from arm_dynamics.control.config import build_controller
from arm_dynamics.control.controllers.controller import Controller
from arm_dynamics.control.controllers.lqr import Lqr
from arm_dynamics.control.controllers.pid import Pid
from arm_dynamics.control.linear_controller import (
    LinearController,
    closed_loop_map,
    is_stable,
    linear_controller,
    modes,
    voltage_pi_controller,
)
from arm_dynamics.core.errors import InvalidValue
from arm_dynamics.core.state import Command, Reference, State
from arm_dynamics.dynamics import rigid_body
from arm_dynamics.simulation.dynamechs import objective, published_arm
from arm_dynamics.simulation.equations_of_motion import EquationsOfMotion
from arm_dynamics.simulation.integrators import INTEGRATORS
from arm_dynamics.simulation.linearization import find_equilibrium, linearize, zero_order_hold
from arm_dynamics.simulation.plant import Plant


def full():
    """Return five_dof with every actuator state except backlash, and motor friction."""
    return five_dof().with_motors(
        inductance=5e-3, thermal_resistance=3.0, viscous_friction=0.2, rotor_inertia=0.01
    )


def moving(arm, interface):
    """Return a state in motion and a command near equilibrium."""
    state, command = find_equilibrium(arm, arm.configuration("initial"), interface)
    rng = np.random.default_rng(1)
    state = State.of(
        state.q + 0.1 * rng.normal(size=arm.nv), rng.normal(size=arm.nv), act=state.act + 0.1
    )
    return state, Command.checked(interface, command.value + 0.3, arm.nv)


def rate(arm, interface, x):
    """Return ẏ at x = (q, v, z, u)."""
    n, motion = arm.nv, EquationsOfMotion(arm)
    q, v, z, u = np.split(x, [n, 2 * n, 2 * n + arm.na])
    motion.set_command(Command(interface, u))
    a = motion.acceleration(q, v, z)
    decay, source = motion.act_dot_terms(q, v, z)
    return np.concatenate([v, a, source - decay * z])


@pytest.mark.parametrize("interface", ["voltage", "effort"])
@pytest.mark.parametrize("make", [five_dof, full])
def test_linearization_equals_finite_differences(make, interface):
    arm = make()
    state, command = moving(arm, interface)
    x = np.concatenate([state.q, state.v, state.act, command.value])
    h, n = 1e-5, 2 * arm.nv + arm.na
    jacobian = np.array(
        [
            (rate(arm, interface, x + h * e) - rate(arm, interface, x - h * e)) / (2 * h)
            for e in np.eye(x.size)
        ]
    ).T
    linear = linearize(arm, state, command)
    np.testing.assert_allclose(linear.A, jacobian[:, :n], atol=1e-6 + 1e-9 * abs(jacobian).max())
    np.testing.assert_allclose(linear.B, jacobian[:, n:], atol=1e-6)


def test_linearization_over_a_step_is_the_matrix_exponential():
    arm = full()
    state, command = moving(arm, "voltage")
    linear, held = linearize(arm, state, command), linearize(arm, state, command, 2e-3)
    n = linear.A.shape[0]
    both = expm(2e-3 * np.block([[linear.A, linear.B], [np.zeros((arm.nv, n + arm.nv))]]))
    np.testing.assert_allclose(held.A, both[:n, :n], atol=1e-11)
    np.testing.assert_allclose(held.B, both[:n, n:], atol=1e-11)
    A, B = zero_order_hold(np.array([[0.0, 1.0], [0.0, 0.0]]), np.array([[0.0], [2.0]]), 0.5)
    np.testing.assert_allclose(A, [[1, 0.5], [0, 1]], rtol=1e-15)
    np.testing.assert_allclose(B, [[0.25], [1]], rtol=1e-15)


@pytest.mark.parametrize("interface", ["voltage", "effort"])
def test_the_equilibrium_command_holds_the_configuration(interface):
    arm = full().with_motors(brush_drop=0.3)
    state, command = find_equilibrium(arm, [0.3, -0.8, 0.2, 0.4, 0.5], interface)
    x = np.concatenate([state.q, state.v, state.act, command.value])
    np.testing.assert_allclose(rate(arm, interface, x), 0, atol=1e-6)


def test_an_equilibrium_beyond_the_supply_is_rejected():
    arm = five_dof().with_motor("R2", supply_voltage=0.3)
    with pytest.raises(InvalidValue, match=r"no voltage command holds .* joint 'R2' carries -8.1"):
        find_equilibrium(arm, arm.configuration("initial"), "voltage")


@pytest.mark.parametrize("method", INTEGRATORS)
@pytest.mark.parametrize("make", [five_dof, full])
def test_discrete_map_is_the_derivative_of_the_plants_step(method, make):
    """At equilibrium; central differences of ``Plant.step`` in states and command."""
    arm, dt, h = make(), 5e-5, 1e-5
    state, command = find_equilibrium(arm, [0.3, -0.8, 0.2, 0.4, 0.5], "voltage")
    phi, gamma = discrete_map(linearize(arm, state, command), method, dt)
    plant, nv = Plant(arm, method), arm.nv
    x = np.concatenate([state.q, state.v, state.act, command.value])

    def step(x):
        q, v, z, u = np.split(x, [nv, 2 * nv, 2 * nv + arm.na])
        after = plant.step(State.of(q, v, act=z), Command("voltage", u), dt)
        return np.concatenate([after.q, after.v, after.act])

    jacobian = np.array([(step(x + h * e) - step(x - h * e)) / (2 * h) for e in np.eye(x.size)]).T
    np.testing.assert_allclose(np.hstack([phi, gamma]), jacobian, atol=1e-6)


# --- textbook limits of one joint ---

OMEGA = 40.0


def oscillator(damping):
    """Return a hanging link as a linear oscillator of OMEGA; damping ratio ``damping``."""
    arm = chain({"axis": "0 -1 0", "kind": "continuous"})
    mass = rigid_body.mass_matrix(arm, [0.0])[0, 0]
    arm = arm.with_gravity([0.0, 0.0, -(OMEGA**2) * mass / 0.25])
    arm = arm.with_joint("J1", damping=2 * damping * OMEGA * mass)
    return linearize(arm, *find_equilibrium(arm, [-pi / 2]))


def largest_stable_step(method, damping):
    linear = oscillator(damping)
    return largest_stable_dt(lambda dt: is_stable(discrete_map(linear, method, dt)[0]), 1e-5, 10.0)


@pytest.mark.parametrize(
    ("method", "damping", "limit"),
    [
        ("explicit_euler", 0.1, 2 * 0.1 / OMEGA),
        ("explicit_euler", 0.7, 2 * 0.7 / OMEGA),
        ("semi_implicit_euler", 0.0, 2 / OMEGA),
        # v⁺ = v - h (w² q + c v): stable while h² w² + 2 h c < 4.
        ("semi_implicit_euler", 0.5, (sqrt(0.5**2 * 4 + 4) - 2 * 0.5) / OMEGA),
        ("velocity_verlet", 0.0, 2 / OMEGA),
        ("rk4", 0.0, 2 * sqrt(2) / OMEGA),
        ("implicit_midpoint", 0.0, inf),
        ("implicit_midpoint", 0.3, inf),
        ("adaptive", 0.3, inf),
    ],
)
def test_step_limits_equal_textbook_values(method, damping, limit):
    assert largest_stable_step(method, damping) == pytest.approx(limit, rel=1e-6)


def test_an_undamped_oscillator_is_never_stable_with_explicit_euler():
    assert largest_stable_step("explicit_euler", 0.0) == 0.0


# --- sampled loops ---


def test_the_closed_loop_map_equals_a_simulation_of_the_linear_loop():
    """Random dynamic controller, three steps per period; with and without a period of delay."""
    arm, rng = chain({}, {}), np.random.default_rng(5)
    linear = linearize(arm, *find_equilibrium(arm, [0.2, 0.3]))
    phi, gamma = discrete_map(linear, "rk4", 1e-3)
    shapes = {"F": (3, 3), "G": (3, 4), "H": (2, 3), "J": (2, 4), "K": (2, 4)}
    compensator = LinearController(
        "effort", **{name: rng.normal(size=size) for name, size in shapes.items()}
    )
    for delay in (0, 1):
        y, c, u = rng.normal(size=4), rng.normal(size=3), rng.normal(size=2)
        start = np.concatenate([y, c, u] if delay else [y, c])
        answer = compensator.H @ c + (compensator.J + compensator.K) @ y
        c = compensator.F @ c + compensator.G @ y
        for _ in range(3):
            y = phi @ y + gamma @ (u if delay else answer)
        expected = np.concatenate([y, c, answer] if delay else [y, c])
        closed = closed_loop_map(phi, gamma, compensator, 3, delay)
        np.testing.assert_allclose(closed @ start, expected, rtol=1e-12)


@pytest.mark.parametrize("name", ["pid", "pid_gravity", "gravity_compensation", "lqr"])
def test_the_linear_controller_is_the_derivative_of_the_controller(name):
    """A small disturbance, five calls: the commands equal those of the linear controller."""
    arm, period, q = five_dof(), 2e-3, five_dof().configuration("initial")
    controller = build_controller(arm, name)
    compensator, rng, h = linear_controller(controller, q, period), np.random.default_rng(2), 1e-6
    motions = rng.normal(size=(5, 10))

    def answers(size):
        rest = State.of(q, tau=rigid_body.gravity(arm, q))
        controller.reset(rest)
        controller.update(rest, Reference.hold(q), 0.0)
        return np.array(
            [
                controller.update(
                    State.of(q + size * x[:5], size * x[5:]), Reference.hold(q), period
                ).value
                for x in motions
            ]
        )

    memory = np.zeros(compensator.F.shape[0])
    for found, x in zip((answers(h) - answers(-h)) / (2 * h), motions, strict=True):
        np.testing.assert_allclose(
            compensator.H @ memory + (compensator.J + compensator.K) @ x, found, atol=1e-4
        )
        memory = compensator.F @ memory + compensator.G @ x


@pytest.mark.parametrize("steps", [1, 2, 7, 2000])
def test_a_period_is_a_sequence_of_steps(steps):
    loop = configured()
    phi, gamma = discrete_map(loop.linear, "rk4", 1e-4)
    compensator, x = loop.controllers(2e-3), np.arange(1.0, 11.0)
    pushed = gamma @ (compensator.J + compensator.K) @ x
    y = x
    for _ in range(steps):
        y = phi @ y + pushed
    nothing = np.zeros(compensator.F.shape[0])
    after = closed_loop_map(phi, gamma, compensator, steps) @ np.concatenate([x, nothing])
    np.testing.assert_allclose(after[:10], y, rtol=1e-9, atol=1e-9 * np.abs(y).max())


@pytest.mark.filterwarnings("error")
def test_an_unstable_step_is_reported_even_if_its_period_overflows():
    """Explicit Euler multiplies the fastest rate of back-EMF by about -8 in each of 400 steps."""
    slow = replace(published_loop(), dt=2.5e-3, period=1.0)
    phi, _ = discrete_map(slow.linear, "explicit_euler", 2.5e-3)
    found = analyze_stability(slow, "explicit_euler")
    assert not found.stable
    assert found.mode.growth == modes(five_dof(), phi, 2.5e-3)[0].growth > 100


def test_a_nonlinear_controller_is_rejected():
    class Bang(Controller):
        def update(self, state, reference, dt):
            return self.effort_command(np.sign(reference.q - state.q), state)

    with pytest.raises(InvalidValue, match="controller Bang: no exact linear form"):
        linear_controller(Bang(five_dof()), np.zeros(5), 2e-3)


# --- the published gains ---


def disturbance_growth(factor, seconds=1.5):
    """Return the growth of a disturbance of 1e-9 rad between the halves of a simulation [factor].

    Explicit Euler of the plant, voltages one call late, without the rule that stops reversing
    joints.
    """
    arm = published_arm()
    state, volts = find_equilibrium(arm, arm.configuration("initial"), "voltage")
    gains = factor * np.array([PUBLISHED_P.get(name, 0.0) for name in arm.joint_names])
    plant, target, size = Plant(arm, "explicit_euler"), state.q, []
    state = State.of(target + np.array([0, 1e-9, -1e-9, 0, 1e-9]))
    now = following = volts
    for _ in range(round(seconds / 1e-4)):
        state = plant.step(state, now, 1e-4)
        now = following
        following = Command("voltage", volts.value + gains * (target - state.q))
        size.append(np.abs(state.v).max())
    third = len(size) // 3
    return max(size[2 * third :]) / max(size[third : 2 * third])


def test_published_gains_are_at_the_stability_limit_of_explicit_euler():
    """Margins 2.0 % of dt or 1.8 % of gain, R5 least stable at 570 Hz; others have more margin."""
    found = {method: analyze_stability(published_loop(), method) for method in INTEGRATORS}
    edge = found["explicit_euler"]
    assert edge.stable
    assert edge.margin == pytest.approx(0.0197, abs=5e-4)
    assert edge.gain_margin == pytest.approx(0.0184, abs=5e-4)
    assert (edge.mode.joint, round(edge.mode.frequency)) == ("R5", 572)
    text = command_line.stability_sentence(edge)
    assert "is at the stability limit: 1.8 % more gain, or 2 % more dt" in text
    assert all(a.gain_margin > 0.3 for name, a in found.items() if name != "explicit_euler")


def test_the_simulation_diverges_beyond_the_stability_limit():
    """To 0.3 % of gain, on either side of the predicted factor; and at the predicted rate."""
    factor = 1 + analyze_stability(published_loop(), "explicit_euler").gain_margin
    assert disturbance_growth(factor * 0.997) < 0.5
    assert disturbance_growth(factor * 1.003) > 2.0
    growth = modes_at(1.03)[0].growth
    assert np.log(disturbance_growth(1.03, 0.6)) / 0.2 == pytest.approx(growth, rel=0.03)


def modes_at(factor):
    loop = published_loop(factor=factor)
    phi, gamma = discrete_map(loop.linear, "explicit_euler", 1e-4)
    return modes(loop.linear.arm, closed_loop_map(phi, gamma, loop.controllers(1e-4), 1, 1), 1e-4)


@pytest.mark.slow
def test_the_published_program_diverges_with_one_percent_more_gain():
    """Its rule for reversals removes the remaining margin: 1.8 % without the rule.

    The sum of errors [rad] is a result of the original program.
    """
    p = np.array(list(PUBLISHED_P.values()))
    assert objective(published_arm(), 1.001 * p, duration=1.0) < 100
    assert objective(published_arm(), 1.01 * p) == pytest.approx(189766.202489762, rel=1e-9)


@pytest.mark.slow
def test_the_stability_limit_of_the_published_step_is_computed_and_printed(capsys):
    """Between 0.2 and 0.3 % more gain; the linear loop has 1.8 %."""
    edge = published_stability_limit()
    p = np.array(list(PUBLISHED_P.values()))
    assert 1.002 < edge < 1.003
    limit = DIVERGED_RATIO * objective(published_arm(), p)
    assert objective(published_arm(), 1.002 * p) < limit < objective(published_arm(), edge * p)
    assert (published_stability_limit(1.01, 1.02), published_stability_limit(1.0, 1.001)) == (
        1.01,
        1.001,
    )
    five_dof_gains.main(["stability", "--integrator", "explicit_euler"])
    line = capsys.readouterr().out.splitlines()[-1]
    assert f"within 3 s from {100 * (edge - 1):.2g} % more gain on" in line


# --- the gains of config/five_dof.yaml ---


def configured(dt=1e-4, period=2e-3):
    arm = five_dof()
    return controlled_loop(arm, build_controller(arm), arm.configuration("initial"), dt, period)


def test_configured_gains_have_a_stability_margin():
    """dt 0.1 ms, control every 2 ms: stable with 5 times the gains and 4 times the period."""
    found = analyze_stability(configured(), "semi_implicit_euler")
    assert found.stable
    assert found.largest_dt == found.period == 2e-3
    assert found.gain_margin == pytest.approx(5.35, abs=0.1)
    assert found.periods.largest == pytest.approx(9.37e-3, rel=0.01)


@pytest.mark.parametrize(("factor", "grows"), [(0.97, False), (1.03, True)])
def test_the_stability_limit_of_the_configured_gains_is_that_of_the_simulation(factor, grows):
    """All gains times the predicted factor, ±3 %: the real controller on the plant."""
    arm, q = five_dof().with_motors(supply_voltage=inf), five_dof().configuration("initial")
    edge = 1 + analyze_stability(configured(), "semi_implicit_euler").gain_margin
    held = build_controller(arm)
    gains = {
        name: {key: float(held.gains[key][k]) for key in ("p", "i", "d", "d_filter")}
        for k, name in enumerate(arm.joint_names)
    }
    for row in gains.values():
        for key in ("p", "i", "d"):
            row[key] *= factor * edge
    controller, plant = type(held)(arm, gains), Plant(arm)
    rest = State.of(q, tau=rigid_body.gravity(arm, q))
    controller.reset(rest)
    state, speeds = State.of(np.add(q, 1e-8), np.zeros(5)), []
    for k in range(600):
        command = controller.update(state, Reference.hold(q), 2e-3 if k else 0.0)
        state = plant.step(state, command, 1e-4, 20)
        speeds.append(np.abs(state.v).max())
    assert max(speeds[500:]) > 1.0 if grows else max(speeds[500:]) < 1e-6


@pytest.mark.parametrize(("factor", "grows"), [(0.97, False), (1.03, True)])
def test_the_stability_limit_of_the_lqr_is_that_of_the_simulation(factor, grows):
    """K times the predicted factor, ±3 %."""
    arm, q = five_dof().with_motors(supply_voltage=inf), five_dof().configuration("initial")
    held = Lqr(arm)
    found = analyze_stability(controlled_loop(arm, held, q, 1e-4, 2e-3), "semi_implicit_euler")
    K = factor * (1 + found.gain_margin) * held.gain(q)
    held.gain = lambda _: K
    plant, state, speeds = Plant(arm), State.of(np.add(q, 1e-8), np.zeros(5)), []
    for k in range(600):
        command = held.update(state, Reference.hold(q), 2e-3 if k else 0.0)
        state = plant.step(state, command, 1e-4, 20)
        speeds.append(np.abs(state.v).max())
    assert max(speeds[500:]) > 1.0 if grows else max(speeds[500:]) < 1e-6


def test_too_large_gains_are_reported_as_unstable():
    arm = five_dof()
    loop = controlled_loop(
        arm, Pid(arm, {n: {"p": 2e4, "i": 0, "d": 0} for n in arm.joint_names}),
        arm.configuration("initial"), 1e-4, 2e-3,
    )  # fmt: skip
    found = analyze_stability(loop, "semi_implicit_euler")
    assert not found.stable
    assert found.gain_margin < 0
    assert "is unstable: joint R" in command_line.stability_sentence(found)


# --- the search ---


@given(st.floats(1e-5, 0.01), st.floats(1.5, 30.0))
def test_every_stable_interval_is_found(low, ratio):
    """Stable below ``low`` and in an interval of larger values."""
    high = low * ratio
    expected = (1e-6, low), (high, 2 * high)
    found = stable_set(lambda x: any(a <= x <= b for a, b in expected))
    np.testing.assert_allclose(found.intervals, expected, rtol=2e-9)
    assert found.largest == pytest.approx(low, rel=2e-9)


@given(st.integers(1, 1500))
def test_a_period_is_divided_into_integer_parts(least):
    found = stable_parts(lambda dt: dt <= 2e-3 / least * (1 + 1e-12), 2e-3)
    if least == 1:
        assert found.largest == inf
    else:
        assert found.largest == pytest.approx(2e-3 / least, rel=1e-12)


def test_a_search_range_in_descending_order_is_rejected():
    with pytest.raises(InvalidValue, match="0 < lowest < highest"):
        stable_set(lambda _: True, 1.0, 0.1)


def test_modes_without_stiffness_are_neutral():
    """R1 at 0 V drifts indefinitely: a neutral mode, not an unstable one."""
    arm = five_dof()
    loop = published_loop()
    phi, gamma = discrete_map(loop.linear, "rk4", 1e-5)
    closed = closed_loop_map(phi, gamma, voltage_pi_controller(arm, np.zeros(5)))
    assert np.abs(np.linalg.eigvals(closed) - 1).min() < 1e-9
    free = [mode.joint for mode in modes(arm, closed, 1e-5)]
    assert free.count("R1") == 1


# --- the command line ---


@pytest.mark.slow
def test_the_command_prints_a_table_and_a_sentence(capsys):
    assert five_dof_gains.main(["stability", "--integrator", "explicit_euler"]) == 0
    out = " ".join(capsys.readouterr().out.split())
    assert "explicit_euler 0.102 2 % 1.018 0.102 R5 572 Hz -21.1/s" in out
    assert "explicit_euler with dt = 0.0001 s is at the stability limit" in out


def test_the_command_accepts_the_lqr(capsys):
    arguments = ["two_link", "--controller", "lqr", "--integrator", "rk4"]
    with pytest.warns(RuntimeWarning, match="Lqr of arm 'two_link': delay margin < 2"):
        assert command_line.run(arguments) == 0
    text = capsys.readouterr().out
    assert re.search(r"rk4 with dt = 0.0001 s is stable, .* or all gains times 3\.0", text)
    assert "Delay margin: 1.5 control periods" in text


@pytest.mark.slow
def test_the_command_exits_with_1_for_an_unstable_loop(capsys):
    options = ["--dt", "1.1e-4", "--integrator", "explicit_euler"]
    assert five_dof_gains.main(["stability", *options]) == 1
    assert "is unstable: joint R5" in capsys.readouterr().out


def test_delay_reduces_the_margin_at_a_given_configuration(capsys):
    factors = []
    for delay in ("0", "1"):
        options = ["--integrator", "rk4", "--configuration=0,-0.5,0.2,0,0.1", "--delay", delay]
        assert command_line.run(["five_dof", *options]) == 0
        factors.append(float(capsys.readouterr().out.split("all gains times ")[1].split(".\n")[0]))
    assert factors[1] < 0.7 * factors[0]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["nope"], "unknown arm or URDF file 'nope'"),
        (["five_dof", "--integrator", "rk9"], "unknown integrator 'rk9'; known: adaptive"),
        (["five_dof", "--gains", "/no/file.yaml"], "expected a readable YAML file"),
        (["five_dof", "--configuration", "up"], "unknown configuration of arm 'five_dof' 'up'"),
        (
            ["five_dof", "--configuration", "0,x,0,0,0"],
            "--configuration = 0,x,0,0,0: could not convert",
        ),
        (["five_dof", "--configuration", "0,9,0,0,0"], "joint 'R2' = 9 rad; expected"),
        (["five_dof", "--controller", "lqg"], "unknown controller"),
        (["five_dof", "--dt", "-1"], "expected a number from 1e-09 to 1e+06 s"),
        (["five_dof", "--dt", "1e-300"], "expected a number from 1e-09 to 1e+06 s"),
        (["five_dof", "--period", "1e9"], "expected a number from 1e-09 to 1e+06 s"),
        (["five_dof", "--dt", "0.9"], "expected at most 0.5"),
        (["five_dof", "--dt", "3e-4"], "whole multiple of dt"),
        (["five_dof", "--gains", "published"], "expected a readable YAML file"),
    ],
)
def test_invalid_input_is_one_line(arguments, message, capsys):
    with pytest.raises(SystemExit) as ended:
        main(["stability", *arguments])
    assert ended.value.code == 2
    assert message in capsys.readouterr().err


def test_arms_with_prescribed_motion_cannot_be_linearized():
    arm = load_arm("five_dof").with_actuator("rate_limited")
    with pytest.raises(InvalidValue, match=r"joint 'R1': .* prescribes motion"):
        find_equilibrium(arm, arm.configuration("initial"), "position")

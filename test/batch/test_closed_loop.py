"""Closed-loop rollouts: generated control cycles equal the controllers' own updates."""

from dataclasses import replace

import numpy as np
import pytest
from conftest import five_dof

from arm_dynamics import Command, Plant, Reference, State
from arm_dynamics.batch import MeasurementNoise, rollout_closed_loop, variation
from arm_dynamics.batch.kernels.tracking_metrics import METRICS
from arm_dynamics.control.controllers.gravity_compensation import GravityCompensation
from arm_dynamics.control.controllers.pid import Pid, PidGravity
from arm_dynamics.core.errors import CommandRejected, InvalidValue, UnknownName

COUNT, PERIOD, DURATION, LIMIT = 6, 2e-3, 0.2, 3.0
OUTPUTS = ("q", "v", "effort")


ALONG = PidGravity(
    five_dof(), {name: {"ff_acceleration_scale": 1.0} for name in five_dof().joint_names}
)
"""A controller that adds the effort along the reference."""


def perturbed_model():
    """Return the controller's model: another payload, weaker motors, other limits."""
    arm = five_dof().with_payload(0.2).with_motors(supply_voltage=9.0)
    return replace(arm, joints=tuple(replace(joint, effort=LIMIT) for joint in arm.joints))


def random_start(seed=0):
    random, n = np.random.default_rng(seed), five_dof().nv
    q = np.array(five_dof().configuration("initial")) + 0.3 * random.normal(size=(COUNT, n))
    vary = {
        "payload": random.uniform(0, 0.3, COUNT),
        "motor.supply_voltage": random.uniform(5, 12, COUNT),
        "gains.p": random.uniform(5, 60, (COUNT, n)),
        "gains.i": random.uniform(0, 200, (COUNT, n)),
        "gains.i_clamp": random.uniform(0.1, 3, (COUNT, n)),
        "gains.d_filter": random.choice([0.0, 3e-3], (COUNT, n)),
    }
    return np.concatenate([q, random.normal(size=(COUNT, n))], axis=1), vary


def simulate_rollout(controller, reference, dt, i, interface, noise, delay):
    """Simulate one rollout step by step, as ControlLoop does: records of q, v, effort; metrics."""
    states, vary = random_start()
    own = {name: np.atleast_1d(values[i]) for name, values in vary.items()}
    n, gains = five_dof().nv, {name: own.pop(name) for name in list(own) if "gains" in name}
    own["motor.supply_voltage"] = np.full(n, own["motor.supply_voltage"][0])
    arm, control = variation.rollout_arm(five_dof(), own), type(controller)(controller.arm)
    control.set_gains({
        joint: {name.removeprefix("gains."): values[i] for name, values in gains.items()}
        for i, joint in enumerate(arm.joint_names)
    })  # fmt: skip
    state, plant, pending = State.of(states[i, :n], states[i, n:]), Plant(arm), np.zeros(n)
    table, records, errors = noise.table(COUNT, 100, n)[i], [], []
    direction = np.sign(reference[0, :n] - state.q)
    for k in range(100):
        seen = State.of(state.q + table[k, :n], state.v + table[k, n:])
        if k == 0:
            control.reset(seen)
        row = reference[min(k, len(reference) - 1)]
        target = Reference(row[:n], row[n:], np.zeros(n))
        value = control.update(seen, target, PERIOD if k else 0.0).value
        if interface == "voltage":
            motors = zip(control.arm.actuators, value, seen.v, strict=True)
            value = np.array([motor.voltage_for(x, v) for motor, x, v in motors])
        effort, pending = (pending, value) if delay else (value, pending)
        state = plant.step(state, Command(interface, effort), dt, round(PERIOD / dt))
        records.append(np.concatenate([state.q, state.v, state.tau]))
        errors.append(row[:n] - state.q)
    e, efforts = np.array(errors), np.array(records)[:, 2 * n :]
    metrics = (
        PERIOD * abs(e).sum(0),
        abs(efforts).max(0),
        (-direction * e).max(0).clip(0),
        abs(e[-20:]).max(0),
    )
    return np.array(records), metrics


CASES = {
    "effort": (Pid, "effort", False, MeasurementNoise()),
    "gravity by voltage, late and noisy": (
        PidGravity,
        "voltage",
        True,
        MeasurementNoise(1e-3, 1e-2, 3),
    ),
}


@pytest.mark.quick(2)
@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize("backend", ["generated", "plant"])
def test_every_rollout_equals_plant_and_controller(case, backend):
    kind, interface, delay, noise = CASES[case]
    states, vary = random_start()
    goal = np.array(five_dof().configuration("initial")) + 0.2
    reference = np.array([[*(goal + 0.1 * np.sin(k / 9)), *np.full(5, 0.3)] for k in range(60)])
    dt = np.where(np.arange(COUNT) % 2, 1e-4, 2e-4)
    batch = rollout_closed_loop(
        five_dof(), states, kind(perturbed_model()), reference, dt, PERIOD, DURATION, vary=vary,
        interface=interface, one_period_delay=delay, noise=noise if noise.q else None,
        outputs=OUTPUTS,
        backend=backend,
    )  # fmt: skip
    saturated = 0
    for i in range(COUNT):
        records, metrics = simulate_rollout(
            kind(perturbed_model()), reference, dt[i], i, interface, noise, delay
        )
        for block, name in enumerate(OUTPUTS):
            expected = records[:, 5 * block : 5 * block + 5]
            scale = 1e-11 * np.abs(expected).max()
            np.testing.assert_allclose(batch[name][i], expected, atol=scale)
        for name, expected in zip(METRICS, metrics, strict=True):
            np.testing.assert_allclose(batch.metrics[name][i], expected, atol=1e-11)
        saturated += int((abs(records[:, 10:]) >= 0.999 * LIMIT).any())
    assert batch.time[:, -1] == pytest.approx(np.full(COUNT, DURATION))
    assert interface == "voltage" or saturated


@pytest.mark.slow
def test_a_measured_effort_gives_a_bumpless_start():
    """As ``Pid.reset``: the first command is the effort measured at the start."""
    arm, states = five_dof(), random_start()[0]
    start = [State.of(x[:5], tau=np.full(5, 0.5)) for x in states]
    batch = rollout_closed_loop(
        arm, start, Pid(perturbed_model()), states[:, None, :5], 1e-4, PERIOD, PERIOD,
        outputs=("effort",),
    )  # fmt: skip
    np.testing.assert_allclose(batch.effort[:, 0], 0.5, atol=1e-10)


@pytest.mark.slow
def test_a_policy_is_called_once_per_period_for_all_rollouts():
    arm, (states, vary), times = five_dof(), random_start(), []

    def policy(q, v, time):
        times.append(time)
        return 3 * np.sin(10 * time) - q - 0.1 * v

    goal = np.array(arm.configuration("initial"))
    batch = rollout_closed_loop(
        arm, states, policy, goal, 1e-4, PERIOD, DURATION, outputs=("q", "v"), record_every=10,
        vary={"payload": vary["payload"]},
    )  # fmt: skip
    np.testing.assert_allclose(times, PERIOD * np.arange(100))
    assert batch.q.shape == (COUNT, 10, 5)
    for i in (0, 5):
        plant = Plant(arm.with_payload(vary["payload"][i]))
        state, total = State.of(states[i, :5], states[i, 5:]), 0.0
        for k in range(100):
            effort = 3 * np.sin(10 * k * PERIOD) - state.q - 0.1 * state.v
            state = plant.step(state, Command("effort", effort), 1e-4, 20)
            total += PERIOD * np.abs(goal - state.q)
        np.testing.assert_allclose(batch.q[i, -1], state.q, rtol=1e-11)
        np.testing.assert_allclose(batch.metrics["iae"][i], total, rtol=1e-11)


def test_noise_depends_only_on_the_seed_and_the_rollout():
    small, large = (MeasurementNoise(1.0, 2.0, 7).table(count, 50, 3) for count in (2, 5))
    np.testing.assert_array_equal(small, large[:2])
    assert not np.array_equal(small[0], small[1])
    assert np.std(MeasurementNoise(1.0, 2.0).table(40, 100, 3)[:, :, 3:]) == pytest.approx(
        2, rel=0.05
    )


@pytest.mark.parametrize(
    ("changes", "error", "words"),
    [
        ({"vary": {"gains.x": np.ones(COUNT)}}, UnknownName, "gain 'x'; known: d, "),
        ({"vary": {"gains.p": -np.ones(COUNT)}}, InvalidValue, "p = -1"),
        ({"controller": GravityCompensation(five_dof())}, UnknownName, "'GravityCompensation'"),
        (
            {"period": 1.5e-4},
            InvalidValue,
            "duration = 0.2 s; expected an integer multiple of the period",
        ),
        (
            {"controller": lambda q, v, t: v[:1]},
            CommandRejected,
            r"policy, tick 0: commands: shape = \(1, 5\); expected .* \(6, 5\)",
        ),
        ({"residual_fraction": 2.0}, InvalidValue, "residual_fraction = 2.0; expected at most 1"),
        ({"reference": np.zeros(4)}, InvalidValue, r"reference: shape = \(4,\); expected"),
        ({"interface": "speed"}, UnknownName, "'R1' 'speed'"),
        (
            {"controller": ALONG, "reference": np.ones(10)},
            InvalidValue,
            "ff_acceleration_scale = 1; expected 0 with a moving reference",
        ),
    ],
)
def test_invalid_arguments_are_rejected(changes, error, words):
    options = {
        "controller": Pid(five_dof()),
        "reference": np.zeros(5),
        "period": PERIOD,
        "vary": {},
    }
    options |= changes
    with pytest.raises(error, match=words):
        rollout_closed_loop(
            five_dof(), random_start()[0], dt=1e-4, duration=DURATION, backend="plant", **options
        )

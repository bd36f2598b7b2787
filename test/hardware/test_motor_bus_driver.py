"""Lifecycle of a driver of motors: activation, trips, stops, loss and recovery."""

import numpy as np
import pytest
from emulators.ideal import WIRE
from motor_rig import RATIO, SAFETY, SIGN, START, Rig, arm, weight

from arm_dynamics.control.config import build_controller
from arm_dynamics.control.control_loop import ControlLoop
from arm_dynamics.control.trajectories.trajectory_parsing import parse_trajectory
from arm_dynamics.core.errors import ConfigError, DriverFault
from arm_dynamics.core.state import Command, State
from arm_dynamics.hardware.driver import DriverState
from arm_dynamics.safety.controlled_stop import STOP_TIME
from arm_dynamics.safety.safety_settings import SafetySettings

pytestmark = pytest.mark.hardware


def settings(**changes):
    """Return safety settings with these changes."""
    return SafetySettings(velocity_limit_scale=SAFETY.velocity_limit_scale, **changes)


@pytest.mark.parametrize("interface", ["effort", "position", "velocity"])
def test_activation_causes_no_motion(interface):
    rig = Rig(interface)
    rig.driver.configure()
    assert rig.driver.status is DriverState.INACTIVE
    assert rig.torque == [False] * 3
    rig.cycles(5)
    rig.driver.activate()
    assert rig.torque == [True] * 3
    rig.cycles(500)
    assert rig.driver.status is DriverState.ACTIVE
    assert rig.body.moved.max() < (1e-3 if interface == "effort" else 0.02)
    np.testing.assert_allclose(rig.state.q, rig.body.state.q, atol=1e-9)
    assert rig.counts == {}


@pytest.mark.parametrize("interface", ["effort", "position", "velocity"])
def test_motor_commands_during_activation_hold_the_arm(interface):
    """Gravity torque, measured position, zero velocity: before and after enabling torque."""
    rig, commands = Rig(interface), []
    write = rig.bus.write

    def record(goals):
        commands.append([goals[i].value for i in (1, 2, 3)])
        write(goals)

    rig.driver.configure()
    rig.cycles(5)
    rig.bus.write = record
    rig.driver.activate()
    shafts = [shaft.q for shaft in rig.shafts]
    carried = weight(rig) * np.divide(SIGN, RATIO)
    kept = {"effort": carried, "position": shafts, "velocity": np.zeros(3)}[interface]
    assert len(commands) > 10
    np.testing.assert_allclose(commands, [kept] * len(commands), atol=0.02, rtol=1e-3)


def test_joint_and_shaft_values_agree_with_the_emulated_transmission():
    rig = Rig().up()
    rig.cycles(20, lambda: weight(rig, 0.5, -0.3, 0.02))
    np.testing.assert_allclose(rig.state.q, rig.body.state.q, atol=1e-3)
    np.testing.assert_allclose(rig.state.v, rig.body.state.v, atol=0.05)
    np.testing.assert_allclose(rig.driver.feedback.age, 0, atol=1e-12)
    assert rig.driver.feedback.enabled == (True,) * 3


def require_rejected(rig, text):
    with pytest.raises(DriverFault, match=text):
        rig.driver.activate()
    assert rig.driver.status is DriverState.INACTIVE
    assert rig.torque == [False] * 3
    assert rig.counts["activation_rejected"] == 1


def ready(**more):
    rig = Rig(**more)
    rig.driver.configure()
    rig.cycle()
    return rig


def test_activation_is_rejected_with_missing_or_stale_feedback():
    rig = ready()
    rig.shafts[1].silent = True
    require_rejected(rig, "no new feedback of joints J2")
    rig = ready()
    rig.bus.frozen = {3}
    require_rejected(rig, "no new feedback of joints J3")


def test_activation_is_rejected_with_a_fault_a_hot_motor_or_a_position_beyond_limits():
    rig = ready()
    rig.line.trip(2, "overload")
    require_rejected(rig, "'J2': motor_fault .*overload")
    rig = ready()
    rig.shafts[0].temperature = 90.0
    require_rejected(rig, "'J1': over_temperature 90 °C, limit 75")
    require_rejected(ready(q=(0.3, 3.3, 0.0)), "'J2': position_limit 3.3 rad, limit 3.22")


def test_activation_is_rejected_if_torque_is_already_enabled_and_keeps_it():
    rig = ready()
    rig.line.each[2].on = True
    with pytest.raises(DriverFault, match="'J2' already has torque"):
        rig.driver.activate()
    assert rig.torque == [False, True, False]


def test_activation_of_a_moving_arm_is_rejected():
    rig = ready(hands=False)
    rig.cycles(100)
    require_rejected(rig, r"velocity = .* rad/s; expected at most 0\.5")


@pytest.mark.parametrize("sign", [1, -1])
def test_activation_is_rejected_for_a_joint_fast_in_either_direction(sign):
    rig = ready()
    rig.shafts[1].v = sign * SIGN[1] * RATIO[1] * 0.51
    require_rejected(rig, f"'J2': velocity = {sign * 0.51} rad/s; expected at most 0\\.5")
    rig = ready()
    rig.shafts[1].v = sign * SIGN[1] * RATIO[1] * 0.49
    rig.driver.activate()


def test_a_motor_without_a_watchdog_needs_permission():
    rig = ready()
    rig.bus.supports_watchdog = False
    require_rejected(rig, "motor 1.*watchdog")
    rig.bus.settings["allow_missing_watchdog"] = "true"
    rig.driver.activate()
    assert rig.torque == [True] * 3
    rig = ready(interface="position")  # a servo holds its last goal
    rig.bus.supports_watchdog = False
    rig.driver.activate()
    assert rig.torque == [True] * 3


@pytest.mark.parametrize("interface", ["effort", "position"])
def test_a_watchdog_that_cannot_be_enabled_counts_as_missing(interface):
    rig = ready(interface=interface)
    rig.bus.arms = False
    require_rejected(rig, "motor 1.*watchdog")


def test_a_failed_activation_disables_torque():
    rig = ready()
    enable, rig.bus.enable = rig.bus.enable, lambda ids: enable([1, 2])
    require_rejected(rig, "'J3' .motor 3. did not confirm its torque")
    rig = ready()
    enable_all = rig.bus.enable

    def jerk(ids):
        done = enable_all(ids)
        rig.line.each[1].goal = 500.0
        rig.bus.pass_time(0.05)
        return done

    rig.bus.enable = jerk
    require_rejected(rig, "motion = .* rad; expected at most")


def test_unsupported_interfaces_and_policies_are_rejected_immediately():
    with pytest.raises(ConfigError, match="interface = 'effort'; expected 'position'"):
        Rig(takes=("position",))
    for policy in ("damp", "ramp"):
        with pytest.raises(ConfigError, match=f"'{policy}'.*expected hold or disable"):
            Rig("position", settings(stop_policy=policy))
    with pytest.raises(ConfigError, match="prescribed motion"):
        Rig(model=arm().with_actuator("rate_limited"))


def test_command_and_state_interfaces_of_the_joints():
    capabilities = Rig().driver.capabilities
    assert [(c.joint, c.interfaces, c.effort_source) for c in capabilities] == [
        (f"J{i}", ("effort", "position", "velocity"), "measured") for i in (1, 2, 3)
    ]
    capabilities = Rig("position", takes=("position",)).driver.capabilities
    assert {(c.interfaces, c.effort_source) for c in capabilities} == {(("position",), "none")}


def test_a_control_loop_runs_on_motors():
    rig = Rig().up()
    loop = ControlLoop(rig.driver, build_controller(arm(), "pid_gravity"))
    loop.step()
    loop.hold({"J2": START[1] + 0.2})
    rig.steps(loop, 1500)
    np.testing.assert_allclose(rig.body.state.q, np.add(START, (0, 0.2, 0)), atol=0.02)
    assert rig.counts == {}


def test_a_loop_restarts_from_the_measured_state_after_activation():
    rig = Rig()
    rig.driver.configure()
    loop = ControlLoop(rig.driver, build_controller(arm(), "pid_gravity"))
    rig.steps(loop, 20)
    for part in np.linspace(0.0, 1.0, 20):  # carried by hand
        rig.body.hold_at(START + part * np.array([0.5, -0.6, 0.4]))
        rig.steps(loop, 1)
    rig.steps(loop, 500)
    rig.driver.activate()
    rig.body.forget()
    rig.steps(loop, 300)
    assert rig.body.moved.max() < 5e-3
    assert rig.counts == {}
    assert "the driver begins to accept commands" in loop.events.latest["control_restarted"]


def test_a_loop_restarts_from_the_measured_state_after_a_stop():
    rig = Rig().up()
    loop = ControlLoop(rig.driver, build_controller(arm(), "pid_gravity"))
    rig.steps(loop, 2)
    there = {"positions": [np.add(START, (0, 0.8, 0))], "times": [1.0]}
    loop.follow(parse_trajectory(arm(), arm().joint_names, **there, start=loop.state.time))
    rig.steps(loop, 150)
    rig.shafts[1].silent = True
    rig.steps(loop, 100)
    rig.shafts[1].silent = False
    stands = rig.body.state.q.copy()
    assert stands[1] < START[1] + 0.5
    rig.steps(loop, SAFETY.recovery_cycles + 500)
    assert rig.driver.status is DriverState.ACTIVE
    np.testing.assert_allclose(rig.body.state.q, stands, atol=0.03)
    assert rig.counts == {"feedback_missing": 1}


def test_a_self_clearing_stop_lasts_until_the_joints_are_at_rest():
    rig = Rig().up()
    rig.cycles(60, lambda: weight(rig, 12.0, -9.0, 3.0))
    assert np.abs(rig.body.state.v).max() > 1.5
    for shaft in rig.shafts:
        shaft.silent = True
    rig.cycles(SAFETY.max_missed_cycles + 2)
    for shaft in rig.shafts:
        shaft.silent = False
    rig.cycles(SAFETY.recovery_cycles + 2, lambda: weight(rig))
    assert rig.driver.status is DriverState.STOPPED
    while rig.driver.status is DriverState.STOPPED:
        rig.cycle(weight(rig))
    assert np.abs(rig.body.state.v).max() < 1.1 * SAFETY.activation_max_velocity
    assert rig.driver.trips == ()


def test_position_goals_do_not_sag_with_every_self_clearing_stop():
    rig = Rig("position").up()
    loop = ControlLoop(rig.driver, build_controller(arm(), "position"))
    rig.steps(loop, 300)
    rig.body.forget()
    for _ in range(10):
        rig.shafts[1].silent = True
        rig.steps(loop, SAFETY.max_missed_cycles + 3)
        rig.shafts[1].silent = False
        rig.steps(loop, SAFETY.recovery_cycles + 30)
        assert rig.driver.status is DriverState.ACTIVE
    assert rig.counts == {"feedback_missing": 10}
    assert rig.body.moved.max() < 1e-3


def test_reset_of_an_active_arm_keeps_its_torque():
    rig = Rig().up()
    rig.cycles(5, lambda: weight(rig))
    rig.driver.reset()
    rig.cycles(5, lambda: weight(rig))
    assert rig.driver.status is DriverState.ACTIVE
    assert rig.torque == [True] * 3


# Emergency stop ---------------------------------------------------------------------------


def test_an_emergency_stop_latches_until_reset():
    rig = Rig().up()
    rig.cycles(10, lambda: weight(rig))
    rig.driver.emergency_stop("button")
    assert rig.driver.emergency_stopped
    rig.cycle(weight(rig))
    assert rig.torque == [False] * 3
    assert rig.driver.status is DriverState.INACTIVE
    assert [(t.kind, t.detail) for t in rig.driver.trips] == [("emergency_stop", "button")]
    with pytest.raises(DriverFault, match=r"before a reset: emergency_stop \(button\)"):
        rig.driver.activate()
    rig.line.each[2].on = True  # by another program
    rig.cycles(2, lambda: weight(rig))
    assert rig.torque == [False] * 3
    assert rig.counts == {"emergency_stop": 1}
    rig.driver.reset()
    assert not rig.driver.emergency_stopped
    assert rig.driver.trips == ()


def test_an_emergency_stop_is_repeated_until_every_motor_has_confirmed_it():
    rig = Rig().up()
    rig.bus.deaf = {2}
    rig.driver.emergency_stop("test")
    rig.cycles(3)
    assert rig.torque == [False, True, False]
    assert rig.driver.status is DriverState.STOPPED
    with pytest.raises(DriverFault, match="not confirmed by joints J2"):
        rig.driver.reset()
    assert rig.driver.emergency_stopped
    rig.bus.deaf = set()
    rig.cycle()
    assert rig.torque == [False] * 3
    rig.driver.reset()
    assert rig.driver.status is DriverState.INACTIVE


def test_an_emergency_stop_before_activation_prevents_it():
    rig = ready()
    rig.driver.emergency_stop("browser")
    status_after_rejection = rig.driver.status
    with pytest.raises(DriverFault, match="browser"):
        rig.driver.activate()
    assert status_after_rejection is DriverState.INACTIVE
    assert rig.torque == [False] * 3


def test_an_emergency_stop_includes_motors_without_a_torque_status():
    rig = Rig()
    rig.bus.reports_torque = False
    rig.up()
    rig.driver.emergency_stop("test")
    rig.cycle()
    assert rig.torque == [False] * 3
    assert rig.driver.status is DriverState.INACTIVE


def test_torque_is_not_enabled_after_an_emergency_stop():
    rig = ready()
    write = rig.bus.write

    def pressed(goals):
        rig.driver.emergency_stop("early")
        write(goals)

    rig.bus.write, rig.bus.enable = pressed, lambda ids: pytest.fail("torque was enabled")
    require_rejected(rig, "emergency stop by early")


def test_an_emergency_stop_during_an_activation_is_effective():
    rig = ready()
    enable = rig.bus.enable

    def pressed(ids):
        rig.driver.emergency_stop("hand")
        return enable(ids)

    rig.bus.enable = pressed
    require_rejected(rig, "emergency stop by hand")


def test_an_emergency_stop_during_a_reset_persists():
    rig = Rig().up()
    rig.driver.emergency_stop("first")
    rig.cycle()
    read = rig.bus.read

    def pressed():
        rig.driver.emergency_stop("second")
        return read()

    rig.bus.read = pressed
    with pytest.raises(DriverFault, match="pressed again"):
        rig.driver.reset()
    assert rig.driver.emergency_stopped


# Communication ----------------------------------------------------------------------------


def test_a_joint_without_feedback_keeps_its_last_value_for_some_cycles_then_nan():
    rig = Rig().up()
    rig.cycles(5, lambda: weight(rig))
    last = rig.state.q[1]
    rig.shafts[1].silent = True
    for _ in range(SAFETY.max_missed_cycles):
        rig.cycle(weight(rig))
        assert rig.state.q[1] == last
        assert rig.driver.status is DriverState.ACTIVE
    rig.cycle(weight(rig))
    assert np.isnan([rig.state.q[1], rig.state.v[1], rig.state.tau[1]]).all()
    assert np.isfinite(rig.state.q[[0, 2]]).all()
    assert rig.driver.status is DriverState.STOPPED
    trip = rig.driver.trips[0]
    assert (trip.kind, trip.joint, trip.value, trip.limit) == ("feedback_missing", "J2", 6, 5)
    age = rig.driver.feedback.age
    np.testing.assert_allclose(age, [0, 6 * (2e-3 + WIRE), 0], atol=1e-12)


def test_an_arm_with_missing_feedback_stops_and_continues_automatically():
    rig = Rig().up()
    rig.cycles(5, lambda: weight(rig))
    rig.shafts[1].silent = True
    rig.cycles(200, lambda: weight(rig))
    assert rig.body.moved.max() < 0.01
    rig.shafts[1].silent = False
    rig.cycles(SAFETY.recovery_cycles - 1, lambda: weight(rig))
    assert rig.driver.status is DriverState.STOPPED
    rig.cycles(2, lambda: weight(rig))
    assert rig.driver.status is DriverState.ACTIVE
    assert rig.driver.trips == ()
    assert rig.counts == {"feedback_missing": 1}


def test_repeated_readings_are_stale():
    rig = Rig().up()
    rig.cycles(3, lambda: weight(rig))
    rig.bus.frozen = {1, 2, 3}
    rig.cycles(SAFETY.max_missed_cycles + 1, lambda: weight(rig))
    assert rig.state is None  # no valid feedback
    assert rig.kinds == ["feedback_stale"] * 3
    rig.cycles(100)
    assert rig.body.moved.max() < 0.01


def test_without_feedback_a_moving_arm_follows_its_stop_trajectory_then_effort_fades():
    rig = Rig().up()
    rig.cycles(40, lambda: weight(rig, 2.0))
    speed = np.abs(rig.state.v).max()
    assert speed > 0.3
    rig.body.forget()
    for shaft in rig.shafts:
        shaft.silent = True
    rig.cycles(200)
    assert rig.body.moved.max() < 0.15 * speed + speed * 7 * 2.1e-3
    rig.cycles(300)
    assert [motor.goal for motor in rig.line.each.values()] == [0, 0, 0]


def test_a_command_timeout_stops_the_arm_and_new_commands_resume():
    rig = Rig().up()
    rig.cycles(30, lambda: weight(rig, 5.0, 0, 0))
    rig.cycles(51)
    assert rig.kinds == ["command_timeout"]
    assert rig.driver.status is DriverState.STOPPED
    rig.cycles(300)
    assert np.abs(rig.body.state.v).max() < 0.02
    rig.cycles(SAFETY.recovery_cycles + 1, lambda: weight(rig))
    assert rig.driver.status is DriverState.ACTIVE
    assert rig.counts == {"command_timeout": 1}


@pytest.mark.parametrize(
    "bad", [[np.nan] * 3, [np.inf, 0, 0], [0.0] * 2, [1e300, 0, 0], "text", None]
)
def test_invalid_commands_never_reach_a_motor(bad):
    rig = Rig().up()
    rig.cycles(3, lambda: weight(rig))
    rig.look()
    rig.driver.write(Command("effort", bad) if bad is not None else None)
    efforts = [
        abs(motor.goal * r) for motor, r in zip(rig.line.each.values(), (1, 2, 5), strict=True)
    ]
    assert np.isfinite(efforts).all()
    assert max(efforts) <= 40.0
    assert sum(rig.counts.values()) == 1


def test_a_command_of_another_interface_is_rejected_by_name():
    rig = Rig().up()
    rig.look()
    rig.driver.write(Command("position", np.zeros(3)))
    assert (
        "interface = 'position'; expected 'effort'" in rig.driver.events.latest["command_rejected"]
    )


def test_a_closed_driver_returns_no_old_values():
    rig = Rig().up()
    rig.cycles(3)
    rig.driver.close()
    feedback = rig.driver.feedback
    for values in (feedback.q, feedback.v, feedback.tau, feedback.temperature):
        assert np.isnan(values).all()


# The port ---------------------------------------------------------------------------------


def test_a_lost_port_is_an_error_and_reconnects_inactive():
    rig = Rig().up()
    rig.cycles(10, lambda: weight(rig))
    rig.bus.gone = True
    rig.cycle()
    assert rig.driver.status is DriverState.ERROR
    before = rig.bus.calls
    rig.cycles(100)  # 0.2 s: no attempt and no call yet
    assert rig.bus.calls == before
    assert rig.torque == [False] * 3  # the motors' own watchdogs
    for call in (rig.driver.read, rig.driver.activate, rig.driver.reset):
        with pytest.raises(DriverFault, match="the port is gone"):
            call()
    rig.bus.gone = False
    rig.cycles(300)
    assert rig.driver.status is DriverState.INACTIVE
    assert rig.counts == {"connection_lost": 1, "reconnected": 1}
    assert rig.driver.trips == ()
    rig.body.hold_at(START)
    rig.cycle()
    with pytest.raises(DriverFault, match=r"'J1': motor_fault \(watchdog.*reset to clear"):
        rig.driver.activate()
    rig.driver.reset()
    rig.driver.activate()
    assert rig.driver.status is DriverState.ACTIVE


@pytest.mark.parametrize("error", [OSError("io"), ValueError("closed"), RuntimeError("bug")])
def test_read_raises_only_driver_faults_and_write_nothing(error):
    def fails(*_):
        raise error

    rig = Rig().up()
    rig.bus.read = fails
    with pytest.raises(DriverFault, match=str(error)):
        rig.driver.read()
    assert rig.driver.status is DriverState.ERROR
    rig = Rig().up()
    rig.cycle(weight(rig))
    rig.bus.write = fails
    rig.driver.write(Command("effort", np.zeros(3)))
    assert rig.driver.status is DriverState.ERROR
    rig = Rig().up()
    rig.bus.disable = rig.bus.close = fails
    rig.driver.emergency_stop("x")
    rig.driver.idle()
    rig.driver.close()
    rig.driver.close()


def test_close_during_a_read_is_not_a_loss_and_does_not_reconnect():
    rig = Rig().up()
    rig.cycle(weight(rig))

    def closed():
        rig.driver.close()
        raise OSError("bad file descriptor")

    rig.bus.read = closed
    with pytest.raises(DriverFault):
        rig.driver.read()
    assert rig.driver.status is DriverState.UNCONFIGURED
    rig.cycles(400)
    assert not rig.bus.is_open
    assert rig.counts == {}


def test_a_host_delay_between_read_and_write_triggers_the_stop_policy():
    rig = Rig(safety=settings(stop_policy="ramp")).up()
    rig.cycles(5, lambda: weight(rig))
    rig.look()
    rig.bus.pass_time(0.15)
    rig.driver.idle()
    assert rig.kinds == ["command_timeout"]
    assert rig.counts == {"command_timeout": 1}
    assert rig.driver.status is DriverState.STOPPED


def test_a_host_that_only_reads_is_stopped_by_the_command_timeout():
    rig = Rig(safety=settings(stop_policy="disable")).up()
    rig.cycles(5, lambda: weight(rig, 0.5))
    for _ in range(200):  # reading refreshes the motors' watchdogs
        rig.look()
    assert rig.kinds == ["command_timeout"]
    assert rig.torque == [False] * 3
    rig = Rig().up()
    rig.driver.emergency_stop("hand")
    for _ in range(10):
        rig.look()
    assert rig.torque == [False] * 3


@pytest.mark.parametrize(("value", "kind"), [("q", "position_jump"), ("v", "velocity_limit")])
def test_impossible_readings_trip_and_raise_nothing(value, kind):
    rig = Rig().up()
    rig.cycles(3, lambda: weight(rig))
    setattr(rig.line.shaft(2), value, 1e300)
    rig.driver.read()
    assert rig.kinds == []  # not accepted before it is repeated
    rig.driver.read()
    assert rig.kinds == [kind]
    for _ in range(3):
        rig.driver.idle()
        efforts = np.abs([motor.goal for motor in rig.line.each.values()]) * RATIO
        assert not any(rig.torque) or efforts.max() <= 40.0
    assert not any(rig.torque) or value == "q"  # no effort results from such a velocity
    rig.driver.close()


def test_invalid_lifecycle_transitions_raise_a_driver_fault_or_do_nothing():
    rig = Rig()
    for call in (rig.driver.read, rig.driver.activate, rig.driver.reset):
        with pytest.raises(DriverFault):
            call()
    rig.driver.idle()
    rig.driver.deactivate()
    rig.driver.controlled_stop()
    rig.driver.emergency_stop("early")
    rig.driver.idle()
    rig.driver.close()
    rig.driver.configure()
    rig.driver.configure()
    rig.cycle()
    assert rig.driver.emergency_stopped


def test_the_driver_stays_unconfigured_if_the_port_cannot_be_opened():
    rig = Rig()
    rig.bus.gone = True
    with pytest.raises(DriverFault, match="no such port"):
        rig.driver.configure()
    assert rig.driver.status is DriverState.UNCONFIGURED


# Latched trips ----------------------------------------------------------------------------


def trip_fault(rig):
    rig.line.trip(2, "overload")


def trip_heat(rig):
    rig.shafts[0].temperature = 80.0


def trip_reboot(rig):
    rig.line.reboot(3)


def trip_speed(rig):
    rig.body.state = State.of(rig.body.state.q, [0, 9.0, 0])


def trip_position(rig):
    for q in np.linspace(START[1], 3.1, 40):  # moved by less than is implausible in a cycle
        rig.body.hold_at([START[0], q, START[2]], until=lambda _: False)
        rig.cycle(weight(rig))


def trip_jump(rig):
    rig.body.state = State.of([START[0], 2.0, START[2]], time=rig.body.state.time)
    rig.body._place()
    rig.driver.read()  # an implausible position needs a second reading


@pytest.mark.parametrize(
    ("cause", "kind", "joint"),
    [
        (trip_fault, "motor_fault", "J2"),
        (trip_heat, "over_temperature", "J1"),
        (trip_reboot, "torque_lost", "J3"),
        (trip_speed, "velocity_limit", "J2"),
        (trip_position, "position_limit", "J2"),
        (trip_jump, "position_jump", "J2"),
    ],
)
def test_every_trip_is_one_event_and_latches(cause, kind, joint):
    rig = Rig().up()
    rig.cycles(3, lambda: weight(rig))
    cause(rig)
    rig.cycles(50, lambda: weight(rig))
    assert rig.driver.status is DriverState.STOPPED
    assert (rig.driver.trips[0].kind, rig.driver.trips[0].joint) == (kind, joint)
    assert rig.counts[kind] == 1
    assert f"joint '{joint}': {kind}" in rig.driver.events.latest[kind]
    with pytest.raises(DriverFault, match="stopped"):
        rig.driver.activate()


def test_a_reset_is_rejected_while_the_cause_persists():
    rig = Rig().up()
    rig.cycles(3, lambda: weight(rig))
    trip_heat(rig)
    rig.cycle()
    with pytest.raises(DriverFault, match="not reset: joint 'J1': over_temperature 80 °C"):
        rig.driver.reset()
    assert rig.driver.trips
    rig.shafts[0].temperature = 40.0
    rig.bus.pass_time(2e-3)
    rig.driver.reset()
    assert rig.driver.trips == ()
    rig.line.trip(2, "overload")
    rig.cycle()
    rig.driver.reset()
    assert not any(rig.driver.feedback.fault)
    rig.body.hold_at(START)
    rig.driver.activate()


def test_a_reset_tolerates_a_missed_cycle_after_clearing_a_fault():
    rig = Rig().up()
    rig.line.trip(2, "overload")
    rig.cycle()
    clear, read, shaft = rig.bus.clear_faults, rig.bus.read, rig.shafts[1]

    def cleared(ids):
        shaft.silent = True
        return clear(ids)

    def missed_once():
        readings, shaft.silent = read(), False
        return readings

    rig.bus.clear_faults, rig.bus.read = cleared, missed_once
    rig.driver.reset()
    assert rig.driver.trips == ()


def test_a_controlled_stop_lasts_until_reset():
    rig = Rig().up()
    rig.cycles(50, lambda: weight(rig, 5.0, 0, 0))
    rig.driver.controlled_stop()
    rig.cycles(400, lambda: weight(rig, 5.0, 0, 0))
    assert rig.kinds == ["controlled_stop"]
    assert np.abs(rig.body.state.v).max() < 1e-3


def test_a_following_error_trips_and_replaces_the_position_goal():
    rig = Rig("position", settings(max_following_error=0.2, following_error_timeout=0.1)).up()
    rig.cycles(10, START)
    rig.line.K[1] = 0.0  # weak motor or collision
    rig.cycles(200, np.add(START, (0.4, 0, 0)))
    trip = rig.driver.trips[0]
    assert (trip.kind, trip.joint, trip.limit) == ("following_error", "J1", 0.2)
    assert rig.counts == {"following_error": 1}
    assert rig.driver.status is DriverState.STOPPED


# Stops ------------------------------------------------------------------------------------


def stopped(policy):
    """Return an arm some time after the start of a stop, and its velocities at the start."""
    rig = Rig(safety=settings(stop_policy=policy)).up()
    rig.cycles(40, lambda: weight(rig, 2.0))
    rig.body.forget()
    start = np.abs(rig.body.state.v)
    rig.driver.controlled_stop()
    rig.cycles(300)
    return rig, start


@pytest.mark.parametrize("policy", ["hold", "ramp"])
def test_the_distance_of_a_stop_follows_from_its_time_constant(policy):
    rig, start = stopped(policy)
    assert start.max() > 1.0
    np.testing.assert_allclose(rig.body.moved, start * STOP_TIME, rtol=0.15)
    assert np.abs(rig.body.state.v).max() < 0.01 * start.max()
    assert rig.torque == [True] * 3


def test_damping_slows_a_fall_and_coasting_does_not():
    damped, _ = stopped("damp")
    assert damped.torque == [True] * 3
    loose, _ = stopped("disable")
    assert loose.torque == [False] * 3
    assert loose.driver.status is DriverState.INACTIVE
    assert 0.01 < damped.body.moved.max() < loose.body.moved.max() / 2


def displacement_after_push(policy):
    """Return the displacement of the first joint under a push of 1 rad/s²."""
    rig, _ = stopped(policy)
    rest = rig.body.state.q.copy()
    for _ in range(200):
        now = rig.body.state
        rig.body.state = State.of(now.q, np.add(now.v, (0.002, 0, 0)), time=now.time)
        rig.cycle()
    return float(np.abs(rig.body.state.q - rest)[0])


def test_the_policy_hold_is_stiff_and_ramp_is_not():
    assert displacement_after_push("hold") < 0.2 * displacement_after_push("ramp")


def test_with_a_missing_motor_configure_fails_and_closes_the_port():
    rig = Rig()
    rig.shafts[1].silent = True
    with pytest.raises(DriverFault, match="do not answer"):
        rig.driver.configure()
    assert not rig.bus.is_open
    assert rig.driver.status is DriverState.UNCONFIGURED


def test_a_reset_clears_the_fault_of_each_motor_once():
    """Clearing may restart a motor, which takes a second: it is not repeated for each reading."""
    rig, commands = Rig().up(), []
    rig.line.trip(2, "overload")
    rig.cycle()
    rig.bus.clear_faults = commands.append
    with pytest.raises(DriverFault, match="overload"):
        rig.driver.reset()
    assert commands == [[2]]


def test_a_lost_port_is_closed_before_it_is_reopened():
    rig = Rig().up()
    rig.bus.gone = True
    rig.cycle()
    assert rig.driver.status is DriverState.ERROR
    assert not rig.bus.is_open

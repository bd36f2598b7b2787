"""A physical arm's life: activation without motion, trips, stops, loss and recovery."""

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
    return SafetySettings(velocity_limit_scale=SAFETY.velocity_limit_scale, **changes)


@pytest.mark.parametrize("interface", ["effort", "position", "velocity"])
def test_activation_moves_nothing(interface):
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
def test_what_the_motors_are_asked_for_with_their_torque_keeps_the_arm(interface):
    """The weight, the position that was read, no velocity: before torque and with it."""
    rig, asked = Rig(interface), []
    write = rig.bus.write

    def watched(goals):
        asked.append([goals[i].value for i in (1, 2, 3)])
        write(goals)

    rig.driver.configure()
    rig.cycles(5)
    rig.bus.write = watched
    rig.driver.activate()
    shafts = [shaft.q for shaft in rig.shafts]
    carried = weight(rig) * np.divide(SIGN, RATIO)
    kept = {"effort": carried, "position": shafts, "velocity": np.zeros(3)}[interface]
    assert len(asked) > 10
    np.testing.assert_allclose(asked, [kept] * len(asked), atol=0.02, rtol=1e-3)


def test_joints_and_shafts_agree_with_the_emulated_arms_own_mapping():
    rig = Rig().up()
    rig.cycles(20, lambda: weight(rig, 0.5, -0.3, 0.02))
    np.testing.assert_allclose(rig.state.q, rig.body.state.q, atol=1e-3)
    np.testing.assert_allclose(rig.state.v, rig.body.state.v, atol=0.05)
    np.testing.assert_allclose(rig.driver.feedback.age, 0, atol=1e-12)
    assert rig.driver.feedback.enabled == (True,) * 3


def refused(rig, said):
    with pytest.raises(DriverFault, match=said):
        rig.driver.activate()
    assert rig.driver.status is DriverState.INACTIVE
    assert rig.torque == [False] * 3
    assert rig.counts["activation_rejected"] == 1


def ready(**more):
    rig = Rig(**more)
    rig.driver.configure()
    rig.cycle()
    return rig


def test_activation_is_refused_where_a_joint_is_silent_or_stale():
    rig = ready()
    rig.shafts[1].silent = True
    refused(rig, "no new feedback of joints J2")
    rig = ready()
    rig.bus.frozen = {3}
    refused(rig, "no new feedback of joints J3")


def test_activation_is_refused_for_a_fault_a_hot_motor_and_a_place_beyond_the_limits():
    rig = ready()
    rig.line.trip(2, "overload")
    refused(rig, "'J2': motor_fault .*overload")
    rig = ready()
    rig.shafts[0].temperature = 90.0
    refused(rig, "'J1': over_temperature 90 °C, limit 75")
    refused(ready(q=(0.3, 3.3, 0.0)), "'J2': position_limit 3.3 rad, limit 3.22")


def test_activation_is_refused_where_somebody_has_torque_on_and_leaves_it_on():
    rig = ready()
    rig.line.each[2].on = True
    with pytest.raises(DriverFault, match="'J2' already has torque"):
        rig.driver.activate()
    assert rig.torque == [False, True, False]


def test_activation_is_refused_for_a_moving_arm():
    rig = ready(hands=False)
    rig.cycles(100)
    refused(rig, r"velocity = .* rad/s; expected at most 0\.5")


def test_a_motor_without_a_watchdog_is_driven_only_if_that_is_accepted():
    rig = ready()
    rig.bus.watched = False
    refused(rig, "motor 1.*watchdog")
    rig.bus.settings["allow_missing_watchdog"] = "true"
    rig.driver.activate()
    assert rig.torque == [True] * 3
    rig = ready(interface="position")  # holds its last goal by itself
    rig.bus.watched = False
    rig.driver.activate()
    assert rig.torque == [True] * 3


@pytest.mark.parametrize("interface", ["effort", "position"])
def test_a_watchdog_that_does_not_arm_is_no_watchdog(interface):
    rig = ready(interface=interface)
    rig.bus.arms = False
    refused(rig, "motor 1.*watchdog")


def test_a_failed_activation_takes_torque_off_again():
    rig = ready()
    enable, rig.bus.enable = rig.bus.enable, lambda ids: enable([1, 2])
    refused(rig, "'J3' .motor 3. did not confirm its torque")
    rig = ready()
    enable_all = rig.bus.enable

    def jerk(ids):
        done = enable_all(ids)
        rig.line.each[1].goal = 500.0
        rig.bus.pass_time(0.05)
        return done

    rig.bus.enable = jerk
    refused(rig, "motion = .* rad; expected at most")


def test_interfaces_and_policies_that_motors_can_not_serve_are_refused_at_once():
    with pytest.raises(ConfigError, match="interface = 'effort'; expected 'position'"):
        Rig(takes=("position",))
    for policy in ("damp", "ramp"):
        with pytest.raises(ConfigError, match=f"'{policy}'.*allowed: hold, disable"):
            Rig("position", settings(stop_policy=policy))
    with pytest.raises(ConfigError, match="prescribed motion"):
        Rig(model=arm().with_actuator("rate_limited"))


def test_what_joints_take_and_tell():
    told = Rig().driver.capabilities
    assert [(c.joint, c.interfaces, c.effort_source) for c in told] == [
        (f"J{i}", ("effort", "position", "velocity"), "measured") for i in (1, 2, 3)
    ]
    told = Rig("position", takes=("position",)).driver.capabilities
    assert {(c.interfaces, c.effort_source) for c in told} == {(("position",), "none")}


def test_a_control_loop_runs_on_motors_unchanged():
    rig = Rig().up()
    loop = ControlLoop(rig.driver, build_controller(arm(), "pid_gravity"))
    loop.step()
    loop.hold({"J2": START[1] + 0.2})
    rig.steps(loop, 1500)
    np.testing.assert_allclose(rig.body.state.q, np.add(START, (0, 0.2, 0)), atol=0.02)
    assert rig.counts == {}


def test_a_loop_begins_anew_where_an_arm_was_led_before_it_obeyed():
    rig = Rig()
    rig.driver.configure()
    loop = ControlLoop(rig.driver, build_controller(arm(), "pid_gravity"))
    rig.steps(loop, 20)
    rig.body.hold_at(np.add(START, (0.5, -0.6, 0.4)))
    rig.steps(loop, 500)
    rig.driver.activate()
    rig.body.forget()
    rig.steps(loop, 300)
    assert rig.body.moved.max() < 5e-3
    assert rig.counts == {}
    assert "the driver begins to accept commands" in loop.events.latest["control_restarted"]


def test_a_loop_begins_anew_where_a_stop_has_left_the_arm():
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


def test_a_stop_that_passes_lasts_until_the_joints_rest():
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


def test_goals_of_positions_do_not_sink_with_every_stop_that_passes():
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


def test_an_active_arm_keeps_its_torque_in_a_reset():
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
    rig.line.each[2].on = True  # somebody else
    rig.cycles(2, lambda: weight(rig))
    assert rig.torque == [False] * 3
    assert rig.counts == {"emergency_stop": 1}
    rig.driver.reset()
    assert not rig.driver.emergency_stopped
    assert rig.driver.trips == ()


def test_an_emergency_stop_is_repeated_until_each_motor_has_confirmed_it():
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


def test_an_emergency_stop_before_activation_holds_it_off():
    rig = ready()
    rig.driver.emergency_stop("browser")
    refused_status = rig.driver.status
    with pytest.raises(DriverFault, match="browser"):
        rig.driver.activate()
    assert refused_status is DriverState.INACTIVE
    assert rig.torque == [False] * 3


def test_an_emergency_stop_asks_motors_that_do_not_tell_whether_they_have_torque():
    rig = Rig()
    rig.bus.tells = False
    rig.up()
    rig.driver.emergency_stop("test")
    rig.cycle()
    assert rig.torque == [False] * 3
    assert rig.driver.status is DriverState.INACTIVE


def test_no_torque_is_asked_for_once_an_emergency_stop_is_pressed():
    rig = ready()
    write = rig.bus.write

    def pressed(goals):
        rig.driver.emergency_stop("early")
        write(goals)

    rig.bus.write, rig.bus.enable = pressed, lambda ids: pytest.fail("torque was asked for")
    refused(rig, "emergency stop by early")


def test_an_emergency_stop_during_an_activation_is_not_overlooked():
    rig = ready()
    enable = rig.bus.enable

    def pressed(ids):
        rig.driver.emergency_stop("meanwhile")
        return enable(ids)

    rig.bus.enable = pressed
    refused(rig, "emergency stop by meanwhile")


def test_an_emergency_stop_during_a_reset_stays():
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


# The link ---------------------------------------------------------------------------------


def test_a_silent_joint_keeps_its_last_value_for_some_cycles_and_is_unknown_then():
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


def test_an_arm_with_a_silent_joint_stands_and_goes_on_by_itself():
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


def test_readings_handed_on_twice_are_stale():
    rig = Rig().up()
    rig.cycles(3, lambda: weight(rig))
    rig.bus.frozen = {1, 2, 3}
    rig.cycles(SAFETY.max_missed_cycles + 1, lambda: weight(rig))
    assert rig.state is None  # nothing is known
    assert rig.kinds == ["feedback_stale"] * 3
    rig.cycles(100)
    assert rig.body.moved.max() < 0.01


def test_a_moving_arm_that_goes_silent_is_braked_on_its_path_and_let_go_after_a_second():
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


def test_no_commands_stop_the_arm_and_new_ones_go_on():
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
def test_bad_commands_never_reach_a_motor(bad):
    rig = Rig().up()
    rig.cycles(3, lambda: weight(rig))
    rig.look()
    rig.driver.write(Command("effort", bad) if bad is not None else None)
    told = [abs(motor.goal * r) for motor, r in zip(rig.line.each.values(), (1, 2, 5), strict=True)]
    assert np.isfinite(told).all()
    assert max(told) <= 40.0
    assert sum(rig.counts.values()) == 1


def test_a_command_of_another_interface_is_refused_by_name():
    rig = Rig().up()
    rig.look()
    rig.driver.write(Command("position", np.zeros(3)))
    assert (
        "interface = 'position'; expected 'effort'" in rig.driver.events.latest["command_rejected"]
    )


def test_a_closed_arm_shows_no_old_value():
    rig = Rig().up()
    rig.cycles(3)
    rig.driver.close()
    told = rig.driver.feedback
    for values in (told.q, told.v, told.tau, told.temperature):
        assert np.isnan(values).all()


# The port ---------------------------------------------------------------------------------


def test_a_lost_port_is_an_error_and_comes_back_inactive():
    rig = Rig().up()
    rig.cycles(10, lambda: weight(rig))
    rig.bus.gone = True
    rig.cycle()
    assert rig.driver.status is DriverState.ERROR
    before = rig.bus.calls
    rig.cycles(100)  # 0.2 s: no try yet, and no call at all
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
def test_nothing_but_a_driver_fault_leaves_read_and_nothing_leaves_write(error):
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


def test_a_close_during_a_read_is_no_loss_and_reopens_nothing():
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


def test_a_host_that_stands_still_between_reading_and_writing_follows_its_policy():
    rig = Rig(safety=settings(stop_policy="ramp")).up()
    rig.cycles(5, lambda: weight(rig))
    rig.look()
    rig.bus.pass_time(0.15)
    rig.driver.idle()
    assert rig.kinds == ["command_timeout"]
    assert rig.counts == {"command_timeout": 1}
    assert rig.driver.status is DriverState.STOPPED


def test_a_host_that_only_reads_gets_the_stop_all_the_same():
    rig = Rig(safety=settings(stop_policy="disable")).up()
    rig.cycles(5, lambda: weight(rig, 0.5))
    for _ in range(200):  # the motors' watchdogs hear that somebody is there
        rig.look()
    assert rig.kinds == ["command_timeout"]
    assert rig.torque == [False] * 3
    rig = Rig().up()
    rig.driver.emergency_stop("hand")
    for _ in range(10):
        rig.look()
    assert rig.torque == [False] * 3


@pytest.mark.parametrize(("value", "kind"), [("q", "position_limit"), ("v", "velocity_limit")])
def test_readings_that_no_arm_can_have_trip_and_raise_nothing(value, kind):
    rig = Rig().up()
    rig.cycles(3, lambda: weight(rig))
    setattr(rig.line.shaft(2), value, 1e300)
    rig.driver.read()
    assert rig.kinds == []  # not believed before the next one says the same
    rig.driver.read()
    assert rig.kinds == [kind]
    for _ in range(3):
        rig.driver.idle()
        told = np.abs([motor.goal for motor in rig.line.each.values()]) * RATIO
        assert not any(rig.torque) or told.max() <= 40.0
    assert not any(rig.torque) or value == "q"  # no effort follows from such a speed
    rig.driver.close()


def test_life_out_of_order_is_a_driver_fault_or_nothing():
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


def test_a_port_that_can_not_be_opened_stays_unconfigured():
    rig = Rig()
    rig.bus.gone = True
    with pytest.raises(DriverFault, match="no such port"):
        rig.driver.configure()
    assert rig.driver.status is DriverState.UNCONFIGURED


# What latches -----------------------------------------------------------------------------


def trip_fault(rig):
    rig.line.trip(2, "overload")


def trip_heat(rig):
    rig.shafts[0].temperature = 80.0


def trip_reboot(rig):
    rig.line.reboot(3)


def trip_speed(rig):
    rig.body.state = State.of(rig.body.state.q, [0, 9.0, 0])


def trip_position(rig):
    rig.body.state = State.of([0.3, 3.1, 0.0])
    rig.body._place()
    rig.driver.read()  # so far away, it is believed when it is told twice


@pytest.mark.parametrize(
    ("cause", "kind", "joint"),
    [
        (trip_fault, "motor_fault", "J2"),
        (trip_heat, "over_temperature", "J1"),
        (trip_reboot, "torque_lost", "J3"),
        (trip_speed, "velocity_limit", "J2"),
        (trip_position, "position_limit", "J2"),
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


def test_a_reset_needs_the_cause_to_be_gone():
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


def test_a_reset_waits_for_a_motor_that_misses_a_cycle_after_its_fault_was_cleared():
    rig = Rig().up()
    rig.line.trip(2, "overload")
    rig.cycle()
    clear, read, shaft = rig.bus.clear_faults, rig.bus.read, rig.shafts[1]

    def cleared(ids):
        shaft.silent = True
        return clear(ids)

    def missed_once():
        told, shaft.silent = read(), False
        return told

    rig.bus.clear_faults, rig.bus.read = cleared, missed_once
    rig.driver.reset()
    assert rig.driver.trips == ()


def test_a_safe_stop_rests_until_reset():
    rig = Rig().up()
    rig.cycles(50, lambda: weight(rig, 5.0, 0, 0))
    rig.driver.controlled_stop()
    rig.cycles(400, lambda: weight(rig, 5.0, 0, 0))
    assert rig.kinds == ["controlled_stop"]
    assert np.abs(rig.body.state.v).max() < 1e-3


def test_a_position_goal_that_is_not_followed_trips_and_is_given_up():
    rig = Rig("position", settings(max_following_error=0.2, following_error_timeout=0.1)).up()
    rig.cycles(10, START)
    rig.line.K[1] = 0.0  # it has lost its strength, or hit something
    rig.cycles(200, np.add(START, (0.4, 0, 0)))
    trip = rig.driver.trips[0]
    assert (trip.kind, trip.joint, trip.limit) == ("following_error", "J1", 0.2)
    assert rig.counts == {"following_error": 1}
    assert rig.driver.status is DriverState.STOPPED


# Stops ------------------------------------------------------------------------------------


def stopped(policy):
    """An arm that moved, some time after its stop began, and the speeds at which it did."""
    rig = Rig(safety=settings(stop_policy=policy)).up()
    rig.cycles(40, lambda: weight(rig, 2.0))
    rig.body.forget()
    start = np.abs(rig.body.state.v)
    rig.driver.controlled_stop()
    rig.cycles(300)
    return rig, start


@pytest.mark.parametrize("policy", ["hold", "ramp"])
def test_a_stop_takes_the_way_of_its_time_constant(policy):
    rig, start = stopped(policy)
    assert start.max() > 1.0
    np.testing.assert_allclose(rig.body.moved, start * STOP_TIME, rtol=0.15)
    assert np.abs(rig.body.state.v).max() < 0.01 * start.max()
    assert rig.torque == [True] * 3


def test_a_damped_arm_sinks_slowly_and_a_loose_one_falls():
    damped, _ = stopped("damp")
    assert damped.torque == [True] * 3
    loose, _ = stopped("disable")
    assert loose.torque == [False] * 3
    assert loose.driver.status is DriverState.INACTIVE
    assert 0.01 < damped.body.moved.max() < loose.body.moved.max() / 2


def push_and_see(policy):
    """How far the first joint goes under a push of 1 rad/s²."""
    rig, _ = stopped(policy)
    rest = rig.body.state.q.copy()
    for _ in range(200):
        now = rig.body.state
        rig.body.state = State.of(now.q, np.add(now.v, (0.002, 0, 0)), time=now.time)
        rig.cycle()
    return float(np.abs(rig.body.state.q - rest)[0])


def test_a_held_arm_is_stiff_and_a_ramped_one_is_not():
    assert push_and_see("hold") < 0.2 * push_and_see("ramp")


def test_an_arm_of_which_a_motor_is_missing_is_not_opened_and_its_port_is_free():
    rig = Rig()
    rig.shafts[1].silent = True
    with pytest.raises(DriverFault, match="do not answer"):
        rig.driver.configure()
    assert not rig.bus.is_open
    assert rig.driver.status is DriverState.UNCONFIGURED


def test_a_reset_clears_the_fault_of_each_motor_once():
    """A clearing may restart a motor, which then takes a second: not again for each reading."""
    rig, asked = Rig().up(), []
    rig.line.trip(2, "overload")
    rig.cycle()
    rig.bus.clear_faults = asked.append
    with pytest.raises(DriverFault, match="overload"):
        rig.driver.reset()
    assert asked == [[2]]


def test_a_lost_port_is_released_before_it_is_tried_again():
    rig = Rig().up()
    rig.bus.gone = True
    rig.cycle()
    assert rig.driver.status is DriverState.ERROR
    assert not rig.bus.is_open

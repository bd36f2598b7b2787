"""Recordings: written data are read unchanged, and the forward model reproduces them."""

import signal
import subprocess
import sys
import time
from dataclasses import replace

import numpy as np
import pytest
from conftest import chain, five_dof, heavy_rotors
from hypothesis import given
from hypothesis import strategies as st

from arm_dynamics import ControlLoop, Simulation, State, load_arm
from arm_dynamics.cli.main import main
from arm_dynamics.control import build_controller
from arm_dynamics.core import figure_style
from arm_dynamics.core.errors import ConfigError, RecordingError
from arm_dynamics.core.state import Command, Reference
from arm_dynamics.hardware import SimulationDriver
from arm_dynamics.recording import Recording, bag, load_motion, segment_header
from arm_dynamics.recording.bag import truncate_to_valid
from arm_dynamics.recording.recorder import Recorder, StateLog
from arm_dynamics.recording.replay import replay
from arm_dynamics.safety.events import Events

highlevel = pytest.importorskip("rosbags.highlevel", reason="rosbags is not installed")
interfaces = pytest.importorskip("rosbags.interfaces")


def with_actuator_states():
    return five_dof().with_motors(inductance=1e-4, thermal_resistance=1.0)


def with_dry_friction():
    return five_dof().with_joint("R2", friction=3.0).with_payload(0.2, (0.01, 0, 0.02))


def mixed():
    """Return an arm with a servo before a motor."""
    arm = chain({}, {}).with_actuator("rate_limited")
    motor = {"kt": 1.0, "ke": 1.0, "resistance": 1.0, "inductance": 1e-3}
    return replace(
        arm, joints=(arm.joints[0], chain({}, {}).with_actuator("dc_motor", **motor).joints[1])
    )


ARMS = {f.__name__: f for f in (five_dof, heavy_rotors, with_actuator_states, with_dry_friction)}


def drive(sim, periods, interface="effort", seed=3):
    motors = sim.arm.actuators
    limit = np.array([min(10.0, a.command_limit(a.resolve_interface(interface))) for a in motors])
    for level in np.random.default_rng(seed).uniform(-1, 1, (periods, sim.arm.nv)):
        sim.submit(Command.checked(interface, level * limit, sim.arm.nv, sim.state.time))
        sim.advance()


@pytest.fixture
def recording(tmp_path):
    """Return the folder of a short recording, and its simulation."""
    sim = Simulation(five_dof(), period=1e-3)
    with Recorder(sim, tmp_path / "bag"):
        drive(sim, 20)
    return tmp_path / "bag", sim


def changed(source, target, change):
    """Copy a recording; each message is the result of ``change(topic, count, message)``."""
    writer, counts = bag.BagWriter(target), {}
    for topic, at, message in bag.messages(source):
        count = counts[topic] = counts.get(topic, -1) + 1
        new = change(topic, count, message)
        if new is not None:
            writer.write(topic, at, new)
    writer.close()
    return target


@pytest.mark.parametrize("interface", ["voltage", "effort"])
@pytest.mark.parametrize("name", ARMS)
def test_a_replay_is_identical_to_the_last_bit(tmp_path, name, interface):
    sim = Simulation(ARMS[name](), period=1e-3)
    with Recorder(sim, tmp_path / "bag") as recorder:
        drive(sim, 30, interface)
    report = replay(tmp_path / "bag")
    assert (report.first, set(report.largest.values())) == (None, {0.0})
    assert (report.periods, report.segments) == (30, 1) == (recorder.periods, 1)
    assert report.seconds == pytest.approx(0.03)
    assert np.abs(sim.state.v).max() > 0.1


def test_replay_of_commands_of_several_interfaces_and_of_held_servos(tmp_path):
    sim = Simulation(mixed(), period=1e-3, timeout=5e-3)
    with Recorder(sim, tmp_path / "bag"):
        drive(sim, 20, "mixed")
        for _ in range(20):
            sim.advance()
    report = replay(tmp_path / "bag")
    assert (report.first, report.periods) == (None, 40)
    assert report.segments <= 3


def test_the_replay_of_a_pulled_arm_is_identical_to_the_last_bit(tmp_path):
    sim = Simulation(five_dof(), period=1e-3)
    with Recorder(sim, tmp_path / "bag"):
        sim.pull("tool", [0.1, 0.2, 0.3, 0.0, 0.0, 0.01])
        drive(sim, 10)
        sim.pull("tool", np.zeros(6))
        drive(sim, 10)
    report = replay(tmp_path / "bag")
    assert (report.first, report.periods) == (None, 20)


def test_the_command_replay_shows_a_recording_on_a_page(tmp_path, monkeypatch, capsys):
    player = pytest.importorskip("arm_dynamics.viewer.player", reason="viser is not installed")
    sim = Simulation(five_dof(), period=1e-3)
    with Recorder(sim, tmp_path / "bag"):
        drive(sim, 20)
    shown = []

    def run(self, stopped):
        assert not stopped()
        self.advance(10.0)
        shown.append(self.page._shown.sample)

    monkeypatch.setattr(player.Player, "run", run)
    monkeypatch.setattr(signal, "signal", lambda *_: None)  # pytest keeps its signal handlers
    code, text = run_command(capsys, "replay", tmp_path / "bag", "--page", "--port", 0)
    assert (code, "is shown at http://127.0.0.1:" in text) == (0, True)
    np.testing.assert_array_equal(shown[0].q, sim.state.q)
    assert shown[0].time == pytest.approx(sim.state.time)


@pytest.mark.slow
def test_replay_of_a_repeated_command_after_a_change_of_limits(tmp_path):
    """Clamping the old command changes the servo's state; the replay has the same step."""
    sim = Simulation(chain({}).with_actuator("rate_limited"), q=[2.9], period=0.05, timeout=9.0)

    def send(position):
        sim.submit(Command.checked("position", [position], 1))
        for _ in range(10):
            sim.advance()

    with Recorder(sim, tmp_path / "bag"):
        send(3.0)
        send(3.0)
        sim.set_arm(sim.arm.with_motor("J1", max_position=2.5))
        sim.advance()
        assert sim.state.q[0] == 3.0
        send(3.0)
        send(3.0)
    assert sim.state.q[0] == 2.5
    report = replay(tmp_path / "bag")
    assert (report.first, report.periods, report.segments) == (None, 41, 3)


def test_all_causes_of_motion_are_recorded(tmp_path):
    """The hold before the first command, both interfaces, the controlled stop."""
    sim = Simulation(five_dof(), period=1e-3, timeout=5e-3)
    with Recorder(sim, tmp_path / "bag"):
        sim.advance()
        drive(sim, 5, "voltage")
        drive(sim, 5, "effort")
        for _ in range(20):
            sim.advance()
    assert sim.watchdog.events.counts["command_timeout"] == 1
    report = replay(tmp_path / "bag")
    assert (report.first, report.periods) == (None, 31)


def test_changes_of_the_arm_and_state_jumps_start_a_new_segment(tmp_path):
    sim = Simulation(five_dof(), period=1e-3)
    with Recorder(sim, tmp_path / "bag"):
        drive(sim, 5)
        sim.set_arm(sim.arm.with_payload(0.5).with_joint("R3", friction=1.0))
        drive(sim, 5)
        sim.reset([0.1, -0.9, 0.2, 0.3, 0.4])
        drive(sim, 5)
        sim.set_arm(sim.arm.with_gravity([0, 0, 0]).with_motors(inductance=1e-4))
        drive(sim, 5)
    report = replay(tmp_path / "bag")
    assert (report.first, report.periods, report.segments) == (None, 20, 4)


def test_only_data_between_start_and_close_are_recorded(tmp_path):
    sim = Simulation(five_dof(), period=1e-3)
    drive(sim, 3)
    with Recorder(sim, tmp_path / "bag") as recorder:
        drive(sim, 4)
    drive(sim, 3)
    assert sim.on_period is None
    assert recorder.periods == replay(tmp_path / "bag").periods == 4
    recorder.close()


@pytest.mark.parametrize("name", ARMS)
def test_a_segment_header_is_exact(name):
    arm = ARMS[name]().with_gravity([0.1, 0.2, -9.7])
    sim = Simulation(arm, q=arm.configuration("initial") + 1 / 30, dt=1e-4 / 3, period=7e-4 / 3)
    back = segment_header.load_segment(
        segment_header.dump_segment(segment_header.RecordingSegment.of(sim, sim.state))
    )
    assert back.arm.model == arm.model
    assert back.arm.joints == arm.joints
    assert [dict(j.constants) for j in back.arm.joints] == [dict(j.constants) for j in arm.joints]
    assert (back.dt, back.steps, back.integrator) == (sim.dt, 7, "semi_implicit_euler")
    for entry in ("q", "v"):
        np.testing.assert_array_equal(getattr(back.start, entry), getattr(sim.state, entry))
    np.testing.assert_array_equal(back.start.act, arm.initial_act)


@given(st.lists(st.floats(-1e6, 1e6), min_size=10, max_size=10), st.floats(0, 1e9))
def test_every_bit_of_an_initial_state_is_kept(numbers, at):
    sim = Simulation(five_dof())
    start = State.of(numbers[:5], numbers[5:], time=at)
    back = segment_header.load_segment(
        segment_header.dump_segment(segment_header.RecordingSegment.of(sim, start))
    ).start
    assert (back.q.tolist(), back.v.tolist(), back.time) == (numbers[:5], numbers[5:], at)


def test_locked_joints_and_infinite_limits_are_recorded():
    arm = load_arm("five_dof", lock=["R2", "R4"]).with_motors(supply_voltage=np.inf)
    sim = Simulation(arm)
    back = segment_header.load_segment(
        segment_header.dump_segment(segment_header.RecordingSegment.of(sim, sim.state))
    ).arm
    assert back.joints == arm.joints
    assert back.model == arm.model
    assert back.joints[0].constants["supply_voltage"] == np.inf
    assert back.joints[0].upper == np.inf


def test_other_tools_can_read_the_recording(recording):
    folder, sim = recording
    with highlevel.AnyReader([folder]) as reader:
        topics = {c.topic: c for c in reader.connections}
        assert {name: (c.msgtype, c.msgcount) for name, c in topics.items()} == {
            "/recording": ("std_msgs/msg/String", 1),
            "/robot_description": ("std_msgs/msg/String", 1),
            "/joint_commands": ("sensor_msgs/msg/JointState", 20),
            "/joint_states": ("sensor_msgs/msg/JointState", 20),
        }
        for name, connection in topics.items():
            (qos,) = connection.ext.offered_qos_profiles
            assert qos.reliability is interfaces.QosReliability.RELIABLE
            lasting = qos.durability is interfaces.QosDurability.TRANSIENT_LOCAL
            assert lasting == (name in {"/recording", "/robot_description"})
        last = list(reader.messages([topics["/joint_states"]]))[-1]
        state = reader.deserialize(last[2], last[0].msgtype)
    assert state.name == list(five_dof().joint_names)
    np.testing.assert_array_equal(state.position, sim.state.q)
    np.testing.assert_array_equal(state.effort, sim.state.tau)
    assert (state.header.stamp.sec, state.header.stamp.nanosec) == (0, 20_000_000)
    assert last[1] == 20_000_000


@pytest.mark.parametrize(
    ("topic", "field"),
    [("/joint_commands", "effort"), ("/joint_states", "position"), ("/joint_states", "velocity")],
)
def test_one_changed_bit_is_detected(recording, tmp_path, topic, field):
    def tamper(name, count, message):
        if (name, count) == (topic, 7):
            values = np.array(getattr(message, field))
            values[2] = np.nextafter(values[2], np.inf)
            setattr(message, field, values)
        return message

    report = replay(changed(recording[0], tmp_path / "changed", tamper))
    assert 0 < max(report.largest.values()) < 1e-6
    assert report.first.startswith("t = 0.008000 s, ")
    if topic == "/joint_states":
        assert f"{field[0].replace('p', 'q')}[R3]" in report.first


def test_a_changed_start_or_arm_is_detected(recording, tmp_path):
    for k, (old, new) in enumerate(((f"{-1.1}", "-1.1000001"), ('"mass": 0.0', '"mass": 1e-6'))):

        def tamper(name, count, message, old=old, new=new):
            if name == "/recording":
                assert old in message.data.rpartition('"dt"')[0 if "mass" in old else 2]
                head, middle, tail = message.data.rpartition('"dt"')
                message = type(message)(
                    (head.replace(old, new) if "mass" in old else head)
                    + middle
                    + (tail.replace(old, new) if "mass" not in old else tail)
                )
            return message

        report = replay(changed(recording[0], tmp_path / f"changed{k}", tamper))
        assert report.first.startswith("t = 0.001000 s")


@pytest.mark.parametrize(
    ("topic", "text"),
    [
        ("/joint_states", r"period = 0\.008000 s to .*expected the one that ends at 0\.008000 s"),
        ("/joint_commands", r"/joint_states, t = 0\.008000 s: no command before the state"),
    ],
)
def test_a_missing_message_is_detected(recording, tmp_path, topic, text):
    def drop(name, count, message):
        return None if (name, count) == (topic, 7) else message

    with pytest.raises(RecordingError, match=text):
        replay(changed(recording[0], tmp_path / "changed", drop))


@pytest.mark.parametrize(
    ("topic", "text"),
    [
        ("/recording", r"/joint_commands, .*no message on /recording before"),
        ("/joint_commands", "no command before the state"),
        ("/joint_states", "no messages on /joint_states; expected a recording of an arm"),
    ],
)
def test_a_missing_topic_is_named(recording, tmp_path, topic, text):
    def drop(name, count, message):
        return None if name == topic else message

    with pytest.raises(RecordingError, match=text):
        replay(changed(recording[0], tmp_path / "changed", drop))


def test_no_topics_have_no_messages(recording):
    assert not list(bag.messages(recording[0], {}))
    assert not list(bag.messages(recording[0], {"/other": "sensor_msgs/msg/JointState"}))


def test_messages_of_another_arm_are_rejected(recording, tmp_path):
    def rename(name, count, message):
        if name == "/joint_states":
            message.name[0] = "J9"
        return message

    with pytest.raises(RecordingError, match=r"/joint_states, t = 0\.001000 s: .*'J9'"):
        replay(changed(recording[0], tmp_path / "renamed", rename))

    def replace_header(name, count, message):
        return type(message)('{"format": "tape"}') if name == "/recording" else message

    with pytest.raises(RecordingError, match=r"segment header: .*'tape'"):
        replay(changed(recording[0], tmp_path / "replaced", replace_header))


def test_an_existing_folder_is_not_changed(recording):
    folder, sim = recording
    before = {p.name: p.read_bytes() for p in folder.iterdir()}
    with pytest.raises(RecordingError, match="exists already"):
        Recorder(sim, folder)
    assert {p.name: p.read_bytes() for p in folder.iterdir()} == before
    assert sim.on_period is None


def test_folders_without_a_recording_are_rejected(tmp_path):
    (tmp_path / "empty").mkdir()
    (tmp_path / "file").write_text("no bag")
    (tmp_path / "garbage").mkdir()
    (tmp_path / "garbage" / "garbage.mcap").write_bytes(b"no bag" * 100)
    for name, text in (
        ("nowhere", "nowhere does not exist"),
        ("empty", "contents = no recording"),
        ("file", "file: format = ''; expected a folder of rosbag2"),
        ("garbage", "is damaged"),
    ):
        with pytest.raises(RecordingError, match=text):
            replay(tmp_path / name)
    with pytest.raises(RecordingError, match="expected a folder that can be created"):
        Recorder(Simulation(five_dof()), tmp_path / "file" / "below")


@pytest.mark.parametrize("fraction", [0.001, 0.3, 0.6, 0.99])
def test_a_truncated_file_is_reported_as_damaged(recording, fraction):
    folder, _ = recording
    (file,) = folder.glob("*.mcap")
    content = file.read_bytes()
    file.write_bytes(content[: int(fraction * len(content))])
    with pytest.raises(RecordingError, match="is damaged"):
        replay(folder)


def test_the_complete_part_of_a_truncated_recording_can_be_replayed(tmp_path, monkeypatch):
    monkeypatch.setattr(bag, "FLUSH_COUNT", 10)
    sim = Simulation(five_dof(), period=1e-3)
    with Recorder(sim, tmp_path / "bag"):
        drive(sim, 60)
    folder = tmp_path / "bag"
    (folder / "metadata.yaml").unlink()
    (file,) = folder.glob("*.mcap")
    content, periods = file.read_bytes(), []
    for fraction in (0.6, 0.75, 0.9, 1.0):
        file.write_bytes(content[: int(fraction * len(content))])
        report = replay(folder)
        assert report.first is None
        periods.append(report.periods)
    assert periods == sorted(periods)
    assert 0 < periods[0] < periods[-1] == 60
    assert truncate_to_valid(truncate_to_valid(content)) == truncate_to_valid(content)


def test_links_absent_from_the_urdf_end_a_recording(tmp_path):
    sim = Simulation(five_dof(), period=1e-3)
    links = five_dof().links.copy()
    links.inertias[2].mass *= 2
    other = replace(five_dof(), links=links)
    with Recorder(sim, tmp_path / "bag") as recorder:
        drive(sim, 5)
        sim.set_arm(other)
        drive(sim, 5)
    assert "links = changed" in recorder.fault
    assert sim.watchdog.events.counts["recording_failed"] == 1
    assert sim.state.time == pytest.approx(0.01)
    report = replay(tmp_path / "bag")
    assert (report.first, report.periods) == (None, 5)
    with pytest.raises(RecordingError, match="links = changed"):
        Recorder(Simulation(other), tmp_path / "other")
    assert not (tmp_path / "other").exists()


def test_a_simulation_has_at_most_one_recorder(tmp_path):
    sim = Simulation(five_dof(), period=1e-3)
    with Recorder(sim, tmp_path / "first"):
        drive(sim, 2)
        with pytest.raises(RecordingError, match="recorders of the simulation = 1"):
            Recorder(sim, tmp_path / "second")
        drive(sim, 2)
    assert replay(tmp_path / "first").periods == 4
    assert not (tmp_path / "second").exists()


def test_a_full_disk_ends_only_the_recording(tmp_path, monkeypatch):
    sim = Simulation(five_dof(), period=1e-3)
    with Recorder(sim, tmp_path / "bag") as recorder:
        drive(sim, 5)
        full = OSError(28, "No space left on device")
        monkeypatch.setattr(recorder._bag, "write", lambda *_: (_ for _ in ()).throw(full))
        drive(sim, 5)
    assert "No space left" in recorder.fault
    assert sim.state.time == pytest.approx(0.01)
    with Recorder(sim, tmp_path / "other") as recorder:
        monkeypatch.setattr(recorder._bag, "close", lambda: (_ for _ in ()).throw(full))
    assert "No space left" in recorder.fault


@pytest.mark.parametrize(
    ("make", "interface"),
    [(with_actuator_states, "effort"), (five_dof, "voltage"), (mixed, "mixed")],
)
def test_a_recording_is_loaded_as_arrays(tmp_path, make, interface):
    """Each row is a state with the preceding command; the first row has no command."""
    sim = Simulation(make(), period=1e-3)
    start, periods = sim.state, []
    with Recorder(sim, tmp_path / "bag"):
        recorder = sim.on_period

        def observe(before, command, after):
            periods.append((command, after))
            recorder(before, command, after)

        sim.on_period = observe
        drive(sim, 6, interface)
    found = Recording.load(tmp_path / "bag")
    assert found.joint_names == sim.arm.joint_names
    assert found.act_names == sim.arm.act_names
    assert set(found.commands) == {interface}
    states = [start, *(after for _, after in periods)]
    np.testing.assert_array_equal(found.q, [state.q for state in states])
    np.testing.assert_array_equal(found.v, [state.v for state in states])
    np.testing.assert_array_equal(found.tau[1:], [state.tau for state in states[1:]])
    np.testing.assert_allclose(found.time, [state.time for state in states], atol=1e-9)
    np.testing.assert_array_equal(found.act[1:], [state.act for state in states[1:]])
    assert np.isnan(found.commands[interface][0]).all()
    np.testing.assert_array_equal(found.commands[interface][1:], [c.value for c, _ in periods])


def test_references_of_the_loop_are_those_of_the_states(tmp_path):
    arm, references = five_dof(), []
    sim = Simulation(arm)
    loop = ControlLoop(SimulationDriver(arm, sim), build_controller(arm))
    with Recorder(sim, tmp_path / "bag", loop=loop):
        for k in range(30):
            loop.step()
            references.append(loop.reference)
            if k == 10:
                loop.hold({"R1": 0.2})
    assert replay(tmp_path / "bag").first is None
    found = Recording.load(tmp_path / "bag")
    for name, values in (("position", "q"), ("velocity", "v")):
        expected = [getattr(reference, values) for reference in references]
        np.testing.assert_array_equal(found.references[name][:-1], expected)
        assert np.isnan(found.references[name][-1]).all()  # of the next cycle
    np.testing.assert_array_equal(found.position_error, found.references["position"] - found.q)
    assert found.position_error[11, 0] == 0.2
    assert found.arm.joints == arm.joints
    assert "reference.velocity.R5" in found.columns()


@pytest.mark.parametrize("rounding", [-2.4e-7, 2.4e-7])
def test_references_of_another_process_come_later(tmp_path, rounding):
    """Stamps of a clock differ by the rounding of a float; other stamps belong to no state."""
    log, begin, arm = StateLog(five_dof(), tmp_path / "bag", Events()), 1.7e9, five_dof()
    for k in range(12):
        log.state(begin + 0.01 * k, State.of(np.full(5, 0.1 * k)))
        log.command(begin + 0.01 * k, Command.checked("position", np.zeros(5), 5))
        if k == 3:
            log.references.add(begin + 0.01 + rounding, Reference.hold(np.full(5, 0.3)))
            log.references.add(begin + 0.01 + rounding, Reference.hold(np.full(5, 0.9)))  # repeated
            log.references.add(begin + 0.025, Reference.hold(np.full(5, 0.7)))
    log.close()
    found = Recording.load(tmp_path / "bag")
    error = found.position_error
    assert np.isnan(np.delete(error, 1, axis=0)).all()
    np.testing.assert_allclose(error[1], 0.2)
    assert found.arm.joint_names == arm.joint_names
    motion = load_motion(arm, tmp_path / "bag")
    assert motion.source == str(tmp_path / "bag")
    np.testing.assert_array_equal(motion.command_position[1:], np.zeros((11, 5)))


def test_plot_shows_the_error_the_limits_and_the_units_of_its_joints(tmp_path, capsys, monkeypatch):
    arm = chain({"kind": "prismatic", "lower": 0.0, "upper": 0.4}, {"velocity": 3.0})
    sim, drawn = Simulation(arm, q=[0.39, 0.0]), []
    loop = ControlLoop(SimulationDriver(arm, sim), build_controller(arm))
    with Recorder(sim, tmp_path / "bag", loop=loop):
        for k in range(30):
            loop.step()
            if k == 10:
                loop.hold({"J2": 0.1})
    monkeypatch.setattr(figure_style, "save", lambda figure, file: drawn.append(figure))

    def shown(*words):
        code, text = run_command(capsys, "plot", tmp_path / "bag", *words)
        assert code == 0
        axes = drawn.pop().axes
        return text, [a.get_ylabel() for a in axes], [len(a.get_lines()) for a in axes]

    text, labels, lines = shown()
    assert "J1: position error" in text
    assert " m RMS" in text.splitlines()[1]
    assert " rad RMS, 0.1 rad at most" in text.splitlines()[2]
    assert labels[:3] == ["position [rad; m]", "position error [rad; m]", "velocity [rad/s; m/s]"]
    assert lines[:2] == [2 * 2 + 1 + 2, 2]  # curves, references, limit of J1, and the legend's
    text, labels, lines = shown("--joint", "J2")
    assert labels[:4] == [
        "position [rad]", "position error [rad]", "velocity [rad/s]", "effort [N·m]"
    ]  # fmt: skip
    assert shown("--joint", "J2", "--limits")[2][0] == lines[0] + 2 + 1
    assert shown("--joint", "J1")[1][3] == "effort [N]"


def test_a_table_of_a_recording_is_identical_to_the_last_bit(recording, tmp_path):
    folder, _ = recording
    found, file = Recording.load(folder), tmp_path / "run.csv"
    assert found.write(file) == file
    with file.open() as lines:
        names = lines.readline().strip().split(",")
    table = np.genfromtxt(file, delimiter=",", skip_header=1)
    assert names == list(found.columns())
    np.testing.assert_array_equal(table, np.array(list(found.columns().values())).T)
    for wrong, text in ((file, "exists already"), (tmp_path / "run.xls", "ends with .csv or .par")):
        with pytest.raises(ConfigError, match=text):
            found.write(wrong)


def test_a_data_frame_and_parquet_contain_the_same_data(recording, tmp_path):
    pandas, parquet = pytest.importorskip("pandas"), pytest.importorskip("pyarrow.parquet")
    found = Recording.load(recording[0])
    frame = found.frame()
    assert isinstance(frame, pandas.DataFrame)
    np.testing.assert_array_equal(frame.index, found.time)
    np.testing.assert_array_equal(frame["position.R2"], found.q[:, 1])
    table = parquet.read_table(found.write(tmp_path / "run.parquet"))
    assert table.column_names == list(found.columns())
    np.testing.assert_array_equal(table["velocity.R3"], found.v[:, 2])


@pytest.mark.parametrize("missing", ["pandas", "pyarrow"])
def test_without_pandas_or_pyarrow_the_remedy_is_named(recording, tmp_path, monkeypatch, missing):
    monkeypatch.setitem(sys.modules, missing, None)
    found = Recording.load(recording[0])
    attempt = found.frame if missing == "pandas" else lambda: found.write(tmp_path / "x.parquet")
    with pytest.raises(ConfigError, match=f"{missing} is not installed; .*python.* -m pip install"):
        attempt()


def test_a_recording_is_exported_and_plotted(recording, tmp_path, capsys):
    folder, _ = recording
    code, text = run_command(capsys, "export", folder)
    assert (code, f"{folder}.csv: 21 rows, 21 columns" in text) == (0, True)
    code, text = run_command(
        capsys, "plot", folder, "--joint", "R2", "--output", tmp_path / "r2.png"
    )
    assert (code, "21 states of R2" in text) == (0, True)
    assert "the recording has no references" in text
    assert (tmp_path / "r2.png").read_bytes()[:4] == b"\x89PNG"
    for words, message in (
        (("export", folder), "exists already"),
        (("plot", folder, "--joint", "R9"), "unknown joint of the recording 'R9'; known: R1"),
        (("plot", folder, "--output", tmp_path / "x.nope"), "'nope' is not supported"),
        (("plot", tmp_path / "none"), "none"),
        (("export", tmp_path / "none", "--output", tmp_path / "y.csv"), "none"),
    ):
        code, text = run_command(capsys, *words)
        assert code == 2
        assert message in text


def test_without_rosbags_the_required_extra_is_named(tmp_path, monkeypatch):
    monkeypatch.setitem(sys.modules, "rosbags.rosbag2", None)
    for attempt in (
        lambda: Recorder(Simulation(five_dof()), tmp_path / "bag"),
        lambda: replay(tmp_path),
    ):
        with pytest.raises(RecordingError, match=r"python.* -m pip install 'rosbags>="):
            attempt()


def run_command(capsys, *arguments):
    with pytest.raises(SystemExit) as end:
        main([str(a) for a in arguments])
    out, err = capsys.readouterr()
    return end.value.code, out + err


def test_commands_record_and_replay(tmp_path, capsys, monkeypatch):
    monkeypatch.setattr(signal, "signal", lambda *_: None)  # pytest keeps its signal handlers
    folder = tmp_path / "bag"
    options = ("--duration", "0.1", "--payload", "0.3", "--controller", "gravity_compensation")
    code, text = run_command(capsys, "record", folder, *options)
    assert (code, "0.100 s of five_dof" in text) == (0, True)
    segment = segment_header.load_segment(next(iter(bag.messages(folder)))[2].data)
    assert segment.arm.payload.mass == 0.3
    code, text = run_command(capsys, "replay", folder)
    assert (code, "identical to the last bit" in text, "q 0, v 0" in text) == (0, True, True)
    code, text = run_command(capsys, "record", folder)
    assert (code, "exists already" in text) == (2, True)

    def tamper(name, count, message):
        if (name, count) == ("/joint_states", 9):
            message.position = np.add(message.position, [0, 0, 0, 0, 1e-3])
        return message

    code, text = run_command(capsys, "replay", changed(folder, tmp_path / "changed", tamper))
    assert code == 1
    assert "NOT IDENTICAL, first at t = 0.020000 s, q[R5]" in text
    assert "q 0.001, v 0" in text
    for wrong in (["--duration", "-1"], ["--arm", "six_dof"], ["--dt", "0"]):
        code, text = run_command(capsys, "record", tmp_path / "wrong", *wrong)
        assert (code, len(text.strip().splitlines())) == (2, 1)
        assert not (tmp_path / "wrong").exists()


@pytest.mark.quick(1)
@pytest.mark.parametrize("sent", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_an_interrupted_recording_can_be_replayed(tmp_path, sent):
    folder = tmp_path / "bag"
    arguments = ["record", str(folder), "--duration", "600", "--dt", "1e-3"]
    process = subprocess.Popen([sys.executable, "-m", "arm_dynamics.cli.main", *arguments])
    try:
        limit = time.monotonic() + 60
        while sum(p.stat().st_size for p in folder.glob("*.mcap")) < 100_000:
            assert time.monotonic() < limit
            assert process.poll() is None
            time.sleep(0.01)
        process.send_signal(sent)
        code = process.wait(30)
    finally:
        process.kill()
    assert code == (-sent if sent == signal.SIGKILL else 0)
    report = replay(folder)
    assert report.first is None
    assert report.periods >= 100


def test_recording_and_replay_of_a_urdf_file(tmp_path):
    sim = Simulation(chain({}, {"kind": "continuous"}), period=1e-3)
    with Recorder(sim, tmp_path / "bag"):
        drive(sim, 5)
    assert replay(tmp_path / "bag").first is None

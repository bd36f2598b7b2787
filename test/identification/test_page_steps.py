"""Recording, identification and gravity calibration on a page, without a browser."""

import functools
import threading
from math import inf

import numpy as np
import pytest

pytest.importorskip("viser", reason="viser is not installed")
pytest.importorskip("rosbags", reason="rosbags is not installed")

from arm_dynamics import ControlLoop, Simulation, load_arm
from arm_dynamics.control import build_controller
from arm_dynamics.core.loop_requests import LoopRequests
from arm_dynamics.hardware import SimulationDriver
from arm_dynamics.identification.gravity import pose_measurement, pose_selection
from arm_dynamics.identification.page import gravity_steps, identification_steps, steps, work
from arm_dynamics.identification.page.recorders import LoopRecorder, SimulationRecorder
from arm_dynamics.identification.page.workbench import Workbench
from arm_dynamics.recording import load_motion
from arm_dynamics.recording.replay import replay
from arm_dynamics.viewer.show import open_page


class Immediate:
    """Background process whose work runs in this one."""

    def __init__(self, function, *arguments):
        self.progress = "started"
        self.result = (function(lambda _: None, *arguments),)

    def poll(self):
        return self.result

    def cancel(self):
        pass


class Bench:
    """Simulated arm with its page; ``until`` runs the loop as fast as possible."""

    def __init__(self, recorder):
        self.arm = load_arm("two_link")
        self.simulation = Simulation(self.arm)
        controller = build_controller(self.arm)
        self.loop = ControlLoop(SimulationDriver(self.arm, self.simulation), controller)
        self.requests, self.prepared = LoopRequests(), 0
        self.page = open_page(self.arm, 0, control=True)
        if recorder is SimulationRecorder:
            self.recorder = recorder(self.simulation, self.loop, self.requests)
        else:
            self.recorder = recorder(self.loop, self.requests)
        self.bench = Workbench(self.page, self.loop, self.recorder, self.requests, self.prepare)
        self.until(lambda: self.loop.state is not None)

    def prepare(self):
        self.prepared += 1

    def until(self, condition, cycles=20_000):
        for k in range(cycles):
            if condition():
                return
            self.requests.serve()
            self.loop.step()
            if isinstance(self.recorder, LoopRecorder):
                self.recorder.record()
            self.bench.advance()
            if k % 20 == 0:
                self.bench.update()
        raise AssertionError([folder.message for folder in self.bench._folders])

    def press(self, folder, name):
        """Press a button in a thread of the page, while the loop serves its requests."""
        self.until(lambda: name in folder.offered())
        thread = threading.Thread(target=folder.press, args=(name,))
        thread.start()
        while thread.is_alive():
            self.requests.serve()
            thread.join(0.005)
        self.bench.update()

    def reports(self, folder, words):
        self.until(lambda: words in folder.message)


@pytest.fixture
def make(monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(steps, "BackgroundProcess", Immediate)
    monkeypatch.setattr("arm_dynamics.identification.page.workbench.UNWATCHED_TIME", inf)
    search = functools.partial(work.search_excitation, evaluations=20)
    monkeypatch.setattr(identification_steps, "search_excitation", search)
    monkeypatch.setattr(work, "identify", functools.partial(work.identify, simulate=False))
    benches = []

    def build(recorder=SimulationRecorder):
        benches.append(Bench(recorder))
        return benches[-1]

    yield build
    for bench in benches:
        bench.bench.close()
        bench.page.close()


def test_an_arm_is_identified_step_by_step(make, tmp_path):
    bench = make()
    guide = bench.bench.identification
    assert guide.offered() == (identification_steps.SEARCH,)
    guide._duration.value = 3.0
    bench.press(guide, "Search")
    bench.reports(guide, "13 of 13 base parameters identifiable")
    assert bench.page._canvas.preview is not None
    bench.press(guide, "Run and record")
    assert bench.prepared == 1  # other motions are ended first
    bench.reports(guide, "excitation: ")
    assert guide.offered() == (identification_steps.STOP,)
    bench.reports(guide, "recorded: two_link_identification_1;")
    bench.press(guide, "Fit")
    bench.reports(guide, "fitted: see the report")
    assert ">usable<" in guide.report
    assert all(f">J2.{name}<" in guide.report for name in ("m", "Izz", "coulomb"))
    bench.press(guide, "Write URDF")
    bench.reports(guide, "two_link_identification_1.urdf is written")
    assert (
        load_arm(tmp_path / "two_link_identification_1.urdf").joint_names == bench.arm.joint_names
    )
    bench.press(guide, "Write URDF")
    bench.reports(guide, "expected a new one: it exists")


def searched(bench):
    guide = bench.bench.identification
    guide._duration.value = 3.0
    bench.press(guide, "Search")
    bench.press(guide, "Run and record")
    bench.reports(guide, "excitation: ")
    return guide


def test_stop_brings_the_arm_to_rest_and_keeps_the_recording(make, tmp_path):
    bench = make(LoopRecorder)
    guide = searched(bench)
    bench.press(guide, "Stop")
    bench.reports(guide, "rejected: stopped; two_link_identification_1 is kept")
    assert "Fit" not in guide.offered()
    bench.until(lambda: not bench.loop.reference.v.any())
    motion = load_motion(bench.arm, tmp_path / "two_link_identification_1")
    assert np.isfinite(motion.q).all()
    assert motion.time.size > 100


def target(bench):
    bench.bench.stop("another target", halt=False)


def reset(bench):
    bench.simulation.reset(bench.arm.configuration("initial") + 1.0)


def unwatched(bench):
    bench.bench._watched = -inf


@pytest.mark.parametrize(
    ("cause", "words"),
    [(target, "another target"), (reset, "excitation interrupted"), (unwatched, "no browser")],
)
def test_a_motion_is_ended_by_each_cause(make, monkeypatch, cause, words):
    bench = make()
    guide = searched(bench)
    monkeypatch.setattr("arm_dynamics.identification.page.workbench.UNWATCHED_TIME", 3.0)
    if cause is not unwatched:
        bench.page._watched = True
    cause(bench)
    bench.reports(guide, words)
    assert guide.offered() == ("Search", "Show as ghost", "Run and record")


def test_gravity_is_calibrated_step_by_step(make, monkeypatch, tmp_path):
    for name in ("APPROACH_TIME", "SETTLING_TIME", "READING_TIME"):
        monkeypatch.setattr(pose_measurement, name, 0.4)
    monkeypatch.setattr(pose_selection, "CANDIDATES", 20)
    monkeypatch.setattr(pose_selection, "STARTS", 1)
    bench = make()
    guide = bench.bench.gravity
    guide._count.value, guide._speed_field.value = 4, 90.0
    bench.press(guide, gravity_steps.CHOOSE)
    bench.reports(guide, "4 poses, each approached from both sides")
    bench.press(guide, gravity_steps.MEASURE)
    bench.reports(guide, "pose 2 of 8")
    bench.reports(guide, "fitted: see the report; two_link_gravity_1.poses.csv contains")
    assert ">J1.mx + J2.m<" in guide.report
    bench.press(guide, gravity_steps.WRITE)
    bench.reports(guide, "two_link_gravity_1.urdf is written")
    assert {p.name for p in tmp_path.iterdir()} == {
        "two_link_gravity_1.poses.csv", "two_link_gravity_1.urdf",
    }  # fmt: skip


def test_a_recording_has_a_new_name_and_is_shown_by_the_ghost(make, tmp_path):
    bench = make()
    folder = bench.bench.recording
    (tmp_path / "taken").mkdir()
    for name in ("taken", "../outside", "", "/tmp/x"):
        folder._name.value = name
        bench.press(folder, "Record")
        bench.reports(folder, "rejected: name = ")
    assert [p.name for p in tmp_path.iterdir()] == ["taken"]
    folder._name.value = "mine"
    bench.press(folder, "Record")
    bench.until(lambda: bench.simulation.state.time > 0.2)
    bench.press(folder, "Stop recording")
    bench.reports(folder, "recorded: mine; arm-dynamics replay mine --page")
    bench.press(folder, "Show as ghost")
    bench.reports(folder, "the ghost shows it")
    bench.until(lambda: bench.page._canvas.preview is not None)
    assert replay(tmp_path / "mine").first is None  # to the last bit

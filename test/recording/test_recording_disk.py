"""A full, slow or missing disk: control continues, and the recording names its gap."""

import os
import resource
import shutil
import threading
import time
import tracemalloc
from contextlib import contextmanager

import numpy as np
import pytest
from conftest import five_dof
from test_recording import drive, run_command

from arm_dynamics import Simulation, State
from arm_dynamics.core.state import Command
from arm_dynamics.recording import bag, queued_bag
from arm_dynamics.recording.bag import StagedFile
from arm_dynamics.recording.recorder import Recorder, StateLog
from arm_dynamics.recording.replay import replay
from arm_dynamics.safety.events import Events

pytest.importorskip("rosbags.highlevel", reason="rosbags is not installed")


MESSAGE = 200
"""Minimum size of the data of one period of five_dof [bytes]."""


@pytest.fixture(autouse=True)
def small(monkeypatch):
    """Use short segments, a short queue and frequent retries."""
    monkeypatch.setattr(bag, "FLUSH_COUNT", 20)
    monkeypatch.setattr(queued_bag, "QUEUE_CAPACITY", 100_000)
    monkeypatch.setattr(queued_bag, "RETRY_PERIOD", 0.01)
    monkeypatch.setattr(queued_bag, "CLOSE_TIMEOUT", 10.0)


@contextmanager
def full(size):
    """Simulate a disk on which no file grows beyond ``size`` bytes."""
    _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (size, hard))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))


@pytest.fixture
def blocked(monkeypatch):
    """Simulate a disk that blocks until this event is set."""
    answers, write = threading.Event(), os.write

    def waiting(number, data):
        answers.wait(30)
        return write(number, data)

    monkeypatch.setattr(bag.os, "write", waiting)
    yield answers
    answers.set()


def soon(condition):
    limit = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < limit
        time.sleep(0.002)


def size_of(folder):
    return sum(p.stat().st_size for p in folder.glob("*.mcap"))


def recorded(folder, patience=0.0):
    sim = Simulation(five_dof(), period=1e-3)
    return sim, Recorder(sim, folder, patience=patience)


def test_a_chunk_is_written_completely_or_not_at_all(tmp_path):
    file = StagedFile((tmp_path / "file").open("xb"))
    file.write(b"first")
    file.flush()
    file.write(b"second" * 100)
    with full(50), pytest.raises(OSError, match="too large"):
        file.flush()
    assert (tmp_path / "file").read_bytes() == b"first"
    assert file.tell() == 605
    file.write(b"third")
    file.close()
    assert (tmp_path / "file").read_bytes() == b"first" + b"second" * 100 + b"third"


def test_a_temporarily_full_disk_leaves_a_reported_gap(tmp_path, capsys):
    folder = tmp_path / "bag"
    sim, recorder = recorded(folder)
    events, queue = sim.watchdog.events, recorder.queue
    with recorder:
        drive(sim, 30)
        soon(lambda: size_of(folder) > 5000)
        with full(size_of(folder) + 100):
            drive(sim, 300)
            assert sim.state.time == pytest.approx(0.33)
            soon(lambda: events.counts["recording_delayed"] == 1)
            assert events.counts["recording_dropped"] == 1
            assert "dropped since t = 0.0" in queue.trouble
            assert queue.values()["recording dropped"] == str(queue.dropped)
            early = {file.name: file.read_bytes() for file in folder.iterdir()}
        soon(lambda: queue._size == 0)
        drive(sim, 30)
        assert queue.trouble == ""
    assert events.counts["recording_resumed"] == 1
    assert events.counts["recording_failed"] == 0
    report = replay(folder)
    (gap,) = report.gaps
    assert (report.first, report.finished, report.segments) == (None, True, 2)
    assert gap.dropped == queue.dropped > 100
    assert report.periods + gap.dropped == 360
    assert gap.last - gap.first == (gap.dropped - 1) * 1_000_000
    assert f"dropped: '{gap.dropped}'" in (folder / "metadata.yaml").read_text()
    code, text = run_command(capsys, "replay", folder)
    assert (code, f"GAP: {gap.dropped} periods were not recorded, t = 0." in text) == (0, True)
    assert "0 changes of arm or state" in text
    (tmp_path / "so far").mkdir()
    for name, content in early.items():
        (tmp_path / "so far" / name).write_bytes(content)
    early = replay(tmp_path / "so far")
    assert (early.first, early.finished) == (None, False)
    assert 0 < early.periods < 60


def test_a_recording_closed_on_a_full_disk_is_readable_up_to_its_end(tmp_path, capsys):
    folder = tmp_path / "bag"
    sim, recorder = recorded(folder)
    drive(sim, 30)
    soon(lambda: size_of(folder) > 5000)
    with full(size_of(folder) + 100):
        drive(sim, 300)
        recorder.close()
    assert sim.watchdog.events.counts["recording_failed"] == 1
    assert not (folder / "metadata.yaml").exists()
    report = replay(folder)
    assert (report.first, report.finished) == (None, False)
    assert report.periods > 0
    assert "CUT OFF" in run_command(capsys, "replay", folder)[1]


def test_a_blocked_disk_costs_neither_time_nor_memory(tmp_path, blocked, monkeypatch):
    monkeypatch.setattr(queued_bag, "CLOSE_TIMEOUT", 0.2)
    sim, recorder = recorded(tmp_path / "bag")
    drive(sim, 200)
    assert recorder.queue.dropped > 0  # the queue is full
    tracemalloc.start()
    drive(sim, 2500)
    grown, _ = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert grown < 2500 * MESSAGE / 2, "what is dropped is kept"
    assert sim.state.time == pytest.approx(2.7)
    recorder.close()
    assert sim.watchdog.events.counts["recording_failed"] == 1
    assert "does not respond within 0.2 s" in recorder.queue.fault
    assert recorder.queue._thread.daemon  # the process ends without the file


def test_a_simulation_without_real_time_waits_for_a_slow_disk(tmp_path, monkeypatch):
    write = os.write
    monkeypatch.setattr(bag.os, "write", lambda *given: (time.sleep(0.01), write(*given))[1])
    sim, recorder = recorded(tmp_path / "bag", patience=10.0)
    with recorder:
        drive(sim, 400)
    assert recorder.queue.dropped == 0
    assert (replay(tmp_path / "bag").first, replay(tmp_path / "bag").periods) == (None, 400)


def test_a_removed_folder_ends_only_the_recording(tmp_path):
    sim, recorder = recorded(tmp_path / "bag")
    drive(sim, 10)
    shutil.rmtree(tmp_path / "bag")
    soon(lambda: drive(sim, 10) or recorder.fault)
    assert "the file was removed" in recorder.fault
    assert sim.on_period is None
    drive(sim, 10)
    recorder.close()
    assert sim.watchdog.events.counts["recording_failed"] == 1


@pytest.mark.parametrize("interface", ["effort", "voltage"])
def test_the_recording_of_a_physical_arm_has_a_reported_gap(tmp_path, interface):
    arm, events, folder = five_dof(), Events(), tmp_path / "bag"
    log = StateLog(arm, folder, events)

    def cycles(first, count):
        for k in range(first, first + count):
            log.state(k * 1e-3, State.of(np.full(5, k), np.zeros(5)))
            log.command(k * 1e-3, Command.checked(interface, np.full(5, -k), 5))

    cycles(0, 30)
    soon(lambda: size_of(folder) > 5000)
    with full(size_of(folder) + 100):
        cycles(30, 300)
    soon(lambda: log.queue._size == 0)
    cycles(330, 30)
    log.close()
    found = [row for row in bag.messages(folder) if row[0] != bag.URDF]
    (gap,) = (message.data for topic, _, message in found if topic == bag.GAPS)
    assert f'"dropped": {log.queue.dropped}' in gap
    assert len(found) - 1 + log.queue.dropped == 720
    assert (found[0][2].position[0], found[-1][1]) == (0, 359_000_000)
    assert events.counts["recording_resumed"] == 1
    log.close()


def test_continuing_drops_are_reported_again(tmp_path, blocked, monkeypatch):
    monkeypatch.setattr(queued_bag, "REPORT_PERIOD", 0.0)
    sim, recorder = recorded(tmp_path / "bag")
    drive(sim, 200)
    blocked.set()
    recorder.close()
    assert sim.watchdog.events.counts["recording_dropped"] == recorder.queue.dropped > 10
    assert "dropped: the disk is too slow" in sim.watchdog.events.latest["recording_dropped"]

"""The forward model reproduces a recording of the simulator."""

import re

import numpy as np
import pytest

from arm_dynamics.recording import Recording
from arm_dynamics.recording.replay import replay

pytest.importorskip("rosbags", reason="rosbags is not installed")


@pytest.mark.quick(1)
@pytest.mark.parametrize("process", [[], ["--composed"]], ids=["nodes", "composed"])
def test_a_run_that_is_interrupted_leaves_a_recording(ros, tmp_path, process):
    folder = tmp_path / "Bag 1"
    run = ros.launch("cli.main", "sim", "--headless", "--record", folder, *process)
    ros.wait_for(lambda: re.search(r"^t +(0\.[5-9]|[1-9])", run.output, re.M), "no t = 0.5 s")
    assert run.stop() == 0, run.output
    report = replay(folder)
    assert report.first is None
    assert report.periods > 100
    error = Recording.load(folder).position_error
    known = np.isfinite(error).all(axis=1)
    assert known.sum() > 5
    assert np.abs(error[known]).max() < 0.01


def test_an_existing_folder_is_rejected(ros, tmp_path):
    run = ros.launch("cli.main", "sim", "--headless", "--record", tmp_path)
    assert run.wait() == 2
    assert "expected a new folder" in run.output

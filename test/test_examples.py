"""Every script of examples/ runs unchanged, and its output is correct."""

import runpy
from pathlib import Path

import numpy as np
import pytest

from arm_dynamics.dynamics.kinematics.frames import tool_pose
from arm_dynamics.dynamics.rigid_body import gravity

FOLDER = Path(__file__).parents[1] / "examples"
SCRIPTS = sorted(path.stem for path in FOLDER.glob("*.py"))


def motor_voltages(done):
    """The tool rotates about the vertical; R1 approaches the velocity of zero available torque."""
    assert done["state"].time == pytest.approx(1.0)
    assert 0.9 < done["state"].v[0] / done["fastest"] <= 1.0


def pid_loop(done):
    assert done["error"] < 5e-3


def track_a_trajectory(done):
    true, wrong = done["worst"].values()
    assert true < 1e-4
    assert 10 * true < wrong < 0.02


def inverse_kinematics(done):
    position, rotation = tool_pose(done["arm"], done["found"].q)
    np.testing.assert_allclose(position, done["position"], atol=1e-6)
    np.testing.assert_allclose(rotation, done["rotation"], atol=1e-6)
    nearest, far = done["nearest"], done["far"]
    assert nearest.position_error == pytest.approx(np.linalg.norm(far - nearest.position), rel=1e-6)


def lqr_control(done):
    assert done["error"] < 1e-3
    np.testing.assert_allclose(
        done["command"].value, gravity(done["arm"], done["target"]), atol=0.05
    )


def draw_a_square(done):
    assert max(done["distances"]) < 1e-3
    assert done["distances"][-1] < 1e-5


def impedance_control(done):
    """x = F / k after the push, 0 after it has ended."""
    moved, spring = done["given"], done["spring"]
    np.testing.assert_allclose(moved[2999], [0, 0, -5.0 / spring["stiffness"]], atol=2e-4)
    np.testing.assert_allclose(moved[5999], 0, atol=2e-4)


def many_arms(done):
    """Different motor constants give different motions."""
    assert done["end"].failed_step.max() < 0
    assert done["tools"].shape == (512, 3)
    assert (done["tools"].std(axis=0) > 1e-5).all()
    shoulder = done["end"].q[:, -1, 0]
    assert np.corrcoef(shoulder, done["kt"][:, 0])[0, 1] > 0.9  # motion increases with strength


def custom_controller(done):
    np.testing.assert_allclose(done["simulation"].state.q, [0.8, 0.4], atol=0.01)


def test_every_example_is_tested():
    assert [name for name in SCRIPTS if name not in globals()] == []
    assert len(SCRIPTS) >= 6


@pytest.mark.parametrize("name", SCRIPTS)
def test_the_result_of_an_example_is_correct(name, capsys):
    file = FOLDER / f"{name}.py"
    assert 15 <= len(file.read_text("utf-8").splitlines()) <= 30
    done = runpy.run_path(str(file))
    assert capsys.readouterr().out.strip()
    globals()[name](done)

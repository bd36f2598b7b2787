"""Each equation has one definition for the plant, the kernels and the derivatives."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
from conftest import chain

from arm_dynamics import Command, Plant, State
from arm_dynamics.batch import rollout
from arm_dynamics.simulation.linearization import linearize

PACKAGE = Path(__file__).parents[1] / "arm_dynamics"
MOTOR = {"kt": 5.0, "ke": 4.0, "resistance": 1.2, "gear_ratio": 1.0}
ZERO = Command("voltage", np.zeros(2))

CHANGES = (
    ("simulation/friction.py", "return -coefficient * v", "return -1.5 * coefficient * v"),
    ("simulation/end_stops.py", "stiffness * beyond - damping", "stiffness * beyond - 2 * damping"),
    ("simulation/actuators/winding.py", "clip((inner - emf)", "clip((inner - 1.1 * emf)"),
)


def answers(backends):
    """Return velocities after 40 steps by plant and backends, J2 in its end stop; derivatives."""
    arm = chain({"damping": 0.7}, {}).with_actuator("dc_motor", **MOTOR)
    state, command = State.of([0.1, 3.1], [1.0, 2.0]), Command.checked("voltage", [3.0, -4.0], 2)
    found = {"plant": Plant(arm).step(state, command, 1e-4, 40).v.tolist()}
    for backend in backends:
        batch = rollout(
            arm, np.concatenate([state.q, state.v])[None], command.value, 1e-4,
            interface="voltage", steps_per_command=40, record_every=40, backend=backend,
        )  # fmt: skip
        found[backend] = batch.v[0, -1].tolist()
    linear = linearize(arm, State.of([0.1, -1.0]), ZERO)
    return {**found, "slopes": np.diag(linear.A[2:4, 2:4]).tolist()}


def answers_of(folder):
    """Return the results of the package in ``folder``, with a separate cache."""
    environment = {
        **os.environ,
        "PYTHONPATH": str(folder),
        "XDG_CACHE_HOME": str(folder / "cache"),
    }
    done = subprocess.run(
        [sys.executable, "-W", "error::RuntimeWarning", __file__],
        cwd=folder, env=environment, capture_output=True, text=True, check=True, timeout=240,
    )  # fmt: skip
    return json.loads(done.stdout)


def test_a_changed_equation_changes_plant_kernels_and_linearization(tmp_path):
    """Changed equations: viscous friction, end stops and back-EMF."""
    shutil.copytree(PACKAGE, tmp_path / "arm_dynamics")
    for file, text, instead in CHANGES:
        source = tmp_path / "arm_dynamics" / file
        before = source.read_text()
        assert before.count(text) == 1
        source.write_text(before.replace(text, instead))
    original, changed = answers([]), answers_of(tmp_path)
    np.testing.assert_allclose(changed["generated"], changed["plant"], rtol=1e-9)
    assert (np.abs(np.subtract(changed["plant"], original["plant"])) > 1e-4).all()
    # J1: friction and back-EMF increase its derivative.
    old, new = (np.array(found["slopes"]) for found in (original, changed))
    assert (new < 1.09 * old).all()
    assert new[0] < 1.1 * old[0] - 0.1


if __name__ == "__main__":
    print(json.dumps(answers(("generated",))))

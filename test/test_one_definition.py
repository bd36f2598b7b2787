"""An equation changed in one place is changed for the plant, the kernels and the derivatives."""

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np

PACKAGE = Path(__file__).parents[1] / "arm_dynamics"

RUN = """
import json
import numpy as np
from arm_dynamics import Command, Plant, State, load_arm
from arm_dynamics.linearization import linearize
from arm_dynamics.rollout import rollout
arm = load_arm("{urdf}").with_joint("R2", damping=0.7)
state = State.of([0.1, -1.3, 0.5, 0.3, -1.2], [1, -2, 1, 3, -4])
command = Command.checked("voltage", [3.0, -4, 2, 1, -1], 5)
found = dict(plant=Plant(arm).step(state, command, 1e-4, 40).v.tolist())
for backend in ("generated", "tree"):
    start = np.concatenate([state.q, state.v])[None]
    batch = rollout(
        arm, start, command.value, 1e-4, interface="voltage", every=40, stride=40, backend=backend
    )
    found[backend] = batch.v[0, -1].tolist()
linear = linearize(arm, State.of([0.1, -1, 0.5, 0.3, -1]), Command("voltage", np.zeros(5)))
found["slopes"] = np.diag(linear.A[5:10, 5:10])[1:].tolist()
print(json.dumps(found))
"""

CHANGES = (
    ("friction.py", "return -coefficient * v", "return -1.5 * coefficient * v"),
    ("stops.py", "stiffness * beyond - damping", "stiffness * beyond - 2 * damping"),
    ("actuators/winding.py", "clip((inner - emf)", "clip((inner - 1.1 * emf)"),
)


def answers(folder):
    """What the package in ``folder`` computes, with a cache of its own."""
    environment = {**os.environ, "PYTHONPATH": str(folder), "XDG_CACHE_HOME": str(folder / "cache")}
    script = RUN.format(urdf=PACKAGE.parent / "urdf" / "five_dof.urdf")
    done = subprocess.run(
        [sys.executable, "-W", "error::RuntimeWarning", "-c", script],
        cwd=folder, env=environment, capture_output=True, text=True, check=True, timeout=240,
    )  # fmt: skip
    return json.loads(done.stdout)


def test_a_change_in_one_place_is_a_change_everywhere(tmp_path):
    """Viscous friction, stops and back-EMF: plant, kernels and linearization follow alike."""
    found = {}
    for name, changes in (("original", ()), ("changed", CHANGES)):
        shutil.copytree(PACKAGE, tmp_path / name / "arm_dynamics")
        for file, text, instead in changes:
            source = tmp_path / name / "arm_dynamics" / file
            before = source.read_text()
            assert before.count(text) == 1
            source.write_text(before.replace(text, instead))
        found[name] = answers(tmp_path / name)
        for backend in ("generated", "tree"):
            np.testing.assert_allclose(found[name][backend], found[name]["plant"], rtol=1e-9)
    difference = np.abs(np.subtract(found["changed"]["plant"], found["original"]["plant"]))
    assert (difference > 1e-4).all()
    # R2's own: both the friction and the back-EMF of its slope have grown.
    old, new = (np.array(found[name]["slopes"]) for name in ("original", "changed"))
    assert (new < 1.09 * old).all()
    assert new[0] < 1.1 * old[0] - 0.1

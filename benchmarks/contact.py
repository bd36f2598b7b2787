"""Contact: time of a step, and creep of a grasped cube, compared with MuJoCo.

    python benchmarks/contact.py

Both simulate the same bodies with steps of 1 ms: a cube at rest on the ground, one that slides, and
a cube of half the heaviest mass between two jaws that press with 5 N each. The time of an arm that
is far from all objects is compared with that of the arm without a scene. The last table compares
rollouts of generated kernels with and without a scene, in turn on one core.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from functools import partial
from itertools import product
from pathlib import Path
from time import perf_counter

import mujoco
import numpy as np
from tables import table

from arm_dynamics import load_arm
from arm_dynamics.batch import rollout
from arm_dynamics.collision import Scene, SceneObject
from arm_dynamics.core.state import Command, State
from arm_dynamics.dynamics.rigid_body import gravity
from arm_dynamics.model import Shape
from arm_dynamics.simulation import ContactDynamics, ContactPlant, Plant
from arm_dynamics.simulation.contact.free_bodies import BodyStates

DT, FORCE, FRICTION, GRAVITY = 1e-3, 5.0, 0.6, 9.81
GROUND = SceneObject("ground", Shape("ground", ()), friction=FRICTION)
MASS = FRICTION * FORCE / GRAVITY
"""Mass [kg] of the grasped cube: half of 2 μ F / g."""
SECONDS, PEER_SECONDS = 60, 1
"""Times [s] of the creep: with MuJoCo's default solver the cube leaves the jaws within a minute."""
BATCHES, BATCH, STEPS = 100, 50, 100
"""Numbers of batches and of calls in one; steps of a call with many."""
GRIPPER = Path(__file__).parents[1] / "test" / "data" / "urdf" / "gripper.urdf"
RESTING_MJCF = """<mujoco><option timestep="0.001"/><worldbody><geom type="plane" size="1 1 1"/>
<body pos="0 0 0.05"><freejoint/><geom type="box" size=".05 .05 .05" mass="1"/></body></worldbody>
</mujoco>"""
GRASP_MJCF = f"""<mujoco><option timestep="0.001"/><default><geom friction="{FRICTION} 0 0"/>
</default><worldbody><body pos="0 0 0.5"><joint name="lift" type="slide" axis="0 0 1"/>
<inertial pos="0 0 0" mass="0.2" diaginertia="1e-4 1e-4 1e-4"/>
<body pos="-0.03 0 -0.1"><joint name="l" type="slide" axis="1 0 0"/>
<geom type="box" size="0.005 0.02 0.02" mass="0.1"/></body>
<body pos="0.03 0 -0.1"><joint name="r" type="slide" axis="-1 0 0"/>
<geom type="box" size="0.005 0.02 0.02" mass="0.1"/></body></body>
<body name="cube" pos="0 0 0.4"><freejoint/>
<geom type="box" size="0.025 0.02 0.02" mass="{MASS}"/></body></worldbody><actuator>
<motor joint="lift"/><motor joint="l"/><motor joint="r"/></actuator></mujoco>"""
COMMAND = np.array([(0.4 + MASS) * GRAVITY, FORCE, FORCE])


def cube(size: tuple[float, float, float], height: float, mass: float) -> SceneObject:
    """Return a free box with its center at a height [m]."""
    shape = Shape("box", size)
    return SceneObject("cube", shape, np.array([0, 0, height]), mass=mass, friction=FRICTION)


def time_of(step: Callable[[], object]) -> float:
    """Return the best mean time [µs] of a call, of all batches."""
    best = np.inf
    for _ in range(BATCHES):
        start = perf_counter()
        for _ in range(BATCH):
            step()
        best = min(best, (perf_counter() - start) / BATCH)
    return 1e6 * best


def on_ground(speed: float, steps: int) -> Callable[[], object]:
    """Return steps of a cube on the ground that starts with a speed [m/s]."""
    dynamics = ContactDynamics(Scene([GROUND, cube((0.1, 0.1, 0.1), 0.05, 1.0)]))
    start = dynamics.initial
    states = BodyStates.of(start.position, start.rotation, np.array([[speed, 0, 0, 0, 0, 0]]))
    return lambda: dynamics.step(states, DT, steps)


def sliding(model: mujoco.MjModel, data: mujoco.MjData, speed: float) -> None:
    """Take STEPS steps of a cube that starts at the origin with a speed [m/s]."""
    data.qpos[:3], data.qvel[:] = (0, 0, 0.05), (speed, 0, 0, 0, 0, 0)
    mujoco.mj_step(model, data, STEPS)


def far() -> tuple[float, float]:
    """Return the times [µs] of a step of 0.1 ms with a distant ground, and without a scene."""
    arm = load_arm("five_dof")
    below = replace(GROUND, position=np.array([0.0, 0.0, -3.0]))
    state = State.of(arm.configuration("initial"))
    command = Command("effort", gravity(arm, state.q))
    plants = ContactPlant(arm, Scene([below])), Plant(arm)
    with_scene, without = (time_of(partial(p.step, state, command, 1e-4, 20)) / 20 for p in plants)
    return with_scene, without


def grasping() -> tuple[ContactPlant, State, Command]:
    """Return the gripper with its cube, the state at the start and the command."""
    scene = Scene([cube((0.05, 0.04, 0.04), 0.4, MASS)])
    plant = ContactPlant(load_arm(GRIPPER), scene, link_friction=FRICTION)
    return plant, State.of(np.zeros(3)), Command("effort", COMMAND)


def mujoco_model(text: str) -> tuple[mujoco.MjModel, mujoco.MjData]:
    """Return a MuJoCo model with default solver settings, and its data."""
    model = mujoco.MjModel.from_xml_string(text)
    data = mujoco.MjData(model)
    if model.nu:
        data.ctrl[:] = COMMAND
    return model, data


def rollouts() -> None:
    """Print the steps per second of 512 rollouts of five_dof, above a scene and in contact."""
    arm, random = load_arm("five_dof"), np.random.default_rng(0)
    ground = SceneObject("ground", Shape("ground", ()))
    box = SceneObject("box", Shape("box", (0.1, 0.1, 0.1)), np.array([0.45, 0, 0.05]))
    ball = SceneObject("ball", Shape("sphere", (0.05,)), np.array([0.3, 0.3, 0.05]))
    scenes = {
        "none": Scene(),
        "ground": Scene([ground]),
        "ground, box, sphere": Scene([ground, box, ball]),
    }
    above, down = (
        np.hstack([q + 0.05 * random.normal(size=(512, 5)), np.zeros((512, 5))])
        for q in (arm.configuration("initial"), [0, -0.32, 0.59, 0, -1.13])
    )
    starts = ("above", above), ("on the ground", down)
    with table("rollouts in contact") as printed:
        for steps, (start, states) in product((32, 1000), starts):
            best = dict.fromkeys(scenes, np.inf)
            for _ in range(11):
                for name, scene in scenes.items():
                    begin = perf_counter()
                    rollout(arm, states, np.zeros(5), 1e-4, interface="effort", scene=scene,
                            steps_per_command=steps, outputs=(), threads=1)  # fmt: skip
                    best[name] = min(best[name], perf_counter() - begin)
            for name, seconds in best.items():
                rate, ratio = 512e-6 * steps / seconds, best["none"] / seconds
                printed.row(name, start, steps, f"{rate:.3g}", f"{ratio:.2f}")


def main() -> None:
    """Print the times of a step and the creep in a minute."""
    plant, state, command = grasping()
    held = plant.step(state, command, DT, 10)
    rest, grasp = mujoco_model(RESTING_MJCF), mujoco_model(GRASP_MJCF)
    for model, data in (rest, grasp):
        mujoco.mj_step(model, data, 200)
    rows = {
        "cube on the ground": (on_ground(0.0, 1), partial(mujoco.mj_step, *rest), 1),
        "sliding cube, 100 steps a call": (
            on_ground(3.0, STEPS), partial(sliding, *rest, 3.0), STEPS
        ),
        "cube in a gripper": (
            partial(plant.step, held, command, DT), partial(mujoco.mj_step, *grasp), 1
        ),
    }  # fmt: skip
    with table("contact", "mujoco") as printed:
        for name, (step, peer_step, steps) in rows.items():
            printed.row(name, f"{time_of(step) / steps:.1f}", f"{time_of(peer_step) / steps:.1f}")
    with_scene, without = far()
    print(
        f"five_dof, 20 steps of 0.1 ms a call: {with_scene:.1f} µs a step far from all objects,"
        f" {without:.1f} µs without a scene"
    )

    after = plant.step(held, command, DT, round(SECONDS / DT))
    creep = abs(after.bodies.position[0, 2] - after.q[0] - (held.bodies.position[0, 2] - held.q[0]))
    model, data = grasp
    body = model.body("cube").id
    start = data.xpos[body, 2] - data.qpos[0]
    mujoco.mj_step(model, data, round(PEER_SECONDS / DT))
    peer = abs(data.xpos[body, 2] - data.qpos[0] - start)
    print(
        f"creep of the grasped cube: {creep:.1e} m in {SECONDS} s;"
        f" MuJoCo {peer:.1e} m in {PEER_SECONDS} s"
    )
    rollouts()


if __name__ == "__main__":
    main()

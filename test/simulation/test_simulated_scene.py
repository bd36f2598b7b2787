"""A simulation in a scene: objects that fall, are pushed, added, removed and reset."""

from dataclasses import replace

import numpy as np
import pytest
from conftest import five_dof

from arm_dynamics.collision.scene import Scene, SceneObject
from arm_dynamics.core.errors import InvalidValue
from arm_dynamics.core.state import Command
from arm_dynamics.dynamics.kinematics.frames import pose
from arm_dynamics.model.solids import Shape
from arm_dynamics.simulation.contact import contact_dynamics
from arm_dynamics.simulation.simulation import Simulation

GROUND = SceneObject("ground", Shape("ground", ()))
BALL = SceneObject("ball", Shape("sphere", (0.05,)), np.array([0.6, 0.3, 0.15]), mass=0.2)


@pytest.fixture
def simulation():
    return Simulation(five_dof(), scene=Scene([GROUND, BALL]), dt=1e-3, period=2e-3)


def advance(simulation, time):
    for _ in range(round(time / simulation.period)):
        simulation.advance()


def test_a_ball_falls_rests_and_is_reset(simulation):
    assert simulation.scene["ball"].position[2] == 0.15
    advance(simulation, 0.1)
    fallen = 0.15 - 9.81 / 2 * 0.1**2
    np.testing.assert_allclose(simulation.scene["ball"].position, [0.6, 0.3, fallen], atol=1e-3)
    advance(simulation, 0.2)
    np.testing.assert_allclose(simulation.scene["ball"].position, [0.6, 0.3, 0.05], atol=1e-9)
    np.testing.assert_allclose(simulation.contacts.force_on("ball"), [0, 0, 0.2 * 9.81], rtol=1e-9)
    assert simulation.scene["ground"] is GROUND
    simulation.reset()
    np.testing.assert_array_equal(simulation.scene["ball"].position, BALL.position)


def test_objects_are_added_moved_and_removed_while_a_ball_falls(simulation):
    advance(simulation, 0.1)
    box = SceneObject("box", Shape("box", (0.1, 0.1, 0.1)), np.array([-0.6, 0, 0.05]), mass=1.0)
    before = simulation.state.bodies.velocity
    simulation.set_scene(simulation.scene.with_object(box))
    np.testing.assert_array_equal(simulation.state.bodies.velocity[0], before[0])
    advance(simulation, 0.2)
    assert simulation.contacts.force_on("box")[2] == pytest.approx(9.81)
    moved = replace(simulation.scene["ball"], position=np.array([0.6, 0.3, 0.4]))
    simulation.set_scene(Scene([GROUND, moved, box]))
    np.testing.assert_array_equal(simulation.state.bodies.velocity, 0)
    assert simulation.scene["ball"].position[2] == 0.4
    with pytest.raises(InvalidValue, match="'ground' and 'deep' overlap by 50 mm"):
        simulation.set_scene(simulation.scene.with_object(replace(BALL, name="deep",
                             position=np.array([0, 2.0, 0]))))  # fmt: skip
    assert [one.name for one in simulation.scene] == ["ground", "ball", "box"]
    simulation.set_scene(Scene())
    assert simulation.contacts is None
    advance(simulation, 0.01)


def test_a_payload_does_not_move_the_objects(simulation):
    advance(simulation, 0.1)
    before = simulation.scene["ball"].position
    simulation.set_arm(five_dof().with_payload(0.1))
    np.testing.assert_array_equal(simulation.scene["ball"].position, before)
    advance(simulation, 0.002)
    assert 0 < before[2] - simulation.scene["ball"].position[2] < 0.01


def test_a_falling_arm_is_stopped_by_the_ground():
    """Without a command the arm falls; the ground is 0.2 m below its tool."""
    arm = five_dof()
    tool = pose(arm, arm.configuration("initial"))[0]
    ground = replace(GROUND, position=np.array([0, 0, tool[2] - 0.2]))
    free, held = (
        Simulation(arm, scene=Scene(objects), dt=1e-3, period=2e-3) for objects in ([], [ground])
    )
    heights, forces, gaps = {}, [], []
    for simulation in (free, held):
        for _ in range(300):
            simulation.submit(Command("effort", np.zeros(5), simulation.state.time))
            state = simulation.advance()
            heights.setdefault(simulation, []).append(pose(arm, state.q)[0][2])
            if simulation is held and len(simulation.contacts):
                forces.append(simulation.contacts.force_on("ground")[2])
                gaps.append(simulation.contacts.gap.min())
    assert min(heights[free]) < tool[2] - 0.25
    assert min(heights[held]) > min(heights[free]) + 0.02
    assert min(forces) < 0
    assert min(gaps) > -1e-4


def test_a_solution_that_does_not_converge_is_an_event(simulation, monkeypatch):
    advance(simulation, 0.25)
    assert "contact_not_converged" not in simulation.watchdog.events.counts
    monkeypatch.setattr(contact_dynamics, "RESIDUAL", -1.0)
    simulation.advance()
    assert "reduce dt" in simulation.watchdog.events.latest["contact_not_converged"]

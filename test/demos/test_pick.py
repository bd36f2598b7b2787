"""The SO-101 picks a cube: its target, its pose in the hand, and the forces in closed form."""

from functools import cache

import numpy as np
import pytest
from conftest import shown

from arm_dynamics.core.errors import ConfigError
from arm_dynamics.demos import pick, registry
from arm_dynamics.demos.pick_and_place import (
    EDGE,
    FRICTION,
    GRIPPER,
    HEIGHT,
    LIFT,
    MASS,
    PLACES,
    PickAndPlace,
    heaviest_mass,
)
from arm_dynamics.simulation.contact.contact_dynamics import LINK_FRICTION

pytestmark = pytest.mark.slow


@cache
def carried():
    return PickAndPlace().carry(*PLACES)


def test_the_cube_is_lifted_and_put_down_at_its_target():
    record = carried()
    assert record.position[:, 2].max() == pytest.approx(EDGE / 2 + LIFT, abs=2e-3)
    assert record.error < 5e-4
    np.testing.assert_allclose(record.position[-1], [*PLACES[1], EDGE / 2], atol=5e-4)
    assert record.rotation[-1][2, 2] == pytest.approx(1, abs=1e-6)
    assert record.force[-1].tolist() == [0, 0]


def test_the_held_cube_does_not_move_in_the_hand():
    """Its center is half of an edge from the fixed jaw, whose face contains the tool."""
    record = carried()
    offset, angle = record.slip
    assert offset < 3e-4
    assert angle < 1e-2
    held = record.in_hand[0][record.held]
    np.testing.assert_allclose(held[:, 0], -EDGE / 2, atol=2e-4)
    np.testing.assert_allclose(held[:, 2], HEIGHT - EDGE / 2, atol=1e-3)


def test_the_force_is_the_effort_of_the_gripper_over_its_lever():
    """F = τ / r within the dry friction of the joint, f / r; both jaws press equally."""
    record = carried()
    held, arm = record.held, record.motion.arm
    motor = arm.actuators[arm.index(GRIPPER)].constants
    lever = -record.motion.tau[held, arm.index(GRIPPER)] / record.grip_force[held]
    friction = motor["gear_ratio"] * motor["coulomb_friction"] / lever
    force = np.median(record.force[held], axis=0)
    assert force[0] == pytest.approx(force[1], rel=0.02)
    assert np.abs(force[1] - np.median(record.grip_force[held])) < 1.05 * np.median(friction)


def test_the_heaviest_mass_is_that_of_two_coulomb_contacts():
    """2 μ F = m g: far above the weight of the cube."""
    force = float(np.median(carried().force[carried().held]))
    assert heaviest_mass(force) * 9.81 == pytest.approx(
        2 * np.sqrt(FRICTION * LINK_FRICTION) * force
    )
    assert heaviest_mass(force) > 20 * MASS


@pytest.mark.figures
def test_the_figures_name_the_phases_and_the_forces():
    motion, animated = shown("pick").figures
    height = motion.figure.axes[0]
    assert [text.get_text() for text in height.texts] == [phase.name for phase in carried().phases]
    assert animated.frames == pytest.approx(carried().motion.time[-1] * pick.RATE, abs=1)


def test_the_page_carries_the_cube_and_writes_figures(tmp_path, capsys):
    module = registry.load_demo("pick")
    assert module.run(["--port", "0", "--count", "1", "--output", str(tmp_path)]) == 0
    printed = capsys.readouterr().out
    assert "http://127.0.0.1:" in printed
    assert "distance of the cube from its target" in printed
    assert {file.name for file in tmp_path.iterdir()} == {"pick.gif", "pick_motion.png"}


def test_an_impossible_folder_is_rejected_before_the_page_opens(tmp_path):
    (tmp_path / "file").write_text("")
    with pytest.raises(ConfigError, match="--output"):
        pick.run(["--output", str(tmp_path / "file")])

"""Named configurations of an arm and of the SRDF next to its URDF."""

import numpy as np
import pytest
from conftest import chain_urdf

from arm_dynamics import load_arm
from arm_dynamics.model.named_configurations import named_configurations

SRDF = """<robot name="{name}">
  <group name="arm"/>
  <group_state name="home" group="arm"><joint name="J1" value="0.5"/></group_state>
  <group_state name="up" group="arm"><joint name="J1" value="-1"/><joint name="J2" value="1"/>
  </group_state>
  <group_state name="too far" group="arm"><joint name="J1" value="9"/></group_state>
  <group_state name="open" group="hand"><joint name="finger" value="1"/></group_state>
  <group_state name="zero" group="arm"><joint name="J1" value="0.25"/></group_state>
</robot>"""


def written(folder, place, name="chain"):
    urdf = folder / "urdf" / "chain.urdf"
    urdf.parent.mkdir()
    urdf.write_text(chain_urdf({}, {}))
    file = folder / place
    file.parent.mkdir(exist_ok=True)
    file.write_text(SRDF.format(name=name))
    return load_arm(urdf)


@pytest.mark.parametrize("place", ["urdf/chain.srdf", "config/chain.srdf"])
def test_group_states_within_the_limits_follow_the_arms_own(tmp_path, place):
    found = named_configurations(written(tmp_path, place))
    assert list(found) == ["initial", "zero", "home", "up"]
    np.testing.assert_array_equal(found["home"], [0.5, 0.0])
    np.testing.assert_array_equal(found["up"], [-1.0, 1.0])
    np.testing.assert_array_equal(found["zero"], [0.0, 0.0])


def test_the_srdf_of_another_robot_is_ignored(tmp_path):
    found = named_configurations(written(tmp_path, "urdf/chain.srdf", name="other"))
    assert list(found) == ["initial", "zero"]


def test_a_damaged_srdf_causes_a_warning(tmp_path):
    arm = written(tmp_path, "urdf/chain.srdf")
    (tmp_path / "urdf" / "chain.srdf").write_text("<robot")
    with pytest.warns(RuntimeWarning, match=r"chain\.srdf: .*group states are ignored"):
        assert list(named_configurations(arm)) == ["initial", "zero"]

"""Nearest physically consistent inertia tensors, in numbers and in the text of a URDF."""

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays

from arm_dynamics import load_arm
from arm_dynamics.cli.main import main
from arm_dynamics.core import InvalidValue
from arm_dynamics.model import load
from arm_dynamics.model.audit import audit_urdf
from arm_dynamics.model.inertia_correction import nearest_tensor, with_consistent_inertia

SQUARE = arrays(float, (3, 3), elements=st.floats(-1, 1))


def second_moments(tensor):
    return np.linalg.eigvalsh(np.trace(tensor) / 2 * np.eye(3) - tensor)


@given(SQUARE)
def test_a_consistent_tensor_is_its_own_nearest_one(root):
    second = root @ root.T + 0.01 * np.eye(3)
    tensor = np.trace(second) * np.eye(3) - second
    np.testing.assert_allclose(nearest_tensor(tensor), tensor, atol=1e-12)


@given(SQUARE, SQUARE)
def test_no_consistent_tensor_is_nearer(root, other):
    tensor = root + root.T
    assume(second_moments(tensor)[-1] > 0.01)
    found = nearest_tensor(tensor)
    assert second_moments(found)[0] > 0
    low, middle, high = np.linalg.eigvalsh(found)
    assert low > 0
    assert low + middle > high

    def moments(x):
        return np.trace(x) / 2 * np.eye(3) - x

    another = other @ other.T  # second moments of any body
    distance = np.linalg.norm(moments(found) - moments(tensor))
    assert distance <= np.linalg.norm(another - moments(tensor)) + 1e-5


def test_a_tensor_without_a_positive_second_moment_is_rejected():
    with pytest.raises(InvalidValue, match="expected one above 0"):
        nearest_tensor(-np.eye(3))


def broken(tmp_path):
    text = (load.find_urdf("two_link")).read_text(encoding="utf-8")
    start = text.index("<inertia ", text.index("J2_link"))
    end = text.index("/>", start)
    wrong = '<inertia ixx="0.1" ixy="0" ixz="0" iyy="0.1" iyz="0.02" izz="0.4"'
    file = tmp_path / "broken.urdf"
    file.write_text(text[:start] + wrong + text[end:], encoding="utf-8")
    return file


def test_only_inconsistent_tensors_of_a_text_change(tmp_path):
    file = broken(tmp_path)
    text, changed = with_consistent_inertia(file.read_text(encoding="utf-8"))
    assert changed == ("J2_link",)
    assert with_consistent_inertia(text) == (text, ())
    assert not [x for x in audit_urdf(text) if x.severity == "error"]
    old, new = file.read_text(encoding="utf-8").splitlines(), text.splitlines()
    assert len(new) == len(old) + 1
    assert sum(a not in old for a in new) == 2
    untouched = load.find_urdf("five_dof").read_text(encoding="utf-8")
    assert with_consistent_inertia(untouched) == (untouched, ())


def ended(*arguments):
    """Return the exit code of the command."""
    with pytest.raises(SystemExit) as end:
        main([str(x) for x in arguments])
    return end.value.code


def test_the_command_writes_a_file_that_loads(tmp_path, capsys):
    file, fixed = broken(tmp_path), tmp_path / "fixed.urdf"
    assert ended("audit", file) == 2
    assert "--correct-inertia NEW" in capsys.readouterr().out
    assert ended("audit", file, "--correct-inertia", fixed) == 0
    assert "corrected tensors of links: J2_link" in capsys.readouterr().out
    assert ended("audit", file, "--correct-inertia", file) == 2, "the original is not overwritten"
    assert "expected a new file" in capsys.readouterr().err
    assert file.read_text(encoding="utf-8") != fixed.read_text(encoding="utf-8")
    arm, original = load_arm(fixed), load_arm("two_link")
    assert arm.links.inertias[2].mass == original.links.inertias[2].mass
    np.testing.assert_array_equal(arm.links.inertias[2].lever, original.links.inertias[2].lever)

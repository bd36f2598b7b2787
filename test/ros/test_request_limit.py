"""Size limits of requests, checked in their C structures before conversion."""

import pytest

pytest.importorskip("rclpy", reason="rclpy is not installed")

from control_msgs.action import FollowJointTrajectory, GripperCommand, ParallelGripperCommand
from control_msgs.srv import QueryTrajectoryState
from lifecycle_msgs.srv import ChangeState, GetAvailableStates, GetAvailableTransitions, GetState
from rcl_interfaces.msg import Parameter, ParameterValue
from rcl_interfaces.srv import (
    DescribeParameters,
    GetParameters,
    GetParameterTypes,
    ListParameters,
    SetParameters,
    SetParametersAtomically,
)
from std_srvs.srv import SetBool, Trigger
from type_description_interfaces.srv import GetTypeDescription

from arm_dynamics.core.errors import InvalidValue
from arm_dynamics.ros.messages.c_message import from_c, is_known, new, parts, to_c
from arm_dynamics.ros.runtime.size_limits import ITEMS, TEXT, check_request

GOALS = (FollowJointTrajectory, ParallelGripperCommand, GripperCommand)
GOALS = tuple(action.Impl.SendGoalService.Request for action in GOALS)
SERVICES = (
    *(ChangeState, GetAvailableStates, GetAvailableTransitions, GetState, GetTypeDescription),
    *(DescribeParameters, GetParameters, GetParameterTypes, ListParameters, QueryTrajectoryState),
    *(SetBool, SetParameters, SetParametersAtomically, Trigger),
)
"""Services of all nodes."""


@pytest.mark.parametrize("kind", [*GOALS, *(s.Request for s in SERVICES)])
def test_the_layout_of_every_request_is_known(kind):
    assert is_known(kind)


def parameters(*values):
    return SetParameters.Request(
        parameters=[Parameter(name="ab", value=ParameterValue(**value)) for value in values]
    )


def test_parts_within_sequences_are_found_with_their_sizes():
    request = parameters({"string_value": "xyz"}, {"string_array_value": ["a", "bc"]})
    with new(SetParameters.Request) as address:
        to_c(request, address)
        (outer,) = parts(SetParameters.Request, address)
        assert (outer.name, outer.is_text, outer.size) == ("parameters", False, 2)
        found = [(p.name, p.is_text, p.size) for p in outer.inner() if p.size]
        inner = [p.size for p in outer.inner() if p.name == "string_array_value" for p in p.inner()]
        assert from_c(SetParameters.Request, address) == request
    assert found == [
        *[("name", True, 2), ("string_value", True, 3)],
        *[("name", True, 2), ("string_array_value", False, 2)],
    ]
    assert inner == [1, 2]


@pytest.mark.parametrize(
    ("largest", "larger", "field"),
    [
        ({"string_value": "x" * (TEXT - 2)}, {"string_value": "x" * (TEXT - 1)}, "string_value"),
        (
            {"double_array_value": [0.0] * (ITEMS - 1)},
            {"double_array_value": [0.0] * ITEMS},
            "double_array_value",
        ),
        (
            {"string_array_value": ["x" * (TEXT - 2)]},
            {"string_array_value": ["x" * (TEXT - 2), "x"]},
            "string_array_value",
        ),
    ],
)
def test_a_request_is_rejected_only_beyond_the_limits(largest, larger, field):
    kind = SetParameters.Request
    with new(kind) as address:
        to_c(parameters(largest), address)
        check_request(kind, address)
    with new(kind) as address:
        to_c(parameters(larger), address)
        with pytest.raises(InvalidValue, match=rf"{field}: \w+ = \d+; expected at most \d+"):
            check_request(kind, address)
    with new(kind) as address:  # many small ones add up
        to_c(parameters(*[{"bool_array_value": [True] * 99}] * (ITEMS // 100)), address)
        check_request(kind, address)
        to_c(parameters(*[{"bool_array_value": [True] * 100}] * (ITEMS // 100)), address)
        with pytest.raises(InvalidValue, match="bool_array_value: items"):
            check_request(kind, address)

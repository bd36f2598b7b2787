"""Commands of docs/task_space.md: the node accepts the messages and has the parameters."""

import re
import shlex
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest
import yaml

from .link import LOCKSTEP

FRESH = True

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "task_space.md").read_text("utf-8")
PUBLISHED, SET = (
    [
        shlex.split(found.replace("\\\n", " "))
        for found in re.findall(rf"^\$ ros2 {kind} (.*?)(?=\n\$ |\n```)", PAGE, re.M | re.S)
    ]
    for kind in ("topic pub", "param set")
)
NODE = "task_space_controller"


def get_message(name):
    """Return the class of ``package/msg/Name`` or ``package/Name``."""
    package, *_, kind = name.split("/")
    return getattr(import_module(f"{package}.msg"), kind)


def filled(kind, values):
    """Return a message from nested values, filled as by `ros2 topic pub`."""
    message = kind()
    types = kind.get_fields_and_field_types()
    for name, value in values.items():
        inner = re.sub(r"^sequence<(.*)>$", r"\1", types[name])
        if "/" in inner:
            made = get_message(inner)
            many = isinstance(value, list)
            value = [filled(made, v) for v in value] if many else filled(made, value)  # noqa: PLW2901
        setattr(message, name, value)
    return message


@pytest.mark.slow
def test_every_command_of_the_page_is_accepted(ros):
    states = ros.states()
    ros.start("simulator", **LOCKSTEP)
    ros.start(NODE)
    ros.wait_until(states, 0.1)
    assert len(PUBLISHED) == 5
    for *_, topic, kind, text in PUBLISHED:
        message, first = filled(get_message(kind), yaml.safe_load(text)), len(states)
        ros.publish(message, topic.removeprefix("/"))
        ros.wait_for(
            lambda first=first: any(
                np.abs(m.velocity).max() > 1e-3 for m in states.messages(first, 25)
            ),
            f"nothing moves after {topic}",
        )
        ros.wait_longer(states, 2.0)
    status = ros.diagnosis(NODE, lambda v: v["message"] == "running")
    assert not {"target_rejected", "target_ignored"} & set(status), status
    for _, name, value in SET:
        if ".tool." not in name:
            assert ros.set(NODE, **{name: float(value)})[0].successful, name
    assert ros.stop_all() == [0, 0], ros.report("")


@pytest.mark.slow
def test_the_gains_of_the_page_are_those_of_impedance(ros):
    ros.start(NODE, controller="impedance")
    springs = [(name, float(value)) for _, name, value in SET if ".tool." in name]
    assert springs
    for name, value in springs:
        assert ros.set(NODE, **{name: value})[0].successful, name
        assert ros.get(NODE, name) == value
    assert ros.stop_all() == [0], ros.report("")

"""Values: read-only, checked, with precise errors."""

import pickle
from copy import deepcopy
from dataclasses import FrozenInstanceError, replace

import numpy as np
import pytest

from arm_dynamics.core.arrays import as_readonly, check_float, check_vector
from arm_dynamics.core.errors import ArmDynamicsError, CommandRejected, InvalidValue, UnknownName
from arm_dynamics.core.parameters import Parameter, with_defaults
from arm_dynamics.core.state import (
    INTERFACES,
    CheckedCommand,
    Command,
    Reference,
    State,
    check_command,
    new_command,
    new_state,
)


def test_states_are_read_only_copies():
    mine = np.array([1.0, 2.0])
    state = State.of(mine)
    mine[0] = 9
    assert (state.q == [1, 2]).all()
    assert (state.v == 0).all()
    assert state.nv == 2
    with pytest.raises(ValueError, match="read-only"):
        state.q[0] = 3
    with pytest.raises(FrozenInstanceError):
        state.time = 3.0


def test_states_and_commands_of_control_cycles_are_ordinary_ones():
    x = as_readonly([1.0, 2.0])
    state, command = new_state(1.0, x, x, x, x), new_command("effort", x, 1.0)
    for new, usual, time in (
        (state, State(1.0, x, x, x, x), "time"),
        (command, Command("effort", x, 1.0), "stamp"),
    ):
        assert type(new) is type(usual)
        assert repr(new) == repr(usual)
        for same in (new, pickle.loads(pickle.dumps(new)), deepcopy(new), replace(new)):
            assert repr(same) == repr(usual)
            with pytest.raises(FrozenInstanceError):
                setattr(same, time, 0.0)


@pytest.mark.parametrize(
    ("arguments", "text"),
    [
        (([1, np.nan],), r"q\[1\] = nan"),
        (([1, 2], [0]), r"v: shape = \(1,\); expected \(2,\)"),
        (([1, 2], [0, np.inf]), r"v\[1\] = inf"),
        (([1, 2], [0, 0], [0]), r"tau: shape"),
        (("ab",), "q = 'ab'; expected a list"),
        (([[1, 2]],), "q: shape"),
        (([None],), "q"),
    ],
)
def test_invalid_states_are_named(arguments, text):
    with pytest.raises(InvalidValue, match=text):
        State.of(*arguments)


def test_commands_are_checked():
    command = Command.checked("voltage", [1, 2], 2, stamp=0.25)
    assert (command.interface, command.stamp) == ("voltage", 0.25)
    assert not command.value.flags.writeable
    with pytest.raises(CommandRejected, match=r"effort command\[0\] = inf; expected a finite"):
        Command.checked("effort", [np.inf, 0], 2)
    with pytest.raises(CommandRejected, match=r"shape = \(3,\); expected \(2,\)"):
        Command.checked("effort", [0, 0, 0], 2)
    with pytest.raises(UnknownName, match="'torque'; known: " + ", ".join(sorted(INTERFACES))):
        Command.checked("torque", [0, 0], 2)


def test_a_checked_command_is_checked_by_its_constructor():
    command = Command.checked("effort", [1, 2], 2, stamp=0.5)
    assert type(command) is CheckedCommand
    for copied in (
        replace(command, stamp=1.0),
        replace(command, value=np.array([1.0, 2.0])),
        pickle.loads(pickle.dumps(command)),
        deepcopy(command),
    ):
        assert type(copied) is CheckedCommand
        assert (copied.value == [1, 2]).all()
        assert not copied.value.flags.writeable
    for invalid in ({"value": [1, np.nan]}, {"value": np.array([[1.0, 2.0]])}, {"stamp": np.inf}):
        with pytest.raises(CommandRejected):
            replace(command, **invalid)
    with pytest.raises(UnknownName, match="'torque'"):
        replace(command, interface="torque")


def test_a_command_is_checked_once():
    checked = Command.checked("effort", [1, 2], 2)
    assert check_command(checked, 2) is checked
    with pytest.raises(CommandRejected, match=r"shape = \(2,\); expected \(3,\)"):
        check_command(checked, 3)
    values = np.array([1.0, 2.0])
    plain = check_command(Command("effort", values), 2)
    values[0] = np.nan
    assert (plain.value == [1, 2]).all()
    with pytest.raises(InvalidValue, match=r"command = .*Command\.checked"):
        check_command([1, 2], 2)


def test_reference_hold_has_zero_velocity():
    reference = Reference.hold([1.0, 2.0])
    assert (reference.q == [1, 2]).all()
    assert not reference.v.any()
    assert not reference.a.any()
    assert not reference.q.flags.writeable


def test_numbers_are_checked_against_their_range():
    assert check_float("dt", 1, above=0) == 1.0
    for keywords, value, message in (
        ({"above": 0}, 0, "dt = 0.0; expected above 0"),
        ({"lower": 1}, 0.5, "expected at least 1"),
        ({"upper": 1}, 1.5, "expected at most 1"),
        ({}, np.nan, "finite"),
        ({}, "a", "dt = 'a'; expected a number"),
        ({}, None, "dt = None; expected a number"),
        ({}, [1, 2], r"dt = \[1, 2\]; expected a number"),
        ({}, 10**400, "dt = 10+; expected a number"),
    ):
        with pytest.raises(InvalidValue, match=message):
            check_float("dt", value, **keywords)


def test_vectors_are_checked_and_read_only():
    assert as_readonly([1, 2]).dtype == np.float64
    assert check_vector("x", (1, 2, 3), 3).tolist() == [1, 2, 3]
    with pytest.raises(InvalidValue, match="x = "):
        check_vector("x", [[1], [1, 2]], 2)
    with pytest.raises(InvalidValue, match=r"x = \[10+\]; expected"):
        check_vector("x", [10**400], 1)


def test_every_error_derives_from_one_class():
    for kind in (InvalidValue, CommandRejected, UnknownName):
        assert issubclass(kind, ArmDynamicsError)


FORCE = Parameter("force", 1.0, "N", "how hard", lower=0, upper=10)
TIME = Parameter("time", None, "s", "how long", above=0)


def test_parameters_are_checked():
    assert with_defaults("press", (FORCE, TIME), {"time": 2}) == {"force": 1.0, "time": 2.0}
    assert (FORCE.range_text, TIME.range_text) == ("at least 0 and at most 10", "above 0")
    for given, error, message in (
        ({}, InvalidValue, r"press: time is missing; expected a number \[s\]"),
        ({"time": 0}, InvalidValue, "press: time = 0 s; expected above 0"),
        (
            {"time": 1, "force": 11},
            InvalidValue,
            "force = 11 N; expected at least 0 and at most 10",
        ),
        ({"time": np.nan}, InvalidValue, "time = nan"),
        ({"time": np.inf}, InvalidValue, "time = inf s; expected a finite"),
        ({"time": 1, "color": 1}, UnknownName, "parameter of press 'color'; known: force, time"),
    ):
        with pytest.raises(error, match=message):
            with_defaults("press", (FORCE, TIME), given)

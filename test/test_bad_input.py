"""Invalid input to every public function raises an error of the package that names it."""

import inspect
import shutil
import warnings
from fractions import Fraction

import numpy as np
import pytest
from conftest import chain, five_dof

import arm_dynamics
from arm_dynamics import (
    ArmDynamicsError,
    Command,
    Plant,
    Reference,
    Simulation,
    State,
    forward_model,
    load_arm,
    pack_state,
    unpack_state,
)
from arm_dynamics.cli.main import main
from arm_dynamics.control.controllers.pid import Pid
from arm_dynamics.core.arrays import as_readonly, check_float, check_int, check_vector
from arm_dynamics.core.errors import InvalidValue
from arm_dynamics.dynamics import rigid_body
from arm_dynamics.dynamics.kinematics import frames
from arm_dynamics.hardware.simulation_driver import SimulationDriver
from arm_dynamics.model.load import parse_arm
from arm_dynamics.safety.command_watchdog import Guard
from arm_dynamics.safety.events import Events
from arm_dynamics.simulation import dynamechs
from arm_dynamics.simulation.actuators.data_sheet import DataSheet, from_rpm
from arm_dynamics.simulation.integrators import INTEGRATORS
from arm_dynamics.simulation.linearization import find_equilibrium, linearize

ARM = five_dof()
N = ARM.nv
S = State.of(ARM.configuration("initial"))
C = Command.checked("voltage", [0.0] * N, N)
X = pack_state(ARM, S)
HUGE, NAN = [1e300] * N, [np.nan] * N
MOTOR = ARM.actuators[0]
BASIC = ("nominal_voltage", "no_load_speed", "stall_torque", "no_load_current")
SHEET = dict(zip(BASIC, (12.0, 500.0, 0.1, 0.1), strict=True))


def functions_of_an_arm(module):
    """Yield the functions of a module whose first argument is an arm; other arguments are zero."""
    for name, function in vars(module).items():
        if inspect.isfunction(function) and function.__module__ == module.__name__:
            names = list(inspect.signature(function).parameters)
            if names and names[0] == "arm":
                rest = [[0.0] * N] * (len(names) - 1)
                yield f"{module.__name__}.{name}", lambda arm, f=function, r=rest: f(arm, *r)


TAKE_AN_ARM = {
    **dict(functions_of_an_arm(rigid_body)),
    **dict(functions_of_an_arm(frames)),
    "forward_model": lambda arm: forward_model(arm, X, [0.0] * N, 1e-4),
    "pack_state": lambda arm: pack_state(arm, S),
    "unpack_state": lambda arm: unpack_state(arm, X),
    "Plant": Plant,
    "Simulation": Simulation,
    "known": lambda arm: Simulation(ARM, nominal=arm) if arm is not None else Simulation(arm),
    "set_arm": lambda arm: Simulation(ARM).set_arm(arm),
    "objective": lambda arm: dynamechs.objective(arm, [1.0] * 3),
    "linearize": lambda arm: linearize(arm, S, C),
    "holding": lambda arm: find_equilibrium(arm, [0.0] * N),
    "controller": Pid,
    "driver": SimulationDriver,
}


@pytest.mark.parametrize("arm", ["five_dof", None, 3])
@pytest.mark.parametrize("name", TAKE_AN_ARM)
def test_functions_of_an_arm_reject_a_name(name, arm):
    with pytest.raises(ArmDynamicsError, match="expected an ArmModel") as caught:
        TAKE_AN_ARM[name](arm)
    assert repr(arm) in str(caught.value)
    assert ("load_arm('five_dof') returns one" in str(caught.value)) == (arm == "five_dof")


def test_the_functions_of_an_arm_are_complete():
    known = {
        "arm_dynamics.dynamics.rigid_body.aba",
        "arm_dynamics.dynamics.kinematics.frames.tool_pose",
    }
    assert known <= set(TAKE_AN_ARM)
    assert len(list(functions_of_an_arm(rigid_body))) >= 8


# Call, words of its message
WRONG = {
    "load None": (lambda: load_arm(None), "arm = None"),
    "load 3": (lambda: load_arm(3), "arm = 3"),
    "load list": (lambda: load_arm(["five_dof"]), "arm = "),
    "lock 3": (lambda: load_arm("five_dof", 3), "lock = 3; expected a list of names"),
    "lock text": (lambda: load_arm("five_dof", "R1"), "lock = 'R1'; expected a list of names"),
    "lock numbers": (lambda: load_arm("five_dof", [3]), "lock"),
    "parse": (lambda: parse_arm(None), "URDF = None"),
    "pose": (lambda: ARM.configuration([1]), "configuration"),
    "actuator": (lambda: ARM.with_actuator(["ideal"]), "actuator"),
    "step list": (lambda: Plant(ARM).step(S, [0] * N, 1e-4), "command = .*Command.checked"),
    "step None": (lambda: Plant(ARM).step(S, None, 1e-4), "command = None"),
    "step raw": (lambda: Plant(ARM).step(S, Command("voltage", [0, 0]), 1e-4), "voltage command"),
    "efforts": (lambda: Plant(ARM).efforts(S, [0] * N), "command = "),
    "state list": (lambda: Plant(ARM).step([0] * N, C, 1e-4), "state = .*State.of"),
    "state raw": (lambda: Plant(ARM).step(State(0, [0] * N, S.v, S.v), C, 1e-4), "state.q"),
    "state complex": (lambda: Plant(ARM).step(State(0, S.q, S.v * 1j, S.v), C, 1e-4), "state.v"),
    "state act": (lambda: Plant(ARM).step(State(0, S.q, S.v, S.v, None), C, 1e-4), "state.act"),
    "steps 1.5": (lambda: Plant(ARM).step(S, C, 1e-4, 1.5), "steps = 1.5; expected an integer"),
    "steps text": (lambda: Plant(ARM).step(S, C, 1e-4, "2"), "steps = '2'; expected an integer"),
    "steps True": (lambda: Plant(ARM).step(S, C, 1e-4, True), "steps = True; expected an integer"),
    "steps 0": (lambda: Plant(ARM).step(S, C, 1e-4, 0), "steps = 0; expected an integer"),
    "dt True": (lambda: Plant(ARM).step(S, C, True), r"dt \[s\] = True; expected a number"),
    "dt text": (lambda: Plant(ARM).step(S, C, "1e-4"), r"dt \[s\] = '1e-4'; expected a number"),
    "sim dt": (lambda: Simulation(ARM, dt="1e-4"), r"dt \[s\] = '1e-4'; expected a number"),
    "stamp": (lambda: Plant(ARM).step(S, Command("voltage", C.value, np.nan), 1e-4), "stamp"),
    "method": (lambda: Plant(ARM, ["rk4"]), "integrator"),
    "offer list": (lambda: Simulation(ARM).submit([0.0]), "command = "),
    "offer None": (lambda: Simulation(ARM).submit(None), "command = None"),
    "guard": (lambda: Guard(ARM, Events()).check_command(None), "command = None"),
    "other arm": (lambda: Simulation(ARM).set_arm(load_arm("two_link")), "'two_link' with joints"),
    "other known": (lambda: Simulation(ARM, nominal=load_arm("two_link")), "nominal = 'two_link'"),
    "pack list": (lambda: pack_state(ARM, [0] * N), "state = "),
    "pack None": (lambda: pack_state(ARM, None), "state = None"),
    "model method": (
        lambda: forward_model(ARM, X, C.value, 1e-4, integrator=["rk4"]),
        "integrator",
    ),
    "model complex": (lambda: forward_model(ARM, X * 1j, C.value, 1e-4), "state vector"),
    "model dt": (lambda: forward_model(ARM, X, C.value, True), r"dt \[s\] = True"),
    "time text": (lambda: State.of([0], time="x"), r"time \[s\] = 'x'"),
    "time nan": (lambda: State.of([0], time=np.nan), r"time \[s\] = nan"),
    "q None": (lambda: State.of(None), "q = None; expected a list of numbers"),
    "q complex": (lambda: State.of([1j]), "q = "),
    "q text": (lambda: State.of(["1"]), "q = "),
    "q square": (lambda: State.of(np.eye(2)), r"shape = \(2, 2\); expected \(n,\)"),
    "size": (lambda: Command.checked("effort", [0], "1"), "effort command: size = '1'"),
    "stamp text": (lambda: Command.checked("effort", [0], 1, stamp="x"), "stamp .* = 'x'"),
    "stamp nan": (lambda: Command.checked("effort", [0], 1, stamp=np.nan), "stamp .* = nan"),
    "interface": (lambda: Command.checked(np.zeros(2), [0], 1), "command interface"),
    "hold text": (lambda: Reference.hold("a"), "q = 'a'"),
    "hold nan": (lambda: Reference.hold([np.nan]), r"q\[0\] = nan"),
    "joint text": (lambda: ARM.with_joint("R1", damping="0.3"), "damping = '0.3'"),
    "joint True": (lambda: ARM.with_joint("R1", damping=True), "damping = True"),
    "motor": (lambda: ARM.with_motor("R1", gear_ratio=1e200, rotor_inertia=1), "armature .* inf"),
    "linearize nan": (lambda: linearize(ARM, State(0, S.q * np.nan, S.v, S.v), C), r"q\[0\] = nan"),
    "linearize huge": (lambda: linearize(ARM, State.of(S.q, HUGE), C), "not finite"),
    "linearize v": (lambda: linearize(ARM, State(0, S.q, np.zeros(2), S.v), C), "state v: shape"),
    "linearize list": (lambda: linearize(ARM, S, [0.0]), "command = "),
    "linearize by": (lambda: linearize(ARM, S, Command("velocity", S.v)), "interface of joint"),
    "aba": (lambda: rigid_body.aba(ARM, S.q, HUGE, S.v), "not finite"),
    "rnea": (lambda: rigid_body.rnea(ARM, S.q, HUGE, S.v), "not finite"),
    "nle": (lambda: rigid_body.nle(ARM, S.q, HUGE), "not finite"),
    "energy": (lambda: rigid_body.kinetic_energy(ARM, S.q, HUGE), "kinetic energy .* finite"),
    "stable 0": (lambda: Plant(ARM).require_stable(S.q, 0), r"dt \[s\] = 0.0; expected above"),
    "stable nan": (lambda: Plant(ARM).require_stable(S.q, np.nan), r"dt \[s\] = nan"),
    "stable -1": (lambda: Plant(ARM).require_stable(S.q, -1), r"dt \[s\] = -1.0; expected above"),
    "objective": (lambda: dynamechs.objective(ARM, [1.0], joints=3), "joints = 3"),
    "volts text": (lambda: DataSheet(**{**SHEET, "nominal_voltage": "12"}), "nominal_voltage"),
    "speed None": (lambda: DataSheet(**{**SHEET, "no_load_speed": None}), "no_load_speed .* None"),
    "sheet huge": (lambda: DataSheet(**dict.fromkeys(SHEET, 1e308)), "follows from nominal_volt"),
    "sheet tiny": (lambda: DataSheet(**dict.fromkeys(SHEET, 1e-308)), "follows from nominal_volt"),
    "rpm text": (lambda: from_rpm("10"), "speed .* = '10'"),
    "rpm nan": (lambda: from_rpm(np.nan), "speed .* = nan"),
    "volts for text": (lambda: MOTOR.voltage_for("x", 0), "effort .* = 'x'"),
    "volts for None": (lambda: MOTOR.voltage_for(None, 0), "effort .* = None"),
    "volts for list": (lambda: MOTOR.voltage_for([1.0], 0), "effort .* = "),
    "volts for nan": (lambda: MOTOR.voltage_for(1, np.nan), "v .* = nan"),
    "effort text": (lambda: MOTOR.effort("voltage", "x", 0, 0), "voltage command = 'x'"),
    "effort nan": (lambda: MOTOR.effort("voltage", np.nan, 0, 0), "voltage command = nan"),
    "effort act": (
        lambda: MOTOR.effort("voltage", 1, 0, 0, [1, 2, 3, 4, 5]),
        r"act: shape = \(5,\)",
    ),
    "range": (lambda: MOTOR.effort_range("x"), "v .* = 'x'"),
    "ideal": (lambda: chain({}).actuators[0].effort("effort", "x", 0, 0), "effort command = 'x'"),
}  # fmt: skip


@pytest.mark.parametrize("name", WRONG)
def test_an_error_of_the_package_names_the_cause(name):
    call, message = WRONG[name]
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(ArmDynamicsError, match=message) as caught:
            call()
    assert len(str(caught.value)) < 500


VALUES = ("ArmModel", "Command", "Parameter", "Reference", "State")
"""Plain values, checked by ``load_arm``, ``checked``, ``hold`` and ``of``."""
ERRORS = ("ArmDynamicsError", "DriverFault", "InvalidValue")


@pytest.mark.parametrize("name", sorted({*arm_dynamics.__all__} - {*VALUES, *ERRORS}))
@pytest.mark.parametrize("thing", [None, 3, [1.0], object], ids=str)
def test_public_names_reject_arguments_of_wrong_type(name, thing):
    public = getattr(arm_dynamics, name)
    needed = [p for p in inspect.signature(public).parameters.values() if p.default is p.empty]
    with pytest.raises(ArmDynamicsError):
        public(*[thing] * len(needed))


@pytest.mark.parametrize("value", ["1", b"1", True, np.True_, None, 1j, np.complex128(1), [1.0]])
def test_values_that_are_not_a_single_number_are_rejected(value):
    with pytest.raises(InvalidValue, match="x = "):
        check_float("x", value)
    with pytest.raises(InvalidValue, match="x"):
        check_vector("x", [[value]], 1)


@pytest.mark.parametrize("value", [2, 2.0, np.float32(2), np.int8(2), np.array(2), Fraction(4, 2)])
def test_every_type_of_real_number_is_accepted(value):
    assert check_float("x", value) == 2.0
    assert check_vector("x", [value], 1).tolist() == as_readonly([value]).tolist() == [2.0]


def test_check_int_accepts_integers_in_range():
    assert check_int("n", np.int64(3), lower=1) == 3
    for value in (2.0, "2", True, None, 0):
        with pytest.raises(InvalidValue, match=r"n = .*; expected an integer of at least 1"):
            check_int("n", value, lower=1)


@pytest.mark.parametrize("method", sorted({*INTEGRATORS} - {"adaptive"}))  # it retries for long
@pytest.mark.parametrize("arm", [ARM, ARM.with_joint("R1", friction=0.1)], ids=["plain", "dry"])
def test_a_huge_time_step_raises_one_error_without_warnings(arm, method):
    plant = Plant(arm, method)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        with pytest.raises(InvalidValue, match=r"dt = 1e\+300 s"):
            plant.step(State.of(arm.configuration("initial"), [0.1] * N), C, 1e300, 3)


def test_a_command_of_plain_numbers_equals_one_of_an_array():
    plain = Command("voltage", [1.0] * N)
    plant, checked = Plant(ARM), Command.checked("voltage", [1.0] * N, N)
    for _ in range(2):  # the second one with the command in the plant's cache
        assert (plant.step(S, plain, 1e-4).v == Plant(ARM).step(S, checked, 1e-4).v).all()


def test_a_rejected_arm_leaves_the_simulation_unchanged():
    simulation = Simulation(ARM)
    before = simulation.state
    with pytest.raises(InvalidValue):
        simulation.set_arm(load_arm("two_link"))
    assert simulation.arm is ARM
    assert simulation.state is before


def rejection_output(capsys, *arguments):
    with pytest.raises(SystemExit) as ended:
        main(arguments)
    assert ended.value.code == 2
    return capsys.readouterr().err


@pytest.mark.parametrize(
    "arguments",
    [
        ("demo", "three_link", "--output", ""),
        ("record", ""),
        ("record", "new", "--params-file", ""),
        ("replay", ""),
        ("stability", "five_dof", "--gains", " "),
    ],
    ids=lambda a: a[0],
)
def test_an_empty_path_is_not_the_current_folder(capsys, monkeypatch, tmp_path, arguments):
    monkeypatch.chdir(tmp_path)
    assert "expected the path of a file or folder" in rejection_output(capsys, *arguments)
    assert not list(tmp_path.iterdir())


def test_folders_without_a_recording_and_damaged_recordings(capsys, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    text = rejection_output(capsys, "replay", ".")
    assert f"{tmp_path}: contents = no recording; expected metadata.yaml or one .mcap file" in text
    with pytest.raises(SystemExit):
        main(["record", "whole", "--duration", "0.1"])
    shutil.copytree("whole", "cut")
    bag = next((tmp_path / "cut").glob("*.mcap"))
    bag.write_bytes(bag.read_bytes()[:-20])
    assert "recording cut is damaged: " in rejection_output(capsys, "replay", "cut")

"""Launch files: with the launch package if installed, and always with a stand-in."""

import ast
import importlib.util
import re
import sys
from pathlib import Path
from types import ModuleType, SimpleNamespace

import pytest
import yaml

import arm_dynamics.ros.runtime
from arm_dynamics import load_arm
from arm_dynamics.control.config import node_parameters
from arm_dynamics.control.controllers.task_space_base import TaskSpaceController
from arm_dynamics.core import plugins
from arm_dynamics.core.errors import ArmDynamicsError, ConfigError, UnknownName
from arm_dynamics.core.state import MIXED
from arm_dynamics.identification.excitation.excitation_search import excite

ROOT = Path(__file__).parent.parent
FILES = sorted((ROOT / "launch").glob("*.launch.py"))
EXECUTABLES = {path.name for path in (ROOT / "executables").iterdir()}
COMMON = {
    "arm", "lock", "tool_frame", "namespace", "frame_prefix", "rviz", "rviz_config", "log_level",
    "respawn",
}  # fmt: skip
SIMULATED = COMMON | {
    "controller", "rate", "real_time_factor", "lockstep", "use_sim_time", "publish_clock",
    "composed", "viewer", "viewer_port", "params_file", "scene",
}  # fmt: skip
ARGUMENTS = {
    "simulation": SIMULATED,
    "hardware": COMMON | {
        "driver", "port", "driver_settings", "command_interface", "controller", "update_rate",
        "auto_configure", "viewer", "viewer_port", "params_file", "move_on_release",
        "record", "excitation", "scene",
    },
    "display": COMMON | {"viewer_port", "gui"},
    "task_space": SIMULATED,
    "view": COMMON | {"use_sim_time", "move_on_release"},
}  # fmt: skip
SWITCHES = {
    "auto_configure", "rviz", "viewer", "composed", "use_sim_time", "gui", "move_on_release",
    "respawn",
}  # fmt: skip
LEFT_TO_THE_FILE = {"controller", "update_rate", "real_time_factor"}
PARTS = "arm_dynamics.ros.runtime.launch_parts"
SIMULATORS = {"simulator", "composed", "task_space_composed"}
DESCRIBING = SIMULATORS | {"hardware", "joint_sliders"}
"""Nodes that publish robot_description by default."""
REAL = importlib.util.find_spec("launch_ros") is not None
"""`launch` alone proves nothing: the project's folder of that name is also importable."""


def load(name):
    """Import a launch file as a module."""
    spec = importlib.util.spec_from_file_location(
        f"{name}_launch", ROOT / f"launch/{name}.launch.py"
    )
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


class Action(SimpleNamespace):
    """Any action of the stand-in: stores its kind and its arguments."""

    def __init__(self, *values, **named):
        super().__init__(kind=type(self).__name__, values=values, **{"choices": None} | named)


class LaunchConfiguration:
    def __init__(self, name):
        self.name = name

    def perform(self, context):
        return context[self.name]


@pytest.fixture
def stand_in(monkeypatch, tmp_path):
    """Install the names of the launch packages that the files use; yield the installed packages."""
    installed = set()
    kinds = {
        "launch": ["LaunchDescription"],
        "launch.actions": [
            "DeclareLaunchArgument", "IncludeLaunchDescription", "LogInfo", "OpaqueFunction",
            "Shutdown",
        ],
        "launch.logging": [],
        "launch.substitutions": [],
        "launch_ros": [],
        "launch_ros.actions": ["Node"],
        "launch_ros.parameter_descriptions": ["ParameterValue"],
        "ament_index_python": [],
        "ament_index_python.resources": [],
    }  # fmt: skip
    for name, actions in kinds.items():
        module = ModuleType(name)
        for action in actions:
            setattr(module, action, type(action, (Action,), {}))
        monkeypatch.setitem(sys.modules, name, module)
    sys.modules["launch.logging"].launch_config = SimpleNamespace(log_dir=str(tmp_path))
    sys.modules["launch.substitutions"].LaunchConfiguration = LaunchConfiguration
    resources = sys.modules["ament_index_python.resources"]
    resources.has_resource = lambda kind, name: kind == "packages" and name in installed
    unload_parts()
    yield installed
    unload_parts()


def unload_parts():
    """Unload the modules that imported from another launch package or stand-in."""
    for name in ("launch_parts", "launch_simulation", "launch_controller"):
        sys.modules.pop(f"arm_dynamics.ros.runtime.{name}", None)
        vars(arm_dynamics.ros.runtime).pop(name, None)


def described(name):
    """Return the launch file's module and the actions of its description."""
    module = load(name)
    return module, module.generate_launch_description().values[0]


def started(name, **given):
    """Return all actions and messages of the launch file with these arguments."""
    _, actions = described(name)
    context = {a.values[0]: a.default_value for a in actions if a.kind == "DeclareLaunchArgument"}
    (function,) = (a.function for a in actions if a.kind == "OpaqueFunction")
    return function(context | given)


def nodes(actions):
    return {a.executable: a for a in actions if a.kind == "Node"}


def parameters(node):
    """Return a node's parameters without files; later ones override."""
    return {k: v for given in node.parameters if isinstance(given, dict) for k, v in given.items()}


def test_every_launch_file_is_tested_and_compiles():
    assert {path.name.split(".")[0] for path in FILES} == set(ARGUMENTS)
    for path in FILES:
        assert ast.get_docstring(ast.parse(path.read_text()))


@pytest.mark.parametrize("name", ARGUMENTS)
def test_arguments_have_descriptions_defaults_and_choices(name, stand_in):
    _, actions = described(name)
    arguments = {a.values[0]: a for a in actions if a.kind == "DeclareLaunchArgument"}
    assert set(arguments) == ARGUMENTS[name]
    for argument, action in arguments.items():
        assert len(action.description) > 5
        choices = ["true", "false"] if argument in SWITCHES else action.choices
        if argument in LEFT_TO_THE_FILE:
            assert action.default_value == ""
            assert "parameter file" in action.description
        assert action.choices == choices
        assert choices is None or action.default_value in choices


def test_every_controller_can_be_selected(stand_in):
    _, actions = described("simulation")
    (controller,) = (a for a in actions if a.values and a.values[0] == "controller")
    controllers = {
        name: plugins.load_class("controllers", name)
        for name in plugins.registered_names("controllers")
    }
    assert controller.choices == [
        "",
        *(n for n, one in controllers.items() if not issubclass(one, TaskSpaceController)),
    ]
    (lockstep,) = (a for a in actions if a.values and a.values[0] == "lockstep")
    assert lockstep.choices == ["", "true", "false"]


def test_task_space_controllers_can_be_selected(stand_in):
    _, actions = described("task_space")
    (controller,) = (a for a in actions if a.values and a.values[0] == "controller")
    assert controller.choices == [
        "",
        *(
            name
            for name in plugins.registered_names("controllers")
            if issubclass(plugins.load_class("controllers", name), TaskSpaceController)
        ),
    ]
    found = nodes(started("task_space", controller="impedance", arm="puma560"))
    assert set(found) == {"simulator", "task_space_controller"} <= EXECUTABLES
    assert parameters(found["task_space_controller"])["controller"] == "impedance"
    assert {parameters(node)["arm"] for node in found.values()} == {"puma560"}
    assert "controller" not in parameters(nodes(started("task_space"))["task_space_controller"])
    with pytest.raises(ConfigError, match=r"/no/such\.yaml"):
        started("task_space", params_file="/no/such.yaml")


def includes(actions):
    return [a for a in actions if a.kind == "IncludeLaunchDescription"]


@pytest.mark.parametrize("name", ["simulation", "display", "task_space", "hardware"])
def test_included_launch_files_exist(name, stand_in):
    _, actions = described(name)
    (included,) = includes([*actions, *started(name)])
    assert Path(included.values[0]) in FILES


@pytest.mark.parametrize("name", ["display", "hardware"])
def test_the_clock_of_the_view_is_fixed_and_hidden_without_a_simulation(name, stand_in):
    """`--show-args` lists the arguments of a file included in the description itself."""
    _, actions = described(name)
    assert not includes(actions)
    (view,) = includes(started(name, use_sim_time="true"))
    assert dict(view.launch_arguments) == {"use_sim_time": "false"}


@pytest.mark.parametrize("name", ARGUMENTS)
def test_an_invalid_frame_prefix_ends_the_launch(name, stand_in):
    for prefix in ("a b", "/left", "left\n", "größe/"):
        with pytest.raises(ArmDynamicsError, match=r"^frame_prefix = .*; expected") as error:
            started(name, frame_prefix=prefix)
        assert "\n" not in str(error.value)
    started(name, frame_prefix="left_arm-2.b/")


@pytest.mark.parametrize("name", ARGUMENTS)
def test_invalid_arguments_of_rviz_end_the_launch_before_a_node_starts(name, stand_in):
    """Launch does not stop a node that has just started when an included file fails."""
    for given in ({"rviz_config": "/no/such.rviz"}, {"frame_prefix": "left_"}):
        with pytest.raises(ArmDynamicsError, match=r"^(rviz_config|frame_prefix) = .*; expected"):
            started(name, **given)
        started(name, rviz="false", **given)


@pytest.mark.parametrize("viewer", ["true", "false"])
@pytest.mark.parametrize("composed", ["true", "false"])
@pytest.mark.parametrize(
    ("name", "controller", "both"),
    [
        ("simulation", "joint_controller", "composed"),
        ("task_space", "task_space_controller", "task_space_composed"),
    ],
)
def test_executables_exist(stand_in, viewer, composed, name, controller, both):
    found = nodes(started(name, viewer=viewer, composed=composed))
    expected = {both} if composed == "true" else {"simulator", controller}
    assert set(found) == expected | ({"viewer"} if viewer == "true" else set())
    assert set(found) <= EXECUTABLES
    assert {node.package for node in found.values()} == {"arm_dynamics"}


@pytest.mark.parametrize("composed", ["true", "false"])
@pytest.mark.parametrize("simulated", ["true", "false"])
def test_nodes_use_the_stamps_of_states_instead_of_the_clock(stand_in, composed, simulated):
    found = nodes(started("simulation", use_sim_time=simulated, composed=composed, viewer="true"))
    source = parameters(found["composed" if composed == "true" else "simulator"])
    assert source["use_sim_time"] is False
    assert source["publish_clock"] is (simulated == "true")
    for follower in found.keys() - {"simulator", "composed"}:
        assert "use_sim_time" not in parameters(found[follower])


def test_the_driver_argument_selects_the_arm(stand_in):
    """One argument selects simulation or hardware; torque is disabled at the start."""
    found = nodes(started("hardware", port="/dev/ttyUSB0", update_rate="200", viewer="true"))
    assert set(found) == {"hardware", "joint_controller", "viewer"} <= EXECUTABLES
    hardware = parameters(found["hardware"])
    assert hardware == {
        "arm": "five_dof", "port": "/dev/ttyUSB0", "update_rate": 200.0, "auto_configure": False
    }  # fmt: skip
    assert parameters(found["viewer"])["port"] == 8080
    assert parameters(nodes(started("hardware", controller="position"))["hardware"]) == {
        "arm": "five_dof", "auto_configure": False, "command_interface": "position"
    }  # fmt: skip
    found = nodes(started("hardware", driver="simulated", controller="none"))
    assert set(found) == {"simulator"}
    assert parameters(found["simulator"])["publish_clock"] is False
    for driver in ("", "simulated"):
        with pytest.raises(ConfigError, match=r"^update_rate = 'fast'"):
            started("hardware", driver=driver, update_rate="fast")


def test_an_excitation_is_run_and_recorded(stand_in, tmp_path):
    arm, file = load_arm("two_link"), tmp_path / "excite.yaml"
    excite(arm, 4.0, evaluations=20).save(file)
    given = {"arm": "two_link", "record": "run1", "excitation": str(file)}
    found = nodes(started("hardware", **given))
    assert set(found) == {"hardware", "joint_controller", "excitation"} <= EXECUTABLES
    assert parameters(found["excitation"]) == {"arm": "two_link", "file": str(file)}
    assert parameters(found["hardware"])["recording_path"] == "run1"
    found = nodes(started("hardware", driver="simulated", **given))
    assert parameters(found["excitation"])["wait_for_activation"] is False
    assert parameters(found["simulator"])["recording_path"] == "run1"
    for name in ("hardware", "joint_controller"):
        assert "recording_path" not in parameters(nodes(started("hardware"))[name])
    with pytest.raises(ConfigError, match="controller = none; expected a controller"):
        started("hardware", controller="none", **given)
    with pytest.raises(ArmDynamicsError, match="joints"):
        started("hardware", arm="five_dof", excitation=str(file))


@pytest.mark.parametrize(
    ("name", "given"),
    [("simulation", {}), ("task_space", {"composed": "true"}), ("hardware", {}),
     ("hardware", {"driver": "simulated"})],
)  # fmt: skip
def test_the_scene_reaches_the_arm_its_controller_and_the_page(stand_in, tmp_path, name, given):
    given = {"viewer": "true", **given}
    shown = [
        parameters(node).get("scene")
        for node in nodes(started(name, scene="table", **given)).values()
        if node.package == "arm_dynamics" and node.executable not in {"excitation", "rviz_controls"}
    ]
    assert shown == ["table"] * (2 if given.get("composed") else 3)
    assert all("scene" not in parameters(node) for node in nodes(started(name, **given)).values())
    file = tmp_path / "cell.yaml"
    file.write_text("objects: {a: {shape: box}}")
    with pytest.raises(ConfigError, match="size of the box is missing"):
        started(name, scene=str(file), **given)
    with pytest.raises(UnknownName, match="did you mean 'table'"):
        started(name, scene="tabel", **given)


def controller_of(actions):
    """Return the controller argument, None for the parameter file's, and all log messages."""
    controller = parameters(nodes(actions)["joint_controller"]).get("controller")
    return controller, "".join(a.msg for a in actions if a.kind == "LogInfo")


def bundled(arm, node):
    return node_parameters(ROOT / f"config/{arm}.yaml", node)


@pytest.mark.parametrize(
    ("given", "controller", "words"),
    [
        ({}, "position", "interface of pid_gravity = effort; the motors accept position"),
        ({"command_interface": "position"}, "position", "using controller position"),
        ({"command_interface": "effort"}, None, ""),
        ({"controller": "position"}, "position", ""),
        ({"controller": "computed_torque"}, "computed_torque", ""),
        ({"driver": "simulated"}, None, ""),
        ({"driver": "simulated", "command_interface": "position"}, None, ""),
        ({"driver": "simulated", "controller": "pid"}, "pid", ""),
        (
            {"driver": "simulated", "controller": "position"},
            "pid_gravity",
            "interface of position = position; the simulated arm accepts effort, voltage",
        ),
    ],
)
def test_the_controller_matches_the_interface_of_the_arm(stand_in, given, controller, words):
    """The SO-101: its motors accept positions, the simulated arm and the parameter file do not."""
    assert bundled("so101", "hardware")["command_interface"] == "position"
    assert bundled("so101", "joint_controller")["controller"] == "pid_gravity"
    found, text = controller_of(started("hardware", arm="so101", **given))
    assert found == controller
    assert words in text
    assert bool(words) == bool(text)


@pytest.mark.parametrize("driver", ["", "simulated"])
@pytest.mark.parametrize("arm", sorted(path.stem for path in ROOT.glob("config/*.yaml")))
def test_every_arm_with_a_parameter_file_gets_a_matching_controller(stand_in, arm, driver):
    found, _ = controller_of(started("hardware", arm=arm, driver=driver))
    controller = plugins.load_class(
        "controllers", found or bundled(arm, "joint_controller")["controller"]
    )
    motors = [(bundled(arm, "hardware").get("command_interface", "effort"),)]
    simulated = [actuator.interfaces for actuator in load_arm(arm).actuators]
    takes = simulated if driver else motors
    assert all(controller.interface in (*one, MIXED) for one in takes)


def test_the_controller_of_the_users_parameter_file_counts(stand_in, tmp_path):
    """It replaces a controller that does not match the interface of the simulated arm."""
    file = tmp_path / "mine.yaml"
    section = {"ros__parameters": {"controller": "computed_torque"}}
    file.write_text(yaml.safe_dump({"joint_controller": section}))
    given = {"params_file": str(file), "arm": "so101"}
    assert controller_of(started("hardware", **given)) == (None, "")
    found, text = controller_of(
        started("hardware", driver="simulated", controller="position", **given)
    )
    assert found == "computed_torque"
    assert text.endswith("using controller computed_torque")


def test_arguments_reach_the_nodes(stand_in, tmp_path):
    file = tmp_path / "mine.yaml"
    file.touch()
    found = nodes(
        started("simulation", controller="pid", rate="250", lockstep="true", params_file=str(file))
    )
    simulator, controller = found["simulator"], found["joint_controller"]
    assert simulator.parameters[0] == controller.parameters[0] == str(file)
    assert parameters(simulator)["update_rate"] == 250.0
    assert isinstance(parameters(simulator)["update_rate"], float)
    assert parameters(simulator)["lockstep"] is True
    assert parameters(controller)["controller"] == "pid"


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("simulation", {"viewer": "true"}),
        ("simulation", {"composed": "true"}),
        ("hardware", {"viewer": "true"}),
        ("hardware", {"driver": "simulated"}),
        ("display", {}),
        ("task_space", {}),
        ("view", {}),
    ],
)
def test_locked_joints_and_tool_frame_reach_every_node_of_the_arm(stand_in, name, given):
    """Without its wrist; the included view.launch.py has the same arguments."""
    tool = {"tool_frame": "J4_link"}
    found = nodes(started(name, arm="puma560", lock="J5,J6", **tool, **given))
    of_the_arm = [node for node in found.values() if node.package == "arm_dynamics"]
    assert all(parameters(node)["lock"] == ["J5", "J6"] for node in of_the_arm)
    assert all(parameters(node)["tool_frame"] == "J4_link" for node in of_the_arm)
    if name != "display":
        with pytest.raises(ArmDynamicsError, match="J9"):
            started(name, arm="puma560", lock="J9", **given)
        with pytest.raises(UnknownName, match="unknown tool frame 'wrist'"):
            started(name, arm="puma560", tool_frame="wrist", **given)


@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("simulation", {"viewer": "true"}),
        ("task_space", {"composed": "true"}),
        ("hardware", {"viewer": "true"}),
        ("hardware", {"driver": "simulated"}),
        ("display", {}),
        ("display", {"gui": "true"}),
        ("view", {}),
    ],
)
def test_several_arms_have_separate_namespaces_and_frames(stand_in, name, given):
    stand_in |= {"robot_state_publisher", "rviz2", "joint_state_publisher_gui"}
    options = {"namespace": "left", "frame_prefix": "left/", "log_level": "debug", **given}
    for executable, node in nodes(started(name, **options)).items():
        assert node.namespace == "left", executable
        if executable == "rviz2":
            shown = yaml.safe_load(Path(node.arguments[1]).read_text())["Visualization Manager"]
            assert shown["Global Options"]["Fixed Frame"] == "left/base_link"
        elif executable != "joint_state_publisher_gui":
            assert parameters(node)["frame_prefix"] == "left/", executable
        if executable in EXECUTABLES:
            assert node.ros_arguments == ["--log-level", "debug"]
    assert not any("frame_prefix" in parameters(n) for n in nodes(started("simulation")).values())


@pytest.mark.parametrize("name", ["simulation", "task_space"])
@pytest.mark.parametrize("composed", ["true", "false"])
def test_one_arm_is_the_source_of_the_clock_and_the_others_follow(stand_in, name, composed):
    def simulator(**given):
        found = nodes(started(name, composed=composed, **given))
        return parameters(next(n for e, n in found.items() if e in SIMULATORS))

    assert simulator()["publish_clock"] is True
    second = simulator(publish_clock="false")
    assert (second["publish_clock"], second["use_sim_time"]) == (False, True)
    assert second["lockstep"] is True
    assert simulator(real_time_factor="5")["real_time_factor"] == 5.0
    for words, given in (
        ("expected true with publish_clock", {"publish_clock": "true", "use_sim_time": "false"}),
        ("real_time_factor", {"publish_clock": "false", "real_time_factor": "5"}),
    ):
        with pytest.raises(ConfigError, match=words):
            simulator(**given)


@pytest.mark.parametrize("name", ["simulation", "hardware", "task_space"])
def test_without_a_locked_joint_the_nodes_have_no_such_parameter(stand_in, name):
    assert not any("lock" in parameters(node) for node in nodes(started(name)).values())


@pytest.mark.parametrize("composed", ["true", "false"])
def test_omitted_arguments_leave_the_parameter_file_unchanged(stand_in, composed):
    for node in nodes(started("simulation", composed=composed)).values():
        passed = [given for given in node.parameters if isinstance(given, dict)]
        assert all(given["arm"] == "five_dof" for given in passed)
        assert not LEFT_TO_THE_FILE & {name for given in passed for name in given}


def test_lockstep_is_the_default_in_simulated_time_unless_the_file_disables_it(stand_in, tmp_path):
    file = tmp_path / "late.yaml"
    file.write_text("simulator:\n  ros__parameters: {lockstep: false}\n")
    for given, expected in (
        ({}, True),
        ({"use_sim_time": "false"}, False),
        ({"params_file": str(file)}, False),
        ({"params_file": str(file), "lockstep": "true"}, True),
    ):
        found = nodes(started("simulation", **given))
        assert parameters(found["simulator"])["lockstep"] is expected
    found = nodes(started("task_space"))
    assert parameters(found["simulator"])["lockstep"] is True


def test_an_arm_without_parameter_file_gets_computed_torque(stand_in, tmp_path):
    urdf = tmp_path / "mine.urdf"
    urdf.write_text((ROOT / "urdf/five_dof.urdf").read_text())
    found = nodes(started("simulation", arm=str(urdf)))
    assert parameters(found["joint_controller"])["controller"] == "computed_torque"


def test_a_switch_of_the_parameter_file_can_be_overridden(stand_in):
    found = nodes(started("simulation", lockstep="false"))
    assert parameters(found["simulator"])["lockstep"] is False


def test_the_arms_own_parameters_are_the_default(stand_in):
    found = nodes(started("simulation"))
    file = Path(found["joint_controller"].parameters[0])
    assert "joint_controller" in yaml.safe_load(file.read_text())


def test_an_arm_without_parameter_file_gets_no_parameters(stand_in, tmp_path):
    urdf = tmp_path / "mine.urdf"
    urdf.write_text((ROOT / "urdf/five_dof.urdf").read_text())
    found = nodes(started("simulation", arm=str(urdf)))
    assert all(isinstance(given, dict) for given in found["joint_controller"].parameters)


@pytest.mark.parametrize(
    ("given", "error", "words"),
    [
        ({"arm": "six_dof"}, UnknownName, "six_dof"),
        (
            {"params_file": "/no/such.yaml"},
            ConfigError,
            "params_file = /no/such.yaml; expected an existing file",
        ),
        ({"rate": "-5"}, ConfigError, "rate = '-5'"),
        ({"rate": "fast"}, ConfigError, "rate = 'fast'"),
        ({"viewer_port": "x", "viewer": "true"}, ConfigError, "viewer_port = 'x'"),
        ({"lockstep": "true", "use_sim_time": "false"}, ConfigError, "lockstep"),
    ],
)
def test_invalid_node_parameters_end_the_launch(stand_in, given, error, words):
    with pytest.raises(error, match=re.escape(words)):
        started("simulation", **given)


@pytest.mark.parametrize(
    ("name", "word", "similar"),
    [
        ("simulation", "contoller:=pid", "controller"),
        ("hardware", "drivr:=simulated", "driver"),
        ("hardware", "recrod:=run1", "record"),
    ],
)
def test_misspelled_arguments_end_the_launch(stand_in, monkeypatch, name, word, similar):
    """``ros2 launch`` ignores them: the physical arm would move instead of the simulated one."""
    monkeypatch.setattr(sys, "argv", ["ros2", "launch", "arm_dynamics", f"{name}.launch.py", word])
    text = f"launch argument '{word.partition(':')[0]}'; did you mean '{similar}'?"
    with pytest.raises(ConfigError, match=re.escape(text)):
        started(name)
    monkeypatch.setattr(sys, "argv", ["ros2", "launch", "mine", "mine.launch.py", word])
    started(name)


@pytest.mark.parametrize("name", list(ARGUMENTS))
def test_declared_arguments_are_not_misspelled(stand_in, monkeypatch, name):
    """Those of a launch file and of the files that include it."""
    every = {argument for own in ARGUMENTS.values() for argument in own}
    words = ["ros2", "launch", "arm_dynamics", *(f"{argument}:=x" for argument in every)]
    monkeypatch.setattr(sys, "argv", words)
    started(name)


def test_the_end_of_the_simulator_ends_the_launch(stand_in):
    ended = nodes(started("simulation"))["simulator"].on_exit
    going, stopping = SimpleNamespace(is_shutdown=False), SimpleNamespace(is_shutdown=True)
    event = SimpleNamespace(returncode=2, process_name="simulator-1")
    with pytest.raises(RuntimeError, match="simulator-1 ended with code 2"):
        ended(event, going)
    assert ended(event, stopping) is None
    event.returncode = 0
    assert ended(event, going).kind == "Shutdown"


def test_respawn_starts_nodes_again_except_a_finished_excitation(stand_in, tmp_path):
    file = tmp_path / "excite.yaml"
    excite(load_arm("two_link"), 4.0, evaluations=20).save(file)
    given = {"arm": "two_link", "excitation": str(file), "viewer": "true"}
    found = nodes(started("hardware", respawn="true", **given))
    respawned = {name: node.respawn for name, node in found.items()}
    excitation = respawned.pop("excitation")
    assert not excitation
    assert set(respawned) == {"hardware", "joint_controller", "viewer"}
    assert all(respawned.values())
    assert not hasattr(found["hardware"], "on_exit"), "its end would end the launch"
    for node in nodes(started("simulation")).values():
        assert not hasattr(node, "respawn")
    assert nodes(started("simulation", respawn="true"))["simulator"].respawn


def test_nodes_do_not_repeat_the_warnings_of_the_arm(stand_in, monkeypatch):
    monkeypatch.setenv("PYTHONWARNINGS", "error")
    filters = "error,ignore::RuntimeWarning:arm_dynamics.ros.parameters.arm_parameters"
    for name in ("simulation", "hardware", "display", "task_space"):
        own = [n for n in nodes(started(name)).values() if n.package == "arm_dynamics"]
        assert own
        assert all(node.additional_env == {"PYTHONWARNINGS": filters} for node in own), name


@pytest.mark.parametrize("rviz", ["true", "false"])
def test_view_starts_installed_programs(stand_in, rviz):
    stand_in |= {"robot_state_publisher", "rviz2"}
    found = nodes(started("view", rviz=rviz, use_sim_time="true"))
    publisher = parameters(found["robot_state_publisher"])
    description = publisher["robot_description"]
    assert description.values[0] == (ROOT / "urdf/five_dof.urdf").read_text(encoding="utf-8")
    assert description.value_type is str
    assert publisher["use_sim_time"] is True
    assert ("rviz2" in found) is (rviz == "true")
    assert ("rviz_controls" in found) is (rviz == "true")


def test_rviz_is_configured_for_the_arm_or_by_the_given_file(stand_in, tmp_path):
    stand_in |= {"rviz2"}
    files = []
    for arm in ("five_dof", "five_dof", "so101"):
        option, file = nodes(started("view", arm=arm))["rviz2"].arguments
        assert option == "-d"
        assert Path(file).parent == tmp_path  # the log folder
        files.append(Path(file))
    assert len(set(files)) == 3
    assert files[0].read_text() == files[1].read_text() != files[2].read_text()
    own = tmp_path / "my.rviz"
    with pytest.raises(ConfigError, match=r"my\.rviz; expected an existing file"):
        started("view", rviz_config=str(own))
    own.touch()
    found = nodes(started("view", rviz_config=str(own)))
    assert found["rviz2"].arguments == ["-d", str(own)]
    with pytest.raises(ArmDynamicsError, match="such as 'left/'"):
        started("view", frame_prefix="left_")


def test_dragging_in_rviz_moves_the_arm_immediately_only_in_simulation(stand_in):
    """hardware.launch.py passes its argument to view.launch.py under the same name."""
    for name, moves in (("view", "true"), ("hardware", "false")):
        _, actions = described(name)
        (argument,) = (a for a in actions if a.values and a.values[0] == "move_on_release")
        assert argument.default_value == moves
    stand_in |= {"rviz2"}
    controls = nodes(started("view", move_on_release="false", lock="R5"))["rviz_controls"]
    assert parameters(controls) == {"arm": "five_dof", "lock": ["R5"], "move_on_release": False}


@pytest.mark.parametrize("installed", [True, False])
@pytest.mark.parametrize(
    ("name", "given"),
    [
        ("simulation", {}), ("simulation", {"composed": "true"}), ("task_space", {}),
        ("hardware", {}), ("hardware", {"driver": "simulated"}), ("display", {}),
    ],
)  # fmt: skip
def test_one_node_publishes_the_description(stand_in, name, given, installed):
    stand_in |= {"robot_state_publisher"} if installed else set()
    own = [n for n in nodes(started(name, **given)).values() if n.package == "arm_dynamics"]
    publishing = [n for n in own if n.executable in DESCRIBING]
    assert len(publishing) == 1
    for node in own:
        expected = parameters(node).get("publish_robot_description", True)
        assert expected is (not installed or node not in publishing)
    assert ("robot_state_publisher" in nodes(started("view"))) is installed


def test_view_names_missing_programs_and_the_remedy(stand_in, monkeypatch):
    monkeypatch.setenv("ROS_DISTRO", "jazzy")
    text = started("view")
    assert [a.kind for a in text] == ["LogInfo", "LogInfo"]
    assert "apt install ros-jazzy-robot-state-publisher" in text[0].msg
    assert "apt install ros-jazzy-rviz2" in text[1].msg


@pytest.mark.parametrize(("name", "viewer"), [("display", {}), ("simulation", {"viewer": "true"})])
def test_a_missing_viser_is_reported(name, viewer, stand_in, monkeypatch):
    parts = importlib.import_module(PARTS)
    monkeypatch.setattr(parts, "find_spec", lambda name: None)
    (message,) = (a.msg for a in started(name, **viewer) if a.kind == "LogInfo")
    assert "-m pip install 'viser>=" in message


def test_a_viewer_without_a_port_ends_the_launch(stand_in):
    with pytest.raises(ConfigError, match="viewer_port = 'x'"):
        started("display", viewer_port="x")


@pytest.mark.parametrize("installed", [True, False])
def test_display_has_sliders_with_and_without_gui(stand_in, installed):
    gui = "joint_state_publisher_gui"
    if installed:
        stand_in.add(gui)
    assert list(nodes(started("display"))) == ["joint_sliders"]
    actions = started("display", gui="true")
    assert list(nodes(actions)) == ([gui] if installed else ["joint_sliders"])
    assert any(a.kind == "LogInfo" and gui in a.msg for a in actions) is not installed
    assert "joint_sliders" in EXECUTABLES


def real_arguments():
    """Return name → (description, default) of each file, from the launch package itself."""
    from launch import LaunchContext
    from launch.launch_description_sources import PythonLaunchDescriptionSource

    for path in FILES:
        description = PythonLaunchDescriptionSource(str(path)).get_launch_description(
            LaunchContext()
        )
        yield path.name.split(".")[0], description.get_launch_arguments()


@pytest.mark.skipif(not REAL, reason="the launch package is not installed (it comes with ROS 2)")
def test_the_launch_package_reads_every_file():
    for name, arguments in real_arguments():
        names = {argument.name for argument in arguments}
        assert ARGUMENTS[name] <= names
        assert ("use_sim_time" in names) is ("use_sim_time" in ARGUMENTS[name])
        assert all(argument.description for argument in arguments)

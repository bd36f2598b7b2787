"""Plugins: loaded by name, broken ones raise their own error, built-ins are never replaced."""

import sys
import warnings
from importlib.metadata import EntryPoint

import pytest
from conftest import five_dof

from arm_dynamics.control.config import build_controller
from arm_dynamics.core import plugins
from arm_dynamics.core.errors import ArmDynamicsError, UnknownName
from arm_dynamics.hardware.build import build_driver
from arm_dynamics.simulation.actuators.ideal import Ideal


@pytest.fixture
def installed(monkeypatch):
    """Return a function that simulates installed entry points."""

    def install(**targets):
        def entry_points(group):
            return [EntryPoint(name, target, group) for name, target in targets.items()]

        monkeypatch.setattr(plugins, "entry_points", entry_points)
        plugins._installed.cache_clear()

    yield install
    plugins._installed.cache_clear()


def test_names_of_the_built_ins():
    assert plugins.load_class("actuators", "ideal") is Ideal
    assert plugins.registered_names("actuators")[:2] == ("ideal", "dc_motor")
    assert set(plugins.registered_names("controllers")) >= {
        "pid",
        "gravity_compensation",
        "pid_gravity",
    }
    assert set(plugins.registered_names("drivers")) >= {"simulated", "topic"}


def test_an_installed_plugin_is_found(installed):
    installed(mine="arm_dynamics.simulation.actuators.ideal:Ideal")
    assert plugins.registered_names("actuators")[-1] == "mine"
    assert plugins.load_class("actuators", "mine") is Ideal


@pytest.mark.parametrize("target", ["no_such_module:Thing", "arm_dynamics.core.errors:NoSuchThing"])
def test_a_broken_plugin_fails_only_by_its_name(installed, target):
    installed(broken=target, sound="arm_dynamics.simulation.actuators.ideal:Ideal")
    assert "broken" in plugins.registered_names("actuators")
    assert plugins.load_class("actuators", "sound") is Ideal
    assert plugins.load_class("actuators", "ideal") is Ideal
    with pytest.raises(
        plugins.PluginError, match=rf"actuators plugin 'broken' \({target}\) failed"
    ):
        plugins.load_class("actuators", "broken")


def test_a_plugin_that_raises_during_its_import(installed, tmp_path, monkeypatch):
    (tmp_path / "exploding_plugin.py").write_text("raise RuntimeError('no license')")
    monkeypatch.syspath_prepend(tmp_path)
    installed(exploding="exploding_plugin:Thing")
    with pytest.raises(plugins.PluginError, match=r"'exploding'.*no license"):
        plugins.load_class("controllers", "exploding")


ENDING = {
    "leaves": "raise SystemExit(3)",
    "quits": "raise SystemExit",
    "interrupts": "raise KeyboardInterrupt",
    "closes": "raise GeneratorExit('over')",
    "own": "class Odd(BaseException): pass\nraise Odd('nothing\\n\\nto see')",
    "exits": "import sys; sys.exit('good bye')",
    "recurses": "def f(): f()\nf()",
}


@pytest.mark.parametrize("name", ENDING)
@pytest.mark.parametrize("kind", ["actuators", "controllers", "drivers"])
def test_a_plugin_cannot_end_the_program_by_its_import(
    installed, tmp_path, monkeypatch, name, kind
):
    (tmp_path / f"{name}_plugin.py").write_text(ENDING[name])
    monkeypatch.syspath_prepend(tmp_path)
    installed(**{name: f"{name}_plugin:Thing"})
    with pytest.raises(plugins.PluginError) as raised:
        plugins.load_class(kind, name)
    text = str(raised.value)
    assert text.startswith(f"{kind} plugin '{name}' ({name}_plugin:Thing) failed: ")
    assert len(text.splitlines()) == 1
    assert plugins.load_class("actuators", "ideal") is Ideal
    with pytest.warns(RuntimeWarning, match=f"'{name}'"):
        assert set(plugins.loadable_classes("actuators")) == {"ideal", "dc_motor", "rate_limited"}


WRONG = """
from arm_dynamics.simulation.actuators.actuator import Actuator
from arm_dynamics.simulation.actuators.ideal import Ideal
from arm_dynamics.control.controllers.pid import Pid
number, text, nothing = 3, "x" * 999, None
def function(*given): return Ideal(*given)
class Plain: pass
class Lacking(Actuator): interfaces = ("effort",)
class Odd(Ideal): parameters = ["p"]
class Mute(Ideal): interfaces = ()
made = Ideal("J", 1.0, {})
"""


@pytest.mark.parametrize(
    ("what", "text"),
    [
        ("number", "object = 3; expected a subclass of Actuator"),
        ("text", "expected a subclass of Actuator"),
        ("nothing", "object = None; expected a subclass of Actuator"),
        ("function", "object = <function .*; expected a subclass of Actuator"),
        ("made", "expected a subclass of Actuator"),
        ("Plain", "class = Plain; expected a subclass of Actuator"),
        ("Pid", "class = Pid; expected a subclass of Actuator"),
        ("Actuator", "class = Actuator; expected the methods "),
        ("Lacking", "class = Lacking; expected the methods "),
        ("Odd", "parameters = .*; expected a tuple of Parameter"),
        ("Mute", r"interfaces = \(\); expected a tuple of names in class Mute"),
    ],
)
def test_a_plugin_of_the_wrong_type_is_rejected(installed, tmp_path, monkeypatch, what, text):
    (tmp_path / "wrong_plugin.py").write_text(WRONG)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "wrong_plugin", raising=False)
    installed(mine=f"wrong_plugin:{what}")
    with pytest.raises(plugins.PluginError, match=text) as raised:
        plugins.load_class("actuators", "mine")
    assert str(raised.value).startswith(f"actuators plugin 'mine' (wrong_plugin:{what})")
    assert len(str(raised.value)) < 200


@pytest.mark.parametrize("kind", ["controllers", "drivers"])
def test_a_class_of_another_kind_is_rejected(installed, kind):
    installed(mine="arm_dynamics.simulation.actuators.ideal:Ideal")
    with pytest.raises(plugins.PluginError, match="class = Ideal; expected a subclass of"):
        plugins.load_class(kind, "mine")


BREAKING = """
import sys
from arm_dynamics.simulation.actuators.ideal import Ideal
from arm_dynamics.control.controllers.pid import Pid
from arm_dynamics.hardware.simulation_driver import SimulationDriver
class Motor(Ideal):
    def __init__(self, *given): sys.exit("no license")
class Broken(Pid):
    def __init__(self, *given): raise KeyboardInterrupt
class Port(SimulationDriver):
    def __init__(self, *given): raise ValueError("no\\nport")
"""


def test_a_plugin_cannot_end_the_program_by_its_constructor(installed, tmp_path, monkeypatch):
    (tmp_path / "breaking_plugin.py").write_text(BREAKING)
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.delitem(sys.modules, "breaking_plugin", raising=False)
    installed(
        motor="breaking_plugin:Motor", broken="breaking_plugin:Broken", port="breaking_plugin:Port"
    )
    for build, text in (
        (lambda: five_dof().with_actuator("motor"), r"'motor' .*failed: SystemExit: no license"),
        (lambda: build_controller(five_dof(), "broken"), r"'broken' .*failed: KeyboardInterrupt"),
        (lambda: build_driver(five_dof(), "port"), r"'port' .*failed: ValueError: no port"),
    ):
        with pytest.raises(plugins.PluginError, match=text):
            build()
    assert build_controller(five_dof(), "pid").interface == "effort"


def test_a_missing_library_of_a_built_in_is_named(monkeypatch):
    monkeypatch.setitem(sys.modules, "rclpy", None)
    for name in [n for n in sys.modules if n.startswith(("arm_dynamics.ros", "rclpy."))]:
        monkeypatch.delitem(sys.modules, name)
    with pytest.raises(plugins.PluginError, match=r"'topic' .*topic_driver.*rclpy"):
        plugins.load_class("drivers", "topic")


def test_an_entry_point_with_the_name_of_a_built_in_is_ignored_with_a_warning(installed):
    installed(ideal="no_such_module:Thing")
    with pytest.warns(
        RuntimeWarning, match=r"'ideal' \(no_such_module:Thing\) ignored: registered twice"
    ):
        assert plugins.registered_names("actuators").count("ideal") == 1
    assert plugins.load_class("actuators", "ideal") is Ideal


def test_unknown_names_list_the_existing_ones(installed):
    installed(mine="arm_dynamics.simulation.actuators.ideal:Ideal")
    with pytest.raises(UnknownName, match="unknown actuator 'x'; known: dc_motor, ideal, mine"):
        plugins.load_class("actuators", "x")
    with pytest.raises(ArmDynamicsError, match="unknown driver 'x'"):
        plugins.load_class("drivers", "x")


def test_built_ins_are_loaded_without_reading_entry_points(monkeypatch):
    def entry_points(group):
        raise AssertionError(group)

    monkeypatch.setattr(plugins, "entry_points", entry_points)
    plugins._installed.cache_clear()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert plugins.load_class("actuators", "ideal") is Ideal

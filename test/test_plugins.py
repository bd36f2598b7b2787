"""Plugins: found by name, broken ones alone with their fault, built-ins never replaced."""

import sys
import warnings
from importlib.metadata import EntryPoint

import pytest

from arm_dynamics import plugins
from arm_dynamics.actuators.ideal import Ideal
from arm_dynamics.errors import ArmDynamicsError, UnknownName


@pytest.fixture
def installed(monkeypatch):
    """Pretend that entry points are installed."""

    def install(**targets):
        def entry_points(group):
            return [EntryPoint(name, target, group) for name, target in targets.items()]

        monkeypatch.setattr(plugins, "entry_points", entry_points)
        plugins._installed.cache_clear()

    yield install
    plugins._installed.cache_clear()


def test_built_ins():
    assert plugins.load("actuators", "ideal") is Ideal
    assert plugins.names("actuators")[:2] == ("ideal", "dc_motor")
    assert set(plugins.names("controllers")) >= {"pid", "gravity_compensation", "pid_gravity"}
    assert set(plugins.names("drivers")) >= {"simulated", "topic"}


def test_an_installed_plugin_is_found(installed):
    installed(mine="arm_dynamics.actuators.ideal:Ideal")
    assert plugins.names("actuators")[-1] == "mine"
    assert plugins.load("actuators", "mine") is Ideal


@pytest.mark.parametrize("target", ["no_such_module:Thing", "arm_dynamics.errors:NoSuchThing"])
def test_a_broken_plugin_fails_for_its_own_name(installed, target):
    installed(broken=target, sound="arm_dynamics.actuators.ideal:Ideal")
    assert "broken" in plugins.names("actuators")
    assert plugins.load("actuators", "sound") is Ideal
    assert plugins.load("actuators", "ideal") is Ideal
    with pytest.raises(
        plugins.PluginError, match=rf"actuators plugin 'broken' \({target}\) failed"
    ):
        plugins.load("actuators", "broken")


def test_a_plugin_that_raises_while_it_is_imported(installed, tmp_path, monkeypatch):
    (tmp_path / "exploding_plugin.py").write_text("raise RuntimeError('no licence')")
    monkeypatch.syspath_prepend(tmp_path)
    installed(exploding="exploding_plugin:Thing")
    with pytest.raises(plugins.PluginError, match=r"'exploding'.*no licence"):
        plugins.load("controllers", "exploding")


def test_a_built_in_without_its_library_says_so(monkeypatch):
    monkeypatch.setitem(sys.modules, "rclpy", None)
    for name in [n for n in sys.modules if n.startswith(("arm_dynamics.ros", "rclpy."))]:
        monkeypatch.delitem(sys.modules, name)
    with pytest.raises(plugins.PluginError, match=r"'topic' .*topic_driver.*rclpy"):
        plugins.load("drivers", "topic")


def test_a_taken_name_is_ignored_and_said(installed):
    installed(ideal="no_such_module:Thing")
    with pytest.warns(RuntimeWarning, match=r"'ideal' \(no_such_module:Thing\) ignored: .* taken"):
        assert plugins.names("actuators").count("ideal") == 1
    assert plugins.load("actuators", "ideal") is Ideal


def test_unknown_names_list_what_exists(installed):
    installed(mine="arm_dynamics.actuators.ideal:Ideal")
    with pytest.raises(UnknownName, match="unknown actuator 'x'; known: dc_motor, ideal, mine"):
        plugins.load("actuators", "x")
    with pytest.raises(ArmDynamicsError, match="unknown driver 'x'"):
        plugins.load("drivers", "x")


def test_built_ins_are_loaded_without_looking_further(monkeypatch):
    def entry_points(group):
        raise AssertionError(group)

    monkeypatch.setattr(plugins, "entry_points", entry_points)
    plugins._installed.cache_clear()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert plugins.load("actuators", "ideal") is Ideal

"""The control law as parameters: which one, its gains, the model it reckons with."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from rclpy.node import Node
from rclpy.parameter import Parameter as RosParameter

from arm_dynamics import plugins
from arm_dynamics.config import NAMELESS
from arm_dynamics.controllers.base import Controller
from arm_dynamics.controllers.task import TaskController
from arm_dynamics.errors import ConfigError
from arm_dynamics.following.rehearsal import rehearse
from arm_dynamics.loop import ControlLoop
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.ros.gain_parameters import (
    carried_gains,
    changed_gains,
    declare_anew,
    declare_gains,
    show_gains,
)
from arm_dynamics.ros.model_parameters import LawModel
from arm_dynamics.ros.parameters import declare_fixed, declare_live

NAME = "controller"


class ControlLaw:
    """``law`` is the one that the parameters describe; the loop has it from its next tick on."""

    def __init__(self, node: Node, arm: ArmModel) -> None:
        self._node, self._nominal = node, arm
        laws = ", ".join(plugins.names("controllers"))
        name = declare_live(node, NAME, NAMELESS, f"control law: {laws}")
        self._model = LawModel(node, arm)
        text = "file of regulator gains for the law lqr, made by `arm-dynamics gains`; empty: none"
        self._table = str(declare_fixed(node, "gain_table", "", text))
        law = joint_law(name)
        with plugins.guarded("controllers", name):
            self.law: Controller = law(arm, declare_gains(node, law(arm)))
        self.law.use_model(self._model.arm)
        self._tabulate(self.law)
        rehearse(self.law)
        self._declared = self.law
        node.add_post_set_parameters_callback(self._follow_up)

    def change(self, values: Mapping[str, Any], loop: ControlLoop) -> None:
        """Put changed parameters in force; raises the package's errors, and nothing changed."""
        if NAME in values:
            self._replace(values, loop)
            return
        gains = changed_gains(self.law, values)
        self._model.changed(values)  # refused before anything is in force
        if gains is not None:
            loop.fit.take(gains)
        model = self._model.take(values)
        if model is not None:
            self.law.use_model(model)

    def _replace(self, values: Mapping[str, Any], loop: ControlLoop) -> None:
        others = [name for name in values if name != NAME]
        if others:
            raise ConfigError(f"{NAME} and {others[0]} at once: set the law first, then the rest")
        with plugins.guarded("controllers", values[NAME]):
            law = joint_law(values[NAME])(self._nominal)
        law.slow_down(self.law.scale)  # or defaults that were slowed down would count as given
        law.configure(carried_gains(self.law, law))
        law.use_model(self._model.arm)
        self._tabulate(law)
        rehearse(law)  # in the services' thread: the old law commands until this one is compiled
        loop.use(law)
        self.law = law

    def _tabulate(self, law: Controller) -> None:
        """Give a law that takes one the table of gains; raises where it is another arm's."""
        if self._table and hasattr(law, "use_table"):
            from arm_dynamics.regulation.gain_table import load  # noqa: PLC0415 - a slow start

            regulator: Any = law
            regulator.use_table(load(self._table, law.arm, regulator.weights))

    def _follow_up(self, parameters: Sequence[RosParameter]) -> None:
        """Show the gains in force: a change of one may slow the defaults of others down.

        Once another law is accepted, its gains take the place of those of the old one.
        """
        if (
            any(parameter.name == NAME for parameter in parameters)
            and self._declared is not self.law
        ):
            before, self._declared = self._declared, self.law
            declare_anew(self._node, before, self.law)
        show_gains(self._node, self.law)


def joint_law(name: str) -> type[Controller]:
    """The law of the joints registered as ``name``; raises ConfigError for one of the tool."""
    law: type[Controller] = plugins.load("controllers", name)
    if issubclass(law, TaskController):
        raise ConfigError(
            f"{NAME} '{name}' is a law of the tool: task_space_controller runs it"
            " (task_space.launch.py)"
        )
    return law

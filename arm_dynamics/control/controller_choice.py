"""Joint-space controllers by name, and the one that replaces another at run time."""

from __future__ import annotations

from arm_dynamics.control.controllers.controller import Controller, Gains
from arm_dynamics.control.controllers.task_space_base import TaskSpaceController
from arm_dynamics.core import plugins
from arm_dynamics.model.arm_model import ArmModel


def joint_controller_classes(interface: str | None = None) -> dict[str, type[Controller]]:
    """Return the joint-space controllers by name, all or those of one command interface."""
    return {
        name: kind
        for name, kind in plugins.loadable_classes("controllers").items()
        if not issubclass(kind, TaskSpaceController) and interface in (None, kind.interface)
    }


def common_gains(before: Controller, after: Controller) -> Gains:
    """Return the active gains that have the same meaning and unit in another controller."""
    return {
        group: {
            spec.name: before.values[group][spec.name]
            for spec in parameters
            if spec in before.parameter_groups.get(group, ())
        }
        for group, parameters in after.parameter_groups.items()
    }


def successor(before: Controller, name: str, nominal: ArmModel) -> Controller:
    """Return the controller ``name`` with the model and the common gains of another.

    Parameters
    ----------
    before : Controller
        Controller that is replaced.
    name : str
        Name of the new controller.
    nominal : ArmModel
        Arm without payload, from which default gains are computed.

    Raises
    ------
    ArmDynamicsError
        If the controller cannot be built for the arm.

    """
    with plugins.guarded("controllers", name):
        controller: Controller = plugins.load_class("controllers", name)(nominal)
    controller.slow_down(before.scale)  # else reduced defaults would count as given
    controller.set_gains(common_gains(before, controller))
    controller.set_model(before.arm)
    return controller

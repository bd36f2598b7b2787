"""The text of a kernel, from an arm and options; the only door to CasADi."""

from __future__ import annotations

from typing import TYPE_CHECKING

from arm_dynamics.core.errors import ConfigError
from arm_dynamics.core.requirements import to_install
from arm_dynamics.model.arm_model import ArmModel

if TYPE_CHECKING:
    from arm_dynamics.batch.rollout.kernel import Options


def kernel_text(arm: ArmModel, options: Options) -> str:
    """Trace the step and write its module; raises ConfigError without CasADi."""
    try:
        from arm_dynamics.batch.rollout.kernel_source import module_text  # noqa: PLC0415
        from arm_dynamics.batch.rollout.step_trace import trace_step  # noqa: PLC0415
    except ModuleNotFoundError as error:
        if error.name != "casadi":
            raise
        raise ConfigError(
            f"a kernel has to be made and CasADi is missing: {to_install('rollout')}"
        ) from error
    trace = trace_step(arm, options.integrator, options.interface, options.vary)
    if options.law is not None:
        from arm_dynamics.batch.rollout.pid_trace import trace_pid  # noqa: PLC0415

        trace = trace_pid(trace, options.law)
    title = f"{arm.name}: {options.integrator}, {options.interface} commands, {options.precision}."
    return module_text(trace, title, options.lanes, options.precision)

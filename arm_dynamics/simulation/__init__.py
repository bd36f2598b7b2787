"""The simulated arm: equations of motion, motor models and integrators.

May import ``safety`` and below. Start with ``plant`` (one time step), ``equations_of_motion`` (the
terms of M v' + h = tau) and ``simulation`` (an arm in simulated time with a command watchdog).
``actuators`` holds the motor models, ``integrators`` the numerical methods; ``forward_model`` is
the step as a pure function of one state vector, exported by ``arm_dynamics``.
"""

from typing import TYPE_CHECKING

from arm_dynamics.core.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from arm_dynamics.core.compiled_math import (
        clip,
        compiled,
        exp,
        maximum,
        minimum,
        sign,
        squared,
        where,
    )
    from arm_dynamics.simulation.actuators.actuator import Actuator, ActuatorState
    from arm_dynamics.simulation.actuators.compiled_actuator import (
        ActuatorEquations,
        CompiledActuator,
    )
    from arm_dynamics.simulation.actuators.data_sheet import (
        DataSheet,
        from_rpm,
    )
    from arm_dynamics.simulation.actuators.dc_motor import (
        DcMotor,
    )
    from arm_dynamics.simulation.actuators.ideal import (
        Ideal,
    )
    from arm_dynamics.simulation.actuators.rate_limited import (
        RateLimited,
    )
    from arm_dynamics.simulation.contact.contact_dynamics import ContactDynamics, Contacts
    from arm_dynamics.simulation.contact.contact_plant import ContactPlant
    from arm_dynamics.simulation.integrators import INTEGRATORS
    from arm_dynamics.simulation.linearization import find_equilibrium, linearize, zero_order_hold
    from arm_dynamics.simulation.plant import (
        Plant,
    )
    from arm_dynamics.simulation.simulation import Simulation

_MODULES = {
    "Actuator": ".actuators.actuator",
    "ActuatorEquations": ".actuators.compiled_actuator",
    "ActuatorState": ".actuators.actuator",
    "CompiledActuator": ".actuators.compiled_actuator",
    "ContactDynamics": ".contact.contact_dynamics",
    "ContactPlant": ".contact.contact_plant",
    "Contacts": ".contact.contact_dynamics",
    "DataSheet": ".actuators.data_sheet",
    "DcMotor": ".actuators.dc_motor",
    "INTEGRATORS": ".integrators",
    "Ideal": ".actuators.ideal",
    "Plant": ".plant",
    "RateLimited": ".actuators.rate_limited",
    "Simulation": ".simulation",
    "clip": "arm_dynamics.core.compiled_math",
    "compiled": "arm_dynamics.core.compiled_math",
    "exp": "arm_dynamics.core.compiled_math",
    "find_equilibrium": ".linearization",
    "from_rpm": ".actuators.data_sheet",
    "linearize": ".linearization",
    "maximum": "arm_dynamics.core.compiled_math",
    "minimum": "arm_dynamics.core.compiled_math",
    "sign": "arm_dynamics.core.compiled_math",
    "squared": "arm_dynamics.core.compiled_math",
    "where": "arm_dynamics.core.compiled_math",
    "zero_order_hold": ".linearization",
}

__all__ = [
    "INTEGRATORS",
    "Actuator",
    "ActuatorEquations",
    "ActuatorState",
    "CompiledActuator",
    "ContactDynamics",
    "ContactPlant",
    "Contacts",
    "DataSheet",
    "DcMotor",
    "Ideal",
    "Plant",
    "RateLimited",
    "Simulation",
    "clip",
    "compiled",
    "exp",
    "find_equilibrium",
    "from_rpm",
    "linearize",
    "maximum",
    "minimum",
    "sign",
    "squared",
    "where",
    "zero_order_hold",
]

__getattr__, __dir__ = lazy_exports(__name__, _MODULES)

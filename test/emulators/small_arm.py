"""Small arm of three joints with the same links for the motors of every manufacturer."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.model.load import parse_arm

LENGTH, MASSES = 0.12, (0.12, 0.10, 0.08)
HANGING = 1.5708
"""Position of the first joint [rad] where a straight arm hangs down."""
START = (HANGING - 0.7, 0.5, -0.4)
SIGN, OFFSET, RATIO = (1.0, -1.0, 1.0), (HANGING, 0.1, -0.2), (1.0, 1.0, 1.0)

_LINK = """<link name="{name}_link"><inertial><origin xyz="{center} 0 0"/><mass value="{mass}"/>
<inertia ixx="{axial}" iyy="{inertia}" izz="{inertia}" ixy="0" ixz="0" iyz="0"/></inertial></link>
<joint name="{name}" type="revolute"><parent link="{parent}"/><child link="{name}_link"/>
<origin xyz="{place} 0 0"/><axis xyz="0 1 0"/>
<limit lower="{lower}" upper="{upper}" effort="{effort}" velocity="{velocity}"/></joint>"""
_WIRED = """<joint name="{name}"><command_interface name="effort"/>
<state_interface name="position"/><state_interface name="velocity"/>
<state_interface name="effort"/><param name="actuator">dc_motor</param>{params}</joint>"""


@dataclass(frozen=True)
class Drive:
    """Motor at its output shaft: stall [N·m, A] at a supply [V], idle speed [rad/s].

    ``effort`` [N·m] and ``velocity`` [rad/s] are the joint's limits, ``rotor`` [kg·m²] its inertia;
    ``friction`` is Coulomb [N·m] and viscous [N·m·s/rad].
    """

    model: str
    supply: float
    stall: float
    amps: float
    idle: float
    effort: float
    velocity: float
    rotor: float = 0.01
    settings: dict[str, str] = field(default_factory=dict)
    friction: tuple[float, float] = (0.04, 0.02)

    def params(self) -> dict[str, float]:
        """Constants of the joint's actuator."""
        return {
            "kt": self.stall / self.amps,
            "ke": self.supply / self.idle,
            "resistance": self.supply / self.amps,
            "supply_voltage": self.supply,
            "rotor_inertia": self.rotor,
            "gear_ratio": 1.0,
            "coulomb_friction": self.friction[0],
            "viscous_friction": self.friction[1],
        }


def small_arm(
    driver: str, drive: Drive, masses: Sequence[float] = MASSES, length: float = LENGTH
) -> ArmModel:
    """Return the arm with three motors of the kind ``drive``, configured for ``driver``."""
    names = [f"J{i + 1}" for i in range(3)]
    links = [_link(i, name, drive, masses[i], length) for i, name in enumerate(names)]
    settings = {"driver": driver, **drive.settings}
    hardware = "".join(_param(*pair) for pair in settings.items())
    wired = "".join(_wired(i, name, drive) for i, name in enumerate(names))
    block = f'<ros2_control name="small" type="system"><hardware>{hardware}</hardware>{wired}'
    body = "".join(links)
    return parse_arm(f'<robot name="small"><link name="base"/>{body}{block}</ros2_control></robot>')


def _link(i: int, name: str, drive: Drive, mass: float, length: float) -> str:
    middle, reach = (HANGING, 1.7) if i == 0 else (0.0, 2.0)
    return _LINK.format(
        name=name, parent=f"J{i}_link" if i else "base", place=length if i else 0.0,
        center=length / 2, mass=mass, inertia=mass * length**2 / 12,
        axial=min(1e-5, mass * length**2 / 12),
        lower=middle - reach, upper=middle + reach, effort=drive.effort, velocity=drive.velocity,
    )  # fmt: skip


def _wired(i: int, name: str, drive: Drive) -> str:
    wiring = {
        "id": i + 1, "motor": drive.model, "sign": SIGN[i], "offset": OFFSET[i],
        "mechanical_reduction": RATIO[i],
    }  # fmt: skip
    both = {**drive.params(), **wiring}
    return _WIRED.format(name=name, params="".join(_param(*pair) for pair in both.items()))


def _param(name: str, value: object) -> str:
    return f'<param name="{name}">{value}</param>'

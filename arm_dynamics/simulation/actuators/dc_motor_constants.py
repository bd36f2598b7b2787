"""Constants of the DC motor: names, units, ranges and inconsistencies."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from arm_dynamics.core.compiled_math import INF
from arm_dynamics.core.parameters import Parameter
from arm_dynamics.simulation.actuators.actuator import Inconsistency

PARAMETERS = (
    Parameter("kt", None, "N·m/A", "torque constant", above=0),
    Parameter("ke", None, "V·s/rad", "back-EMF constant", lower=0),
    Parameter("resistance", None, "Ω", "winding resistance at 25 °C", above=0),
    Parameter("gear_ratio", 1.0, "1", "motor turns per joint turn", above=0),
    Parameter("supply_voltage", INF, "V", "largest terminal voltage", above=0),
    Parameter("current_limit", INF, "A", "largest winding current", above=0),
    Parameter("brush_drop", 0.0, "V", "brush drop at high voltage", lower=0),
    Parameter("brush_half_voltage", 1.0, "V", "voltage of half the brush drop", above=0),
    Parameter("inductance", 0.0, "H", "of the winding; 0: no transient of the current", 0.0),
    Parameter("efficiency", 1.0, "1", "of the gear, driven: acts on N kt i", above=0, upper=1),
    Parameter(
        "back_efficiency", 1.0, "1", "of the gear, back-driven: acts on N kt i", above=0, upper=1
    ),
    Parameter("rotor_inertia", 0.0, "kg·m²", "rotor inertia at the motor shaft", lower=0),
    Parameter("viscous_friction", 0.0, "N·m·s/rad", "at the motor shaft", lower=0),
    Parameter("coulomb_friction", 0.0, "N·m", "dry friction at the motor shaft", lower=0),
    Parameter("stiction", 0.0, "N·m", "break-away at the shaft; 0: as Coulomb", lower=0),
    Parameter("stribeck_velocity", 1.0, "rad/s", "of the shaft; stiction fades", above=0),
    Parameter("thermal_resistance", 0.0, "K/W", "winding to ambient; 0: stays cold", lower=0),
    Parameter("thermal_time_constant", 60.0, "s", "of the winding", above=0),
    Parameter("ambient_temperature", 25.0, "°C", "around the motor", lower=-273.15),
    Parameter("derating_temperature", INF, "°C", "above it less current is allowed"),
    Parameter("max_temperature", INF, "°C", "from it on no current is allowed"),
    Parameter("temperature_coefficient", 0.0039, "1/K", "of the resistance", lower=0),
    Parameter("backlash", 0.0, "rad", "play of the gear at the joint", lower=0),
    Parameter("gear_stiffness", 0.0, "N·m/rad", "of touching teeth, at the joint", lower=0),
    Parameter("gear_damping", 0.0, "N·m·s/rad", "of touching teeth, at the joint", lower=0),
)


def contradictions(c: Mapping[str, float]) -> Iterator[Inconsistency]:
    """Yield the inconsistencies between complete constants within their ranges."""
    if 0 < c["stiction"] < c["coulomb_friction"]:
        problem = f"is below coulomb_friction = {c['coulomb_friction']:g} N·m"
        yield Inconsistency("stiction", problem, "allowed: at least as much, or 0 for the same")
    if c["backlash"] > 0:
        for name, unit in (("gear_stiffness", "N·m/rad"), ("rotor_inertia", "kg·m²")):
            if c[name] == 0:
                problem, remedy = f"needs a {name}", f"give {name} above 0 {unit}, or no backlash"
                yield Inconsistency("backlash", problem, remedy)
    yield from _derating(c)


def _derating(c: Mapping[str, float]) -> Iterator[Inconsistency]:
    start, end = c["derating_temperature"], c["max_temperature"]
    if end == INF:
        if start < INF:
            remedy = "give max_temperature above it"
            yield Inconsistency("derating_temperature", "needs a max_temperature", remedy)
        return
    if not start < end:
        problem = f"is not above derating_temperature = {start:g} °C"
        yield Inconsistency("max_temperature", problem, "derating ends above where it begins")
    if c["current_limit"] == INF:
        remedy = "give current_limit, which falls to 0 there"
        yield Inconsistency("max_temperature", "needs a current_limit", remedy)
    if c["thermal_resistance"] == 0:
        remedy = "give thermal_resistance above 0 K/W"
        yield Inconsistency("max_temperature", "needs a winding that warms up", remedy)

"""Result of an identification: parameters, warnings, and the files that it writes."""

from __future__ import annotations

import datetime
from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

from arm_dynamics.core.arrays import Vector
from arm_dynamics.core.files import output_file
from arm_dynamics.identification.parameters.dynamic_parameters import nominal_parameters
from arm_dynamics.identification.parameters.identified_urdf import NO_DEVIATIONS, identified_urdf
from arm_dynamics.identification.parameters.uncertainty import uncertainty_yaml
from arm_dynamics.identification.results.fit_report import (
    FitTable,
    fit_lines,
    fit_tables,
    write_fit_report,
)
from arm_dynamics.identification.results.fit_summary import FitSummary, JointFit
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.model.audit import audit_urdf
from arm_dynamics.model.audit.fault import Fault, UrdfRejected
from arm_dynamics.model.audit.proportion import mass_unit_faults
from arm_dynamics.model.audit.robot import Robot
from arm_dynamics.model.xml_source import parse_xml


class Report(NamedTuple):
    """Tables of a result, and the sentences after them."""

    tables: tuple[FitTable, ...]
    lines: tuple[str, ...]


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class IdentificationResult(ABC):
    """Result of an identification.

    Attributes
    ----------
    arm, identified : ArmModel
        Nominal model, and the identified arm.
    parameters, deviation : Vector
        Parameters (14 nv,) of the identified arm in the order of ``parameter_names``, and their
        standard deviations; NaN or infinite for those that the data do not determine.
    sources : tuple of str
        Names of the recordings.
    notes : tuple of str
        Remarks: filter, delay, friction model.
    warnings : tuple of str
        Reasons why the result is not usable, with their likely causes; empty for a usable one.
    constant_deviations : Mapping[str, float]
        Standard deviations of fitted motor constants [%], for example of "J1.kt".

    """

    arm: ArmModel
    identified: ArmModel
    parameters: Vector
    deviation: Vector
    sources: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()
    constant_deviations: Mapping[str, float] = field(default_factory=lambda: NO_DEVIATIONS)

    @property
    def is_usable(self) -> bool:
        """Whether the result predicts data that were not fitted."""
        return not self.warnings

    @abstractmethod
    def report(self) -> Report:
        """Return the tables and sentences of the result."""

    def urdf_text(self, date: datetime.date | None = None) -> str:
        """Return the text of the URDF (``identified_urdf``), dated today by default."""
        return identified_urdf(
            self.identified, self.parameters, deviations=self.deviation, date=date or today(),
            sources=self.sources, remarks=self._remarks(),
            constant_deviations=self.constant_deviations,
        )  # fmt: skip

    def write_urdf(self, file: Path, date: datetime.date | None = None) -> tuple[Fault, ...]:
        """Write ``urdf_text`` to a file.

        Returns
        -------
        tuple of Fault
            Warnings of the audit about elements without a warning in the nominal URDF. The unit of
            the masses is that of the nominal ones, which a fit does not change.

        Raises
        ------
        UrdfRejected
            For a URDF that the audit rejects; no file is written.

        """
        text = self.urdf_text(date)
        faults = new_faults(self.arm, text, file)
        with output_file(file) as path:
            path.write_text(text, encoding="utf-8")
        return faults

    def write_tolerances(self, file: Path) -> None:
        """Write the tolerances of the parameters (``uncertainty_yaml``) to a file."""
        text = uncertainty_yaml(
            self.identified, self.parameters, self.deviation,
            nominal=nominal_parameters(self.arm), constant_deviations=self.constant_deviations,
        )  # fmt: skip
        with output_file(file) as path:
            path.write_text(text, encoding="utf-8")

    def _remarks(self) -> tuple[str, ...]:
        """Return the sentences in the header of the URDF."""
        return self.warnings


@dataclass(frozen=True, slots=True, eq=False, kw_only=True)
class PredictedResult(IdentificationResult):
    """Result that predicts validation data joint by joint.

    Attributes
    ----------
    joints : tuple of JointFit
        Errors on the validation data.
    held_out : tuple of str
        Names of the validation data.

    """

    joints: tuple[JointFit, ...]
    held_out: tuple[str, ...]

    @abstractmethod
    def summary(self, date: datetime.date | None = None) -> FitSummary:
        """Return the values of the report, dated today by default."""

    def report(self) -> Report:
        """Return parameters, errors on the validation data, remarks and warnings."""
        summary = self.summary()
        joints, parameters = fit_tables(summary)
        return Report((parameters, joints), (*fit_lines(summary), *self.warnings))

    def write_report(self, file: Path, date: datetime.date | None = None) -> None:
        """Write the report with figures (HTML) to a file."""
        write_fit_report(self.summary(date), file)


def new_faults(arm: ArmModel, text: str, file: Path) -> tuple[Fault, ...]:
    """Return the warnings about a URDF's text for ``file`` that the arm's own does not have.

    Raises UrdfRejected for an invalid one.
    """
    folder = arm.source.parent if arm.source else None
    earlier = {fault.element for fault in audit_urdf(arm.urdf, folder, arm.locked)}
    faults = audit_urdf(text, file.parent, arm.locked)
    if any(fault.severity == "error" for fault in faults):
        raise UrdfRejected(str(file), faults)
    units = {*mass_unit_faults(Robot(parse_xml(text), frozenset(arm.locked)))}
    return tuple(x for x in faults if x.element not in earlier and x not in units)


def today() -> datetime.date:
    """Return the date [UTC]."""
    return datetime.datetime.now(tz=datetime.timezone.utc).date()

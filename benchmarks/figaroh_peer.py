"""Base parameters by FIGAROH, and its prediction of held-out efforts.

    python benchmarks/figaroh_peer.py DATA.npz RESULT.npz

Runs in an environment with FIGAROH (``pip install figaroh``); ``recorded_arms.py`` starts it. DATA
has the URDF, names of locked joints, coupled joints (empty or two), time, positions and efforts of
the fitted and of the held-out part, and the cut-off frequency of its filter. RESULT has predicted
efforts at all samples of the held-out part and the processor time of the fit.

The steps are those of FIGAROH's examples: median and Butterworth filter of the positions,
numerical derivatives, decimation by 10 at 1 kHz and above, base parameters by QR, least squares
weighted by the residuals of the joints. Columns of a coupled wrist are those of its TX40 example.
"""

from __future__ import annotations

import sys
import time
from types import SimpleNamespace
from typing import Any

import numpy as np
import pinocchio as pin
from figaroh.identification.base_identification import BaseIdentification
from figaroh.tools.regressor import build_regressor_reduced

TOLERANCE = 1e-4
"""Relative tolerance of the rank: the one that FIGAROH's warning recommends. With its default, base
parameters fit noise here."""
BORDER = 1.5
"""Periods of the cut-off frequency that the fit omits at both ends."""
FAST = 1000.0
"""Sampling rate [Hz] from which on samples are decimated by 10."""


class Peer(BaseIdentification):
    """Identification of arrays."""

    def __init__(self, robot: Any, joints: list[str], coupled: list[int], cutoff: float) -> None:
        self._joints, self._coupled, self._cutoff = joints, coupled, cutoff
        super().__init__(robot, "")

    def load_param(self, config_file: str, setting_type: str = "identification") -> None:
        """Set the options of FIGAROH's examples."""
        indices = list(range(len(self._joints)))
        self.identif_config = {
            "active_joints": self._joints, "act_idxq": indices, "act_idxv": indices,
            "is_joint_torques": True, "is_external_wrench": False, "has_friction": True,
            "has_actuator_inertia": True, "has_joint_offset": True,
            "qr_relative_tolerance": TOLERANCE,
        }  # fmt: skip

    def use(self, t: Any, q: Any, effort: Any, border: float = 0.0) -> None:
        """Use the arrays of a motion from now on, without ``border`` periods of the filter."""
        rate = 1 / float(np.median(np.diff(t)))
        self._border = int(border * rate / self._cutoff)
        self._arrays = {
            "timestamps": t[:, None], "positions": q, "velocities": None, "accelerations": None,
            "torques": effort,
        }  # fmt: skip
        self.filter_config = {
            "differentiation_method": "gradient",
            "filter_params": {
                "nbutter": 4, "f_butter": self._cutoff, "med_fil": 5, "f_sample": rate,
            },
        }  # fmt: skip
        self.initialize()

    def load_trajectory_data(self, data_source: str | None = None) -> dict[str, Any]:
        """Return the arrays in use."""
        return self._arrays

    def process_torque_data(self, **options: Any) -> Any:
        """Return the efforts; remove the ends, on which the filter settles, from all arrays."""
        used = slice(self._border, len(self.raw_data["torques"]) - self._border)
        for name, values in self.processed_data.items():
            self.processed_data[name] = values[used]
        return self.raw_data["torques"][used]

    def calculate_full_regressor(self) -> None:
        """Build the regressor, with the columns of a coupled wrist."""
        super().calculate_full_regressor()
        if not self._coupled:
            return
        one, other = self._coupled
        n, w = self.num_samples, self.dynamic_regressor
        v, a = self.processed_data["velocities"], self.processed_data["accelerations"]
        more, sign = np.zeros((w.shape[0], 3)), np.sign(v[:, one] + v[:, other])
        for i, j in ((one, other), (other, one)):
            more[i * n : (i + 1) * n] = np.stack((a[:, j], v[:, j], sign), axis=1)
        self.dynamic_regressor = np.hstack((w, more))

    def initialize_standard_parameters(self) -> None:
        """Name the parameters, those of a coupled wrist too."""
        super().initialize_standard_parameters()
        if self._coupled:
            self.standard_parameter.update(Iam=0.0, fvm=0.0, fsm=0.0)

    def print_quality_report(self) -> None:
        """Print nothing."""

    def _compute_validation_metrics(self) -> None:
        """Compute nothing: FIGAROH's regressor of another motion has no coupled wrist."""


def main() -> None:
    """Fit one part, predict the other, write the efforts."""
    data = np.load(sys.argv[1])
    model = pin.buildModelFromXML(str(data["urdf"]))
    locked = [model.getJointId(str(name)) for name in data["locked"]]
    model = pin.buildReducedModel(model, locked, pin.neutral(model))
    robot = SimpleNamespace(
        model=model, data=model.createData(), q0=pin.neutral(model), v0=np.zeros(model.nv)
    )
    peer = Peer(robot, list(model.names)[1:], data["coupled"].tolist(), float(data["cutoff"]))
    begin = time.process_time()
    peer.use(data["time"], data["q"], data["effort"], BORDER)
    fast = 1 / float(np.median(np.diff(data["time"]))) >= FAST
    peer.solve(decimate=fast, plotting=False, wls=True)
    seconds = time.process_time() - begin
    values = np.array(peer.phi_base)
    eliminated, independent = list(peer._idx_eliminated), list(peer._base_indices)
    peer.use(*(data[name] for name in ("held_out_time", "held_out_q", "held_out_effort")))
    rows = build_regressor_reduced(peer.dynamic_regressor, eliminated)[:, independent]
    predicted = (rows @ values).reshape(model.nv, -1).T
    np.savez(sys.argv[2], predicted=predicted, seconds=seconds, count=values.size)


if __name__ == "__main__":
    main()

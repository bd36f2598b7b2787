"""Camera: rendered images of the arm, for arms without a camera."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import radians
from typing import Any

from lerobot.cameras import Camera, CameraConfig
from lerobot.utils.decorators import check_if_already_connected, check_if_not_connected
from numpy.typing import ArrayLike, NDArray

from arm_dynamics import ArmModel, DriverFault
from arm_dynamics.viewer import ArmRenderer


@CameraConfig.register_subclass("arm_dynamics")
@dataclass(kw_only=True)
class ArmDynamicsCameraConfig(CameraConfig):
    """Settings of a rendered camera.

    Attributes
    ----------
    fps, width, height : int
        Nominal rate [Hz] and size [pixels] of the images.
    position, look_at : list of float
        Position of the camera and point in the middle of the image [m], in the base frame;
        default: the workspace fills the image.
    field_of_view : float
        Vertical field of view [deg].

    """

    fps: int | None = 30
    width: int | None = 640
    height: int | None = 480
    position: list[float] | None = None
    look_at: list[float] | None = None
    field_of_view: float = 40.0


class ArmDynamicsCamera(Camera):
    """Camera of the robot ``arm_dynamics`` that shows its measured configuration.

    Each call renders the present configuration; no frame is older than the last control cycle.
    """

    def __init__(self, config: ArmDynamicsCameraConfig) -> None:
        super().__init__(config)
        self.config = config
        self._arm: ArmModel | None = None
        self._configuration: Callable[[], ArrayLike] | None = None
        self._renderer: ArmRenderer | None = None

    def attach(self, arm: ArmModel, configuration: Callable[[], ArrayLike]) -> None:
        """Show an arm at the configurations (nv,) [rad] that a function returns."""
        self._arm, self._configuration = arm, configuration

    @property
    def is_connected(self) -> bool:
        """Whether images can be read."""
        return self._renderer is not None

    @staticmethod
    def find_cameras() -> list[dict[str, Any]]:
        """Return an empty list: rendered cameras are not found by a search."""
        return []

    @check_if_already_connected
    def connect(self, warmup: bool = True) -> None:
        """Prepare the renderer; raises DriverFault without a robot of type arm_dynamics."""
        del warmup
        if self._arm is None:
            raise DriverFault(
                "camera: robot = another type; expected arm_dynamics, whose arm is rendered"
            )
        c = self.config
        renderer = ArmRenderer(
            self._arm, c.width or 640, c.height or 480,
            position=c.position, look_at=c.look_at, field_of_view=radians(c.field_of_view),
        )  # fmt: skip
        renderer.image(self._arm.configuration("initial"))  # compiles
        self._renderer = renderer

    @check_if_not_connected
    def read(self) -> NDArray[Any]:
        """Return the image (height, width, 3) of the present configuration, RGB."""
        assert self._renderer is not None
        assert self._configuration is not None
        return self._renderer.image(self._configuration())

    def async_read(self, timeout_ms: float = 200) -> NDArray[Any]:
        """Return ``read()``, which does not wait."""
        del timeout_ms
        return self.read()

    def read_latest(self, max_age_ms: int = 500) -> NDArray[Any]:
        """Return ``read()``, which is never old."""
        del max_age_ms
        return self.read()

    def disconnect(self) -> None:
        """Release the renderer."""
        self._renderer = None

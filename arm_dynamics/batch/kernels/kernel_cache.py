"""Disk cache of generated modules and of the constants of each arm: generated once, then loaded."""

from __future__ import annotations

import hashlib
import importlib.util
import json
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path
from threading import RLock
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numba
import numpy as np
from numba.core.dispatcher import Dispatcher

from arm_dynamics.batch.kernels.layout import ModuleSource
from arm_dynamics.batch.kernels.pid_spec import PidSpec
from arm_dynamics.core.code_cache import (
    cache_folder,
    guard,
    numba_keeps_in,
    require_owned,
    write_private,
)
from arm_dynamics.core.errors import ArmDynamicsError, ConfigError, InvalidValue
from arm_dynamics.core.files import file_lock
from arm_dynamics.core.requirements import to_install
from arm_dynamics.dynamics.bodies import bodies
from arm_dynamics.model.arm_argument import require_no_mimic_joints
from arm_dynamics.model.arm_model import ArmModel
from arm_dynamics.simulation import joint_physics as row

if TYPE_CHECKING:
    from arm_dynamics.batch.kernels.plan_spec import PlanSpec
    from arm_dynamics.batch.kernels.sphere_contacts import SphereContacts

_LOADED: dict[Path, Any] = {}
"""Modules by source file, and with the constants of an arm by the file of these."""
_LOCK = RLock()
"""Held while a module is generated or loaded, so that one thread of the process does it."""
AGREEMENT = {"float64": 1e-12, "float32": 1e-4}
"""Allowed difference of a kernel from plant and controller, relative to the largest value or, if
larger, to the largest change in a step."""
TRIAL_STEP = 1e-4
"""Time step [s] of the comparison with the plant."""


class KernelRejected(ArmDynamicsError):
    """A generated kernel does not agree with the plant or the controller."""


@dataclass(frozen=True, eq=False)
class KernelOptions:
    """Options of a kernel: all that its source text depends on except the arm.

    Attributes
    ----------
    integrator : str
        One of ``step_trace.INTEGRATORS``.
    interface : str
        Command interface.
    vary : tuple of str
        Quantities that differ between rollouts, of ``variation.variable_names``.
    precision : str
        "float64" or "float32".
    lanes : int
        SIMD lanes: rollouts side by side.
    pid : PidSpec, optional
        PID controller inside the kernel.
    contacts : SphereContacts, optional
        Contacts with the objects of a scene.
    plan : PlanSpec, optional
        Policy and cost of predicted motions; instead of ``pid``.

    Raises
    ------
    InvalidValue
        If ``precision`` or ``lanes`` is out of range.

    """

    integrator: str = "semi_implicit_euler"
    interface: str = "effort"
    vary: tuple[str, ...] = ()
    precision: str = "float64"
    lanes: int = 32
    pid: PidSpec | None = None
    contacts: SphereContacts | None = None
    plan: PlanSpec | None = None

    def __post_init__(self) -> None:
        if self.precision not in AGREEMENT:
            expected = " or ".join(AGREEMENT)
            raise InvalidValue(f"kernel: precision = '{self.precision}'; expected {expected}")
        if self.lanes < 1:
            raise InvalidValue(f"kernel: lanes = {self.lanes}; expected at least 1")

    @property
    def key(self) -> tuple[Any, ...]:
        """All options, to be hashed."""
        pid = None if self.pid is None else (*self.pid.key, arm_fingerprint(self.pid.arm))
        contacts = () if self.contacts is None else (self.contacts.key,)
        return (
            self.integrator, self.interface, self.vary, self.precision, self.lanes, pid, *contacts,
        )  # fmt: skip


def fingerprint(arm: ArmModel, options: Sequence[Any]) -> str:
    """Return a hash of the arm's numbers and of the options: of all that determines a module."""
    text = repr((arm_fingerprint(arm), *options, numba.__version__, np.__version__))
    return hashlib.sha256(text.encode()).hexdigest()[:20]


@lru_cache(maxsize=16)
def arm_fingerprint(arm: ArmModel) -> str:
    """Return a hash of all numbers of the arm that a step or a controller depends on."""
    require_no_mimic_joints(arm, "generated kernels")
    digest = hashlib.sha256(repr((arm.joint_names, arm.act_names)).encode())
    for body in bodies(arm):
        numbers = (body.rotation, body.translation, body.mass, body.center, body.inertia)
        digest.update(repr((body.parent, body.prismatic, body.armature)).encode())
        for number in numbers:
            digest.update(np.ascontiguousarray(number, dtype=float).tobytes())
    digest.update(row.pack_joint_table(arm.joints, arm.actuators).tobytes())
    loads = (*arm.gravity, arm.payload.mass, *arm.payload.center, *arm.effort_limit)
    digest.update(np.array(loads, dtype=float).tobytes())
    return digest.hexdigest()


@lru_cache(maxsize=16)
def equations_fingerprint(arm: ArmModel, interface: str, vary: tuple[str, ...] = ()) -> str:
    """Return a hash of the traced equations of users' actuators; "" for an arm without any.

    The folder of the kernels depends on the sources of the built-in actuators.

    Raises
    ------
    ConfigError
        If CasADi is missing.
    InvalidValue
        If an actuator cannot be traced.

    """
    if all(type(a).__module__.startswith("arm_dynamics.") for a in arm.actuators):
        return ""
    with casadi_required(f"kernel of arm '{arm.name}'"):
        from arm_dynamics.batch.kernels.kernel_source import actuator_text  # noqa: PLC0415
    return hashlib.sha256(actuator_text(arm, interface, vary).encode()).hexdigest()


@contextmanager
def casadi_required(where: str) -> Iterator[None]:
    """Raise ConfigError if an import within this context fails because CasADi is missing.

    Kernels on disk run without CasADi; only their generation needs it.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        if error.name != "casadi":
            raise
        raise ConfigError(f"{where}: CasADi is not installed; {to_install('rollout')}") from error


def cached_module(
    key: str, generate: Callable[[], ModuleSource], check: Callable[[Any], None]
) -> Any:
    """Return the module stored under ``key``; generate, check and store it if necessary.

    The constants of the arm are stored under the key, the source text under its own hash, so that
    arms whose equations differ only in the values of constants use the same compiled code. The
    folder depends on the package's sources too. A file that differs from the one that passed its
    check is generated again.

    Parameters
    ----------
    key : str
        Fingerprint.
    generate : callable
        Returns the source.
    check : callable
        Raises KernelRejected for a module that must not be used.

    Returns
    -------
    object
        Attributes of the module, and ``CONSTANTS`` of the arm.

    Raises
    ------
    ConfigError
        If the folder cannot be written.
    KernelRejected
        As raised by ``check``.

    """
    path = _folder() / f"kernel_{key}.json"
    with _LOCK:
        if path not in _LOADED:
            _LOADED[path] = _stored(path) or _generate(path, generate(), check)
        return _LOADED[path]


def _stored(path: Path) -> Any:
    """Return the module of the constants in ``path``; None unless both files are intact."""
    if not _intact(path):
        return None
    stored = json.loads(path.read_text(encoding="utf-8"))
    code = path.with_name(stored["code"])
    if not _is_text_of(code):
        return None
    return _module_of_arm(_load(code), stored["constants"])


def _generate(path: Path, source: ModuleSource, check: Callable[[Any], None]) -> Any:
    """Check a module and store it, in one process while others wait."""
    code = path.with_name(f"code_{hashlib.sha256(source.text.encode()).hexdigest()[:20]}.py")
    try:
        with file_lock(code.with_suffix(".lock")):
            stored = _stored(path)  # another process has generated it
            if stored is not None:
                return stored
            if not _is_text_of(code):
                write_private(code, source.text.encode())
            module = _module_of_arm(_load(code), source.constants)
            check(module)
            text = json.dumps({"code": code.name, "constants": source.constants})
            write_private(path, text.encode())
            write_private(_passed(path), _digest(path).encode())
            return module
    except OSError as error:
        raise ConfigError(
            f"kernel {path}: {error}; expected a writable file; free disk space, or set"
            " XDG_CACHE_HOME to another folder"
        ) from error


def _is_text_of(code: Path) -> bool:
    """Whether the file contains the text that its name is the hash of, and is this user's."""
    try:
        require_owned(code)
        return code.stem == f"code_{_digest(code)[:20]}"
    except OSError:
        return False


def _module_of_arm(module: Any, constants: Sequence[float]) -> Any:
    """Return the attributes of a module, and the ``CONSTANTS`` of an arm."""
    return SimpleNamespace(**vars(module), CONSTANTS=np.array(constants, dtype=float))


def _intact(path: Path) -> bool:
    """Whether the file is the one that passed its check, and belongs to this user."""
    try:
        require_owned(path)
        require_owned(_passed(path))
        return _passed(path).read_text(encoding="utf-8") == _digest(path)
    except (OSError, UnicodeDecodeError):
        return False


def _passed(path: Path) -> Path:
    return path.with_suffix(".checked")


def _digest(path: Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def stored(function: Callable[..., object]) -> Any:
    """Compile ``function``, which all kernels call, without the GIL; store it next to them."""
    with numba_keeps_in(_folder()):
        jitted = numba.njit(cache=True, nogil=True, error_model="numpy")(function)
    guard(jitted, _folder() / "lock")
    return jitted


@cache
def _folder() -> Path:
    """Return the folder of the modules: in numba's cache of this package, else temporary."""
    cache = cache_folder()
    folder = cache / "kernels" if cache else Path(tempfile.mkdtemp(prefix="arm_dynamics-"))
    folder.mkdir(mode=0o700, exist_ok=True)
    return folder


def _load(path: Path) -> Any:
    """Return the module of a source file, loaded once."""
    if path in _LOADED:
        return _LOADED[path]
    spec = importlib.util.spec_from_file_location(path.stem, path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[path.stem] = module  # numba's cache finds a function's module by name
    with numba_keeps_in(path.parent):
        spec.loader.exec_module(module)
    for function in vars(module).values():
        if isinstance(function, Dispatcher):
            guard(function, path.parent / "lock")
    _LOADED[path] = module
    return module

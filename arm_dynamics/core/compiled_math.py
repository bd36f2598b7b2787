"""Compiled functions and the mathematics in which joint physics is written.

The equations of motors, friction and end stops are plain functions of floats, marked
``@compiled``. With numba they run as machine code; without numba as Python, with the same
results, slower and with one warning.
Branches on a number go through ``where``, ``clip``, ``minimum`` and ``maximum``, so that the
same source also runs on symbols.
"""

from __future__ import annotations

import logging
import math
import signal
import sys
import threading
import time
import warnings
from collections.abc import Callable
from functools import cache, partial
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

import numpy as np

from arm_dynamics.core.arrays import Vector
from arm_dynamics.core.code_cache import cache_folder, guard, is_keyed, numba_keeps_in
from arm_dynamics.core.signals import compiling

try:
    import numba
    from numba.core import event
    from numba.core.compiler_lock import global_compiler_lock

    from arm_dynamics.core.array_arguments import ArrayArgument, is_readable
except ImportError:  # pragma: no cover - exercised in a separate process
    numba = None

F = TypeVar("F", bound=Callable[..., object])
INF = float("inf")


def compiled(function: F, *, inline: bool = True) -> F:
    """Compile ``function`` with numba at its first call.

    Machine code of this package is stored on disk by ``code_cache``. Functions of other packages
    are compiled in memory, once in a process. Each combination of argument types is compiled
    separately. A function that Python calls while motors have torque is declared with
    ``compiled_for`` instead.
    """
    if numba is None:
        _warn_slow_once()
        return function
    # numba stamps a stored function with its own file only. It does not detect a change of another
    # file, from which the function takes a function or a number. The folder is therefore keyed by
    # the text of all files, and no function of another file is stored.
    folder = cache_folder() if is_keyed(Path(function.__code__.co_filename)) else None
    with numba_keeps_in(folder):
        # Inlining: without the calls between them, the equations of a step take two thirds as long.
        # The wrapper for C callbacks, which nothing calls, takes a tenth of the compilation.
        jit = numba.njit(
            cache=folder is not None,
            error_model="numpy",
            forceinline=inline,
            no_cfunc_wrapper=True,
        )
        jitted: F = jit(function)
    if folder is not None and not numba.config.DISABLE_JIT:
        guard(jitted, folder / "lock")
    return jitted


compiled_without_inlining = partial(compiled, inline=False)
"""``compiled`` for long functions: copies of them in their callers would compile for minutes."""


class Kind(NamedTuple):
    """Type of one argument: numpy dtype, number of dimensions, whether it is written to.

    Arrays have any layout "A", or are C-contiguous, "C".
    """

    dtype: str | np.dtype[Any]
    dimensions: int = 0
    written: bool = False
    layout: str = "A"


NUMBER, COUNT, BOOLEAN = Kind("float64"), Kind("int64"), Kind("bool")
VECTOR, MATRIX, INDICES = Kind("float64", 1), Kind("float64", 2), Kind("intp", 1)
VECTOR_OUT, MATRIX_OUT = Kind("float64", 1, written=True), Kind("float64", 2, written=True)
COUNTS_OUT, FLAGS_OUT = Kind("int64", 1, written=True), Kind("bool", 1, written=True)
FLAG_ROWS = Kind("bool", 2, written=True)


Kinds = tuple["Kind | Kinds", ...]
"""Types of arguments; a tuple of kinds is one argument, a plain tuple of such values."""


def _numba_type(kind: Kind | Kinds, array: Any) -> Any:
    """Return numba's type of a kind of argument; ``array``: class of the arrays."""
    if not isinstance(kind, Kind):
        return numba.types.BaseTuple.from_types([_numba_type(k, array) for k in kind])
    number = numba.from_dtype(np.dtype(kind.dtype))
    if not kind.dimensions:
        return number
    return array(number, kind.dimensions, kind.layout, not kind.written)


class _Declared:
    """A function compiled for one signature, its declared kinds, at ``warm_up`` or its first call.

    Numba compiles a public signature in the decorator: importing all controllers on a new machine
    would then take 50 s of processor time longer, and every later import 0.8 s. Without a
    signature each layout of arrays is compiled separately, also while motors have torque. Two
    private methods of numba's dispatcher are therefore replaced.
    """

    def __init__(self, jitted: Any, kinds: Kinds, *, direct: bool) -> None:
        self._jitted, self._kinds = jitted, kinds
        self._array = ArrayArgument if direct and is_readable() else numba.types.Array
        self.code: Any = jitted
        self.name = f"{jitted.__module__}.{jitted.__name__}"
        self.warm = False
        self._template = jitted.get_call_template
        jitted._compile_for_args = self._first_call
        jitted.get_call_template = self._called_by_compiled

    def prepare(self) -> None:
        """Compile the signature or load it from disk; no other one is ever compiled."""
        with global_compiler_lock:
            if self.warm:
                return
            kinds = (_numba_type(kind, self._array) for kind in self._kinds)
            self.code = self._jitted.compile(tuple(kinds))
            self._jitted.disable_compile()
            self.warm = True

    def _first_call(self, *_: Any) -> Any:
        """Return the function that numba calls with the arguments; it converts them."""
        self.prepare()
        return self._jitted

    def _called_by_compiled(self, *types: Any) -> Any:
        """Let compiled callers also convert: if two versions fit, numba uses neither."""
        self.prepare()
        return self._template(*types)


_DECLARED: list[_Declared] = []
_DIRECT: dict[Callable[..., object], _Declared] = {}
_ON_DEMAND: dict[Callable[..., object], _Declared] = {}


def compiled_for(
    *kinds: Kind | Kinds, on_demand: bool = False, inline: bool = True, direct: bool = False
) -> Callable[[F], F]:
    """Declare a function's argument types, for which ``warm_up`` compiles it.

    Arguments that belong together are one plain tuple, declared as a tuple of kinds. A NamedTuple
    is not accepted: numba takes 2 µs longer to find its type.
    A function ``on_demand`` is not part of ``warm_up`` and ``cold`` until ``demand`` names it: for
    functions that take long to compile and that few classes call.
    A function that is declared ``direct`` returns no array. A ``direct_call`` of it is several
    times as fast.

    Arrays of any layout, read-only or not, and strided views are passed without a copy. No later
    call starts the compiler. Other types raise TypeError.
    """

    def declare(function: F) -> F:
        jitted = compiled(function, inline=inline)
        if hasattr(jitted, "disable_compile"):
            declared = _Declared(jitted, kinds, direct=direct)
            if direct:
                _DIRECT[jitted] = declared
            if on_demand:
                _ON_DEMAND[jitted] = declared
            else:
                _DECLARED.append(declared)
        return jitted

    return declare


def direct_call(function: F) -> F:
    """Return the compiled code of a function that is declared ``direct``; compile it now.

    It checks arrays and numbers itself (``array_arguments``) and raises TypeError for other types.
    The sizes of tuples are not checked. Without numba's compiler it is ``function``.
    """
    declared = _DIRECT.get(function)
    if declared is None:
        return function
    if not declared.warm:
        declared.prepare()
    code: F = declared.code
    return code


def demand(*functions: Callable[..., object]) -> None:
    """Include functions that were declared ``on_demand`` in ``warm_up`` and ``cold`` from now.

    Without an argument these are all such functions of the modules imported so far.
    """
    for function in functions or tuple(_ON_DEMAND):
        declared = _ON_DEMAND.pop(function, None)
        if declared is not None:
            _DECLARED.append(declared)


def warm_up(progress: Callable[[int, int], None] | None = None) -> int:
    """Compile, or load from disk, every declared function of the modules imported so far.

    Returns
    -------
    int
        Number of functions. ``progress(done, number)`` is called after each.

    """
    declared = tuple(_DECLARED)
    for done, function in enumerate(declared, 1):
        function.prepare()
        if progress is not None:
            progress(done, len(declared))
    return len(declared)


def cold() -> list[str]:
    """Return the names of declared functions that a call would have to compile first."""
    return [declared.name for declared in tuple(_DECLARED) if not declared.warm]


NOTICE = 2.0
"""Time [s] of compilation after which a log line explains the delay of the first call."""
PAUSE = 5.0
"""Time [s] without compilation after which the next one is explained again."""


class _DelayedInterrupt:
    """Raises KeyboardInterrupt after a compilation: LLVM's callbacks discard or replace it.

    A second Ctrl-C raises it immediately. Only Python's own handler of SIGINT is replaced.
    """

    def __init__(self) -> None:
        self._pending = False

    def start(self) -> None:
        """Delay Ctrl-C from now; call it in the thread that compiles."""
        own = signal.getsignal(signal.SIGINT) is signal.default_int_handler
        if own and threading.current_thread() is threading.main_thread():
            signal.signal(signal.SIGINT, self._note)

    def _note(self, *_: object) -> None:
        self._pending = True
        signal.signal(signal.SIGINT, signal.default_int_handler)

    def end(self) -> None:
        """Raise KeyboardInterrupt if Ctrl-C was pressed since ``start``."""
        if threading.current_thread() is not threading.main_thread():
            return
        if signal.getsignal(signal.SIGINT) == self._note:
            signal.signal(signal.SIGINT, signal.default_int_handler)
        if self._pending:
            self._pending = False
            raise KeyboardInterrupt


if numba is not None:

    class _Compilation(event.Listener):  # type: ignore[misc]
        """Delays Ctrl-C while this package is compiled; logs a line if that takes long.

        It also reports the compiling threads to ``signals``.
        """

        def __init__(self) -> None:
            self._depth, self._began, self._spent, self._logged = 0, 0.0, 0.0, False
            self._ended = 0.0
            self._interrupt = _DelayedInterrupt()

        def on_start(self, compilation: Any) -> None:
            compiling.append(threading.get_ident())
            ours = compilation.data["dispatcher"].__module__.startswith("arm_dynamics.")
            if self._depth or ours:  # numba's own functions are compiled for ours
                self._depth += 1
            if self._depth == 1:
                self._began = time.monotonic()
                if self._began - self._ended > PAUSE:  # another controller, in a running node
                    self._spent, self._logged = 0.0, False
                self._interrupt.start()
            self._log()

        def on_end(self, _: Any) -> None:
            compiling.remove(threading.get_ident())
            self._log()
            if self._depth == 1:
                self._ended = time.monotonic()
                self._spent += self._ended - self._began
            self._depth = max(0, self._depth - 1)
            if self._depth == 0:
                self._interrupt.end()

        def _log(self) -> None:
            spent = self._spent + (time.monotonic() - self._began if self._depth else 0.0)
            if spent > NOTICE and not self._logged:
                self._logged, folder = True, cache_folder()
                stored = f"stored in {folder}" if folder else "not stored: no folder is trusted"
                logging.getLogger("arm_dynamics").warning(
                    "arm_dynamics compiles for this machine: some seconds to a minute, %s", stored
                )

    event.register("numba:compile", _Compilation())


@cache
def _warn_slow_once() -> None:
    warnings.warn(
        f"numba is not installed: same results, slower ({sys.executable} -m pip install numba)",
        RuntimeWarning,
        stacklevel=4,
    )


@compiled
def where(condition: bool, first: float, second: float) -> float:
    """Return ``first`` if ``condition`` else ``second``."""
    return first if condition else second


@compiled
def minimum(x: float, y: float) -> float:
    """Return the smaller of two numbers."""
    return x if x < y else y


@compiled
def maximum(x: float, y: float) -> float:
    """Return the larger of two numbers."""
    return x if x > y else y


@compiled
def clip(x: float, lower: float, upper: float) -> float:
    """Return ``x`` limited to [lower, upper]."""
    return lower if x < lower else (upper if x > upper else x)


@compiled
def sign(x: float) -> float:
    """Return the sign of ``x``: -1, 0 or 1."""
    return 1.0 if x > 0.0 else (-1.0 if x < 0.0 else 0.0)


@compiled
def squared(x: float) -> float:
    """Return x², a term of a cost whose second derivative iLQR takes as 2 ∇x ∇xᵀ (Gauss-Newton)."""
    return x * x


@compiled
def exp(x: float) -> float:
    """Return e to the power ``x``."""
    return math.exp(x)


@compiled_for(VECTOR)
def is_finite(x: Vector) -> bool:
    """Return whether every entry (n,) is a finite number."""
    bad = 0
    for i in range(x.size):
        bad += not math.isfinite(x[i])
    return bad == 0


@compiled_for(VECTOR, VECTOR, VECTOR)
def all_finite(q: Vector, v: Vector, z: Vector) -> bool:
    """Return whether every entry of three vectors is a finite number."""
    return is_finite(q) and is_finite(v) and is_finite(z)

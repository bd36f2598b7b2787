"""Messages in the C layout of rosidl, whose sizes are readable before conversion to Python.

rclpy provides serialized messages only for subscriptions. It converts a request or goal to Python
objects first, in about 10 µs for each part, however many parts a client sends. A type support
holds its conversion from C as a capsule; ``guarded`` replaces it by one that checks the C structure
first.
"""

from __future__ import annotations

import ctypes
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from itertools import count
from typing import Any, NamedTuple

from rosidl_parser import definition

Convert = ctypes.PYFUNCTYPE(ctypes.py_object, ctypes.c_void_p)
ConvertBack = ctypes.PYFUNCTYPE(ctypes.c_bool, ctypes.py_object, ctypes.c_void_p)
_python: Any = ctypes.pythonapi
_python.PyCapsule_New.restype = ctypes.py_object
_python.PyCapsule_New.argtypes = (ctypes.c_void_p, ctypes.c_char_p, ctypes.c_void_p)
_python.PyCapsule_GetPointer.restype = ctypes.c_void_p
_python.PyCapsule_GetPointer.argtypes = (ctypes.py_object, ctypes.c_char_p)

NUMBERS: dict[str, Any] = {
    "boolean": ctypes.c_bool, "octet": ctypes.c_uint8, "float": ctypes.c_float,
    "double": ctypes.c_double, "char": ctypes.c_uint8, "wchar": ctypes.c_uint16,
    **{f"{u}int{n}": getattr(ctypes, f"c_{u}int{n}") for u in ("", "u") for n in (8, 16, 32, 64)},
}  # fmt: skip


class Run(ctypes.Structure):
    """Sequence or string of rosidl_runtime_c."""

    _fields_ = (
        ("data", ctypes.c_void_p),
        ("size", ctypes.c_size_t),
        ("capacity", ctypes.c_size_t),
    )


class Part(NamedTuple):
    """String (without ``element``) or sequence of ``element``: a ``Run`` at ``address``."""

    name: str
    element: Any
    address: int

    @property
    def size(self) -> int:
        """Number of elements or characters."""
        return int(Run.from_address(self.address).size)

    @property
    def is_text(self) -> bool:
        """Whether this is a string."""
        return self.element is None

    def inner(self) -> Iterator[Part]:
        """Yield the parts of every element."""
        if self.is_text or isinstance(self.element, definition.BasicType):
            return
        data, step = Run.from_address(self.address).data, ctypes.sizeof(_kind(self.element))
        for i in range(self.size):
            yield from _parts_of(self.name, self.element, data + i * step)


def parts(message: type, address: int) -> Iterator[Part]:
    """Yield every string and sequence of a message in C, except those within sequences."""
    layout: Any = structure(message)
    for name, slot in _slots(message):
        yield from _parts_of(name, slot, address + getattr(layout, name).offset)


@cache
def structure(message: type) -> type[ctypes.Structure]:
    """Return the C structure of a message type."""
    fields = [(name, _kind(slot)) for name, slot in _slots(message)]
    fields = fields or [("structure_needs_at_least_one_member", ctypes.c_uint8)]
    return type(message.__name__, (ctypes.Structure,), {"_fields_": fields})


def guarded(message: Any, convert: Callable[[int], Any]) -> Any:
    """Return a subclass of ``message`` that rclpy converts from C by ``convert``."""
    function = Convert(convert)
    capsule = _python.PyCapsule_New(ctypes.cast(function, ctypes.c_void_p), None, None)
    # The function must live as long as rclpy may call it.
    return derived(message, {}, {"_CONVERT_TO_PY": capsule, "kept": function})


def derived(kind: Any, attributes: dict[str, Any], of_type: dict[str, Any] | None = None) -> Any:
    """Return a subclass with attributes of the class and of its type; others are inherited."""
    metaclass = type("Limited", (type(kind),), of_type or {})
    return metaclass(kind.__name__, (kind,), attributes)


def from_c(message: Any, address: int) -> Any:
    """Return the Python object of a message in C, converted by rclpy."""
    return Convert(_pointer(message, "_CONVERT_TO_PY"))(address)


def to_c(message: Any, address: int) -> None:
    """Write a message into an empty one in C; raise TypeError for another type."""
    if not ConvertBack(_pointer(type(message), "_CONVERT_FROM_PY"))(message, address):
        raise TypeError(f"{type(message).__name__}: not converted to C")


@contextmanager
def new(message: Any) -> Iterator[int]:
    """Allocate and free an empty message in C, without the interpreter's lock."""
    type(message).__import_type_support__()
    address = ctypes.CFUNCTYPE(ctypes.c_void_p)(_pointer(message, "_CREATE_ROS_MESSAGE"))()
    try:
        yield address
    finally:
        free = ctypes.CFUNCTYPE(None, ctypes.c_void_p)
        free(_pointer(message, "_DESTROY_ROS_MESSAGE"))(address)


@cache
def is_known(message: Any) -> bool:
    """Return whether ``parts`` finds the sizes of an example in their places."""
    example, numbers = message(), count(1)
    try:
        sizes = _fill(example, numbers)
        with new(message) as address:
            to_c(example, address)
            return [part.size for part in parts(message, address)] == sizes
    except (AttributeError, ImportError, KeyError, TypeError, ValueError):  # of another rosidl
        return False


def _pointer(message: Any, name: str) -> int:
    """Return the C function of a message type with this name."""
    return int(_python.PyCapsule_GetPointer(getattr(type(message), name), None))


def _slots(message: Any) -> list[tuple[str, Any]]:
    names = message.get_fields_and_field_types()
    return list(zip(names, message.SLOT_TYPES, strict=True))


def _named(slot: Any) -> Any:
    """Return the message type of a nested message; that of an action by its name."""
    module, name = import_module(".".join(slot.namespaces)), slot.name
    if hasattr(module, name):
        return getattr(module, name)
    action, part = name.rsplit("_", 1)
    return getattr(getattr(module, action), part)


def _kind(slot: Any) -> Any:
    if isinstance(slot, definition.BasicType):
        return NUMBERS[slot.typename]
    if isinstance(slot, definition.NamespacedType):
        return structure(_named(slot))
    if isinstance(slot, definition.Array):
        return _kind(slot.value_type) * slot.size
    return Run


def _parts_of(name: str, slot: Any, address: int) -> Iterator[Part]:
    if isinstance(slot, definition.NamespacedType):
        yield from parts(_named(slot), address)
    elif isinstance(slot, definition.Array):
        step = ctypes.sizeof(_kind(slot.value_type))
        for i in range(slot.size):
            yield from _parts_of(name, slot.value_type, address + i * step)
    elif isinstance(slot, definition.AbstractSequence):
        yield Part(name, slot.value_type, address)
    elif not isinstance(slot, definition.BasicType):
        yield Part(name, None, address)


def _fill(message: Any, numbers: Iterator[int]) -> list[int]:
    """Set every string and sequence to a different size; return them in the order of ``parts``."""
    sizes: list[int] = []
    for name, slot in _slots(message):
        if isinstance(slot, definition.NamespacedType):
            sizes += _fill(getattr(message, name), numbers)
        elif isinstance(slot, definition.AbstractSequence):
            sizes.append(next(numbers))
            setattr(message, name, [_example(slot.value_type)] * sizes[-1])
        elif isinstance(slot, definition.AbstractGenericString):
            sizes.append(next(numbers))
            setattr(message, name, "x" * sizes[-1])
    return sizes


def _example(slot: Any) -> Any:
    if isinstance(slot, definition.NamespacedType):
        return _named(slot)()
    if isinstance(slot, definition.AbstractGenericString):
        return ""
    return {"boolean": False, "octet": b"\0", "float": 0.0, "double": 0.0}.get(slot.typename, 0)

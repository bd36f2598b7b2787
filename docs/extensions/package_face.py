"""Directive ``package-face``: the documentation of every name in a package's ``__all__``.

An object that several packages export is described once, on the page of the last package in
PACKAGES that exports it. The other pages link to that description.
"""

import inspect
import re
import sys
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from reprlib import repr as short
from typing import get_origin

from docutils import nodes
from docutils.statemachine import StringList
from sphinx.application import Sphinx
from sphinx.errors import ExtensionError
from sphinx.pycode import ModuleAnalyzer
from sphinx.util.docutils import SphinxDirective
from sphinx.util.inspect import TypeAliasForwardRef

PACKAGES = (
    "arm_dynamics",
    "arm_dynamics.core",
    "arm_dynamics.model",
    "arm_dynamics.dynamics",
    "arm_dynamics.collision",
    "arm_dynamics.safety",
    "arm_dynamics.simulation",
    "arm_dynamics.hardware",
    "arm_dynamics.control",
    "arm_dynamics.batch",
    "arm_dynamics.recording",
    "arm_dynamics.viewer",
    "arm_dynamics.identification",
)
"""Packages with a page in docs/api: the package itself, then its parts from low to high."""


def page_name(package: str) -> str:
    """Return the page of ``package``, relative to docs/ and without suffix."""
    return f"api/{package.rpartition('.')[2]}"


def is_missing(package: str) -> bool:
    """Return whether ``package`` does not exist; its page is then not built."""
    return find_spec(package) is None


@cache
def exported(package: str) -> dict[str, object]:
    """Return the objects of ``__all__`` by name; lazy exports are imported."""
    if is_missing(package):
        return {}
    module = import_module(package)
    return {name: getattr(module, name) for name in getattr(module, "__all__", ())}


def home(name: str, value: object, package: str) -> str:
    """Return the package on whose page ``value`` is described."""
    if not hasattr(value, "__qualname__"):
        return package
    return [p for p in PACKAGES if exported(p).get(name) is value][-1]


def description(package: str, name: str, value: object) -> list[str]:
    """Return the reStructuredText that describes one exported object."""
    if inspect.ismodule(value):
        return [f".. automodule:: {value.__name__}", ""]
    if get_origin(value) is None and inspect.isclass(value):
        kind = "autoexception" if issubclass(value, BaseException) else "autoclass"
        return [f".. {kind}:: {package}.{name}", ""]
    compiled = getattr(value, "py_func", value)
    if get_origin(value) is None and inspect.isroutine(inspect.unwrap(compiled)):
        return [f".. autofunction:: {package}.{name}", ""]
    shown = short(value) if get_origin(value) is None else str(value)
    comment = [f"   {line}" for line in data_comment(name, value)]
    return [f".. py:data:: {package}.{name}", f"   :value: {shown}", "", *comment, ""]


def data_comment(name: str, value: object) -> list[str]:
    """Return the docstring below the assignment of a constant or of a type alias."""
    for module in [m for key, m in sys.modules.items() if key.startswith("arm_dynamics")]:
        if vars(module).get(name) is value and getattr(module, "__file__", None):
            comment = ModuleAnalyzer.for_module(module.__name__).find_attr_docs().get(("", name))
            if comment:
                return comment
    return []


class PackageFace(SphinxDirective):
    """``package-face:: arm_dynamics.model``, within an ``eval-rst`` block of MyST."""

    required_arguments = 1

    def run(self) -> list[nodes.Node]:
        """Return the module's docstring and the description of each exported object."""
        package = self.arguments[0]
        if package not in PACKAGES:
            raise ExtensionError(f"package-face: package = {package}; expected one of {PACKAGES}")
        links, bodies = [], []
        for name, value in exported(package).items():
            place = home(name, value, package)
            if place == package:
                bodies += description(package, name, value)
            else:
                role = "class" if inspect.isclass(value) else "func"
                links.append(f"- :py:{role}:`{place}.{name}`")
        lines = [f".. automodule:: {package}", "   :no-members:", ""]
        if links:
            lines += ["Names described with the package that defines them:", "", *links, ""]
        return self.parse_text_to_nodes(StringList([*lines, *bodies], source=package))


def escape_bars(*event: list[str]) -> None:
    """Escape | in a docstring outside of code: it means an absolute value, no substitution."""
    lines = event[-1]
    for k, line in enumerate(lines):
        pieces = re.split(r"(``.*?``)", line)
        pieces[::2] = [piece.replace("|", r"\|") for piece in pieces[::2]]
        lines[k] = "".join(pieces)


def setup(app: Sphinx) -> dict[str, bool]:
    """Register the directive, and the hook on docstrings before that of numpydoc."""
    app.add_directive("package-face", PackageFace)
    app.connect("autodoc-process-docstring", escape_bars, priority=100)
    TypeAliasForwardRef.__repr__ = lambda alias: alias.name  # Mapping[str, Vector]
    return {"parallel_read_safe": True}

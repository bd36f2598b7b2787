"""Every name, path and command that a document quotes in back-ticks exists.

Checked are code spans that look like a path of the repository, a dotted name of arm_dynamics, a
class or member, a call, or a command of make or arm-dynamics.
"""

import ast
import re
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import pytest

from arm_dynamics.cli import main
from arm_dynamics.cli.hardware import command
from arm_dynamics.core import plugins

ROOT = Path(__file__).resolve().parent.parent
PACKAGE = ROOT / "arm_dynamics"
PAGES = [
    *(ROOT / name for name in ("README.md", "ARCHITECTURE.md", "CONTRIBUTING.md")),
    *sorted((ROOT / "docs").glob("*.md")),
]
FOREIGN = {
    "listener": "a function of the reader's, given to Events",
    "MoveItConfigsBuilder": "of moveit_configs_utils",
    "Ros2ControlManager": "of moveit_ros_control_interface",
    "soft_pd.py": "the reader's module on the page about controllers",
}
"""Names that the package does not define, each with its page."""
DATA = (".py", ".md", ".yaml", ".json", ".xml", ".rviz", ".urdf")


def spans(page):
    """Return the code spans of a page with their lines, without fenced blocks."""
    text = re.sub(
        r"^```.*?^```",
        lambda block: "\n" * block[0].count("\n"),
        page.read_text("utf-8"),
        flags=re.MULTILINE | re.DOTALL,
    )
    for found in re.finditer(r"(?<!`)`([^`]+)`(?!`)", text):
        yield text.count("\n", 0, found.start()) + 1, " ".join(found[1].split())


@cache
def classes():
    """Return class → (names of its members, names of its parameters, names of its bases)."""
    found = {}
    for file in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.ClassDef):
                members, parameters, bases = found.setdefault(node.name, (set(), set(), set()))
                bases |= {getattr(b, "id", getattr(b, "attr", "")) for b in node.bases}
                members |= {m for part in node.body for m in members_of(part)}
                parameters |= {p for part in node.body for p in parameters_of(part)}
    return found


def members_of(part):
    """Return the names that a statement of a class body defines, attributes of self included."""
    if isinstance(part, ast.FunctionDef | ast.AsyncFunctionDef):
        yield part.name
        stored = (n for n in ast.walk(part) if isinstance(n, ast.Attribute))
        stored = (n for n in stored if isinstance(n.ctx, ast.Store))
        yield from (n.attr for n in stored if getattr(n.value, "id", "") == "self")
    for target in getattr(part, "targets", [getattr(part, "target", None)]):
        for name in ast.walk(target) if target else ():
            if isinstance(name, ast.Name):
                yield name.id


def parameters_of(part):
    """Return the parameters of ``__init__``, or the fields of a dataclass or NamedTuple."""
    if isinstance(part, ast.FunctionDef) and part.name == "__init__":
        yield from (a.arg for a in [*part.args.args, *part.args.kwonlyargs])
    if isinstance(part, ast.AnnAssign) and isinstance(part.target, ast.Name):
        yield part.target.id


@cache
def functions():
    """Return function or method of the package → names of its parameters; "**" for any other."""
    found = {}
    for file in PACKAGE.rglob("*.py"):
        for node in ast.walk(ast.parse(file.read_text("utf-8"))):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                names = {a.arg for a in [*node.args.args, *node.args.kwonlyargs]}
                found.setdefault(node.name, set()).update(names, ["**"] if node.args.kwarg else [])
    return found


def has_member(name, kind, index):
    """Return whether a class or one of its bases has a member (index 0) or a parameter (1)."""
    entry = classes().get(name)
    return entry is not None and (
        kind in entry[index] or any(has_member(base, kind, index) for base in entry[2] - {name})
    )


def exists(path, page):
    """Return whether a path exists from the root, the package or the page; <x> is any name."""
    pattern = re.sub("<[^>]*>", "*", path.rstrip("/"))
    return any(any(base.glob(pattern)) for base in (ROOT, PACKAGE, page.parent))


@cache
def file_names():
    folders = ("arm_dynamics", "benchmarks", "docs", "examples", "launch", "scripts", "test", ".ci")
    files = (file for folder in folders for file in (ROOT / folder).rglob("*.*"))
    return {file.name for file in [*files, *ROOT.glob("*.*")]}


def is_imported(name):
    """Return whether a dotted name of the package is a module, or an attribute of one."""
    if name in {f"arm_dynamics.{group}" for group in plugins.BUILT_IN}:
        return True
    parent, _, last = name.rpartition(".")
    try:
        if find_spec(name):
            return True
    except ModuleNotFoundError:
        pass
    try:
        return hasattr(import_module(parent), last)
    except ImportError:
        return False


def command_fault(span, _page):
    """Check `make TARGET` and `arm-dynamics COMMAND`."""
    program, *rest = span.split()
    if program == "make":
        known = set(re.findall(r"^([a-z-]+):", (ROOT / "Makefile").read_text(), re.MULTILINE))
    else:
        known = set(main.COMMANDS)
        if rest[0] == "hardware" and len(rest) > 1:
            rest, known = rest[1:], set(command.COMMANDS)
    is_name = re.fullmatch("[a-z][a-z-]+", rest[0])
    return f"no {rest[0]} of {program}" if is_name and rest[0] not in known else None


def module_fault(span, _page):
    return None if is_imported(span) else "no such module or name"


def file_fault(span, page):
    found = span in file_names() or f"Save it as `{span}`" in page.read_text("utf-8")
    return None if found else "no file of this name"


def path_fault(span, page):
    """Check a span that ends like a file or folder, or starts with a folder of the repository."""
    ours = span.endswith((*DATA, "/")) or (ROOT / span.split("/")[0]).is_dir()
    return "no such path" if ours and not exists(span, page) else None


def member_fault(span, _page):
    name, member = span.split(".")
    return None if has_member(name, member, 0) else f"{name} has no {member}"


def class_fault(span, _page):
    return None if span in classes() else "no such class"


def call_fault(span, _page):
    """Check a called class, method of a class or function, and the names of its arguments."""
    try:
        tree = ast.parse(span, mode="eval").body
    except SyntaxError:
        return None
    called = tree.func
    keywords = {k.arg for k in tree.keywords if k.arg}
    if isinstance(called, ast.Attribute):
        owner = getattr(called.value, "id", "")
        if owner in classes() and not has_member(owner, called.attr, 0):
            return f"{owner} has no {called.attr}"
        name = called.attr
    else:
        name = called.id
        if name not in classes() and name not in functions():
            return "no such function or class"
    if name in classes():
        keywords = {k for k in keywords if not has_member(name, k, 1)}
    elif name in functions() and "**" not in functions()[name]:
        keywords -= functions()[name]
    else:
        keywords = set()
    return f"{name} has no parameter {', '.join(sorted(keywords))}" if keywords else None


CHECKS = (
    (r"(make|arm-dynamics) .+", command_fault),
    (r"arm_dynamics(\.\w+)+", module_fault),
    (r"[\w.<>-]+\.(py|md)", file_fault),
    (r"[\w.<>-]+/[\w.<>/-]*", path_fault),
    (r"[A-Z]\w*[a-z]\w*\.\w+", member_fault),
    (r"[A-Z]\w*[a-z]\w*", class_fault),
    (r"[A-Za-z_][\w.]*\(.*\)", call_fault),
)
"""Forms of a span with their checks; the first match counts."""


def fault(span, page):
    """Return the missing part of ``span``; None if it exists or is not a name of the project."""
    if span.partition("(")[0] in FOREIGN:
        return None
    check = next((check for form, check in CHECKS if re.fullmatch(form, span)), None)
    return check(span, page) if check else None


@pytest.mark.parametrize("page", PAGES, ids=lambda page: page.name)
def test_quoted_names_exist(page):
    faults = [(line, span, fault(span, page)) for line, span in spans(page)]
    wrong = [f"{page.name}:{line}: `{span}`: {why}" for line, span, why in faults if why]
    assert wrong == [], "\n".join(["", *wrong])


@pytest.mark.parametrize(
    "span",
    [
        "docs/no_page.md",
        "no_module.py",
        "model/no_module.py",
        "arm_dynamics.no_module",
        "arm_dynamics.model.NoClass",
        "ArmModel.no_member",
        "NoSuchClass",
        "NoSuchClass.member",
        "ArmModel.no_method(1)",
        "no_such_function(arm)",
        "load_arm(arm, no_parameter=1)",
        "Simulation(arm, no_parameter=1)",
        "make no-target",
        "arm-dynamics no-command",
        "arm-dynamics hardware no-command",
    ],
)
def test_missing_names_are_found(span):
    assert fault(span, ROOT / "README.md")


@pytest.mark.parametrize(
    "span",
    [
        "README.md",
        "docs/",
        "model/",
        "config/<arm>.yaml",
        "arm_dynamics.model",
        "arm_dynamics.load_arm",
        "ArmModel.joint_names",
        "ControlLoop",
        "ControlLoop.step()",
        "load_arm(path, lock=[...])",
        "make test",
        "arm-dynamics audit FILE",
        "arm-dynamics hardware jog",
        "~/target_pose",
        "joint_controller/reference",
        "R1.current",
        "np.zeros(3)",
        "/clock",
    ],
)
def test_existing_names_and_names_of_other_programs_pass(span):
    assert fault(span, ROOT / "README.md") is None


@cache
def documented_packages():
    """Return the packages that have a page of the API reference."""
    source = (ROOT / "docs" / "extensions" / "package_face.py").read_text("utf-8")
    (value,) = (
        node.value
        for node in ast.parse(source).body
        if isinstance(node, ast.Assign) and node.targets[0].id == "PACKAGES"
    )
    return ast.literal_eval(value)


@pytest.mark.parametrize("package", documented_packages())
def test_a_documented_package_exports_names_and_has_a_page(package):
    page = ROOT / "docs" / "api" / f"{package.rpartition('.')[2]}.md"
    assert f"package-face:: {package}\n" in page.read_text("utf-8")
    module = import_module(package)
    assert module.__all__
    assert [name for name in module.__all__ if not hasattr(module, name)] == []


def test_every_page_of_the_reference_describes_a_package():
    pages = {page.stem for page in (ROOT / "docs" / "api").glob("*.md")}
    assert pages == {package.rpartition(".")[2] for package in documented_packages()}


def test_documents_and_examples_import_from_at_most_ten_packages():
    imported = re.compile(r"^\s*(?:from|import) (arm_dynamics[\w.]*)", re.MULTILINE)
    pages = [*PAGES, *(ROOT / "examples").glob("*.py")]
    paths = {name for page in pages for name in imported.findall(page.read_text("utf-8"))}
    assert paths <= {"arm_dynamics", *documented_packages()}
    assert 1 < len(paths) <= 10

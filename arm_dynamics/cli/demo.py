"""``arm-dynamics demo NAME``: a system shown in figures, or on a page of its own."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from pathlib import Path

from rich.console import Console
from rich.table import Table

from arm_dynamics.cli.arm_options import path_argument
from arm_dynamics.cli.terminal import waiting
from arm_dynamics.core.files import prepare_folder
from arm_dynamics.demos import registry


def run(arguments: Sequence[str]) -> int:
    """Show one demonstration; without a name, list them all. A live one has its own options."""
    if arguments and arguments[0] in registry.DEMOS and registry.find_demo(arguments[0]).live:
        return int(registry.load_demo(arguments[0]).run(arguments[1:]))
    parser = argparse.ArgumentParser(prog="arm-dynamics demo", description=__doc__)
    parser.add_argument("name", nargs="?", metavar="NAME", help=", ".join(registry.DEMOS))
    parser.add_argument(
        "--output", type=path_argument, metavar="FOLDER", help=f"default: {registry.OUT}/NAME"
    )
    given = parser.parse_args(arguments)
    if given.name is None:
        return _list()
    if registry.find_demo(given.name).live:
        parser.error(f"'{given.name}' comes before its options")
    return _figures(given.name, given.output or registry.OUT / given.name)


def _list() -> int:
    table = Table("demonstration", "shows", "as")
    for name, demo in registry.DEMOS.items():
        table.add_row(name, demo.text, "page and figures" if demo.live else "figures")
    Console().print(table)
    return 0


def _figures(name: str, folder: Path) -> int:
    module = registry.load_demo(name)
    from arm_dynamics.demos import writer  # noqa: PLC0415  (matplotlib is there by now)

    prepare_folder(folder)  # what cannot be written is known before anything is computed
    with waiting(f"computing and drawing '{name}'"):
        result = writer.write_figures(module.show(), folder)
    writer.print_results(result, folder)
    return 0

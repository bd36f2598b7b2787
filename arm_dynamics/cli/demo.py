"""Show a demonstration in figures or in the viewer; without NAME, list the demonstrations."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from rich.console import Console
from rich.table import Table

from arm_dynamics.cli.arm_options import path_argument
from arm_dynamics.cli.terminal import waiting
from arm_dynamics.core.files import results_folder
from arm_dynamics.core.suggesting_parser import SuggestingParser
from arm_dynamics.demos import registry


def run(
    arguments: Sequence[str],
    demos: Mapping[str, registry.Demo] = registry.DEMOS,
    program: str = "arm-dynamics demo",
) -> int:
    """Run one demonstration, or list all; a live demonstration parses its own options.

    Parameters
    ----------
    arguments : sequence of str
        Arguments of the command.
    demos : Mapping[str, Demo]
        Demonstrations by name.
    program : str
        Name of the command.

    """
    if arguments and arguments[0] in demos and demos[arguments[0]].live:
        return int(registry.load_demo(arguments[0], demos).run(arguments[1:]))
    parser = SuggestingParser(prog=program, description=__doc__)
    text = f"demonstration: {', '.join(demos)}"
    parser.add_argument("name", nargs="?", metavar="NAME", help=text)
    text = f"folder of the figures (default: {registry.OUT}/NAME)"
    parser.add_argument("--output", type=path_argument, metavar="FOLDER", help=text)
    args = parser.parse_args(arguments)
    if args.name is None:
        table = Table("demonstration", "subject", "output")
        for name, demo in demos.items():
            table.add_row(name, demo.text, "viewer and figures" if demo.live else "figures")
        Console().print(table)
        return 0
    if registry.find_demo(args.name, demos).live:
        parser.error(f"expected '{args.name}' before its options")
    module, folder = registry.load_demo(args.name, demos), args.output or registry.OUT / args.name
    from arm_dynamics.demos import writer  # noqa: PLC0415 - load_demo has checked matplotlib

    text = f"computing and drawing '{args.name}'"
    with results_folder(folder), waiting(text):  # raises first if the folder cannot be written
        result = writer.write_figures(module.show(), folder)
    writer.print_results(result, folder)
    return 0

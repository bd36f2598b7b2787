"""Parser of the commands: a mistyped command or option is rejected with the closest one."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from typing import Any, NoReturn

from arm_dynamics.core.errors import did_you_mean


class SuggestingParser(argparse.ArgumentParser):
    """An ArgumentParser whose errors name the closest choice or option."""

    _given: Sequence[str] = ()

    def parse_known_args(self, args: Any = None, namespace: Any = None) -> Any:
        """Parse as ArgumentParser does; ``error`` finds mistyped options in ``args``."""
        self._given = tuple(args or ())
        return super().parse_known_args(args, namespace)

    def error(self, message: str) -> NoReturn:
        """Print the usage, the message and suggestions; exit with code 2."""
        options = tuple(self._option_string_actions)
        typed = (word.partition("=")[0] for word in self._given if word.startswith("--"))
        wrong = [t for t in typed if t != "--" and not any(o.startswith(t) for o in options)]
        hints = (did_you_mean(name, options) for name in dict.fromkeys(wrong))
        super().error("".join([message, *hints]))

    def _check_value(self, action: argparse.Action, value: Any) -> None:
        try:
            super()._check_value(action, value)
        except argparse.ArgumentError as error:
            hint = did_you_mean(str(value), tuple(map(str, action.choices or ())))
            raise argparse.ArgumentError(action, f"{error.message}{hint}") from None

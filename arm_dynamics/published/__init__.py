"""Reproduction of the published gain search of five_dof, to the published digits.

``compatibility="dynamechs"`` of the forward model takes its time step, ``simulation/dynamechs.py``.
May import batch and all below. Start reading at ``published_search.py``; ``published_gains.py``
holds the published values, ``published_stability.py`` their stability limit.
"""

from typing import TYPE_CHECKING

from arm_dynamics.core.lazy_exports import lazy_exports

if TYPE_CHECKING:
    from arm_dynamics.published.published_gains import PUBLISHED_I, PUBLISHED_P, published_results
    from arm_dynamics.published.published_search import improve, search
    from arm_dynamics.published.published_stability import (
        published_loop,
        published_stability_limit,
    )

_MODULES = {
    "PUBLISHED_I": ".published_gains",
    "PUBLISHED_P": ".published_gains",
    "improve": ".published_search",
    "published_loop": ".published_stability",
    "published_results": ".published_gains",
    "published_stability_limit": ".published_stability",
    "search": ".published_search",
}

__all__ = [
    "PUBLISHED_I",
    "PUBLISHED_P",
    "improve",
    "published_loop",
    "published_results",
    "published_stability_limit",
    "search",
]

__getattr__, __dir__ = lazy_exports(__name__, _MODULES)

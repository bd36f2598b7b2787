"""Scenes as resources of the standard simulation_interfaces: worlds and objects of entities."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from pathlib import Path
from typing import Any

from simulation_interfaces import msg, srv
from simulation_interfaces.msg import SimulatorFeatures

from arm_dynamics.collision.scene import EMPTY_SCENE, Scene
from arm_dynamics.collision.scene_files import (
    SceneRejected,
    bundled_scenes,
    load_scene,
    parse_scene,
    scene_text,
)
from arm_dynamics.core.errors import ArmDynamicsError, ConfigError
from arm_dynamics.model.audit.fault import Fault
from arm_dynamics.model.description_file import read_urdf
from arm_dynamics.model.xml_source import parse_xml
from arm_dynamics.ros.topics.scene_topics import SceneTopics


class Failure(Exception):
    """Result of a request that fails: a code of the standard and its text."""

    def __init__(self, code: int, text: str) -> None:
        super().__init__(text)
        self.code = code


class Worlds:
    """Worlds of the standard, from its version 2.0 on: scenes around the arm, which stays.

    ``stop`` brings the simulation to its start, stopped.
    """

    def __init__(self, scene: SceneTopics, stop: Callable[[], None]) -> None:
        self._scene, self._stop = scene, stop
        self._loaded: tuple[Scene, str] = EMPTY_SCENE, ""
        """The last world and its URI."""

    @property
    def services(self) -> dict[Any, Callable[[Any, Any], None]]:
        """Callback of each installed service."""
        works = {
            "LoadWorld": self._load,
            "UnloadWorld": self._unload,
            "GetCurrentWorld": self._get_current,
            "GetAvailableWorlds": self._get_available,
        }
        return {getattr(srv, name): work for name, work in works.items() if hasattr(srv, name)}

    @property
    def features(self) -> list[int]:
        """Features of the installed services."""
        if not self.services:
            return []
        names = ("LOADING", "RESOURCE_STRING", "UNLOADING", "INFO_GETTING")
        features = [getattr(SimulatorFeatures, f"WORLD_{name}") for name in names]
        return [*features, SimulatorFeatures.AVAILABLE_WORLDS]

    def _load(self, request: Any, response: Any) -> None:
        """Replace the scene; the simulation is stopped at its start."""
        kind, resource = srv.LoadWorld.Response, request.world_resource
        text, folder = resource_text(resource, kind)
        if text.lstrip().startswith("<") and is_arm(text):
            given = resource.uri or "resource_string"
            problem = f"'{given}' is not a URDF of fixed links; expected a scene"
            raise Failure(kind.UNSUPPORTED_FORMAT, problem)
        scene = resource_scene(text, resource.uri, folder, kind)
        self._scene.take(scene)
        self._loaded = scene, resource.uri
        self._stop()
        self._describe(response.world)

    def _unload(self, _: Any, __: Any) -> None:
        self._require(srv.UnloadWorld.Response)
        self._scene.take(EMPTY_SCENE)

    def _get_current(self, _: Any, response: Any) -> None:
        self._require(srv.GetCurrentWorld.Response)
        self._describe(response.world)

    def _require(self, kind: Any) -> None:
        if not len(self._scene.initial):
            raise Failure(kind.NO_WORLD_LOADED, "objects of the scene = 0; expected a scene")

    def _describe(self, world: Any) -> None:
        """Write name and resource of the scene, as text unless it was loaded from a URI."""
        scene, uri = self._loaded
        if scene is self._scene.initial and uri:
            world.name, world.world_resource.uri = Path(uri).stem, uri
        else:
            world.name = "scene"
            world.world_resource.resource_string = scene_text(self._scene.initial)

    def _get_available(self, request: Any, response: Any) -> None:
        """Return the bundled scenes; they have no tags."""
        for name in [] if request.filter.tags else bundled_scenes():
            world = msg.WorldResource(name=name, description=f"bundled scene '{name}'")
            world.world_resource.uri = name
            response.worlds.append(world)
        if request.additional_sources:
            given = ", ".join(request.additional_sources)
            text = f"additional_sources = {given}; expected none: scenes are files"
            response.result.error_message = text


def resource_scene(text: str, uri: str, folder: Path | None, kind: Any) -> Scene:
    """Return the scene of a resource; raise Failure of ``kind`` if it is not one."""
    try:
        return parse_scene(text, uri or "resource_string", folder)
    except SceneRejected as error:
        raise resource_failure(error.faults, str(error), folder, kind) from error
    except ConfigError as error:
        raise Failure(kind.RESOURCE_PARSE_ERROR, str(error)) from error


def resource_text(resource: Any, kind: Any) -> tuple[str, Path | None]:
    """Return the text of a resource and its folder; raise Failure of ``kind`` if it is not read."""
    if not resource.uri and not resource.resource_string:
        text = "uri and resource_string are empty; expected a URDF or a scene"
        raise Failure(kind.NO_RESOURCE, text)
    if not resource.uri:
        return resource.resource_string, None
    if resource.uri in bundled_scenes():
        return scene_text(load_scene(resource.uri)), None
    scheme, separator, rest = resource.uri.partition("://")
    if separator and scheme != "file":
        problem = f"uri = '{resource.uri}'; expected a bundled scene, a file or file://"
        raise Failure(kind.UNSUPPORTED_FORMAT, problem)
    path = Path(rest if separator else resource.uri)
    try:
        return read_urdf(path), path.parent
    except ConfigError as error:
        raise Failure(kind.RESOURCE_PARSE_ERROR, str(error)) from error


def is_arm(text: str) -> bool:
    """Return whether an XML text is not a robot, or one with moving joints."""
    try:
        root = parse_xml(text)
    except ArmDynamicsError:
        return True  # the audit reports it
    return root.tag != "robot" or any(j.get("type") != "fixed" for j in root.find_all("joint"))


def resource_failure(
    faults: Iterable[Fault], report: str, folder: Path | None, kind: Any
) -> Failure:
    """Return the failure of a resource: that of a missing file has a code for itself."""
    for fault in (f for f in faults if f.element.endswith("filename>")):
        missing = folder is not None and fault.problem.startswith("does not exist")
        return Failure(kind.MISSING_ASSETS if missing else kind.UNSUPPORTED_ASSETS, str(fault))
    return Failure(kind.RESOURCE_PARSE_ERROR, report)

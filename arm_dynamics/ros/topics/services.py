"""Services with a message as response: server and client. Parameters of other nodes.

Clients are called from threads that may wait.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from threading import Event
from typing import Any

from rcl_interfaces.msg import ParameterType
from rcl_interfaces.srv import GetParameters, ListParameters, SetParameters
from rclpy.node import Node
from rclpy.parameter import Parameter, parameter_value_to_python
from std_srvs.srv import SetBool, Trigger

from arm_dynamics.core.errors import ArmDynamicsError, DriverFault, InvalidValue


def serve(node: Node, kind: type[Any], service: str, work: Callable[[Any], str]) -> None:
    """Serve a Trigger or SetBool: ``work`` gets the request and returns the message.

    An error of this package that it raises is the message of an unsuccessful response.
    """

    def respond(request: Any, response: Any) -> Any:
        try:
            response.message = work(request)
            response.success = True
        except ArmDynamicsError as error:
            response.success, response.message = False, str(error)
        return response

    node.create_service(kind, service, respond)


TIMEOUT = 15.0
"""Maximum time [s] until the response of a service."""
PARAMETERS = {"list": ListParameters, "get": GetParameters, "set": SetParameters}


class Remote:
    """One service of another node; another thread than the caller's must spin the node."""

    def __init__(self, node: Node, kind: type[Any], service: str) -> None:
        self._kind, self._service = kind, service
        self._client = node.create_client(kind, service)

    @property
    def ready(self) -> bool:
        """Whether the service exists."""
        return bool(self._client.service_is_ready())

    def call(self, request: Any = None) -> Any:
        """Return the response; raise DriverFault without one within TIMEOUT."""
        if not self.ready:
            raise DriverFault(f"{self._service}: servers = 0; expected a node with this service")
        future, done = self.call_async(request), Event()
        future.add_done_callback(lambda _: done.set())
        if not done.wait(TIMEOUT):
            self._client.remove_pending_request(future)
            raise DriverFault(f"{self._service}: no response; expected one within {TIMEOUT:g} s")
        return future.result()

    def call_async(self, request: Any = None) -> Any:
        """Send a request; return the future of its response."""
        return self._client.call_async(request or self._kind.Request())

    def do(self, request: Trigger.Request | SetBool.Request | None = None) -> str:
        """Return the message of a Trigger or SetBool; raise InvalidValue with it if it failed."""
        response = self.call(request)
        if not response.success:
            raise InvalidValue(response.message)
        return str(response.message)


class RemoteParameters:
    """Parameters of another node of this namespace."""

    def __init__(self, node: Node, name: str) -> None:
        self._services = {
            action: Remote(node, kind, f"{name}/{action}_parameters")
            for action, kind in PARAMETERS.items()
        }

    @property
    def ready(self) -> bool:
        """Whether the node exists."""
        return all(service.ready for service in self._services.values())

    def set(self, values: Mapping[str, Any]) -> None:
        """Set parameters; raise InvalidValue with the node's reason for a rejected one."""
        response = self._services["set"].call(_request(values))
        for result in response.results:
            if not result.successful:
                raise InvalidValue(result.reason)

    def post(self, values: Mapping[str, Any]) -> None:
        """Set parameters without waiting for the response."""
        self._services["set"].call_async(_request(values))

    def value(self, name: str) -> Any:
        """Return one parameter; raise InvalidValue if the node does not have it."""
        (value,) = self._services["get"].call(GetParameters.Request(names=[name])).values or (None,)
        if value is None:
            raise InvalidValue(f"parameter {name}: not declared; expected a parameter of the node")
        return parameter_value_to_python(value)

    def numbers(self, *prefixes: str) -> dict[str, float]:
        """Return the numeric parameters under or equal to one of ``prefixes``."""
        listed = self._services["list"].call(ListParameters.Request(prefixes=list(prefixes)))
        request = GetParameters.Request(names=listed.result.names)
        values = self._services["get"].call(request).values
        return {
            name: parameter_value_to_python(value)
            for name, value in zip(request.names, values, strict=False)
            if value.type == ParameterType.PARAMETER_DOUBLE
        }


def _request(values: Mapping[str, Any]) -> SetParameters.Request:
    parameters = [Parameter(n, value=value).to_parameter_msg() for n, value in values.items()]
    return SetParameters.Request(parameters=parameters)

"""ROS domain with a hardware node."""

from lifecycle_msgs.msg import Transition
from lifecycle_msgs.srv import ChangeState, GetState
from std_srvs.srv import Trigger

from .link import Ros


class Driven:
    """Client of a hardware node."""

    def __init__(self, fresh=False):
        self.ros = Ros(fresh)
        self.states = self.ros.states()
        self.process = None

    def drives(self, process):
        """Use the node ``process`` after its services have discovered their clients."""
        self.process = process
        kinds = {
            "change_state": ChangeState,
            "get_state": GetState,
            "emergency_stop": Trigger,
            "reset_emergency_stop": Trigger,
        }
        self.ros.acquaint({f"hardware/{name}": kind for name, kind in kinds.items()})

    def change_state(self, transition):
        """Request a lifecycle transition; return whether it succeeded."""
        number = getattr(Transition, f"TRANSITION_{transition.upper()}")
        request = ChangeState.Request(transition=Transition(id=number))
        return self.ros.call(ChangeState, "hardware/change_state", request).success

    def activate(self):
        """Activate the arm; a busy machine makes feedback too old, so that it is repeated."""
        self.ros.wait_for(lambda: self.change_state("activate"), "not activated")

    @property
    def life(self):
        return self.ros.call(GetState, "hardware/get_state").current_state.label

    def comes_to(self, life):
        self.ros.wait_for(lambda: self.life == life, f"not {life}")

    def news(self):
        """Return the next published state."""
        seen = len(self.states)
        self.ros.wait_for(lambda: len(self.states) > seen, "no joint_states")
        return self.states.newest

    def diagnosis(self, predicate, joint=""):
        name = f"hardware: {joint}" if joint else "hardware"
        return self.ros.diagnosis(name, predicate)

    def close(self):
        self.ros.close()

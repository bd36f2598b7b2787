"""Load an arm, apply voltages to its motors and print the position of the tool."""

from arm_dynamics import Command, Plant, State, load_arm
from arm_dynamics.dynamics import tool_position

arm = load_arm("five_dof")  # a bundled arm; or the path of a URDF
plant = Plant(arm)
state = State.of(arm.configuration("initial"))
command = Command.checked("voltage", [2.0, 0.0, 0.0, 0.0, 0.5], arm.nv)

print(f"{arm.name}: joints {', '.join(arm.joint_names)}")
for _ in range(5):
    state = plant.step(state, command, dt=1e-4, steps=2000)  # 0.2 s
    x, y, z = tool_position(arm, state.q)
    print(f"{state.time:.1f} s: tool at ({x:.3f}, {y:.3f}, {z:.3f}) m, R1 {state.v[0]:.3f} rad/s")

constants = arm.actuators[0].constants
fastest = 2.0 / (constants["gear_ratio"] * constants["ke"])  # back-EMF equals the voltage
print(f"R1 turns at {state.v[0] / fastest:.1%} of its no-load speed")

"""Generated code: one time step of one arm, for a block of rollouts side by side.

The plant's own equations are traced on CasADi symbols and written as numba code, checked once
against the plant and cached on disk. Imports: simulation, control and below; never rollouts.
Start reading at ``kernel.py``; ``step_trace.py`` shows what is traced, ``kernel_source.py`` what
is written.
"""

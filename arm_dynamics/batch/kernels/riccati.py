"""Expansion of a predicted motion and the backward pass of differential dynamic programming."""

from __future__ import annotations

import numpy as np

from arm_dynamics.batch.kernels.kernel_cache import stored
from arm_dynamics.batch.kernels.plan_spec import ROUNDING
from arm_dynamics.batch.kernels.rollout_loop import call_at
from arm_dynamics.core.arrays import FloatArray, IntArray, Matrix, Vector


@stored
def expand(
    program: IntArray,
    derivative: Vector,
    quadratic: Vector,
    states: Matrix,
    inputs: Matrix,
    commands: Matrix,
    parameters: Matrix,
    dt: float,
    dynamics: tuple[FloatArray, FloatArray, FloatArray, FloatArray],
    costs: tuple[Matrix, FloatArray],
) -> bool:
    """Write A, B, policy and cost derivatives of each period; return whether all are finite.

    Parameters
    ----------
    program : IntArray
        Addresses of the step with its derivative, of the running and terminal expansions and of the
        policy's; steps per period, joints, states; then first rows: command, dt, A and B of the
        derivative; command, parameter, gradient, hessian, policy_state, policy_input and knot of
        the expansion.
    derivative, quadratic : Vector
        Blocks of one lane.
    states, inputs, commands : Matrix
        Nominal motion: (periods + 1, m), (periods, nv), (periods, nv).
    parameters : Matrix
        Parameters of the cost after each period, (periods, size).
    dt : float
        Time step [s].
    dynamics : tuple
        Output: A (periods, m, m) and B (periods, m, nv) of a period under a constant command,
        derivatives of the command by the state (periods, nv, m) and by the input (periods, nv, nv).
    costs : tuple
        Output: gradient (periods + 1, m + nv) and hessian (periods + 1, m + nv, m + nv) of the
        running cost after each period; the last row is that of the terminal cost.

    """
    step, running, terminal, policy, steps, n, m = program[:7]
    d_command, d_dt, d_A, d_B = program[7:11]
    c_command, c_parameter, c_gradient, c_hessian, c_state, c_input, c_knot = program[11:]
    A, B, policy_state, policy_input = dynamics
    gradient, hessian = costs
    size, periods = m + n, inputs.shape[0]
    derivative[d_dt] = dt
    total = 0.0
    for k in range(periods + 1):
        if k < periods:
            quadratic[:m] = states[k]
            quadratic[c_knot : c_knot + n] = inputs[k]
            call_at(policy, quadratic)
            policy_state[k] = 0.0
            for i in range(n):
                for j in range(2 * n):
                    policy_state[k, i, j] = quadratic[c_state + i * 2 * n + j]
                for j in range(n):
                    policy_input[k, i, j] = quadratic[c_input + i * n + j]
            derivative[:m] = states[k]
            derivative[d_command : d_command + n] = commands[k]
            for s in range(steps):
                call_at(step, derivative)
                after = derivative[d_A : d_A + m * m].reshape(m, m)
                enters = derivative[d_B : d_B + m * n].reshape(m, n)
                if s == 0:
                    A[k] = after
                    B[k] = enters
                else:
                    A[k] = after @ A[k]
                    B[k] = after @ B[k] + enters
        last = min(k, periods - 1)
        quadratic[:m] = states[last + 1]
        quadratic[c_command : c_command + n] = commands[last]
        for i in range(parameters.shape[1]):
            quadratic[c_parameter + i] = parameters[last, i]
        call_at(running if k < periods else terminal, quadratic)
        for i in range(size):
            gradient[k, i] = quadratic[c_gradient + i]
            total += abs(gradient[k, i])
            for j in range(size):
                hessian[k, i, j] = quadratic[c_hessian + i * size + j]
                total += abs(hessian[k, i, j])
    finite: bool = np.isfinite(total + np.abs(A).sum() + np.abs(B).sum())
    return finite


@stored
def factor(H: Matrix, free: Vector, damping: Vector, L: Matrix) -> bool:
    """Write L of L Lᵀ = H + diag(damping), with rows and columns that are not free as those of 1.

    The diagonal of L is inverted. False if the matrix is not positive definite.
    """
    n = free.size
    for i in range(n):
        for j in range(i + 1):
            one = 1.0 if i == j else 0.0
            s = H[i, j] + damping[i] * one if free[i] * free[j] > 0.0 else one
            for t in range(j):
                s -= L[i, t] * L[j, t]
            if i > j:
                L[i, j] = s * L[j, j]
            elif s > 0.0:
                L[i, i] = 1.0 / np.sqrt(s)
            else:
                return False
    return True


@stored
def solve_factored(L: Matrix, y: Matrix) -> None:
    """Replace y (n, columns) by (L Lᵀ)⁻¹ y."""
    n, columns = y.shape
    for i in range(n):
        for t in range(i):
            for c in range(columns):
                y[i, c] -= L[i, t] * y[t, c]
        for c in range(columns):
            y[i, c] *= L[i, i]
    for i in range(n - 1, -1, -1):
        for t in range(i + 1, n):
            for c in range(columns):
                y[i, c] -= L[t, i] * y[t, c]
        for c in range(columns):
            y[i, c] *= L[i, i]


@stored
def limited_gain(
    Q_uu: Matrix, Q_ux: Matrix, u: Vector, bound: Vector, damping: float, gain: Matrix
) -> bool:
    """Write [K, -d] = H⁻¹ [Q_ux, Q_u] of one period; False if H is not positive definite.

    H = Q_uu + μ diag|Q_uu|: efforts of a large and a small joint differ by orders of magnitude.
    The last columns of Q_ux and ``gain`` are Q_u and -d.

    Inputs with commands ``u`` at their bound that d leads beyond are held, and the others solved
    again.
    """
    n = u.size
    size = np.abs(np.diag(Q_uu))
    shift = damping * (size + 1e-9 * size.mean())
    free, L = np.ones(n), np.zeros((n, n))
    for _ in range(n + 1):
        if not factor(Q_uu, free, shift, L):
            return False
        for i in range(n):
            gain[i] = Q_ux[i] * free[i]
        solve_factored(L, gain)
        held = 0
        for i in range(n):
            beyond = u[i] * gain[i, -1] < 0.0
            if free[i] > 0.0 and abs(u[i]) >= bound[i] * (1.0 - ROUNDING) and beyond:
                free[i], held = 0.0, held + 1
        if held == 0:
            break
    return True


@stored
def backward(
    dynamics: tuple[FloatArray, FloatArray, FloatArray, FloatArray],
    costs: tuple[Matrix, FloatArray],
    commands: Matrix,
    bound: Vector,
    damping: float,
    steps: Matrix,
    gains: FloatArray,
) -> float:
    """Solve the quadratic approximation backwards in time.

    The change of an input is α d_k + K_k (x_k - x). An input whose command is at its bound, and
    that d would lead beyond, has d = 0 and K = 0. With T = ∂(x⁺, c)/∂(x, u) of a period with the
    command c, and the gradient h and second derivative H of the cost after it,

        Q = Tᵀ H T,  q = Tᵀ h,  V = Q_xx + Kᵀ (Q_uu K - 2 Q_ux),

    and the same with the gradients and -d as last columns of V, Q and K.

    Parameters
    ----------
    dynamics, costs : tuple
        As ``expand`` writes them.
    commands : Matrix
        Nominal commands (periods, nv).
    bound : Vector
        Largest commands that depend on one input each (nv,), else infinity.
    damping : float
        μ: μ times the diagonal of Q_uu is added to it.
    steps, gains : Matrix, FloatArray
        Output: d (periods, nv) and K (periods, nv, m).

    Returns
    -------
    float
        Expected decrease of the cost for α = 1; -1 if a Q_uu is not positive definite.

    References
    ----------
    Y. Tassa, T. Erez, E. Todorov, IROS 2012, equations 5 to 11; limits: Y. Tassa, N. Mansard,
    E. Todorov, ICRA 2014, section IV, with the active inputs of repeated steps.

    """
    A, B, policy_state, policy_input = dynamics
    gradient, hessian = costs
    periods, m, n = B.shape
    size = m + n
    square, wide = (size, size), (n, m + 1)
    V, H, T, HT = np.zeros(square), np.zeros(square), np.zeros(square), np.zeros(square)
    Q, Q_uu, Q_ux, K, KQ = (
        np.zeros(square), np.zeros((n, n)), np.zeros(wide), np.zeros(wide), np.zeros(wide),
    )  # fmt: skip
    v, h, q, change = np.zeros(size), np.zeros(size), np.zeros(size), np.zeros((m + 1, m + 1))
    V[:m, :m], v[:m] = hessian[periods, :m, :m], gradient[periods, :m]
    decrease = 0.0
    for k in range(periods - 1, -1, -1):
        np.add(hessian[k], V, H)
        np.add(gradient[k], v, h)
        T[m:, :m], T[m:, m:] = policy_state[k], policy_input[k]
        np.dot(B[k], T[m:], T[:m])
        T[:m, :m] += A[k]
        np.dot(H, T, HT)
        np.dot(T.T, HT, Q)
        np.dot(T.T, h, q)
        for i in range(n):
            Q_uu[i], Q_ux[i, :m], Q_ux[i, m] = Q[m + i, m:], Q[m + i, :m], q[m + i]
        if not limited_gain(Q_uu, Q_ux, commands[k], bound, damping, K):
            return -1.0
        np.dot(Q_uu, K, KQ)
        KQ -= 2.0 * Q_ux
        np.dot(K.T, KQ, change)
        for i in range(m):
            v[i] = q[i] + change[i, m]
            for j in range(i + 1):
                both = Q[i, j] + Q[j, i] + change[i, j] + change[j, i]
                V[i, j] = V[j, i] = 0.5 * both
        for i in range(n):
            steps[k, i], gains[k, i] = -K[i, m], K[i, :m]
        decrease -= 0.5 * float(change[m, m])
    return decrease

"""Impulses of contacts with Coulomb friction, joint friction and rigid stops in one problem."""

from __future__ import annotations

import numpy as np

from arm_dynamics.core.arrays import Matrix, Vector
from arm_dynamics.core.compiled_math import compiled, compiled_without_inlining
from arm_dynamics.simulation.contact.cone_program import (
    Problem,
    solve_cone_program,
    solve_linear,
    velocity_after,
)

COMPLIANT_ROUNDS = ((4, 8), (20, 20))
"""Numbers of Gauss-Seidel sweeps and of Newton steps of slightly compliant contacts."""
RIGID_SWEEPS = (40, 60, 80)
"""Numbers of sweeps after the Newton steps of rigid contacts."""
CONVEX_ROUNDS = 6
"""Largest number of convex programs where the rounds do not converge."""
NEWTON_STEPS = 20
INCONSISTENCY = 1e-7
"""Residual [m/s] of Newton's method that further iterations rarely reduce: the speeds that
redundant contacts of an edge require differ by the rounding of its points."""
TOLERANCE = 1e-13
"""Residual velocity, relative to the largest velocity, at which a solution is accepted."""
MIN_FRICTION = 1e-6
"""Coulomb coefficient of a contact without friction in a convex program."""
COMPLIANCE = 1e-2
"""Compliance of contacts in the first round, relative to the diagonal of G."""
PROXIMITY = 1e-6
"""Regularization of the Newton steps, relative to the diagonal of G."""
SECANTS = 12
SAMPLES = 24
"""Angles among which the direction of sliding is bracketed."""
BISECTIONS = 60


@compiled
def sliding_direction(
    g: Matrix, w: tuple[float, float, float], mu: float, angle: float
) -> tuple[float, float, float]:
    """Return the parts of D v_t across and along e(θ) = (cos θ, sin θ), and D.

    λ = λ_n (1, μ e), v = G λ + w and v_n = 0 give λ_n = -w_n / D, D = G_nn + μ G_nt e, and
    D v_t = D w_t - w_n (G_tn + μ G_tt e). The contact slides along -e where the part across is 0
    and the part along is negative.
    """
    c, s = np.cos(angle), np.sin(angle)
    d = g[0, 0] + mu * (g[0, 1] * c + g[0, 2] * s)
    u1 = d * w[1] - w[0] * (g[1, 0] + mu * (g[1, 1] * c + g[1, 2] * s))
    u2 = d * w[2] - w[0] * (g[2, 0] + mu * (g[2, 1] * c + g[2, 2] * s))
    return c * u2 - s * u1, c * u1 + s * u2, d


@compiled
def sliding_angle(g: Matrix, w: tuple[float, float, float], mu: float, guess: float) -> float:
    """Return θ of the friction of a sliding contact, by secants from ``guess``, else by brackets.

    g (3, 3) [1/kg], w (3,) [m/s], normal first, w_n < 0.
    """
    before, angle = guess + 1e-3, guess
    last, _, _ = sliding_direction(g, w, mu, before)
    for _ in range(SECANTS):
        across, along, d = sliding_direction(g, w, mu, angle)
        if across == 0.0 or abs(angle - before) < 1e-15:
            if along <= 0.0 and d > 0.0:
                return angle
            break
        if across == last or abs(across * (angle - before)) > abs(across - last):
            break
        angle, before, last = angle - across * (angle - before) / (across - last), angle, across
    best, chosen = np.inf, guess
    start, _, _ = sliding_direction(g, w, mu, guess)
    for k in range(SAMPLES):
        low, high = guess + 2.0 * np.pi * k / SAMPLES, guess + 2.0 * np.pi * (k + 1) / SAMPLES
        end, _, _ = sliding_direction(g, w, mu, high)
        left, start = start, end
        if left * end > 0.0:
            continue
        for _ in range(BISECTIONS):
            middle = 0.5 * (low + high)
            value, _, _ = sliding_direction(g, w, mu, middle)
            if left * value <= 0.0:
                high = middle
            else:
                low, left = middle, value
        _, along, d = sliding_direction(g, w, mu, high)
        if d > 0.0 and along < best:
            best, chosen = along, high
    return chosen


@compiled
def contact_impulse(g: Matrix, w: tuple[float, float, float], mu: float, out: Vector) -> None:
    """Replace λ (3,) by the impulse with v = G λ + w: the contact separates, sticks or slides.

    λ_n >= 0, v_n >= 0, λ_n v_n = 0;  |λ_t| <= μ λ_n;  v_t = -γ λ_t, γ = 0 inside the cone.
    """
    w0, w1, w2 = w
    x, y = out[1], out[2]
    out[0] = out[1] = out[2] = 0.0
    if not w0 < 0.0:
        return
    if mu > 0.0:
        # Cramer's rule; G is symmetric.
        a, b, c, d, e, f = g[0, 0], g[0, 1], g[0, 2], g[1, 1], g[1, 2], g[2, 2]
        m0, m1, m2 = d * f - e * e, c * e - b * f, b * e - c * d
        determinant = a * m0 + b * m1 + c * m2
        if determinant > 1e-13 * a * d * f:
            m3, m4, m5 = a * f - c * c, b * c - a * e, a * d - b * b
            n = -(m0 * w0 + m1 * w1 + m2 * w2) / determinant
            t1 = -(m1 * w0 + m3 * w1 + m4 * w2) / determinant
            t2 = -(m2 * w0 + m4 * w1 + m5 * w2) / determinant
            if n >= 0.0 and t1 * t1 + t2 * t2 <= mu * mu * n * n:
                out[0], out[1], out[2] = n, t1, t2
                return
        if not x * x + y * y > 0.0:  # without friction it slides at w_t - w_n G_tn / G_nn
            x, y = w0 * b / a - w1, w0 * c / a - w2
        angle = sliding_angle(g, w, mu, np.arctan2(y, x))
        tangent1, tangent2 = mu * np.cos(angle), mu * np.sin(angle)
        d = g[0, 0] + g[0, 1] * tangent1 + g[0, 2] * tangent2
        out[0] = -w0 / d
        out[1], out[2] = tangent1 * out[0], tangent2 * out[0]
    else:
        out[0] = -w0 / g[0, 0]


@compiled
def projection_residual(problem: Problem, impulse: Vector, w: Vector, values: Vector) -> float:
    """Write F(λ) (n,), zero at a solution; return the largest |F_i| G_ii [m/s].

    F = λ - P(λ - r w), r_i = 1/G_ii, with the projection P onto the bounds, and of a contact onto
    λ_n >= 0 and the disk of radius μ λ_n (Alart and Curnier).
    """
    delassus, _, lower, upper, friction = problem
    m, largest = lower.size, 0.0
    for i in range(m):
        z = impulse[i] - w[i] / delassus[i, i]
        values[i] = impulse[i] - min(max(z, lower[i]), upper[i])
        largest = max(largest, abs(values[i]) * delassus[i, i])
    for k in range(friction.size):
        at = m + 3 * k
        z, z1, z2, size, limit = projected(delassus, friction[k], impulse, w, at)
        ratio = 1.0 if size <= limit else limit / size
        values[at] = impulse[at] - max(z, 0.0)
        values[at + 1] = impulse[at + 1] - ratio * z1
        values[at + 2] = impulse[at + 2] - ratio * z2
        for a in range(3):
            largest = max(largest, abs(values[at + a]) * delassus[at + a, at + a])
    return largest


@compiled
def projected(
    delassus: Matrix, mu: float, impulse: Vector, w: Vector, at: int
) -> tuple[float, float, float, float, float]:
    """Return λ - r w of a contact, the size of its tangential part and the radius of its disk.

    Both tangents have one r, so that the disk is round.
    """
    r = 2.0 / (delassus[at + 1, at + 1] + delassus[at + 2, at + 2])
    z1, z2 = impulse[at + 1] - r * w[at + 1], impulse[at + 2] - r * w[at + 2]
    normal = impulse[at] - w[at] / delassus[at, at]
    return normal, z1, z2, np.sqrt(z1 * z1 + z2 * z2), mu * max(impulse[at], 0.0)


@compiled
def projection_slope(
    problem: Problem, impulse: Vector, w: Vector, values: Vector, slope: Matrix
) -> None:
    """Write ∂F/∂λ (n, n) of ``projection_residual``, and F = λ of contacts that separate."""
    delassus, _, lower, upper, friction = problem
    n, m = impulse.size, lower.size
    for i in range(n):
        for j in range(n):
            slope[i, j] = 0.0
    for i in range(m):
        r = 1.0 / delassus[i, i]
        if lower[i] < impulse[i] - r * w[i] < upper[i]:
            for j in range(n):
                slope[i, j] = r * delassus[i, j]
            slope[i, i] += PROXIMITY
        else:
            slope[i, i] = 1.0
    for k in range(friction.size):
        at, mu = m + 3 * k, friction[k]
        z, z1, z2, size, limit = projected(delassus, mu, impulse, w, at)
        if z <= 0.0:
            for a in range(3):
                slope[at + a, at + a] = 1.0
                values[at + a] = impulse[at + a]
            continue
        # A contact that sticks has the ratio 1, and both tangents are free.
        ratio, e1, e2 = 1.0, 0.0, 0.0
        if size > limit:
            ratio, e1, e2 = limit / size, z1 / size, z2 / size
        p11, p12, p22 = ratio * (1.0 - e1 * e1), -ratio * e1 * e2, ratio * (1.0 - e2 * e2)
        r, rt = 1.0 / delassus[at, at], 2.0 / (delassus[at + 1, at + 1] + delassus[at + 2, at + 2])
        for j in range(n):
            g1, g2 = rt * delassus[at + 1, j], rt * delassus[at + 2, j]
            slope[at, j] = r * delassus[at, j]
            slope[at + 1, j] = p11 * g1 + p12 * g2
            slope[at + 2, j] = p12 * g1 + p22 * g2
        slope[at, at] += PROXIMITY
        slope[at + 1, at + 1] += 1.0 - p11 + PROXIMITY
        slope[at + 1, at + 2] -= p12
        slope[at + 2, at + 1] -= p12
        slope[at + 2, at + 2] += 1.0 - p22 + PROXIMITY
        slope[at + 1, at] -= mu * e1
        slope[at + 2, at] -= mu * e2


@compiled_without_inlining
def newton_steps(problem: Problem, impulse: Vector, count: int, tolerance: float) -> float:
    """Improve λ by semi-smooth Newton steps; return the residual [m/s] of the best iterate.

    An iterate may be worse than the one before: the set of sliding contacts changes on the path to
    the solution. PROXIMITY makes the slope regular where contacts are redundant.
    """
    n, best = impulse.size, np.inf
    slope, values, trial = np.empty((n, n)), np.empty(n), impulse.copy()
    for _ in range(count):
        w = velocity_after(problem, trial)
        residual = projection_residual(problem, trial, w, values)
        if residual < best:
            best = residual
            for i in range(n):
                impulse[i] = trial[i]
        if best <= tolerance:
            break
        projection_slope(problem, trial, w, values, slope)
        if not solve_linear(slope, values):
            break
        for i in range(n):
            trial[i] -= values[i]
    return best


@compiled_without_inlining
def sweep(problem: Problem, impulse: Vector, count: int, tolerance: float) -> float:
    """Improve λ by ``count`` block Gauss-Seidel sweeps; return the last change of a velocity."""
    delassus, _, lower, upper, friction = problem
    w, block, new = velocity_after(problem, impulse), np.empty((3, 3)), np.empty(3)
    n, m, largest = impulse.size, lower.size, np.inf
    for _ in range(count):
        if largest <= tolerance:
            break
        largest = 0.0
        for i in range(m):
            after = min(max(impulse[i] - w[i] / delassus[i, i], lower[i]), upper[i])
            change = after - impulse[i]
            if change != 0.0:
                impulse[i] = after
                for j in range(n):
                    w[j] += delassus[i, j] * change
                largest = max(largest, abs(change) * delassus[i, i])
        for k in range(friction.size):
            at = m + 3 * k
            for a in range(3):
                new[a] = impulse[at + a]
                for b in range(3):
                    block[a, b] = delassus[at + a, at + b]
            w0 = w[at] - block[0, 0] * new[0] - block[0, 1] * new[1] - block[0, 2] * new[2]
            w1 = w[at + 1] - block[1, 0] * new[0] - block[1, 1] * new[1] - block[1, 2] * new[2]
            w2 = w[at + 2] - block[2, 0] * new[0] - block[2, 1] * new[1] - block[2, 2] * new[2]
            contact_impulse(block, (w0, w1, w2), friction[k], new)
            for a in range(3):
                change = new[a] - impulse[at + a]
                if change != 0.0:
                    impulse[at + a] = new[a]
                    for j in range(n):
                        w[j] += delassus[at + a, j] * change
                    largest = max(largest, abs(change) * block[a, a])
    return largest


@compiled_without_inlining
def convex_rounds(problem: Problem, impulse: Vector, residual: float, tolerance: float) -> float:
    """Improve λ by convex programs, each followed by Newton steps; return the residual [m/s].

    The minimum of ½ λᵀ G λ + (w₀ + s)ᵀ λ over the friction cones is the solution if
    s_n = μ |v_t| (de Saxcé and Feng); s follows from the velocity of the program before.
    """
    delassus, velocity, lower, upper, friction = problem
    n, m = impulse.size, lower.size
    b, mu = velocity.copy(), friction.copy()
    for k in range(mu.size):
        mu[k] = max(mu[k], MIN_FRICTION)
    largest, stiffest = 0.0, 0.0
    for i in range(n):
        largest, stiffest = max(largest, abs(velocity[i])), max(stiffest, delassus[i, i])
    for _ in range(CONVEX_ROUNDS):
        trial = solve_cone_program((delassus, b, lower, upper, mu), largest / stiffest)
        w = velocity_after(problem, trial)
        for k in range(mu.size):
            at = m + 3 * k
            b[at] = velocity[at] + mu[k] * np.sqrt(w[at + 1] ** 2 + w[at + 2] ** 2)
        after = newton_steps(problem, trial, NEWTON_STEPS, tolerance)
        if after < residual:
            residual = after
            for i in range(n):
                impulse[i] = trial[i]
        if residual <= tolerance:
            break
    return residual


@compiled_without_inlining
def solve_contact_problem(
    delassus: Matrix,
    velocity: Vector,
    lower: Vector,
    upper: Vector,
    friction: Vector,
    impulse: Vector,
) -> float:
    """Solve w = G λ + w₀ for bounded rows and contacts; return the residual [m/s].

    Bounded rows: lower_i <= λ_i <= upper_i, w_i = 0 between the bounds, w_i >= 0 at the lower and
    w_i <= 0 at the upper one: joint friction, stops, equality constraints. Contacts: three rows
    each, the normal first, ``contact_impulse``. Block Gauss-Seidel sweeps, each contact exactly,
    and semi-smooth Newton steps in turn; where they do not converge, ``convex_rounds``.

    Parameters
    ----------
    delassus : (n, n) array
        G = J M⁻¹ Jᵀ, the bounded rows first.
    velocity : (n,) array
        w₀, the velocity without impulses less the required one [m/s or rad/s].
    lower, upper : (m,) array
        Bounds of the bounded rows [N·s or N·m·s].
    friction : (k,) array
        Coulomb coefficients of the contacts, n = m + 3 k.
    impulse : (n,) array
        λ; its value at the call is the start, changed in place.

    References
    ----------
    J. J. Moreau, Unilateral contact and dry friction in finite freedom dynamics (1988);
    G. de Saxcé, Z.-Q. Feng, Math. Comput. Modelling 28 (1998), section 3;
    P. Alart, A. Curnier, Comput. Methods Appl. Mech. Eng. 92 (1991), section 4;
    J. Hwangbo, J. Lee, M. Hutter, Per-contact iteration method for solving contact dynamics,
    IEEE RA-L 3 (2018), section III.

    """
    n, m, scale = velocity.size, lower.size, 0.0
    for i in range(n):
        if not abs(velocity[i]) < np.inf:
            return np.inf
        scale = max(scale, abs(velocity[i]))
        if i < m:
            impulse[i] = min(max(impulse[i], lower[i]), upper[i])
    tolerance = TOLERANCE * scale
    # Redundant contacts have many solutions. That of slightly compliant contacts is unique and
    # distributes the force; the rigid one next to it is the result.
    compliant = delassus.copy()
    for i in range(m, n):
        compliant[i, i] *= 1.0 + COMPLIANCE
    problem = (compliant, velocity, lower, upper, friction)
    for sweeps, steps in COMPLIANT_ROUNDS:
        sweep(problem, impulse, sweeps, tolerance)
        if newton_steps(problem, impulse, steps, tolerance) <= tolerance:
            break
    problem, residual = (delassus, velocity, lower, upper, friction), np.inf
    for count in RIGID_SWEEPS:
        residual = newton_steps(problem, impulse, NEWTON_STEPS, tolerance)
        if residual <= INCONSISTENCY:
            return residual
        residual = sweep(problem, impulse, count, tolerance)
        if residual <= tolerance:
            return residual
    return convex_rounds(problem, impulse, residual, tolerance)

"""Assignments compiled to LLVM: their values are those of Python, in every lane."""

import math

import numba
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numba.core.errors import NumbaError

from arm_dynamics.batch.kernels.lane_loop import lane_loop

FUNCTIONS = {
    name: getattr(math, name) for name in ("sin", "cos", "exp", "log", "tanh", "sqrt", "fabs")
}
ROWS, CONSTANTS = 4, 2


def executed(lines, rows, constants=(0.0, 0.0), precision="float64"):
    """Return (diverged, rows after) of ``lines`` for rows (n, lanes)."""
    count, lanes = rows.shape
    loop = lane_loop(lines, precision, lanes, rows.size)

    @numba.njit(error_model="numpy")
    def run(x):
        return loop(x)

    x = np.concatenate([rows.ravel(), constants]).astype(precision)
    return run(x), x[: rows.size].reshape(count, lanes)


def by_python(lines, row, constants=(0.0, 0.0)):
    """Return the rows of a lane after ``lines``, executed by Python."""
    variables = {"x": [float(value) for value in row], "c": constants, **FUNCTIONS}
    exec(lines, variables)
    return np.array(variables["x"], dtype=float)


@pytest.mark.parametrize(("precision", "tolerance"), [("float64", 4e-16), ("float32", 2e-7)])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_functions_are_exact_to_rounding(name, precision, tolerance):
    random = np.random.default_rng(1)
    largest = 1e5 if precision == "float64" else 700.0
    span = {"exp": 80.0, "tanh": 5.0}.get(name, largest)
    values = random.uniform(-span, span, 20000).astype(precision)
    if name in ("log", "sqrt"):
        values = np.abs(values)
    _, after = executed(f"x[1] = {name}(x[0])", np.array([values, values]), precision=precision)
    expected = np.array([FUNCTIONS[name](float(value)) for value in values])
    size = 1.0 if name in ("sin", "cos") else np.abs(expected)
    assert np.abs((after[1] - expected) / size).max() < tolerance


@pytest.mark.parametrize("x", [0.0, -0.0, 1e-300, 800.0, -800.0, 5e-324])
def test_exponential_at_its_limits(x):
    """Above e^708 the result is a number that a step rejects, not one that looks valid."""
    _, after = executed("x[1] = exp(x[0])", np.full((2, 1), x))
    if abs(x) < 700:
        assert after[1, 0] == math.exp(x)
    else:
        assert (after[1, 0] > 1e300) if x > 0 else (0 <= abs(after[1, 0]) < 1e-290)


@pytest.mark.parametrize("name", ["sin", "cos", "exp", "log", "tanh", "sqrt", "fabs"])
def test_functions_of_nan_are_nan(name):
    _, after = executed(f"x[1] = {name}(x[0])", np.full((2, 3), np.nan))
    assert np.isnan(after[1]).all()


OPERANDS = ["x[0]", "x[1]", "c[0]", "c[1]", "0.5", "3.0"]
FORMS = [
    "{a} + {b}", "{a} - {b}", "{a} * {b}", "-{a}", "{a} / (1.0 + {b} * {b})", "sin({a})",
    "cos({a})", "exp(-fabs({a}))", "tanh({b})", "sqrt(fabs({a}))", "log(1.0 + {a} * {a})",
    "fabs({a}) ** 0.5", "{a} if {a} < {b} else {b}", "{a} if {a} >= {b} else 2.0 * {b}",
    "1.0 if {a} > 0.0 else (-1.0 if {a} < 0.0 else 0.0)",
    "{a} if ({a} <= {b}) & ({b} != 0.5) else -{a}",
    "{b} if ({a} == {b}) | (not {a} < 1.0) else {a}", "({a} < {b}) * {a}", "{a} if {b} else 0.25",
]  # fmt: skip
NUMBERS = st.floats(-3, 3, allow_subnormal=False)


@st.composite
def programs(draw):
    """Lines of assignments, each of earlier variables."""
    names, lines = list(OPERANDS), [f"i{k} = x[{k}]" for k in range(2)]
    names[:2] = ["i0", "i1"]
    for k in range(draw(st.integers(1, 12))):
        a, b = draw(st.sampled_from(names)), draw(st.sampled_from(names))
        lines.append(f"t{k} = {draw(st.sampled_from(FORMS)).format(a=a, b=b)}")
        names.append(f"t{k}")
    return "\n".join([*lines, f"x[2] = {names[-1]}", f"x[3] = {draw(st.sampled_from(names))}"])


@given(programs(), st.lists(NUMBERS, min_size=6, max_size=6), st.tuples(NUMBERS, NUMBERS))
def test_programs_have_the_values_of_python(lines, numbers, constants):
    rows = np.zeros((ROWS, 3))
    rows[:2] = np.reshape(numbers, (2, 3))
    _, after = executed(lines, rows, constants)
    expected = np.array([by_python(lines, row, constants) for row in rows.T]).T
    assert np.allclose(after, expected, rtol=1e-11, atol=1e-11)


def test_lanes_are_independent_and_one_diverged_lane_is_reported():
    lines = "i0 = x[0]\nx[1] = 1.0 / i0\ndiverged = i0 - i0 != 0.0"
    rows = np.arange(1.0, 15.0).reshape(2, 7)
    assert not executed(lines, rows)[0]
    rows[0, 3] = np.inf
    diverged, after = executed(lines, rows)
    assert diverged
    assert (after[0] == rows[0]).all()
    assert (after[1] == 1.0 / rows[0]).all()


@pytest.mark.parametrize(
    "line", ["x[0] += 1.0", "y = x[0][1]", "y = f'a'", "y = 1.0 // 2.0", "y = erf(1.0)", "del x"]
)
def test_other_python_is_rejected_before_it_runs(line):
    with pytest.raises((NotImplementedError, NumbaError), match="lane_loop: "):
        executed(line, np.zeros((1, 1)))

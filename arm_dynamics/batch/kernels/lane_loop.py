"""Assignments compiled directly to LLVM, executed for every lane of a block.

numba's analysis of some thousand lines takes 10 s, LLVM 2 s: the lines of a kernel are therefore
translated to LLVM instructions within a numba function.
"""

from __future__ import annotations

import ast
import math
import operator
from collections.abc import Sequence
from typing import Any

import numba
from llvmlite import ir
from numba.core import cgutils

REDUCTION = {
    "float64": (1.57079632673412561417, 6.0771005065061922493e-11, 1.5 * 2.0**52),
    "float32": (1.5703125, 4.8382679489661923e-4, 1.5 * 2.0**23),
}
"""π/2 in two parts, the first with trailing zeros, so that n times it is exact for |n| below 1e6
(single precision: 1e3); and a number whose sum with x has round(x) in its last bits. Source:
W. Cody, W. Waite, Software Manual for the Elementary Functions (1980)."""
SINE = {
    "float64": (
        -0.16666666666666632048,
        8.3333333333224191027e-3,
        -1.9841269829812394092e-4,
        2.75573136935771042e-6,
        -2.5050758384975888605e-8,
        1.5896811829077066732e-10,
    ),
    "float32": (-0.1666665494019948942, 8.3321779163583924567e-3, -1.9517266840903413949e-4),
}
"""Coefficients of (sin y - y) / y³ in y², minimax for y up to π/4 (Remez): error 4e-18, and 4e-9 in
single precision."""
COSINE = {
    "float64": (
        4.1666666666602225399e-2,
        -1.3888888878270152649e-3,
        2.4801580969800719771e-5,
        -2.7555566785789437963e-7,
        2.0647715334474821674e-9,
    ),
    "float32": (4.1666646860525502683e-2, -1.3887367212940051865e-3, 2.4438415537795276638e-5),
}
"""Coefficients of (cos y - 1 + y²/2) / y⁴ likewise: 8e-17, and 1e-10 in single precision."""
EXPONENTIAL_DEGREE = {"float64": 13, "float32": 7}
"""Degree of the series of e^y for y up to ln 2 / 2: remainder below 1e-16, and 1e-8."""
LN_2 = 0.693145751953125, 1.4286068203094173e-06
"""ln 2 in two parts."""
EXPONENT = {"float64": (1023, 52), "float32": (127, 23)}
"""Bias of the exponent, and its first bit."""
ARITHMETIC = {ast.Add: "fadd", ast.Sub: "fsub", ast.Mult: "fmul", ast.Div: "fdiv"}
COMPARISONS = {
    ast.Lt: "<",
    ast.LtE: "<=",
    ast.Gt: ">",
    ast.GtE: ">=",
    ast.Eq: "==",
    ast.NotEq: "!=",
}
LOGIC = {ast.BitAnd: "and_", ast.BitOr: "or_"}
INDEX, BOOLEAN = ir.IntType(64), ir.IntType(1)


def lane_loop(lines: str, precision: str, lanes: int, first_constant: int) -> Any:
    """Return a numba function of a block that executes ``lines`` for every lane.

    Parameters
    ----------
    lines : str
        Assignments in Python: arithmetic, comparisons, ``a if condition else b``, sin, cos, exp,
        log, tanh, sqrt and fabs. ``x[r]`` is row r of the lane, ``c[k]`` constant k of the arm.
    precision : str
        "float64" or "float32".
    lanes : int
        Number of lanes: row r of lane l is block[r * lanes + l].
    first_constant : int
        Index of the first constant in the block.

    Returns
    -------
    object
        Function of the block; it returns whether the variable ``diverged`` was true in any lane.

    """
    statements = ast.parse(lines).body

    @numba.extending.intrinsic  # type: ignore[untyped-decorator]
    def execute(_: Any, block: Any) -> Any:
        def generate(context: Any, builder: Any, signature: Any, values: Any) -> Any:
            data = context.make_array(signature.args[0])(context, builder, values[0]).data
            code = LaneCode(context, builder, data, precision, lanes)
            code.load_constants(statements, first_constant)
            diverged = cgutils.alloca_once_value(builder, cgutils.false_bit)
            with cgutils.for_range(builder, INDEX(lanes)) as loop:
                code.execute(statements, loop.index)
                if "diverged" in code.values:
                    before = builder.load(diverged)
                    builder.store(builder.or_(before, code.values["diverged"]), diverged)
            return builder.load(diverged)

        return numba.types.boolean(block), generate

    return execute


class LaneCode(ast.NodeVisitor):
    """Translator of assignments to LLVM instructions.

    Sine, cosine and exponential have no call of a library and no branch, so that LLVM vectorizes
    over the lanes.

    Attributes
    ----------
    values : dict
        Variable, and constant ``c[k]``, to its value.

    """

    def __init__(self, context: Any, builder: Any, data: Any, precision: str, lanes: int) -> None:
        self.values: dict[str, Any] = {}
        self._context, self._builder, self._data = context, builder, data
        self._precision, self._lanes = precision, lanes
        self._float = ir.DoubleType() if precision == "float64" else ir.FloatType()
        self._integer = ir.IntType(int(precision.removeprefix("float")))
        self._sines_and_cosines: dict[Any, tuple[Any, Any]] = {}

    def load_constants(self, statements: Sequence[ast.stmt], first: int) -> None:
        """Load the constants that ``statements`` read, before the loop over the lanes."""
        for node in (node for statement in statements for node in ast.walk(statement)):
            match node:
                case ast.Subscript(ast.Name("c"), ast.Constant(int(k))):
                    name = ast.unparse(node)
                    if name not in self.values:
                        place = self._builder.gep(self._data, [INDEX(first + k)])
                        self.values[name] = self._builder.load(place)

    def execute(self, statements: Sequence[ast.stmt], lane: Any) -> None:
        """Append the instructions of ``statements`` for one lane."""
        self._lane = lane
        for statement in statements:
            match statement:
                case ast.Assign([ast.Name(name)], expression):
                    self.values[name] = self.visit(expression)
                case ast.Assign([ast.Subscript(ast.Name("x"), ast.Constant(int(row)))], expression):
                    self._builder.store(self._number(expression), self._place(row))
                case _:
                    self.generic_visit(statement)

    def _place(self, row: int) -> Any:
        index = self._builder.add(INDEX(row * self._lanes), self._lane)
        return self._builder.gep(self._data, [index])

    def generic_visit(self, node: ast.AST) -> Any:
        """Raise NotImplementedError: no instructions are known."""
        raise NotImplementedError(f"lane_loop: {ast.unparse(node)}")

    def _number(self, expression: ast.expr) -> Any:
        """Return the value of an expression as a number; true is 1."""
        value = self.visit(expression)
        return self._builder.uitofp(value, self._float) if value.type == BOOLEAN else value

    def _condition(self, expression: ast.expr) -> Any:
        """Return whether an expression is true, or a number other than 0."""
        value = self.visit(expression)
        if value.type == BOOLEAN:
            return value
        return self._builder.fcmp_unordered("!=", value, self._float(0.0))

    def visit_Name(self, node: ast.Name) -> Any:
        """Return a variable."""
        return self.values[node.id]

    def visit_Subscript(self, node: ast.Subscript) -> Any:
        """Return an entry of a row, or a constant of the arm."""
        match node:
            case ast.Subscript(ast.Name("x"), ast.Constant(int(row))):
                return self._builder.load(self._place(row))
            case ast.Subscript(ast.Name("c"), ast.Constant()):
                return self.values[ast.unparse(node)]
        return self.generic_visit(node)

    def visit_Constant(self, node: ast.Constant) -> Any:
        """Return a literal."""
        return self._float(node.value)

    def visit_UnaryOp(self, node: ast.UnaryOp) -> Any:
        """Return -a, or not a."""
        if isinstance(node.op, ast.Not):
            return self._builder.not_(self._condition(node.operand))
        return self._builder.fneg(self._number(node.operand))

    def visit_BinOp(self, node: ast.BinOp) -> Any:
        """Return the result of arithmetic or of logic."""
        kind = type(node.op)
        if kind in LOGIC:
            operands = self._condition(node.left), self._condition(node.right)
            return getattr(self._builder, LOGIC[kind])(*operands)
        operands = self._number(node.left), self._number(node.right)
        if kind in ARITHMETIC:
            return getattr(self._builder, ARITHMETIC[kind])(*operands)
        if kind is ast.Pow:
            return self._library(operator.pow, *operands)
        return self.generic_visit(node)

    def visit_Compare(self, node: ast.Compare) -> Any:
        """Return whether a comparison holds; with NaN only ``!=`` does."""
        (kind,), (right,) = node.ops, node.comparators
        unequal = isinstance(kind, ast.NotEq)
        compare = self._builder.fcmp_unordered if unequal else self._builder.fcmp_ordered
        return compare(COMPARISONS[type(kind)], self._number(node.left), self._number(right))

    def visit_IfExp(self, node: ast.IfExp) -> Any:
        """Return a if the condition holds, else b; both are evaluated."""
        condition = self._condition(node.test)
        return self._builder.select(condition, self._number(node.body), self._number(node.orelse))

    def visit_Call(self, node: ast.Call) -> Any:
        """Return the value of a function."""
        name, (argument,) = ast.unparse(node.func), node.args
        x = self._number(argument)
        if name in ("sin", "cos"):
            return self._sine_and_cosine(x)[name == "cos"]
        if name == "exp":
            return self._exponential(x)
        if name in ("log", "tanh"):
            return self._library(getattr(math, name), x)
        if name in ("sqrt", "fabs"):
            return self._instruction(name, x)
        return self.generic_visit(node)

    def _instruction(self, name: str, x: Any) -> Any:
        """Return sqrt, fabs or floor of x by LLVM's instruction."""
        kind = ir.FunctionType(self._float, [self._float])
        module = self._builder.module
        function = module.declare_intrinsic(f"llvm.{name}", [self._float], kind)
        return self._builder.call(function, [x])

    def _library(self, function: Any, *arguments: Any) -> Any:
        """Return the value of a function by numba's implementation."""
        kind = getattr(numba.types, self._precision)
        signature = kind(*[kind] * len(arguments))
        return self._context.get_function(function, signature)(self._builder, arguments)

    def _sine_and_cosine(self, x: Any) -> tuple[Any, Any]:
        """Return both by one reduction of x; quarter turns swap them and change signs."""
        if x in self._sines_and_cosines:
            return self._sines_and_cosines[x]
        build, number, integer = self._builder, self._float, self._integer
        first, second, rounding = (number(part) for part in REDUCTION[self._precision])
        r = build.fadd(build.fmul(x, number(2 / math.pi)), rounding)
        n, m = build.fsub(r, rounding), build.bitcast(r, integer)
        y = build.fsub(build.fsub(x, build.fmul(n, first)), build.fmul(n, second))
        z, half, one = build.fmul(y, y), number(0.5), number(1.0)
        series = self._horner(SINE[self._precision], z)
        sine = build.fadd(y, build.fmul(build.fmul(y, z), series))
        series = build.fsub(build.fmul(z, self._horner(COSINE[self._precision], z)), half)
        cosine = build.fadd(one, build.fmul(z, series))
        odd = build.icmp_signed("!=", build.and_(m, integer(1)), integer(0))

        def signed(value: Any, quarters: Any) -> Any:
            sign = build.shl(build.and_(quarters, integer(2)), integer(integer.width - 2))
            return build.bitcast(build.xor(build.bitcast(value, integer), sign), number)

        self._sines_and_cosines[x] = (
            signed(build.select(odd, cosine, sine), m),
            signed(build.select(odd, sine, cosine), build.add(m, integer(1))),
        )
        return self._sines_and_cosines[x]

    def _exponential(self, x: Any) -> Any:
        """Return e^x by reduction with ln 2 and its series; 2ⁿ by the bits of its exponent."""
        build, number, integer = self._builder, self._float, self._integer
        bias, first_bit = EXPONENT[self._precision]
        n = build.fadd(build.fmul(x, number(math.log2(math.e))), number(0.5))
        n, limit = self._instruction("floor", n), float(bias - 1)
        n = build.select(build.fcmp_ordered(">", n, number(limit)), number(limit), n)
        n = build.select(build.fcmp_ordered("<", n, number(-limit)), number(-limit), n)
        high, low = (number(part) for part in LN_2)
        z = build.fsub(build.fsub(x, build.fmul(n, high)), build.fmul(n, low))
        degree = EXPONENTIAL_DEGREE[self._precision]
        series = self._horner([1 / math.factorial(k) for k in range(degree + 1)], z)
        exponent = build.fptosi(build.fadd(n, number(float(bias))), integer)
        power = build.bitcast(build.shl(exponent, integer(first_bit)), number)
        return build.fmul(series, power)

    def _horner(self, coefficients: Sequence[float], z: Any) -> Any:
        """c0 + z (c1 + z (c2 + ...))."""
        total = self._float(coefficients[-1])
        for coefficient in reversed(coefficients[:-1]):
            product = self._builder.fmul(z, total)
            total = self._builder.fadd(self._float(coefficient), product)
        return total

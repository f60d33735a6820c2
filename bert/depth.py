"""The longest chain of dependent operations of a function: its time where enough processors work side by side.

An operation is a primitive of JAX's intermediate representation, the jaxpr: a whole matrix product is one, as is a sum.
A step of a loop counts each time that it is taken.
"""

from collections.abc import Callable, Sequence
from typing import Any

import jax
from jax.extend.core import ClosedJaxpr, Jaxpr, Literal


def longest_chain(function: Callable[..., Any], *arguments: Any) -> int:
    """Operations on the longest path from an argument to a result.

    ``arguments``: trees of arrays, or of `jax.ShapeDtypeStruct`; nothing is computed. Raises ValueError for a loop
    whose number of steps only its values decide (``while``).
    """
    closed = jax.make_jaxpr(function)(*arguments)
    return max(_depths(closed.jaxpr, [0] * len(closed.jaxpr.invars)), default=0)


def _depths(jaxpr: Jaxpr, inputs: Sequence[int]) -> list[int]:
    """The depth of each result, from those of the inputs."""
    depth: dict[Any, int] = dict(zip(jaxpr.invars, inputs, strict=True))

    def of(variables: Sequence[Any]) -> list[int]:
        return [0 if isinstance(x, Literal) else depth.get(x, 0) for x in variables]  # constants are there at once

    for equation in jaxpr.eqns:
        depth.update(zip(equation.outvars, _of_equation(equation, of(equation.invars)), strict=True))
    return of(jaxpr.outvars)


def _of_equation(equation: Any, inputs: list[int]) -> list[int]:
    name, parameters = equation.primitive.name, equation.params
    if name == "while":
        raise ValueError("the number of steps of a while loop is not known before it runs; use a loop of fixed length")
    if name == "scan":
        return _of_scan(parameters, inputs)
    if name == "cond":
        branches = [_depths(branch.jaxpr, inputs[1:]) for branch in parameters["branches"]]
        return [max(inputs[0], *depths) for depths in zip(*branches, strict=True)]
    bodies = [value for value in parameters.values() if isinstance(value, Jaxpr | ClosedJaxpr)]
    if bodies:  # a function that is called, such as a compiled one
        return _depths(bodies[0].jaxpr if isinstance(bodies[0], ClosedJaxpr) else bodies[0], inputs)
    return [1 + max(inputs, default=0)] * len(equation.outvars)


def _of_scan(parameters: Any, inputs: list[int]) -> list[int]:
    """Carries grow with each step; what all steps give together is as deep as the deepest of them."""
    first, carried = parameters["num_consts"], parameters["num_carry"]
    constants, carry, slices = inputs[:first], inputs[first : first + carried], inputs[first + carried :]
    stacked = [0] * (len(parameters["jaxpr"].jaxpr.outvars) - carried)
    for _ in range(parameters["length"]):
        results = _depths(parameters["jaxpr"].jaxpr, [*constants, *carry, *slices])
        carry = results[:carried]
        stacked = [max(pair) for pair in zip(stacked, results[carried:], strict=True)]
    return carry + stacked

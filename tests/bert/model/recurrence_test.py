"""The loop whose kernels get their gradient behind it, beside `jax.lax.scan`."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest

from bert.model import recurrence


def step(times, bias_N, carry_BN, x_BN):
    carry_BN = jnp.tanh(times("state", carry_BN) + times("row", x_BN) + bias_N)
    return carry_BN, carry_BN**2


@pytest.mark.parametrize("reverse", [False, True])
def test_results_and_gradients_are_those_of_a_plain_scan(reverse):
    rng = np.random.default_rng(0)
    draw = lambda *shape: jnp.asarray(rng.normal(size=shape), jnp.float32)  # noqa: E731
    kernels, bias_N, carry_BN, x_TBN = {"state": draw(4, 4), "row": draw(3, 4, 4)}, draw(4), draw(3, 4), draw(5, 3, 4)
    weight_TBN = draw(5, 3, 4)

    def plain(kernels, bias_N, carry_BN, x_TBN):
        one = lambda carry, x: step(recurrence.times(kernels, "float32"), bias_N, carry, x)  # noqa: E731
        return jax.lax.scan(one, carry_BN, x_TBN, reverse=reverse)

    def total(run):
        def sum_of(*inputs):
            last, every = run(*inputs)
            return (every * weight_TBN).sum() + last.sum()

        return jax.value_and_grad(sum_of, argnums=(0, 1, 2, 3))

    ours = lambda *inputs: recurrence.scan(step, "float32", reverse, *inputs)  # noqa: E731
    got, want = (total(run)(kernels, bias_N, carry_BN, x_TBN) for run in (ours, plain))
    jax.tree.map(lambda a, b: np.testing.assert_allclose(a, b, rtol=1e-5, atol=1e-6), got, want)


def test_no_kernel_is_summed_in_the_loop():
    kernels, x_TBN = {"state": jnp.ones((4, 4)), "row": jnp.ones((3, 4, 4))}, jnp.ones((5, 3, 4))
    run = lambda kernels: recurrence.scan(step, "float32", False, kernels, jnp.ones(4), jnp.ones((3, 4)), x_TBN)  # noqa: E731
    program = jax.make_jaxpr(jax.grad(lambda kernels: run(kernels)[1].sum()))(kernels)
    loops = [equation for equation in program.eqns if equation.primitive.name == "scan"]
    assert len(loops) == 2
    carried = [v.aval.shape for loop in loops for v in loop.outvars[: loop.params["num_carry"]]]
    assert not {(4, 4), (3, 4, 4)} & set(carried)

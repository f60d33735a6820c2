"""Optimizers and learning-rate schedules: what decays, how the rate moves, what is clipped.

The transformations here leave out the learning rate: the train step multiplies by ``schedule(step)`` itself, so the
rate is a function of the one step counter in the state and is logged as used.

Sources: AdamW, Loshchilov & Hutter 2019 (as in torch.optim.AdamW); google-research/bert ``optimization.py``
(AdamWeightDecayOptimizer); LAMB, You et al. 2020, Algorithm 2.
"""

import dataclasses
from collections.abc import Callable
from typing import Any

import jax
import jax.numpy as jnp
import optax

from bert.errors import InputError

OPTIMIZERS = ("adamw", "google_adamw", "lamb")
SCHEDULES = ("linear", "polynomial", "google", "constant")


@dataclasses.dataclass(frozen=True)
class OptimizerSettings:
    """One optimizer with its schedule; checked when it is made.

    Raises:
      InputError: for a value out of range, naming it and the rule.
    """

    total_steps: int  # optimizer steps; the schedule ends there
    learning_rate: float  # the peak
    name: str = "adamw"  # adamw, google_adamw (no bias correction), lamb
    schedule: str = "linear"  # linear, polynomial, google (decay counted from step 0), constant
    warmup_steps: int = 0  # optimizer steps from rate 0 up to the peak
    power: float = 1.0  # of the polynomial decay; 1 is linear
    weight_decay: float = 0.01  # on kernels and embeddings only; BERT appendix A.2
    b1: float = 0.9  # decay of Adam's mean of the gradient; BERT appendix A.2
    b2: float = 0.999  # decay of Adam's mean of the squared gradient; BERT appendix A.2
    eps: float = 1e-6  # google-research/bert, optimization.py
    clip_norm: float = 1.0  # largest norm of the whole gradient; 0: no clipping; google-research/bert, optimization.py
    layer_decay: float = 1.0  # each block learns at this multiple of the rate of the block above it; see `rate_shares`
    frozen_layers: int = -1  # lowest blocks that are not trained, nor the embeddings; 0: the embeddings; -1: none

    def __post_init__(self):
        for name, allowed in (("name", OPTIMIZERS), ("schedule", SCHEDULES)):
            if getattr(self, name) not in allowed:
                raise InputError(f"optimizer.{name} is {getattr(self, name)!r}; it must be one of {', '.join(allowed)}")
        if self.total_steps < 1:
            raise InputError(f"total_steps is {self.total_steps}; training needs at least 1")
        if not 0 <= self.warmup_steps <= self.total_steps:
            raise InputError(
                f"optimizer.warmup_steps is {self.warmup_steps}; it must be from 0 to total_steps, {self.total_steps}"
            )
        for name in ("learning_rate", "power", "eps"):
            if not getattr(self, name) > 0:
                raise InputError(f"optimizer.{name} is {getattr(self, name)}; it must be above 0")
        for name in ("weight_decay", "clip_norm"):
            if not getattr(self, name) >= 0:
                raise InputError(f"optimizer.{name} is {getattr(self, name)}; it must be at least 0")
        if not 0 < self.layer_decay <= 1:
            raise InputError(f"optimizer.layer_decay is {self.layer_decay}; it must be above 0 and at most 1")
        if self.frozen_layers < -1:
            raise InputError(f"optimizer.frozen_layers is {self.frozen_layers}; it must be at least -1, which is none")
        for name in ("b1", "b2"):
            if not 0 <= getattr(self, name) < 1:
                raise InputError(f"optimizer.{name} is {getattr(self, name)}; it must be at least 0 and below 1")


def schedule(settings: OptimizerSettings) -> Callable[[Any], jax.Array]:
    """Step number (0 for the first update) -> learning rate, float32; 0 at step 0 of a warm-up, never below 0.

    "linear" and "polynomial" fall from the peak at the end of the warm-up to 0 at ``total_steps`` (Hugging Face);
    "google" falls from step 0 on, so the rate jumps down where the warm-up ends; "constant" stays at the peak.
    """
    peak, warmup, total = settings.learning_rate, settings.warmup_steps, settings.total_steps
    start = 0 if settings.schedule == "google" else warmup
    power = settings.power if settings.schedule in ("polynomial", "google") else 1.0

    def rate(step):
        step = jnp.asarray(step, jnp.float32)
        left = jnp.clip((total - step) / max(1, total - start), 0.0, 1.0)
        decayed = peak * (left**power if settings.schedule != "constant" else 1.0)
        return jnp.where(step < warmup, peak * step / max(1, warmup), decayed)

    return rate


def decays(path: tuple) -> bool:
    """Does weight decay reach the parameter at this tree path? Kernels and embeddings yes; biases and norms no.

    By name, not by number of axes: stacked biases have two.
    """
    return path[-1].key in ("kernel", "embedding")


def decay_mask(params) -> Any:
    """A tree of booleans in the shape of ``params``."""
    return jax.tree_util.tree_map_with_path(lambda path, _: decays(path), params)


def decay_listing(params) -> dict[str, bool]:
    """Parameter name -> does it decay, for people to look at."""
    leaves = jax.tree_util.tree_leaves_with_path(params)
    return {jax.tree_util.keystr(path, simple=True, separator="/"): decays(path) for path, _ in leaves}


def transformation(settings: OptimizerSettings) -> optax.GradientTransformationExtraArgs:
    """Gradients -> update direction; the step then does ``params -= schedule(step) * direction``.

    ``update`` takes ``good``, bool: where it is False, the state stays as it was, and the direction means nothing.
    """
    alike = settings.layer_decay == 1.0 and settings.frozen_layers < 0
    parts = [
        # Before clipping, so that what is frozen is not part of the norm.
        optax.identity() if alike else _multiply(lambda params: _frozen_or_not(params, settings)),
        clip_by_global_norm(settings.clip_norm) if settings.clip_norm else optax.identity(),
        scale_by_adam(settings.b1, settings.b2, settings.eps, corrected=settings.name != "google_adamw"),
        optax.add_decayed_weights(settings.weight_decay, decay_mask),
    ]
    if settings.name == "lamb":
        parts.append(scale_by_layer_trust_ratio())
    if not alike:
        parts.append(_multiply(lambda params: rate_shares(params, settings)))  # last: it scales decay, too
    return optax.chain(*parts)


def rate_shares(params: Any, settings: OptimizerSettings) -> Any:
    """The share of the learning rate that each parameter gets, in the shape of ``params``; 0 where it is frozen.

    The head gets 1, the highest of L blocks ``layer_decay``, each one below that times ``layer_decay``, the embeddings
    ``layer_decay ** (L + 1)``. (Howard & Ruder 2018; Clark et al. 2020, ELECTRA, appendix B.)
    """

    def one(path, param):
        names = [key.key for key in path]
        if names[0] != "encoder":
            return jnp.ones((), jnp.float32)
        depth = jnp.arange(1, param.shape[0] + 1) if names[1] == "blocks" else jnp.zeros(1, int)
        layers = jax.tree.leaves(params["encoder"]["blocks"])[0].shape[0]
        shares = jnp.where(depth <= settings.frozen_layers, 0.0, settings.layer_decay ** (layers + 1.0 - depth))
        return shares.reshape(-1, *[1] * (param.ndim - 1)) if names[1] == "blocks" else shares[0]

    return jax.tree_util.tree_map_with_path(one, params)


def _frozen_or_not(params: Any, settings: OptimizerSettings) -> Any:
    return jax.tree.map(lambda share: (share > 0).astype(jnp.float32), rate_shares(params, settings))


def _multiply(factors: Callable[[Any], Any]) -> optax.GradientTransformation:
    """Updates times a tree that is made from the parameters."""

    def update(updates, state, params):
        return jax.tree.map(lambda u, f: u * f.astype(u.dtype), updates, factors(params)), state

    return optax.GradientTransformation(lambda params: optax.EmptyState(), update)


def clip_by_global_norm(limit: float) -> optax.GradientTransformation:
    """Gradients times ``min(1, limit / norm)``: one factor, where optax divides each entry."""

    def update(grads, state, params=None):
        del params
        factor = limit / jnp.maximum(optax.tree.norm(grads), limit)
        return jax.tree.map(lambda g: g * factor, grads), state

    return optax.GradientTransformation(lambda params: optax.EmptyState(), update)


def scale_by_adam(b1: float, b2: float, eps: float, *, corrected: bool) -> optax.GradientTransformationExtraArgs:
    """Adam (Kingma & Ba 2014) that keeps its old state where a step is not ``good``.

    With `optax.scale_by_adam` and a choice behind it, the compiler copies both moments of every parameter.

    Args:
      corrected: divide by what the moments lack at the start; google-research/bert does not, and its first updates
        are larger by far.
    """

    def init(params):
        zeros = lambda: jax.tree.map(jnp.zeros_like, params)  # noqa: E731
        return optax.ScaleByAdamState(count=jnp.zeros((), jnp.int32), mu=zeros(), nu=zeros())

    def update(grads, state, params=None, *, good=True):
        del params
        mu = jax.tree.map(lambda m, g: jnp.where(good, b1 * m + (1 - b1) * g, m), state.mu, grads)
        nu = jax.tree.map(lambda v, g: jnp.where(good, b2 * v + (1 - b2) * jnp.square(g), v), state.nu, grads)
        count = state.count + good
        steps = jnp.maximum(count, 1).astype(jnp.float32)
        scale_mu, scale_nu = ((1 / (1 - b**steps) if corrected else jnp.ones(())) for b in (b1, b2))
        direction = jax.tree.map(lambda m, v: m * scale_mu / (jnp.sqrt(v * scale_nu) + eps), mu, nu)
        return direction, optax.ScaleByAdamState(count=count, mu=mu, nu=nu)

    return optax.GradientTransformationExtraArgs(init, update)


def scale_by_layer_trust_ratio() -> optax.GradientTransformation:
    """LAMB's step: each layer's update times ``|params| / |update|`` (1 where either is 0).

    Stacked blocks hold one array for all layers; the ratio is still one per layer. Parameters that do not decay keep
    ratio 1, as in Google's and NVIDIA's implementations.
    """

    def one(path, update, param):
        if not decays(path):
            return update
        stacked = any(getattr(key, "key", None) == "blocks" for key in path)
        axes = tuple(range(1 if stacked else 0, param.ndim))
        norm = lambda x: jnp.sqrt(jnp.sum(jnp.square(x.astype(jnp.float32)), axis=axes, keepdims=True))  # noqa: E731
        p, u = norm(param), norm(update)
        return update * jnp.where((p > 0) & (u > 0), p / jnp.where(u > 0, u, 1.0), 1.0)

    def update(updates, state, params):
        return jax.tree_util.tree_map_with_path(one, updates, params), state

    return optax.GradientTransformation(lambda params: optax.EmptyState(), update)

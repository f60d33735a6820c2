"""Optimizers, weight decay, clipping, and rates by layer. The learning-rate schedules are in learning_rate.py.

These transformations do not apply the learning rate: the train step multiplies by ``rate(step)``, so there is a single
step counter, and the logged rate is the one used.

Sources: AdamW, Loshchilov & Hutter 2019 (as in torch.optim.AdamW); google-research/bert ``optimization.py``
(AdamWeightDecayOptimizer); LAMB, You et al. 2020, Algorithm 2.
"""

import dataclasses
import functools
import math
from collections.abc import Callable, Sequence
from typing import Any

import jax
import jax.numpy as jnp
import numpy as np
import optax
from jax import Array

from bert.errors import check_choice, check_range
from bert.training import learning_rate
from bert.training.learning_rate import Shape
from bert.types import Params

Path = tuple[str, ...]  # names of a parameter, from the root of the tree
DepthOf = Callable[[Path], int | Sequence[int] | None]  # see `heads.Model.depth_of`
OPTIMIZERS = ("adamw", "google_adamw", "lamb")


@dataclasses.dataclass(frozen=True)
class OptimizerSettings:
    """One optimizer with its schedule. Raises InputError for a value out of range."""

    total_steps: int  # optimizer steps; the schedule ends there
    learning_rate: float  # the peak
    name: str = "adamw"  # adamw, google_adamw (no bias correction), lamb
    # linear, polynomial, cosine: to 0 at the end; google: polynomial, counted from step 0; inverse_sqrt: peak *
    # sqrt(warm-up / step); wsd: the peak until the last decay_share of the steps, then linear to 0; constant.
    schedule: str = "linear"
    warmup_steps: int = 0  # optimizer steps from rate 0 up to the peak
    power: float = 1.0  # of the schedules polynomial and google; 1 is linear
    decay_share: float = 0.1  # of wsd: share of all steps in which the rate falls; Haegele et al. 2024: 0.1 to 0.2
    weight_decay: float = 0.01  # on kernels and embeddings only; BERT appendix A.2
    b1: float = 0.9  # decay of Adam's mean of the gradient; BERT appendix A.2
    b2: float = 0.999  # decay of Adam's mean of the squared gradient; BERT appendix A.2
    eps: float = 1e-6  # google-research/bert, optimization.py
    clip_norm: float = 1.0  # largest norm of the whole gradient; 0: no clipping; google-research/bert, optimization.py
    layer_decay: float = 1.0  # each block learns at this multiple of the rate of the block above it; see `rate_shares`
    # Decay of a moving average of the parameters, which is then evaluated and becomes the model; 0: none, the last
    # parameters are the model. Polyak & Juditsky 1992.
    ema_decay: float = 0.0
    frozen_layers: int = -1  # lowest blocks that are not trained, nor the embeddings; 0: the embeddings; -1: none

    def __post_init__(self) -> None:
        check_choice("optimizer.name", self.name, OPTIMIZERS)
        check_choice("optimizer.schedule", self.schedule, learning_rate.SCHEDULES)
        check_range("total_steps", self.total_steps, at_least=1)
        check_range("optimizer.decay_share", self.decay_share, at_least=0, at_most=1)
        decay, of_decay = (self._shape.decay_steps, " less the decay") if self.schedule == "wsd" else (0, "")
        most, hint = self.total_steps - decay, f", which is total_steps{of_decay}"
        check_range("optimizer.warmup_steps", self.warmup_steps, at_least=0, at_most=most, hint=hint)
        for name in ("learning_rate", "power", "eps"):
            check_range(f"optimizer.{name}", getattr(self, name), above=0)
        for name in ("weight_decay", "clip_norm"):
            check_range(f"optimizer.{name}", getattr(self, name), at_least=0)
        for name in ("b1", "b2", "ema_decay"):
            check_range(f"optimizer.{name}", getattr(self, name), at_least=0, below=1)
        check_range("optimizer.layer_decay", self.layer_decay, above=0, at_most=1)
        check_range("optimizer.frozen_layers", self.frozen_layers, at_least=-1, hint=", which is none")

    def rate(self) -> Callable[[Any], Array]:
        """Step number -> learning rate, see learning_rate.py."""
        return learning_rate.schedule(self.schedule, peak=self.learning_rate, shape=self._shape)

    @property
    def _shape(self) -> Shape:
        # A half is rounded down: it is rounded up in the warm-up, and both may be all steps.
        decay_steps = math.ceil(self.decay_share * self.total_steps - 0.5 - 1e-6)
        return Shape(self.warmup_steps, self.total_steps, self.power, decay_steps)


def transformation(settings: OptimizerSettings, depth_of: DepthOf) -> optax.GradientTransformationExtraArgs:
    """Gradients -> update direction; the step then does ``params -= rate(step) * direction``.

    ``update`` takes ``good``, bool: where it is False, the state stays as it was, and the direction must be discarded.
    """
    alike = settings.layer_decay == 1.0 and settings.frozen_layers < 0
    shares = functools.partial(rate_shares, settings=settings, depth_of=depth_of)

    def trained(params: Any) -> Any:
        return jax.tree.map(lambda share: (share > 0).astype(jnp.float32), shares(params))

    parts = [
        # Before clipping, so that what is frozen is not part of the norm.
        optax.identity() if alike else _multiply(trained),
        clip_by_global_norm(settings.clip_norm) if settings.clip_norm else optax.identity(),
        scale_by_adam(settings.b1, settings.b2, settings.eps, corrected=settings.name != "google_adamw"),
        optax.add_decayed_weights(settings.weight_decay, decay_mask),
    ]
    if settings.name == "lamb":
        parts.append(scale_by_layer_trust_ratio(depth_of))
    if not alike:
        parts.append(_multiply(shares))  # last: it scales decay, too
    return optax.chain(*parts)


def averaged(average: Params, params: Params, decay: float, updates: Array, good: Array) -> Params:
    """The moving average with the newest parameters; where a step is not ``good`` as it was.

    The decay begins at 0.1 and rises with the number of ``updates`` before this one, so that the first parameters are
    soon forgotten: min(decay, (1 + updates) / (10 + updates)), as in TensorFlow's ExponentialMovingAverage.
    """
    share = jnp.where(good, 1.0 - jnp.minimum(decay, (1.0 + updates) / (10.0 + updates)), 0.0)
    return jax.tree.map(lambda mean, new: mean + share * (new - mean), average, params)


def decays(path: Path) -> bool:
    """Whether weight decay reaches the parameter: kernels and embeddings yes; biases and norms no."""
    return path[-1] in ("kernel", "embedding")  # not by number of axes: stacked biases have two


def decay_mask(params: Params) -> Any:
    """A tree of booleans in the shape of ``params``."""
    return _map_paths(lambda path, _: decays(path), params)


def rate_shares(params: Params, settings: OptimizerSettings, depth_of: DepthOf) -> Any:
    """The share of the learning rate that each parameter gets, in the shape of ``params``; 0 where it is frozen.

    The head gets 1, the highest of L layers ``layer_decay``, each one below that times ``layer_decay``, the embeddings
    ``layer_decay ** (L + 1)``. (Howard & Ruder 2018; Clark et al. 2020, ELECTRA, appendix B.)
    """
    depths: list[int] = []
    _map_paths(lambda path, _: depths.append(np.max(depth_of(path) or 0)), params)
    layers = max(depths)

    def share(path: Path, param: Array) -> Array:
        depth = depth_of(path)
        if depth is None:
            return jnp.ones((), jnp.float32)
        depth_L = jnp.asarray(depth)
        share_L = jnp.where(depth_L <= settings.frozen_layers, 0.0, settings.layer_decay ** (layers + 1.0 - depth_L))
        return share_L.reshape(-1, *[1] * (param.ndim - 1)) if share_L.ndim else share_L

    return _map_paths(share, params)


def _map_paths(function: Callable[..., Any], params: Params, *more: Any) -> Any:
    """The tree of ``function(path, leaf, ...)``; leaves of further trees follow."""
    named = lambda keys, *leaves: function(tuple(key.key for key in keys), *leaves)  # noqa: E731
    return jax.tree_util.tree_map_with_path(named, params, *more)


def _multiply(factors: Callable[[Any], Any]) -> optax.GradientTransformation:
    """Updates times a tree that is made from the parameters."""

    def update(updates: Any, state: Any, params: Any) -> tuple[Any, Any]:
        return jax.tree.map(lambda u, f: u * f.astype(u.dtype), updates, factors(params)), state

    return optax.GradientTransformation(lambda params: optax.EmptyState(), update)


def clip_by_global_norm(limit: float) -> optax.GradientTransformation:
    """Gradients times ``min(1, limit / norm)``: one factor, where optax divides each entry."""

    def update(grads: Any, state: Any, params: Any = None) -> tuple[Any, Any]:
        factor = limit / jnp.maximum(optax.tree.norm(grads), limit)
        return jax.tree.map(lambda g: g * factor, grads), state

    return optax.GradientTransformation(lambda params: optax.EmptyState(), update)


def scale_by_adam(b1: float, b2: float, eps: float, *, corrected: bool) -> optax.GradientTransformationExtraArgs:
    """Adam (Kingma & Ba 2014) that keeps its old state where a step is not ``good``.

    With `optax.scale_by_adam` and a choice behind it, the compiler copies both moments of every parameter.
    ``corrected``: divide by what the moments lack at the start; google-research/bert does not, and its first updates
    are larger by far.
    """

    def init(params: Any) -> optax.ScaleByAdamState:
        mu, nu = (jax.tree.map(jnp.zeros_like, params) for _ in range(2))
        return optax.ScaleByAdamState(count=jnp.zeros((), jnp.int32), mu=mu, nu=nu)

    def update(grads: Any, state: Any, params: Any = None, *, good: Any = True) -> tuple[Any, Any]:
        mu = jax.tree.map(lambda m, g: jnp.where(good, b1 * m + (1 - b1) * g, m), state.mu, grads)
        nu = jax.tree.map(lambda v, g: jnp.where(good, b2 * v + (1 - b2) * jnp.square(g), v), state.nu, grads)
        count = state.count + good
        steps = jnp.maximum(count, 1).astype(jnp.float32)
        scale_mu, scale_nu = ((1 / (1 - b**steps) if corrected else jnp.ones(())) for b in (b1, b2))
        direction = jax.tree.map(lambda m, v: m * scale_mu / (jnp.sqrt(v * scale_nu) + eps), mu, nu)
        return direction, optax.ScaleByAdamState(count=count, mu=mu, nu=nu)

    return optax.GradientTransformationExtraArgs(init, update)


def scale_by_layer_trust_ratio(depth_of: DepthOf) -> optax.GradientTransformation:
    """LAMB's step: each layer's update times ``|params| / |update|`` (1 where either is 0).

    Stacked blocks hold one array for all layers; the ratio is still one per layer. Parameters that do not decay keep
    ratio 1, as in Google's and NVIDIA's implementations.
    """

    def scaled(path: Path, update: Array, param: Array) -> Array:
        if not decays(path):
            return update
        axes = tuple(range(1 if np.ndim(depth_of(path) or 0) else 0, param.ndim))
        squares = (jnp.square(x.astype(jnp.float32)) for x in (param, update))
        p, u = (jnp.sqrt(jnp.sum(square, axis=axes, keepdims=True)) for square in squares)
        return update * jnp.where((p > 0) & (u > 0), p / jnp.where(u > 0, u, 1.0), 1.0)

    def update(updates: Any, state: Any, params: Any) -> tuple[Any, Any]:
        return _map_paths(scaled, updates, params), state

    return optax.GradientTransformation(lambda params: optax.EmptyState(), update)

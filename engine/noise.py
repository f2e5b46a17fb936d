"""Exponential noise by position and token, for the coupled rule.

One invariant: e(position, token) is a pure function of (seed, position, token id); whoever asks, in whatever order,
for one token or for all, gets the same bits.  Each position has a key of its own, a cryptographic hash of seed and
position; token t takes step t of a SplitMix64 stream that starts at the key (Steele, Lea and Flood 2014), whose
upper 53 bits are a u strictly inside (0, 1), and e = -log u.
"""

import hashlib
import struct

import numpy as np
import numpy.typing as npt

from engine.sampling import Distribution

GAMMA = np.uint64(0x9E3779B97F4A7C15)
FIRST, SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
KEPT = 8
"""Positions whose dense noise is held for the target after the draft has used it (1.2 MB each at 152,000 tokens)."""
PIECE = 16_384
"""Tokens worked on at once, few enough for a core's own cache."""


class Noise:
    """The noise of one seed; dense rows are computed once and held until their position is settled."""

    def __init__(self, seed: int) -> None:
        self.seed = seed
        self._steps = _steps(np.arange(0))
        self._times = np.empty(0)
        self._dense: dict[int, npt.NDArray[np.float64]] = {}

    def at(self, position: int, ids: npt.NDArray[np.int64]) -> npt.NDArray[np.float64]:
        """e at these ids, float64 [len(ids)]."""
        return exponential(_steps(ids) + self._key(position))

    def dense(self, position: int, size: int) -> npt.NDArray[np.float64]:
        """e at the ids 0 to size - 1, float64 [size]; read-only."""
        held = self._dense.get(position)
        if held is None or held.size < size:
            if self._steps.size < size:
                self._steps = _steps(np.arange(size))
            held, key = np.empty(size), self._key(position)
            for start in range(0, size, PIECE):
                held[start : start + PIECE] = exponential(self._steps[start : min(start + PIECE, size)] + key)
            held.flags.writeable = False
            self._hold(position, held)
        return held[:size]

    def race(self, distribution: Distribution, position: int) -> int:
        """The token with the largest probs / e, a true draw from the distribution; the lowest id of equal ones.

        A token of probability 0 never wins.
        """
        probs, ids = distribution.probs, distribution.ids
        if self._times.size < probs.size:
            self._times = np.empty(probs.size)
        times = self._times[: probs.size]
        noise = self.dense(position, probs.size) if ids is None else self.at(position, ids)
        with np.errstate(divide="ignore", over="ignore"):
            np.divide(noise, probs, out=times)
        return distribution.token(int(times.argmin()))

    def settle(self, position: int) -> None:
        """Positions up to this one are decided: their noise need not be held."""
        for settled in [held for held in self._dense if held <= position]:
            del self._dense[settled]

    def _hold(self, position: int, noise: npt.NDArray[np.float64]) -> None:
        """The lowest positions stay, since the target comes to them first."""
        self._dense[position] = noise
        if len(self._dense) > KEPT:
            del self._dense[max(self._dense)]

    def _key(self, position: int) -> np.uint64:
        digest = hashlib.blake2b(struct.pack("<QQ", self.seed, position), digest_size=8).digest()
        return np.uint64(int.from_bytes(digest, "little"))


def _steps(ids: npt.NDArray[np.int64]) -> npt.NDArray[np.uint64]:
    return ids.astype(np.uint64) * GAMMA


def exponential(z: npt.NDArray[np.uint64]) -> npt.NDArray[np.float64]:
    """Turn counters into exponential noise, in place as far as it goes."""
    z ^= z >> np.uint64(30)
    z *= FIRST
    z ^= z >> np.uint64(27)
    z *= SECOND
    z ^= z >> np.uint64(31)
    z >>= np.uint64(11)
    np.maximum(z, np.uint64(1), out=z)
    u: npt.NDArray[np.float64] = np.multiply(z.view(np.int64), 2.0**-53, dtype=np.float64)
    np.log(u, out=u)
    np.negative(u, out=u)
    return u

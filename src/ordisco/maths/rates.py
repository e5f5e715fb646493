"""Learning rates within an increment: linear warm-up and linear decay, beyond the paper."""

from __future__ import annotations


def share_of_rate(step: int, steps: int, warm_up: float, decay: float) -> float:
    """What share of its rate a network learns with: min(1, (t + 1) / (w T), (T − t) / (d T)) at step t of T.

    `warm_up` w and `decay` d are shares of the increment; 0 is a constant rate. No step has the rate 0: the line begins
    one step before the first, and ends one after the last.

    >>> [share_of_rate(t, 8, warm_up=0.25, decay=0.5) for t in range(8)]
    [0.5, 1.0, 1.0, 1.0, 1.0, 0.75, 0.5, 0.25]
    """
    rising = (step + 1) / (warm_up * steps) if warm_up > 0 else 1.0
    falling = (steps - step) / (decay * steps) if decay > 0 else 1.0
    return min(1.0, rising, falling)

"""Adam (Kingma & Ba, 2015) on one flat vector, by torch's fused kernel.

`torch.optim.Adam` calls the same kernel, but loads torch's compiler with its first step: a second of every process.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.optim.adam import adam

EPSILON = 1e-8


class Adam:
    """One vector that learns, and the moments of its gradients."""

    def __init__(self, vector: Tensor, lr: float, betas: tuple[float, float]) -> None:
        self.vector, self.lr, self.betas = vector, lr, betas
        self.share = 1.0  # of the rate, at the next step
        self.moments: dict[str, Tensor] = {}

    @torch.no_grad()
    def step(self) -> None:
        """One step along the gradient."""
        vector, gradient = self.vector, self.vector.grad
        assert gradient is not None
        if not self.moments:
            steps = torch.zeros((), dtype=torch.float32, device=vector.device)
            self.moments = {"step": steps, "exp_avg": torch.zeros_like(vector), "exp_avg_sq": torch.zeros_like(vector)}
        steps, mean, square = (self.moments[name] for name in ("step", "exp_avg", "exp_avg_sq"))
        adam(
            [vector],
            [gradient],
            [mean],
            [square],
            [],
            [steps],
            fused=True,
            amsgrad=False,
            beta1=self.betas[0],
            beta2=self.betas[1],
            lr=self.lr * self.share,
            weight_decay=0.0,
            eps=EPSILON,
            maximize=False,
        )

"""A step of Riemannian Adam for one point of a ball; :mod:`hgde.training.point_adam` says of which."""

from __future__ import annotations

import numpy as np

from hgde.compiler.dialect import Double, Doubles, Int, Reals, kernel
from hgde.kernels.cpu.lanes import larger, root


@kernel
def adam(
    s: Doubles, n: Int, point: Reals, gradient: Reals, mean: Reals, square: Reals, c: Double, lr: Double, beta1: Double,
    beta2: Double, left1: Double, left2: Double, eps: Double, limit: Double,
) -> None:  # fmt: skip
    """Averages of the Riemannian gradient and of its squared length, then retraction by addition, projection into the
    ball, and transport of the average ``PT_{x -> y}(m) = gyr[y, -x] m (lambda_x / lambda_y)``, all in place.

    ``left`` are ``1 - beta^t`` after ``t`` steps, ``limit`` the largest norm; ``s`` holds ``2 n`` numbers.
    """
    xx, gg, yy, xy, xm, ym = 0.0, 0.0, 0.0, 0.0, 0.0, 0.0
    for k in range(n):
        x, g = np.float64(point[k]), np.float64(gradient[k])
        xx += x * x
        gg += g * g
    rest = larger(1 - c * xx, 1e-15)
    # lambda^2 |g / lambda^2|^2 = |g|^2 / lambda^2
    shrink = 0.25 * rest * rest
    for k in range(n):
        m = beta1 * np.float64(mean[k]) + (1 - beta1) * shrink * np.float64(gradient[k])
        square[k] = beta2 * np.float64(square[k]) + (1 - beta2) * shrink * gg
        y = np.float64(point[k]) - lr * (m / left1 / (root(np.float64(square[k]) / left2) + eps))
        s[k], s[n + k] = m, y
        yy += y * y
    scale = limit / root(yy) if root(yy) > limit else 1.0
    yy *= scale * scale
    for k in range(n):
        x, m, y = np.float64(point[k]), s[k], scale * s[n + k]
        s[n + k] = y
        xy += x * y
        xm += x * m
        ym += y * m
    along_y = -c * c * ym * xx - c * xm + 2 * c * c * xy * xm
    along_x = c * ym - c * c * xm * yy
    twice = 2 / larger(1 - 2 * c * xy + c * c * xx * yy, 1e-15)
    shorter = larger(1 - c * yy, 1e-15) / rest
    for k in range(n):
        mean[k] = shorter * (s[k] + twice * (along_y * s[n + k] + along_x * np.float64(point[k])))
        point[k] = s[n + k]

"""Makes values.csv of the tasks log_bessel_i and log_bessel_k: 25 digits of the answers, with mpmath.

    python3 tests/datasets/bessel_values.py datasets/families

K_v(x) is the sum of its integral's values at evenly spaced points, whose error falls faster than any power of
their distance. mpmath.besselk agrees to 23 digits at all but six of the points; there it does not converge, or
gives a negative number.
"""

import math
import random
import sys

import mpmath as mp


def points():
    draw = random.Random(7)
    yield from [(0.0, 1.0), (0.0, 1e-8), (0.0, 1e4), (0.5, 1e-8), (0.5, 2.0), (1.0, 1e-8), (1e4, 1e-8), (1e4, 1e4)]
    yield from [(1e4, 1.0), (1.0, 1e4), (2.0, 3.0), (1 / 3, 0.1), (1e-10, 0.5), (1e-3, 1e-6), (19.99, 0.5)]
    # Both sides of the border between two ways of the reference, and the corners.
    yield from [(20.0, 1e-8), (20.01, 0.5), (0.0, 19.99), (0.0, 20.01), (14.14, 14.14), (14.15, 14.15)]
    yield from [(10.0, 10.0), (5.0, 19.0), (19.0, 5.0), (100.0, 100.0), (1000.0, 50.0), (50.0, 1000.0)]
    yield from [(9999.5, 0.001), (12.5, 1e-4), (19.5, 1e-7)]
    for _ in range(130):  # as the tasks draw them
        yield math.expm1(draw.uniform(0, 9.21)), math.exp(draw.uniform(-18.42, 9.21))
    for _ in range(40):
        yield draw.uniform(0, 20), math.exp(draw.uniform(-18, 3))


def log_i(v, x):
    return mp.log(mp.besseli(mp.mpf(v), mp.mpf(x)))


def log_k(v, x):
    v, x = mp.mpf(v), mp.mpf(x)
    peak = mp.asinh(v / x)
    largest = v * peak - mp.hypot(v, x)
    step = min(mp.mpf(1) / 24, 1 / (5 * mp.sqrt(mp.hypot(v, x) + 1)))
    middle = int(mp.floor(peak / step))
    total = mp.mpf(0)
    for begin, way in ((middle + 1, 1), (middle, -1)):  # the integrand's even part, over the whole line
        j, term = begin, mp.mpf(1)
        while term > mp.mpf(10) ** -42:
            t = j * step
            term = mp.exp(v * t - x * mp.cosh(t) - largest)
            total += term
            j += way
    return mp.log(total * step / 2) + largest


def main(folder):
    mp.mp.dps = 50
    for name, function in (("log_bessel_i", log_i), ("log_bessel_k", log_k)):
        with open(f"{folder}/{name}/values.csv", "w") as file:
            file.write("v,x,log\n")
            for v, x in points():
                file.write(f"{v!r},{x!r},{mp.nstr(function(v, x), 25)}\n")


if __name__ == "__main__":
    main(sys.argv[1])

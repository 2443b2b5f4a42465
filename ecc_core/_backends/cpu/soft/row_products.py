"""Products of rows of numbers with those of a table: sums over points, and sums of rows.

Both read several rows at once, since reading them takes as long as multiplying them. They take as
long as matrix products of NumPy and torch, which would add numbers in an order that depends on the
number of their threads.
"""

from __future__ import annotations

from ecc_core._backends.cpu.compiling import kernel


@kernel(error_model="numpy", fastmath={"reassoc", "contract", "nsz"})
def _eight_sums(rows, i, other, at, table, levels, count):
    """Return the sums over points of the products of two rows with four rows of a table."""
    row = rows[i, at:]
    next_row = rows[other, at:]
    one = table[levels[0]]
    two = table[levels[1]]
    three = table[levels[2]]
    four = table[levels[3]]
    a = b = c = d = e = f = g = h = rows.dtype.type(0)
    for p in range(count):
        x = row[p]
        y = next_row[p]
        a += x * one[p]
        b += x * two[p]
        c += x * three[p]
        d += x * four[p]
        e += y * one[p]
        f += y * two[p]
        g += y * three[p]
        h += y * four[p]
    return (a, b, c, d), (e, f, g, h)


@kernel(error_model="numpy")
def add_products(rows, at, table, first, last, count, factor, out):
    """Add to ``out[i, j]`` a factor times the sum over points of ``rows[i] * table[j]``.

    The sums are those of `count` points, in rows from the place `at` on, for j from `first` to
    before `last`.
    """
    for j in range(first, last, 4):
        end = last - 1
        levels = j, min(j + 1, end), min(j + 2, end), min(j + 3, end)
        for i in range(0, len(rows), 2):
            other = min(i + 1, len(rows) - 1)
            found, of_other = _eight_sums(rows, i, other, at, table, levels, count)
            for k in range(min(4, last - j)):
                out[i, j + k] += factor * found[k]
                if other > i:
                    out[other, j + k] += factor * of_other[k]


@kernel(error_model="numpy", fastmath={"contract", "nsz"})
def _add_four(factors, i, other, table, at, places, out, count):
    """Add four rows of a table, times factors, to two rows; places that come again do not count."""
    row = out[i]
    next_row = out[i + 1]
    j, k, m, n = places
    one = table[j, at:]
    two = table[k, at:]
    three = table[m, at:]
    four = table[n, at:]
    real = out.dtype.type
    a = real(factors[i, j])
    b = real(factors[i, k] * (k > j))
    c = real(factors[i, m] * (m > k))
    d = real(factors[i, n] * (n > m))
    e = real(factors[other, j])
    f = real(factors[other, k] * (k > j))
    g = real(factors[other, m] * (m > k))
    h = real(factors[other, n] * (n > m))
    for p in range(count):
        w = one[p]
        x = two[p]
        y = three[p]
        z = four[p]
        row[p] += a * w + b * x + c * y + d * z
        next_row[p] += e * w + f * x + g * y + h * z


@kernel(error_model="numpy")
def combine(factors, table, at, first, last, count, out):
    """Write to ``out[i]`` the sum of ``factors[i, j] * table[j]`` over j, for `count` points.

    Points are in the table from the place `at` on, and j is from `first` to before `last`. Results
    have an even number of rows; where that of factors is odd, the last row is undefined.
    """
    end = last - 1
    for i in range(0, len(factors), 2):
        other = min(i + 1, len(factors) - 1)
        out[i : i + 2, :count] = 0
        for j in range(first, last, 4):
            places = j, min(j + 1, end), min(j + 2, end), min(j + 3, end)
            _add_four(factors, i, other, table, at, places, out, count)

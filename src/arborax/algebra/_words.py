"""Words over weighted alphabets, and Lyndon words with their standard factorisation.

A word is a tuple of letter indices. Every letter has a positive integer weight and
the weight of a word is the sum of the weights of its letters, so one set of functions
serves plain words (all weights 1), the extended Itô alphabet (weights 1 and 2) and
words over planar trees (weight = number of vertices).
"""

import itertools as it
from collections import Counter
from collections.abc import Sequence


Word = tuple[int, ...]


def count_words(letter_counts: Sequence[int], depth: int) -> list[int]:
    """Number of words of each weight `0..depth`.

    **Arguments:**

    - `letter_counts`: `letter_counts[k]` is the number of letters of weight `k`
        (entry 0 is ignored; missing entries are zero).
    - `depth`: largest weight.
    """
    counts = [1]
    for weight in range(1, depth + 1):
        steps = range(1, min(weight, len(letter_counts) - 1) + 1)
        counts.append(sum(letter_counts[k] * counts[weight - k] for k in steps))
    return counts


def count_lyndon_words(letter_counts: Sequence[int], depth: int) -> list[int]:
    """Number of Lyndon words of each weight `0..depth`.

    Möbius inversion of the generating function: the product over weights of
    `(1 - x^n)^(-L_n)` equals `1 / (1 - A(x))`, `A` counting letters.
    """
    letters = [
        letter_counts[k] if k < len(letter_counts) else 0 for k in range(depth + 1)
    ]
    words = count_words(letters, depth)
    cycles = [
        sum(k * letters[k] * words[n - k] for k in range(1, n + 1))
        for n in range(depth + 1)
    ]
    counts = [0] * (depth + 1)
    for n in range(1, depth + 1):
        divisors = [k for k in range(1, n) if n % k == 0]
        counts[n] = (cycles[n] - sum(k * counts[k] for k in divisors)) // n
    return counts


def weighted_words(letter_weights: Sequence[int], depth: int) -> tuple[Word, ...]:
    """All words of weight `1..depth`, by weight, then lexicographically."""
    by_weight: list[list[Word]] = [[()]]
    for weight in range(1, depth + 1):
        level = [
            (letter, *rest)
            for letter, letter_weight in enumerate(letter_weights)
            if letter_weight <= weight
            for rest in by_weight[weight - letter_weight]
        ]
        by_weight.append(level)
    return tuple(word for level in by_weight[1:] for word in level)


def lyndon_words(
    letter_weights: Sequence[int], depth: int
) -> dict[Word, tuple[Word, Word] | None]:
    """Lyndon words of weight at most `depth`, with their standard factorisation.

    A word is Lyndon when it is strictly smaller than each of its proper suffixes.
    The standard factorisation is `l = u v`, `v` the longest proper Lyndon suffix;
    each Lyndon word of two or more letters arises from exactly one pair of Lyndon
    words `u < v` where `u` is a letter or the right factor of `u` is at least `v`,
    which is how they are generated here, weight by weight.

    **Returns:**

    A dictionary in the order of the basis (by weight, then lexicographically) from
    the word to its pair `(u, v)`, or to `None` for a letter.
    """
    factors: dict[Word, tuple[Word, Word] | None] = {}
    by_weight: list[list[Word]] = [[]]
    for weight in range(1, depth + 1):
        level: dict[Word, tuple[Word, Word] | None] = {
            (letter,): None
            for letter, letter_weight in enumerate(letter_weights)
            if letter_weight == weight
        }
        for left_weight in range(1, weight):
            for u in by_weight[left_weight]:
                pair = factors[u]
                for v in by_weight[weight - left_weight]:
                    if u < v and (pair is None or pair[1] >= v):
                        level[u + v] = (u, v)
        by_weight.append(sorted(level))
        factors.update((word, level[word]) for word in by_weight[-1])
    return factors


def bracket_expansion(factors: dict) -> dict[tuple, dict[Word, int]]:
    """Brackets `[l] = [u][v] - [v][u]` as integer combinations of words.

    `factors` maps each key to its pair `(u, v)` of earlier keys, or a letter `(i,)` to
    `None`. For Lyndon words with their standard factorisation the word `l` itself has
    coefficient one and every other word in the expansion is larger.
    """
    expansion: dict[tuple, dict[Word, int]] = {}
    for key, pair in factors.items():
        terms: Counter = Counter()
        if pair is None:
            terms[key] = 1
        else:
            left, right = (expansion[part].items() for part in pair)
            for (u, a), (v, b) in it.product(left, right):
                terms[u + v] += a * b
                terms[v + u] -= a * b
        expansion[key] = {word: value for word, value in terms.items() if value}
    return expansion

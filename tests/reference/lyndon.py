"""Lyndon words by definition, and their standard bracketing."""


def is_lyndon(word):
    """Strictly smaller than each of its proper suffixes."""
    return len(word) > 0 and all(word < word[i:] for i in range(1, len(word)))


def words(letter_weights, depth):
    """All non-empty words in letter indices of total weight <= depth."""
    for i, w in enumerate(letter_weights):
        if w <= depth:
            yield (i,)
            for rest in words(letter_weights, depth - w):
                yield (i, *rest)


def lyndon_words(letter_weights, depth):
    return [w for w in words(letter_weights, depth) if is_lyndon(w)]


def split(word):
    """`word = uv` with v the longest proper Lyndon suffix."""
    k = next(i for i in range(1, len(word)) if is_lyndon(word[i:]))
    return word[:k], word[k:]


def bracket(algebra, word, letters):
    """The Lie element of a Lyndon word; `letters` maps an index to an element."""
    if len(word) == 1:
        return letters[word[0]]
    u, v = split(word)
    a, b = bracket(algebra, u, letters), bracket(algebra, v, letters)
    return algebra.commutator(a, b)

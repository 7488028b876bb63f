"""Lifted fields written out from their definitions, one primitive at a time.

Fields are Python functions from points to ambient tangent vectors; nothing is shared,
contracted or cached. Slow, and independent of the library's own recursion.
"""

import jax
import jax.numpy as jnp
import jax.tree_util as jtu
import numpy as np

import arborax as abx


def add(x, y, scale=1.0):
    return jtu.tree_map(lambda a, b: a + scale * b, x, y)


def derivative(g, y, v):
    return jax.jvp(g, (y,), (v,))[1]


def jacobi(U, V):
    """The bracket [U, V] = DV[U] - DU[V]."""
    return lambda y: add(derivative(V, y, U(y)), derivative(U, y, V(y)), -1.0)


def nabla(geometry, U, V):
    """Covariant derivative of V along U, both ambient."""

    def out(y):
        v = lambda z: geometry.coordinates(z, V(z))  # noqa: E731
        w = derivative(v, y, U(y))
        u = geometry.coordinates(y, U(y))
        return geometry.frame(y, w + geometry.christoffel(y, u, v(y)))

    return out


def total(geometry, V, directions):
    """nabla^k V (U1, .., Uk), total covariant derivative."""
    if not directions:
        return V
    U, rest = directions[0], directions[1:]
    main = nabla(geometry, U, total(geometry, V, rest))
    corrections = [
        total(geometry, V, rest[:r] + [nabla(geometry, U, W)] + rest[r + 1 :])
        for r, W in enumerate(rest)
    ]

    def out(y):
        value = main(y)
        for g in corrections:
            value = add(value, g(y), -1.0)
        return value

    return out


def atoms(fields, d, geometry):
    """Driving fields as ambient functions."""
    return [lambda y, i=i: geometry.frame(y, fields(y)[i]) for i in range(d)]


def tree_field(tree, V, geometry):
    colour, children = tree
    return total(geometry, V[colour], [tree_field(c, V, geometry) for c in children])


def letter_field(alg, letter, V, geometry):
    if isinstance(alg, abx.Shuffle):
        return V[letter]
    if isinstance(alg, abx.Ito):
        if len(letter) == 1:
            return V[letter[0]]
        i, j = letter
        one, two = nabla(geometry, V[i], V[j]), nabla(geometry, V[j], V[i])
        return lambda y: jtu.tree_map(lambda a, b: (a + b) / 2, one(y), two(y))
    return tree_field(letter, V, geometry)


def primitive_field(alg, key, V, geometry):
    """F(p) for a key of `alg.primitive_basis`."""
    if isinstance(alg, abx.GrossmanLarson):
        return tree_field(key, V, geometry)
    if len(key) == 1:
        return letter_field(alg, key[0], V, geometry)
    basis = set(alg.primitive_basis)
    cut = next(k for k in range(1, len(key)) if key[k:] in basis)
    return jacobi(
        primitive_field(alg, key[:cut], V, geometry),
        primitive_field(alg, key[cut:], V, geometry),
    )


def all_fields(alg, fields, geometry, keys=None):
    """Frame-free reference: ambient values of F(p) at a point, stacked."""
    V = atoms(fields, alg.dim, geometry)
    keys = alg.primitive_basis if keys is None else keys
    functions = [primitive_field(alg, key, V, geometry) for key in keys]

    def evaluate(y):
        return jtu.tree_map(lambda *x: jnp.stack(x), *[f(y) for f in functions])

    return evaluate


def smooth_fields(d, geometry, seed=0, scale=0.5):
    """Non-polynomial fields with no symmetry to hide behind."""
    rng = np.random.default_rng(seed)
    sizes = [
        int(np.prod(s))
        for s in jtu.tree_leaves(
            geometry.point_shape,
            is_leaf=lambda s: (
                isinstance(s, tuple) and all(isinstance(n, int) for n in s)
            ),
        )
    ]
    size = sum(sizes)
    weight = rng.normal(size=(d, geometry.dim, size)) / np.sqrt(size)
    other = rng.normal(size=(d, geometry.dim, size)) / np.sqrt(size)
    bias = rng.normal(size=(d, geometry.dim))

    def fields(y):
        flat = jnp.concatenate([jnp.ravel(leaf) for leaf in jtu.tree_leaves(y)])
        a, b, c = (jnp.asarray(x, flat.dtype) for x in (weight, other, bias))
        return scale * (jnp.tanh(a @ flat + c) + (b @ flat) * jnp.cos(a @ flat))

    return fields

"""Data-parallel placement over a mesh of devices, in one or in several processes."""

from typing import Any

import jax
import jax.numpy as jnp
import jax.random as jr
import numpy as np
from jax.experimental import multihost_utils
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from .._inputs import as_kind


def initialise_distributed(
    coordinator: str | None = None,
    processes: int | None = None,
    process: int | None = None,
    **options: Any,
) -> Mesh:
    """Joins several processes (hosts) into one JAX run and returns the mesh for `fit`.

    Call it in each process before any other use of JAX, then call
    `fit(..., mesh=mesh)` with the same arguments everywhere.

    **Arguments:**

    - `coordinator`: address and port of process 0, for example `"10.0.0.1:1234"`. All
        three may be left out on clusters that JAX recognises (Slurm, Kubernetes, TPU).
    - `processes`: number of processes.
    - `process`: index of this one, from 0.
    - `options`: further arguments of `jax.distributed.initialize`.

    **Returns:**

    A one-axis mesh over the devices of all processes.
    """
    jax.distributed.initialize(
        coordinator_address=coordinator,
        num_processes=processes,
        process_id=process,
        **options,
    )
    return data_mesh()


def data_mesh(devices: int | None = None) -> Mesh:
    """A mesh with one axis `"data"` over the first `devices` (default: all) devices."""
    found = jax.devices()
    if devices is not None:
        if not 1 <= devices <= len(found):
            raise ValueError(f"asked for {devices} devices, there are {len(found)}.")
        found = found[:devices]
    return Mesh(np.array(found), ("data",))


def is_main() -> bool:
    """Whether this process writes logs and checkpoints."""
    return jax.process_index() == 0


def broadcast_float(value: float) -> float:
    """The value of process 0, in every process, so that all take the same decision."""
    if jax.process_count() == 1:
        return float(value)
    return float(multihost_utils.broadcast_one_to_all(np.float32(value)))


def any_process(flag: bool) -> bool:
    """Whether the flag is set in any process. All processes must call it together."""
    if jax.process_count() == 1:
        return flag
    return bool(np.any(multihost_utils.process_allgather(np.asarray(flag))))


def broadcast_bytes(raw: bytes | None) -> bytes | None:
    """Sends bytes (or `None`) of process 0 to every process."""
    if jax.process_count() == 1:
        return raw
    size = -1 if raw is None else len(raw)
    size = int(multihost_utils.broadcast_one_to_all(np.int32(size)))
    if size < 0:
        return None
    buffer = np.zeros(size, np.uint8)
    if raw is not None and is_main():
        buffer = np.frombuffer(raw, np.uint8)
    return np.asarray(multihost_utils.broadcast_one_to_all(buffer)).tobytes()


class Placement:
    """Where arrays live: on the default device, or over a mesh.

    Parameters and optimiser state are copied to every device; batches are split along
    their leading axis over all axes of the mesh. The compiled step then has the meaning
    of the single-device one, and XLA inserts the sums over devices.
    """

    def __init__(self, mesh: Any):
        if mesh is None:
            if jax.process_count() > 1:
                raise ValueError(
                    f"this is one of {jax.process_count()} processes: pass the mesh "
                    "returned by `initialise_distributed` to `fit`."
                )
            self.mesh = None
            return
        as_kind("mesh", mesh, Mesh, "be a `jax.sharding.Mesh`")
        # Automatic axes, for any mesh of the caller: objectives need no sharding rules.
        self.mesh = Mesh(mesh.devices, mesh.axis_names)
        self.replicated = NamedSharding(self.mesh, PartitionSpec())
        self.split = NamedSharding(self.mesh, PartitionSpec(self.mesh.axis_names))

    @property
    def size(self) -> int:
        """The number of devices a batch is split over."""
        return 1 if self.mesh is None else self.mesh.size

    def replicate(self, tree: Any) -> Any:
        """Fresh copies of all arrays, on every device; safe to donate."""
        if self.mesh is None:
            return copied(tree)

        def put(x):
            if is_key(x):
                return jr.wrap_key_data(put(jr.key_data(x)), impl=jr.key_impl(x))
            host = _canonical(x)
            return jax.make_array_from_callback(
                host.shape, self.replicated, lambda index: host[index]
            )

        return copied(jax.tree.map(put, tree))

    def batch(self, tree: Any) -> Any:
        """Puts a batch on the devices, split along its leading axis where that divides.

        Each process hands over only the rows of its own devices.
        """
        if self.mesh is None:
            return jax.tree.map(jnp.asarray, tree)

        def put(x):
            shape = np.shape(x)
            divides = len(shape) > 0 and shape[0] % self.size == 0
            sharding = self.split if divides else self.replicated
            if jax.process_count() == 1:
                return jax.device_put(x, sharding)
            host = _canonical(x)
            return jax.make_array_from_callback(
                shape, sharding, lambda index: host[index]
            )

        return jax.tree.map(put, tree)

    def local(self, tree: Any) -> Any:
        """Independent copies of replicated arrays on this process's default device."""
        if self.mesh is None:
            return copied(tree)

        def pull(x):
            if is_key(x):
                return jr.wrap_key_data(pull(jr.key_data(x)), impl=jr.key_impl(x))
            return jnp.array(np.array(x))

        return jax.tree.map(pull, tree)


def is_key(x: Any) -> bool:
    """Whether `x` is an array of typed keys, which NumPy does not know."""
    return isinstance(x, jax.Array) and jnp.issubdtype(x.dtype, jax.dtypes.prng_key)


@jax.jit
def copied(tree: Any) -> Any:
    """Fresh copies of arrays, where they are."""
    return jax.tree.map(jnp.copy, tree)


def _canonical(x: Any) -> np.ndarray:
    """A host array of the dtype JAX would give it (64-bit only where enabled)."""
    host = np.asarray(x)
    return host.astype(jax.dtypes.canonicalize_dtype(host.dtype), copy=False)

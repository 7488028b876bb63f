# %% [markdown]
# # Export and serve
#
# A trained model becomes one file that runs with JAX alone, without arborax and without
# the model's code. On this page you export a model, load it in a process without
# arborax, and answer requests over HTTP. You need `pip install 'arborax[plots]'`.

# %%
import http.server
import json
import subprocess
import sys
import threading
import time
import urllib.request
import zipfile

import jax
import jax.export
import jax.numpy as jnp
import jax.random as jr
import matplotlib.pyplot as plt
import numpy as np

import arborax as abx


# %% [markdown]
# ## Two kinds of file
#
# `save` writes a model that `load` reads back, for instance to train it further.
# `export` compiles it to StableHLO, weights included, for CPU, GPU and TPU: `predict`
# for batches of any size, and `start` and `update` for streams.

# %%
# Untrained, to keep this page short. Train yours with `fit` first.
model = abx.models.GRU(3, 1, hidden=16, dtype=jnp.float32, key=jr.key(0))
abx.save("model.abx", model)
assert type(abx.load("model.abx")) is type(model)

abx.export(model, "model.stablehlo", times=64, stream=True)
with zipfile.ZipFile("model.stablehlo") as file:
    for entry in file.infolist():
        print(f"{entry.filename:<8} {entry.file_size / 1024:6.1f} kB")

# %% [markdown]
# ## Without arborax
#
# In this process arborax cannot even be imported.

# %%
READER = """
import sys, zipfile
sys.modules["arborax"] = None
import jax
import jax.export
import numpy as np

with zipfile.ZipFile("model.stablehlo") as file:
    predict = jax.export.deserialize(bytearray(file.read("predict"))).call
ts = np.linspace(0, 1, 64, dtype=np.float32)
xs = np.sin(np.arange(2 * 64 * 3, dtype=np.float32)).reshape(2, 64, 3)
print(predict(ts, xs)[0, -1, 0])
"""
found = subprocess.run(
    [sys.executable, "-c", READER],
    capture_output=True,
    text=True,
    check=True,
)
ts = jnp.linspace(0, 1, 64, dtype=jnp.float32)
xs = jnp.sin(jnp.arange(2 * 64 * 3, dtype=jnp.float32)).reshape(2, 64, 3)
here = model.predict(abx.SampledPath(ts, xs))[0, -1, 0]
print(f"there {float(found.stdout):.6f}, here {here:.6f}")

# %% [markdown]
# ## Over HTTP
#
# A server from the standard library is enough to show the idea. The function is
# compiled once, before the first request.

# %%
with zipfile.ZipFile("model.stablehlo") as file:
    predict = jax.jit(jax.export.deserialize(bytearray(file.read("predict"))).call)
predict(ts, xs[:1])  # compiles


class Handler(http.server.BaseHTTPRequestHandler):
    def do_POST(self):
        size = int(self.headers["Content-Length"])
        body = np.asarray(json.loads(self.rfile.read(size)), np.float32)
        answer = json.dumps(np.asarray(predict(ts, body[None])[0, -1]).tolist())
        self.send_response(200)
        self.end_headers()
        self.wfile.write(answer.encode())

    def log_message(self, *args):
        pass


server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler)
threading.Thread(target=server.serve_forever, daemon=True).start()
address = f"http://127.0.0.1:{server.server_address[1]}"
body = json.dumps(np.asarray(xs[0]).tolist()).encode()
milliseconds = []
for _ in range(50):
    begin = time.perf_counter()
    with urllib.request.urlopen(address, data=body) as response:
        answer = json.loads(response.read())
    milliseconds.append(1000 * (time.perf_counter() - begin))
server.shutdown()
server.server_close()
print(f"answer {answer[0]:.6f}, the same as above")

figure, ax = plt.subplots(figsize=(6, 2.6), layout="constrained")
ax.hist(milliseconds, bins=20, color="#33658a")
ax.set(title="Fifty requests on this machine", xlabel="milliseconds", ylabel="requests")

# %% [markdown]
# Estimators save and load the same way (`classifier.save("c.abx")`), including their
# scaling and classes. `abx.export(classifier.model_, ...)` exports the model inside an
# estimator, which expects standardised paths with time as the first channel.

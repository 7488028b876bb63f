"""The training loop behind `fit`."""

import dataclasses
import time
from collections import deque
from collections.abc import Callable, Sequence
from typing import Any

import equinox as eqx
import jax
import jax.random as jr
import jax.tree_util as jtu
import numpy as np

from .._values import Notes, noting
from ._checkpoints import (
    Checkpoints,
    FileCheckpoints,
    flatten_state,
    unflatten_state,
    unpack,
)
from ._distributed import any_process, broadcast_bytes, copied, is_main, Placement
from ._interrupt import InterruptGuard
from ._result import Event, FitResult, History, StopReason, Timings
from ._step import (
    call_objective,
    CompiledStep,
    nonfinite_leaves,
    StepOutput,
    TrainState,
)
from ._validation import Best, Validator
from .trackers import plain, Progress, Tracker


@dataclasses.dataclass
class Clock:
    """Wall time by purpose, in seconds."""

    training: float = 0.0
    validation: float = 0.0
    warmup: float = 0.0

    @property
    def elapsed(self) -> float:
        return self.training + self.validation - self.warmup


@dataclasses.dataclass(frozen=True)
class Schedule:
    """The length of a run and the intervals between its actions, in steps."""

    steps: int
    validate_every: int
    checkpoint_every: int
    log_every: int
    patience: int | None


@dataclasses.dataclass
class Run:
    """One run of `fit`: its parts and its progress."""

    place: Placement
    source: Any
    step_fn: CompiledStep
    state: TrainState
    frozen: Any
    static: Any
    validator: Validator | None
    checkpoints: Checkpoints | None
    fingerprint: dict[str, Any]
    schedule: Schedule
    best: Best
    hooks: Sequence[Callable]
    trackers: list[Tracker] = dataclasses.field(default_factory=list)
    progress: Progress | None = None
    history: History = dataclasses.field(default_factory=History)
    clock: Clock = dataclasses.field(default_factory=Clock)
    step: int = 0
    saved_step: int | None = None
    best_params: Any = None
    failure: dict[str, Any] | None = None
    _pending: deque[tuple[int, StepOutput]] = dataclasses.field(default_factory=deque)
    _hook_stop: bool = False

    def build(self, params: Any) -> Any:
        """A model of independent arrays on the default device."""
        return eqx.combine(self.place.local(params), self.frozen, self.static)

    @property
    def shown(self) -> Any:
        """The parameters that are validated and returned: averaged ones if kept."""
        state = self.state
        return state.params if state.averaged is None else state.averaged

    def emit(self, kind: Any, record: dict[str, Any], step: int | None = None) -> None:
        """Passes a record to trackers and hooks."""
        step = self.step if step is None else step
        often = kind == "step"
        if not often or step % self.schedule.log_every == 0:
            for tracker in self.trackers:
                tracker.log({"kind": kind} | record, step)
        for hook in self.hooks:
            event = Event(kind, step, record, lambda: self.build(self.shown))
            self._hook_stop |= hook(event) is True

    def _saved_tree(self) -> dict[str, Any]:
        best = self.shown if self.best_params is None else self.best_params
        return {"state": self.state, "best": best, "frozen": self.frozen}

    def save(self) -> None:
        """Writes the whole state, unless this step is saved already."""
        if self.checkpoints is None or self.saved_step == self.step:
            return
        if is_main() or not isinstance(self.checkpoints, FileCheckpoints):
            arrays = flatten_state(self._saved_tree()) | self.history.to_arrays()
            best = dataclasses.asdict(self.best)
            meta = {
                "fingerprint": self.fingerprint,
                "best": best,
                "has_best": self.best_params is not None,
                "clock": dataclasses.asdict(self.clock),
                "validation": [
                    {k: v if isinstance(v, float) else plain(v) for k, v in r.items()}
                    for r in self.history.validation
                ],
            }
            self.checkpoints.save(self.step, arrays, meta)
        self.saved_step = self.step
        self.emit("checkpoint", {})

    def restore(self) -> None:
        """Continues from the newest checkpoint, if there is one."""
        if self.checkpoints is None:
            return
        if isinstance(self.checkpoints, FileCheckpoints):
            raw = self.checkpoints.newest_bytes() if is_main() else None
            raw = broadcast_bytes(raw)
            found = None if raw is None else unpack(raw)
        else:
            found = self.checkpoints.restore()
        if found is None:
            return
        step, arrays, meta = found
        if meta["fingerprint"] != self.fingerprint:
            differing = {
                name: (meta["fingerprint"].get(name), value)
                for name, value in self.fingerprint.items()
                if meta["fingerprint"].get(name) != value
            }
            raise ValueError(
                "the checkpoint belongs to another run; (there, here) differ in "
                f"{differing}. Resume with the same arguments, use another folder, or "
                "pass `resume=False` to start again."
            )
        past = {k: v for k, v in arrays.items() if k.startswith("history/")}
        rest = {k: v for k, v in arrays.items() if k not in past}
        tree = unflatten_state(self._saved_tree(), rest, "the checkpoint")
        self.state = self.place.replicate(tree["state"])
        self.frozen = self.place.local(tree["frozen"])
        if meta["has_best"]:
            self.best_params = self.place.replicate(tree["best"])
        self.history = History.from_arrays(past, meta["validation"])
        self.best = Best(**meta["best"])
        self.clock = Clock(**meta["clock"])
        self.step = self.saved_step = step

    def _epoch(self, step: int) -> int | None:
        per_epoch = self.source.steps_per_epoch
        return None if per_epoch is None else step // per_epoch

    def drain(self, keep: int = 0) -> None:
        """Records the outputs of all but the last `keep` steps; finds failures."""
        while len(self._pending) > keep and self.failure is None:
            index, output = self._pending.popleft()
            scalars = {
                jtu.keystr(path, simple=True, separator="/"): leaf
                for path, leaf in jtu.tree_leaves_with_path(output.aux)
                if leaf.shape == ()
            }
            loss, norm, ok, aux = jax.device_get(
                (output.loss, output.gradient_norm, output.ok, scalars)
            )
            self.history.loss.append(float(loss))
            self.history.gradient_norm.append(float(norm))
            for name, value in aux.items():
                self.history.aux.setdefault(name, []).append(float(value))
            record = {"loss": float(loss), "gradient_norm": float(norm)}
            if (epoch := self._epoch(index)) is not None:
                record["epoch"] = epoch
            if not ok:
                self.failure = record | {
                    "step": index,
                    "aux": jax.tree.map(np.asarray, output.aux),
                }
                self._pending.clear()
                self.step = index
                return
            record |= {name: float(value) for name, value in aux.items()}
            record["seconds"] = self.clock.training
            self.emit("step", record, index + 1)
            if self.progress is not None:
                info = {"loss": float(loss)}
                if self.best.value is not None:
                    info["best"] = self.best.value
                self.progress.update(index + 1, info)

    def validate(self) -> None:
        """Evaluates the metric and keeps the best parameters."""
        assert self.validator is not None
        start = time.perf_counter()
        value, extra = self.validator(self.shown)
        improved = self.best.improves(value)
        if improved:
            self.best_params = copied(self.shown)
        seconds = time.perf_counter() - start
        self.clock.validation += seconds
        if self.step == 0:
            self.clock.warmup = seconds
        if improved:
            self.best = dataclasses.replace(
                self.best,
                value=value,
                step=self.step,
                seconds=self.clock.elapsed,
                waited=0,
            )
        else:
            self.best.waited += 1
        record = {"metric": value, "seconds": self.clock.elapsed} | plain(extra)
        self.history.validation.append({"step": self.step} | record)
        self.emit("validation", record | {"improved": improved})

    def _one_step(self, lag: int) -> None:
        start = time.perf_counter()
        batch = self.source(self.step)
        self.state, output = self.step_fn(self.state, batch)
        self._pending.append((self.step, output))
        self.step += 1
        self.clock.training += time.perf_counter() - start
        start = time.perf_counter()
        self.drain(lag)
        self.clock.training += time.perf_counter() - start

    def _wanted(self, guard: InterruptGuard, agreed: bool) -> StopReason | None:
        """A stop asked for by Ctrl-C or a hook; among processes only when agreed."""
        interrupted, hooked = guard.requested, self._hook_stop
        if jax.process_count() > 1:
            if not agreed:
                return None
            interrupted, hooked = any_process(interrupted), any_process(hooked)
        return "interrupted" if interrupted else "hook" if hooked else None

    def run(self, guard: InterruptGuard) -> StopReason:
        """Takes steps until there is a reason to stop."""
        schedule = self.schedule
        lag = 0 if self.hooks else 1
        if self.validator is not None and self.step == 0:
            self.validate()
        while True:
            if schedule.patience is not None and self.best.waited >= schedule.patience:
                return "patience"
            if self.step >= schedule.steps:
                return "steps"
            self._one_step(lag)
            ends = self.step >= schedule.steps
            validates = self.validator is not None and (
                ends or self.step % schedule.validate_every == 0
            )
            saves = ends or self.step % schedule.checkpoint_every == 0
            if validates or saves:
                start = time.perf_counter()
                self.drain()
                self.clock.training += time.perf_counter() - start
            if self.failure is not None:
                return "non-finite"
            if validates:
                self.validate()
            if saves:
                self.save()
            if (wanted := self._wanted(guard, validates or saves)) is not None:
                self.drain()
                return "non-finite" if self.failure is not None else wanted

    def to_result(self, start: dict[str, Any]) -> FitResult:
        """Runs with Ctrl-C deferred, and closes what was opened."""
        stop: StopReason
        try:
            with InterruptGuard() as guard:
                try:
                    if self.step < self.schedule.steps:
                        batch = self.source(self.step)
                        self.step_fn.compile(self.state, batch, self.frozen)
                    start["compile_seconds"] = self.step_fn.compile_seconds
                    self.emit("start", start)
                    stop = self.run(guard)
                except KeyboardInterrupt:
                    if any(x.is_deleted() for x in jax.tree.leaves(self.state)):
                        raise
                    self.drain()
                    stop = "interrupted" if self.failure is None else "non-finite"
                if stop != "non-finite":
                    self.save()
                return self.result(stop)
        finally:
            if self.progress is not None:
                self.progress.close()
            for tracker in self.trackers:
                tracker.close()

    def _cause(self) -> str | None:
        """What the checks of the library say of the step that failed: its loss once
        more, compiled with checks."""
        assert self.failure is not None
        if jax.process_count() > 1:
            return None
        model = self.build(self.state.params)  # a step that fails leaves them
        key = jr.fold_in(self.place.local(self.step_fn.key), self.failure["step"])
        batch, notes = self.source(self.failure["step"]), Notes()
        with noting(notes):
            objective = self.step_fn.objective
            loss = eqx.filter_jit(call_objective)(objective, model, batch, key)
            jax.block_until_ready(loss)
        return notes.texts[0] if notes.texts else None

    def _message(self, stop: StopReason) -> str:
        if stop == "non-finite":
            assert self.failure is not None
            f = self.failure
            epoch = f" (epoch {f['epoch']})" if "epoch" in f else ""
            aux = f"; aux {plain(f['aux'])}" if f["aux"] else ""
            advice = "lower the learning rate or the clip"
            if bad := nonfinite_leaves(self.source(f["step"])):
                advice = f"the batch has NaN or infinity in {', '.join(bad)}"
            elif cause := self._cause():
                f["cause"] = cause
                advice = f"{cause.rstrip('.')}. Or {advice}"
            return (
                f"stopped at step {f['step']}{epoch}: loss {f['loss']}, gradient norm "
                f"{f['gradient_norm']}{aux}. The last good weights are kept; {advice}."
            )
        text = {
            "steps": f"all {self.schedule.steps} steps done",
            "patience": f"no better metric in {self.best.waited} validations",
            "interrupted": f"interrupted after {self.step} steps",
            "hook": f"stopped by a hook after {self.step} steps",
        }[stop]
        if self.history.validation and self.best_params is None:
            text += "; the metric was never finite, so the last model is returned"
        return text

    def result(self, stop: StopReason) -> FitResult:
        """The result of the run."""
        last = self.shown if self.failure is None else self.state.good
        chosen = last if self.best_params is None else self.best_params
        validated = self.best_params is not None
        clock = self.clock
        timings = Timings(
            compile=self.step_fn.compile_seconds,
            step=clock.training / max(self.step, 1),
            to_best=self.best.seconds if validated else clock.training,
            training=clock.training,
            validation=clock.validation,
        )
        result = FitResult(
            model=self.build(chosen),
            last=self.build(last),
            history=self.history,
            stop=stop,
            message=self._message(stop),
            steps=self.step,
            best_step=self.best.step if validated else self.step,
            best_metric=self.best.value if validated else None,
            failure=self.failure,
            timings=timings,
        )
        record = {"stop": stop, "message": result.message}
        record |= {"timings": dataclasses.asdict(timings)}
        if self.failure is not None:
            record["failure"] = plain(self.failure)
        self.emit("stop", record)
        return result

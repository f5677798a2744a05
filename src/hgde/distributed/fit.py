"""Training on a partition, from its folder and settings to the folder of a run."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from contextlib import ExitStack
from dataclasses import asdict
from pathlib import Path
from typing import Any

from hgde import randomness
from hgde.data.preprocessing import Preprocessor
from hgde.distributed.batches import BatchTrainer
from hgde.distributed.crew import Crew
from hgde.distributed.flow import hgde_of, scale_encoder
from hgde.distributed.make import FIXED
from hgde.distributed.memory import BATCHES, choose_way
from hgde.distributed.partition import Partition, PartitionError
from hgde.distributed.ranks import RankError, Ranks
from hgde.distributed.scratch import Scratch
from hgde.distributed.trainer import PartitionedTrainer
from hgde.models.base import Shape
from hgde.pipeline.fit import Reporter, Summary
from hgde.pipeline.fitted import Fitted
from hgde.pipeline.folder import RunError, RunFolder
from hgde.pipeline.prepare import build_learner, number_type, versions
from hgde.pipeline.presets import AUTO, NONE, with_preset
from hgde.pipeline.settings import Settings, make_settings
from hgde.registry import untrusted
from hgde.sections import NAME, SettingsError, overlay
from hgde.tasks import Learner, Task
from hgde.tasks.metrics import PAIRS
from hgde.training import checkpoint
from hgde.training.trainer import Outcome


def settings_for(partition: Partition, given: Mapping[str, Any]) -> Settings:
    """The settings of a run: data, preprocessing and task are the partition's, the rest is given.

    >>> import tempfile
    >>> from hgde import make_settings
    >>> from hgde.distributed import make_partition
    >>> from hgde.pipeline import prepare
    >>> settings = make_settings({"data": {"name": "tree-random", "options": ["num_nodes=40"]}})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     parts = make_partition(f"{folder}/parts", prepare(settings), settings, pieces=2, method="contiguous")
    ...     settings_for(parts, {"model": {"width": 4}}).data.name      # the partition's
    'tree-random'
    """
    fixed = [f"{name}.{key}" for name in FIXED for key in _keys(given.get(name))]
    if fixed:
        raise SettingsError(
            f"{', '.join(fixed)} cannot be given for a run on a partition: the partition was cut with its own; leave "
            "them out, or cut the graph again"
        )
    stored = {name: value for name, value in partition.facts["given"].items() if name in FIXED}
    settings = make_settings(overlay(stored, dict(given)), lenient=True)
    # There is no race among presets here, and the preprocessing is settled.
    if settings.preset == NONE:
        return settings
    name = next(iter(settings.model.entry.presets), None) if settings.preset == AUTO else settings.preset
    if name is None:
        return settings
    chosen = with_preset(settings, name)
    asked = {key: value for key, value in settings.model.entry.preset(name).get("task", {}).items() if key != NAME}
    other = [key for key, value in asked.items() if partition.facts["settings"]["task"].get(key) != value]
    if other:
        wanted = ", ".join(f"task.{key}" for key in other)
        raise PartitionError(
            f"the preset {name} is for training with {wanted}, which is not there on a partition; choose another one "
            "(--preset)"
        )
    kept = overlay(chosen.to_dict(), {part: partition.facts["settings"][part] for part in FIXED})
    made = make_settings(kept, lenient=True)
    object.__setattr__(made, "_given", chosen.given)
    return made


def _keys(value: Any) -> list[str]:
    return list(value) if isinstance(value, Mapping) else [] if value is None else ["name"]


def check_together(partition: Partition, settings: Settings, ranks: Ranks) -> None:
    """Refuse ranks that differ in versions, data or settings, and damaged pieces, before anything is computed."""
    mine = {
        "versions": versions(),
        "data": partition.hash,
        "settings": hashlib.sha256(json.dumps(settings.to_dict(), sort_keys=True).encode()).hexdigest(),
    }
    every = ranks.gather(mine)
    for rank, other in enumerate(every):
        for what in mine:
            if other[what] != every[0][what]:
                raise RankError(
                    f"rank {rank} has other {what} than rank 0 ({_difference(every[0][what], other[what])}); all ranks "
                    "need the same partition, settings and versions"
                )
    pieces = partition.num_pieces
    problem = None
    try:
        partition.check(range(pieces * ranks.rank // ranks.size, pieces * (ranks.rank + 1) // ranks.size))
    except PartitionError as error:
        problem = str(error)
    for rank, found in enumerate(ranks.gather(problem)):
        if found is not None:
            raise PartitionError(found if ranks.size == 1 else f"rank {rank}: {found}")


def _difference(one: Any, other: Any) -> str:
    if not isinstance(one, dict):
        return f"{str(one)[:12]} and {str(other)[:12]}"
    return "; ".join(f"{key} {one.get(key)} and {other.get(key)}" for key in one if one.get(key) != other.get(key))


def stored_inputs(partition: Partition, settings: Settings) -> tuple[Task, Preprocessor]:
    """The task and the preprocessing that were fitted when the graph was cut."""
    path = partition.path / "inputs.safetensors"
    tensors, meta = checkpoint.load(path)
    try:
        with untrusted():
            task = settings.task.entry.from_fitted(settings.task.options, meta["task"]["fitted"])
            return task, Preprocessor.from_state(meta["preprocessing"], tensors)
    except (KeyError, AttributeError, TypeError) as error:
        raise PartitionError(f"{path} is damaged ({type(error).__name__}: {error}); cut the graph again") from None


class PartitionedRun:
    """A run on a partition. Every rank makes one and calls the same methods; rank 0 writes and reports.

    >>> import tempfile
    >>> from hgde import make_settings
    >>> from hgde.distributed import join, make_partition, start_run
    >>> from hgde.pipeline import prepare
    >>> settings = make_settings({"data": {"name": "tree-random", "options": ["num_nodes=40"]}})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     parts = make_partition(f"{folder}/parts", prepare(settings), settings, pieces=2, method="contiguous")
    ...     run = start_run(parts, {"training": {"epochs": 1}, "preset": "none"}, join(), None)
    ...     type(run).__name__, run.train().metric.name
    ('PartitionedRun', 'accuracy')
    """

    def __init__(
        self,
        partition: Partition,
        settings: Settings,
        ranks: Ranks,
        folder: Path | None = None,
        reporter: Reporter | None = None,
        memory: int | None = None,
    ) -> None:
        self.partition, self.settings, self.ranks = partition, settings, ranks
        self.folder = RunFolder(folder) if folder is not None else None
        self.reporter = reporter if reporter is not None and ranks.is_first else Reporter()
        self.task, self.preprocessor = stored_inputs(partition, settings)
        facts = partition.facts
        self.shape = Shape(int(facts["in_features"]), partition.num_nodes, self.task.outputs)
        #: How it will be trained, exactly or not, and where things are held; ``way.words`` says why.
        self.way = choose_way(partition, ranks.size, hgde_of(self.learner(0)), memory)
        if self.way.mode == BATCHES and self.task.kind == PAIRS:
            raise SettingsError("links are not trained on batches of pieces; allow more memory, or use more ranks")

    def train(self, *, resume: bool = False) -> Summary:
        """Train every seed; the same result on any number of ranks."""
        check_together(self.partition, self.settings, self.ranks)
        writes = self.folder if self.ranks.is_first else None
        with ExitStack() as stack:
            if writes is not None:
                stack.enter_context(writes.saying_what_is_kept())
                stack.enter_context(writes.locked())
            if writes is not None and not resume:
                writes.write("run.json", self._facts())
                writes.write_settings(self.settings)
            first = self.settings.run.seed
            outcomes = [self._train_seed(seed, resume) for seed in range(first, first + self.settings.run.seeds)]
            facts = self.partition.facts
            summary = Summary(
                self.settings, outcomes, self.task.metric, facts["split_hash"], facts["data_hash"], versions()
            )
            if writes is not None:
                writes.write("summary.json", summary.to_dict())
        return summary

    def _facts(self) -> dict[str, Any]:
        facts = self.partition.facts
        kept = {name: facts[name] for name in ("data", "data_hash", "split", "split_hash", "parts")}
        named = {"partition": str(self.partition.path.resolve()), "partition_hash": self.partition.hash}
        return {**kept, "data_named_by_settings": False, **named, "versions": versions()}

    def learner(self, seed: int) -> Learner:
        """A fresh learner; the same on every rank."""
        learner = build_learner(self.settings, self.task, self.shape, randomness.make_generator(seed))
        hgde_of(learner)
        return learner

    def _train_seed(self, seed: int, resume: bool) -> Outcome:
        with self.way.scratch(self.partition.path if self.folder is None else self.folder.path) as scratch:
            return self._train_with(seed, resume, scratch)

    def _train_with(self, seed: int, resume: bool, scratch: Scratch | None) -> Outcome:
        learner = self.learner(seed)
        self.reporter.seed_started(seed, self.settings)
        crew = Crew(self.partition, self.ranks, learner, number_type(self.settings), scratch)
        scale_encoder(crew)
        place = None if self.folder is None else self.folder.seed_folder(seed) / "checkpoint.safetensors"
        kind = BatchTrainer if self.way.mode == BATCHES else PartitionedTrainer
        trainer = kind(crew, self.task, self.settings.training, seed, place, self.settings.run.checkpoint_every)
        if isinstance(trainer, BatchTrainer):
            trainer.batch = self.way.batch
        if resume:
            self._check_checkpoint(place)
        trainer.start(resume)
        trainer.advance(self.settings.training.epochs, self.reporter.epoch_done)
        crew.check_agreement()
        outcome = trainer.finish()
        if self.folder is not None and self.ranks.is_first:
            fitted = Fitted(self.settings, self.task, learner.eval(), self.preprocessor, self.shape)
            fitted.save(self.folder.seed_folder(seed) / "model.safetensors")
            self.folder.write(f"seed-{seed}/result.json", asdict(outcome))
        self.reporter.seed_done(outcome)
        return outcome

    def _check_checkpoint(self, place: Path | None) -> None:
        """Every rank must go on from the same checkpoint; one that does not see rank 0's folder cannot."""
        mine = hashlib.sha256(place.read_bytes()).hexdigest() if place is not None and place.exists() else "none"
        every = self.ranks.gather(mine)
        other = next((rank for rank, value in enumerate(every) if value != every[0]), None)
        if other is not None:
            raise RankError(
                f"rank {other} sees another checkpoint than rank 0 at {place}; the run's folder must be shared by all "
                "ranks to be resumed"
            )


def start_run(
    partition: Partition, given: Mapping[str, Any], ranks: Ranks, folder: Path | None,
    reporter: Reporter | None = None, memory: int | None = None,
) -> PartitionedRun:  # fmt: skip
    """A new run on a partition.

    >>> import tempfile
    >>> from hgde import make_settings
    >>> from hgde.distributed import join, make_partition
    >>> from hgde.pipeline import prepare
    >>> settings = make_settings({"data": {"name": "tree-random", "options": ["num_nodes=40"]}})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     parts = make_partition(f"{folder}/parts", prepare(settings), settings, pieces=2, method="contiguous")
    ...     start_run(parts, {"preset": "none"}, join(), None).way.mode
    'held'
    """
    run = None if folder is None else RunFolder(folder)
    if any(ranks.gather(run is not None and run.exists)):
        raise RunError(f"{folder} already holds a run; resume it (--resume {folder}) or choose another folder")
    return PartitionedRun(partition, settings_for(partition, given), ranks, folder, reporter, memory)


def resumed_run(
    folder: Path, ranks: Ranks, changes: Mapping[str, Any], reporter: Reporter | None = None,
    partition: Path | None = None, memory: int | None = None,
) -> PartitionedRun:  # fmt: skip
    """A run on a partition that was started before; ``changes`` may raise epochs and seeds.

    >>> import tempfile
    >>> from pathlib import Path
    >>> from hgde import make_settings
    >>> from hgde.distributed import join, make_partition, start_run
    >>> from hgde.pipeline import prepare
    >>> settings = make_settings({"data": {"name": "tree-random", "options": ["num_nodes=40"]}})
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     parts = make_partition(f"{folder}/parts", prepare(settings), settings, pieces=2, method="contiguous")
    ...     place, given = Path(folder) / "run", {"training": {"epochs": 1}, "preset": "none"}
    ...     _ = start_run(parts, given, join(), place).train()
    ...     summary = resumed_run(place, join(), {"training.epochs": 2}).train(resume=True)
    >>> summary.settings.training.epochs
    2
    """
    run = RunFolder(folder)
    settings, facts = run.settings(), run.facts()
    for path, before in (("training.epochs", settings.training.epochs), ("run.seeds", settings.run.seeds)):
        if changes.get(path, before) < before:
            raise RunError(f"{path} can only be raised on resume: {before} then, {changes[path]} now")
    found = Partition.open(partition or facts["partition"])
    if found.hash != facts["partition_hash"]:
        raise RunError(f"{found.path} is not the partition that {folder} was started with; put that one back")
    return PartitionedRun(found, settings.replace(changes) if changes else settings, ranks, folder, reporter, memory)

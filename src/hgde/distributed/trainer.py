"""Training on a partition: the trainer's loop, its epochs done by all pieces of all ranks together."""

from __future__ import annotations

from pathlib import Path

import torch
from torch import Tensor

from hgde import randomness
from hgde.distributed.crew import Crew, Piece
from hgde.distributed.flow import prepare
from hgde.distributed.losses import Shares, predict
from hgde.graph import Graph
from hgde.solvers import InputError
from hgde.tasks import PARTS, Learner, Part, Problem, Task
from hgde.training.settings import TrainingSettings
from hgde.training.trainer import Trainer


class PartitionedTrainer(Trainer):
    """Every rank holds the same weights and takes the same steps; only nodes are divided.

    A gradient is the sum of the pieces' gradients in the order of the pieces, so weights have the same bits on any
    number of ranks. Rank 0 alone writes.
    """

    def __init__(
        self, crew: Crew, task: Task, settings: TrainingSettings, seed: int, path: Path | None = None,
        checkpoint_every: int = 50,
    ) -> None:  # fmt: skip
        problem = _problem(crew, task)
        generator = randomness.make_generator(seed)
        super().__init__(crew.learner, problem, settings, seed, generator, path, checkpoint_every)
        self.crew = crew
        self.shares = Shares.of(crew, task)

    def _prepare_model(self) -> None:
        prepare(self.crew, learns=True)

    def _backward(self) -> float:
        epoch = self.progress.epoch
        names = [name for name, _ in self.learner.named_parameters()]

        def work(piece: Piece) -> tuple[Tensor, Tensor]:
            learner = piece.learner.train()
            learner.zero_grad(set_to_none=True)
            with randomness.use(piece.generator(self.seed, epoch)), self.crew.saving():
                loss = self.shares.loss(piece)
            loss.backward()
            return loss.detach().double(), _flat_gradient(learner)

        try:
            results = self.crew.run(work)
        except InputError as error:
            raise self._diverged(str(error)) from None
        loss = self.crew.total({number: value for number, (value, _) in results.items()})
        gradient = self.crew.total({number: flat for number, (_, flat) in results.items()})
        first = 0
        for _, parameter in zip(names, self.learner.parameters(), strict=True):
            size = parameter.numel()
            parameter.grad = gradient[first : first + size].view_as(parameter).to(parameter.dtype)
            first += size
        return float(loss)

    def _predictions(self, learner: Learner, name: str) -> Tensor:
        with _holding(self.learner, learner):

            def work(piece: Piece) -> Tensor:
                piece.learner.eval()
                return predict(piece, name)

            try:
                predictions = torch.cat(self.crew.gather(self.crew.run(work)))
            except InputError as error:
                raise self._diverged(str(error)) from None
        if not bool(torch.isfinite(predictions).all()):
            raise self._diverged("the model's output became infinite or undefined")
        return predictions

    def _save(self) -> None:
        if self.crew.ranks.is_first:
            super()._save()


class _holding:
    """Inside, one learner has the weights of another: the pieces' views are of the first."""

    def __init__(self, learner: Learner, other: Learner) -> None:
        self.learner, self.other = learner, other
        self.before: dict[str, Tensor] | None = None

    def __enter__(self) -> None:
        if self.other is not self.learner:
            self.before = {name: value.clone() for name, value in self.learner.state_dict().items()}
            self.learner.load_state_dict(self.other.state_dict())

    def __exit__(self, *error: object) -> None:
        if self.before is not None:
            self.learner.load_state_dict(self.before)


def _flat_gradient(learner: Learner) -> Tensor:
    parts = [(torch.zeros_like(p) if p.grad is None else p.grad).reshape(-1).double() for p in learner.parameters()]
    return torch.cat(parts) if parts else torch.zeros(0, dtype=torch.float64)


def _problem(crew: Crew, task: Task) -> Problem:
    """The problem as far as scores need it: the truth of what is scored, of all pieces in their order.

    Every rank holds it, so it is all there is: no rank has the graph, and the truth that is learned from stays with
    the pieces.
    """
    parts = {}
    for name in PARTS:
        if name == "train":
            truth = next(iter(crew.pieces.values())).parts[name].truth[:0]
        else:
            truth = torch.cat(crew.gather({number: piece.parts[name].truth for number, piece in crew.pieces.items()}))
        parts[name] = Part(torch.zeros(1, dtype=torch.int64).expand(len(truth)), truth)  # how many, not which
    facts = crew.partition.facts
    nothing = Graph(torch.zeros(1, dtype=torch.int64), torch.zeros(0, dtype=torch.int64))
    return Problem(task, nothing, parts, str(facts["split"]), str(facts["split_hash"]))

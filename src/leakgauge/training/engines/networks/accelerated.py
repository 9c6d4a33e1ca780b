"""Networks of one shape trained side by side on a torch device: batched products, gradients by hand.

It is there for accelerators, where one network at a time would wait for the launch of every little kernel: a thousand
networks share each launch, and all the launches of an epoch are recorded once as a CUDA graph and then replayed. The
tests called ``test_cuda`` follow the path through the graph, and run only where there is a GPU. On the processor this
is a twin of the numpy trainer, which is the faster one there.
"""

from __future__ import annotations

from functools import cache
from typing import Any, TypeAlias

import numpy as np

from leakgauge.arrays import Flags, Floats, Indices, Rows
from leakgauge.errors import ConfigError
from leakgauge.models.torch import device_named, imported, without_memory
from leakgauge.training.engines.networks.group import SKIPPED, Layout, Network, NetworkGroup, Progress, Trained
from leakgauge.training.engines.stacked import Adam, Momentum, Optimiser

Tensor: TypeAlias = Any

BLOCKS = {"cpu": 32, "cuda": 1024}
"""Models in one tensor at most: a processor's cache holds few, an accelerator wants many."""

REMAINING_MODELS_SHARE = 0.75
"""Once no more than this share of a block's models are still in training, the others leave it."""


def train(group: NetworkGroup, device: str = "cpu") -> Trained:
    """Train the networks of a group; where the device has no memory for all at once, one half after the other.

    It should be the case that the networks of a part of the group are those of the whole, up to rounding.

    Args:
        group: the networks; its features are made dense.
        device: ``cpu``, ``cuda`` or ``cuda:1``.

    Raises:
        ConfigError: the device is not there, or has no memory for a single network.
        MissingExtra: torch is not installed.
    """
    where = device_named(device)
    found = without_memory(lambda: _trained(group, where))
    if found is not None:
        return found
    if group.n_models == 1:
        raise ConfigError(
            f"device {device!r} has too little memory for one network of "
            f"{Layout(group.network).n_parameters:,} parameters; use device='cpu'"
        )
    return Trained.joined([train(group.part(some), device) for some in np.array_split(np.arange(group.n_models), 2)])


def _trained(group: NetworkGroup, device: Any) -> Trained:
    """All at once. The orders of an epoch are drawn while the device is busy with the one before."""
    size = BLOCKS[device.type]
    with imported().no_grad():
        data = _Data(group, device)
        blocks = [
            _Block(group, data, np.arange(start, min(start + size, group.n_models)))
            for start in range(0, group.n_models, size)
        ]
        progress = Progress(group)
        order = group.orders(0)
        for epoch in range(group.network.n_epochs):
            for block in blocks:
                block.begin_epoch(order)
            if epoch + 1 < group.network.n_epochs:
                order = group.orders(epoch + 1)
            for block in blocks:
                block.after(progress, progress.after(epoch, block.models, *block.end_epoch()))
            blocks = [block for block in blocks if len(block.models)]
            if not blocks:
                break
        for block in blocks:
            block.finish(progress, ~progress.converged[block.models])
    return progress.trained()


class _Data:
    """Features ``[n, d]`` and targets ``[n, outputs]`` on the device."""

    def __init__(self, group: NetworkGroup, device: Any) -> None:
        torch = imported()
        X = group.X if isinstance(group.X, np.ndarray) else group.X.toarray()
        width = group.network.widths[-1]
        targets = group.y[:, None] == (np.array([1]) if width == 1 else np.arange(width))
        self.X = torch.tensor(X, device=device)
        self.targets = torch.tensor(targets.astype(np.float32), device=device)


class _Block:
    """Models that take each step together.

    Args:
        group: that they belong to.
        data: of the group.
        models: their places in the group, int ``[m]``.

    Attributes:
        flat: their parameters ``[m, p]``: the weights of all layers, and behind them the biases.
        rate: their learning rates, float64 ``[m, 1]``.
    """

    def __init__(self, group: NetworkGroup, data: _Data, models: Indices) -> None:
        torch = imported()
        self.network, self.data, self.models = group.network, data, models
        self.layout = Layout(group.network)
        device = data.X.device
        parts = [part[models].reshape(len(models), -1) for part in (*group.weights, *group.biases)]
        self.flat = torch.tensor(np.concatenate(parts, axis=1), device=device)
        self.rate = torch.full((len(models), 1), group.network.learning_rate, dtype=torch.float64, device=device)
        self.skipped = torch.tensor(group.skipped[models].astype(np.int64), device=device)[:, None]
        self.optimiser = _optimiser(group.network, self.flat)
        self._begin()

    def _begin(self) -> None:
        """What an epoch reads and writes, for as many models as there are."""
        torch = imported()
        self.losses = torch.zeros(len(self.models), dtype=torch.float64, device=self.flat.device)
        self.counts = torch.zeros_like(self.losses)
        self.order: Tensor = None
        self.warm = False
        self.graph: Any = None

    def begin_epoch(self, order: Rows) -> None:
        """Set out to visit all places; an accelerator goes on with it by itself.

        Args:
            order: rows ``[models of the group or 1, places]``.
        """
        torch = imported()
        own = torch.from_numpy(np.ascontiguousarray(order if len(order) == 1 else order[self.models], dtype=np.int64))
        if self.order is None:
            self.order = torch.empty_like(own, device=self.flat.device)
        self.order.copy_(own)
        self._run()

    def end_epoch(self) -> tuple[Floats, Floats]:
        """The summed losses and the number of records seen, each ``[m]``, once all places were visited."""
        return self.losses.cpu().numpy(), self.counts.cpu().numpy()

    def keep(self, which: Indices) -> None:
        """Go on with some of the models only, int ``[m]``."""
        index = imported().tensor(which, device=self.flat.device)
        self.models = self.models[which]
        self.flat, self.rate, self.skipped = self.flat[index], self.rate[index], self.skipped[index]
        self.optimiser.keep(index)
        self._begin()

    def after(self, progress: Progress, done: Flags) -> None:
        """Take over new learning rates; models that are done leave when it is worth it."""
        if done.any():
            self.finish(progress, done)
        if self.network.schedule != "constant":
            self.rate.copy_(imported().from_numpy(progress.rate[self.models, None]))
        left = np.flatnonzero(~progress.converged[self.models])
        if len(left) <= REMAINING_MODELS_SHARE * len(self.models):
            self.keep(left)

    def finish(self, progress: Progress, which: Flags) -> None:
        """Note down the parameters of some of the models, bool ``[m]``."""
        progress.final[self.models[which]] = self.flat.cpu().numpy()[which]

    def _run(self) -> None:
        """The first epoch as it stands, which lets the libraries set themselves up; recorded, then replayed after it.

        Recording runs nothing. All tensors that live from one epoch to the next stay where they are until
        :meth:`_begin`.
        """
        torch = imported()
        if self.flat.device.type != "cuda":
            self._steps()
            return
        with torch.cuda.device(self.flat.device):
            side = _side_stream(self.flat.device)
            if not self.warm:
                side.wait_stream(torch.cuda.current_stream())
                with torch.cuda.stream(side):
                    self._steps()
                torch.cuda.current_stream().wait_stream(side)
                self.warm = True
                return
            if self.graph is None:
                self.graph = torch.cuda.CUDAGraph()
                with torch.cuda.graph(self.graph, stream=side):
                    self._steps()
            self.graph.replay()

    def _steps(self) -> None:
        self.losses.zero_()
        self.counts.zero_()
        for start in range(0, self.order.shape[1], self.network.batch_size):
            self._step(self.order[:, start : start + self.network.batch_size])

    def _step(self, rows: Tensor) -> None:
        """One batch, rows ``[m or 1, places]``; a model of which no record is in it sits out."""
        torch = imported()
        n_models, n_places = len(self.models), rows.shape[1]
        keep = ((rows != self.skipped) & (rows != SKIPPED)).float()
        count = keep.sum(1, keepdim=True)
        present, share = count.clamp(max=1), keep / count.clamp(min=1)
        index = rows.clamp(min=0).flatten()  # what stands at a place that is skipped has no share
        shape = (len(rows), n_places, -1)
        X = self.data.X.index_select(0, index).view(shape).expand(n_models, -1, -1)
        targets = self.data.targets.index_select(0, index).view(shape)
        weights, biases = self.layout.layers(self.flat)
        units = [X]
        for weight, bias in zip(weights, biases, strict=True):
            if len(units) > 1:
                _activate(self.network.activation, units[-1])
            units.append(torch.baddbmm(bias, units[-1], weight))
        loss, delta = _head(units.pop(), targets)
        delta *= share.unsqueeze(2)
        for_weights: list[Tensor] = []
        for_biases: list[Tensor] = []
        for layer in reversed(range(len(weights))):
            for_weights.insert(0, torch.bmm(units[layer].mT, delta).flatten(1))
            for_biases.insert(0, delta.sum(1))
            if layer:
                delta = torch.bmm(delta, weights[layer].mT)
                _through(self.network.activation, units[layer], delta)
        gradient = torch.cat(for_weights + for_biases, dim=1)
        n_weights = self.layout.n_weights
        decayed, penalty = self.flat[:, :n_weights], self.network.alpha / count.clamp(min=1)
        self.counts += count[:, 0]
        if self.network.stops:
            squares = 0.5 * penalty[:, 0] * torch.linalg.vector_norm(decayed, dim=1).square()
            self.losses += count[:, 0] * ((loss * share).sum(1) + squares)
        if self.network.alpha:
            gradient[:, :n_weights].addcmul_(decayed, penalty)
        self.optimiser.step(self.flat, gradient, present, self.rate)


@cache
def _side_stream(device: Any) -> Any:
    """The stream of a device that epochs are recorded on: one, as cuBLAS keeps memory for each stream for good."""
    return imported().cuda.Stream(device)


def _optimiser(network: Network, flat: Tensor) -> Optimiser:
    if network.solver == "sgd":
        return Momentum(flat, momentum=network.momentum, nesterov=network.nesterov)
    return Adam(flat, beta_1=network.beta_1, beta_2=network.beta_2, epsilon=network.epsilon, corrected=False)


def _activate(activation: str, units: Tensor) -> None:
    """In place."""
    match activation:
        case "tanh":
            units.tanh_()
        case "relu":
            units.relu_()
        case "logistic":
            units.sigmoid_()


def _through(activation: str, units: Tensor, delta: Tensor) -> None:
    """The gradient before an activation, in place of that after it; ``units`` is what it gave."""
    match activation:
        case "tanh":
            delta.addcmul_(delta * units, units, value=-1)
        case "relu":
            delta.masked_fill_(units <= 0, 0)
        case "logistic":
            delta.mul_(units).addcmul_(delta, units, value=-1)


def _head(scores: Tensor, targets: Tensor) -> tuple[Tensor, Tensor]:
    """The losses ``[m, places]`` of scores ``[m, places, outputs]``, and their gradients."""
    torch = imported()
    if scores.shape[2] == 1:
        loss = torch.nn.functional.softplus(scores) - scores * targets
        return loss[:, :, 0], scores.sigmoid() - targets
    logs = torch.log_softmax(scores, dim=2)
    return -(logs * targets).sum(2), logs.exp() - targets

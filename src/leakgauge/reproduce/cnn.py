"""The convolutional networks of Yeom et al. 2018, section 6.1.2, and records of images in the form that they are given.

torch is imported when a network is made.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from leakgauge.errors import DataError
from leakgauge.models.torch import Module, imported
from leakgauge.records import Column, Records, Schema
from leakgauge.training import TorchLearner
from leakgauge.training.engines.refit import Refit

if TYPE_CHECKING:
    from numpy.typing import NDArray


@dataclass(frozen=True)
class Cnn:
    """The architecture.

    Two 3 x 3 convolutions with s filters, 2 x 2 max-pooling, two with 2 s filters, 2 x 2 max-pooling, a dense layer of
    2 s units, and one logit for each class; ReLU throughout. Whether images are padded is not printed: here with zeros,
    so that a convolution keeps their size.

    Args:
        filters: s, at least 1.
        side: height and width of an image, at least 4.
        channels: numbers of a pixel.
        n_classes: logits.

    Source:
        Yeom et al. 2018, section 6.1.2.
    """

    filters: int
    side: int
    channels: int
    n_classes: int = 10

    def make(self) -> Module:
        """A module with fresh weights, from float32 ``[m, channels * side * side]`` to logits ``[m, n_classes]``.

        Raises:
            MissingExtra: torch is not installed.
        """
        torch = imported()
        nn = torch.nn
        s, rest = self.filters, self.side // 2 // 2
        layers = nn.Sequential(
            nn.Unflatten(1, (self.channels, self.side, self.side)),
            *(nn.Conv2d(self.channels, s, 3, padding=1), nn.ReLU()),
            *(nn.Conv2d(s, s, 3, padding=1), nn.ReLU()),
            nn.MaxPool2d(2),
            *(nn.Conv2d(s, 2 * s, 3, padding=1), nn.ReLU()),
            *(nn.Conv2d(2 * s, 2 * s, 3, padding=1), nn.ReLU()),
            nn.MaxPool2d(2),
            nn.Flatten(),
            *(nn.Linear(2 * s * rest * rest, 2 * s), nn.ReLU()),
            nn.Linear(2 * s, self.n_classes),
        )
        return layers.to(memory_format=torch.channels_last)  # the same numbers in another order: a quarter less time

    def learner(self, *, n_epochs: int, batch_size: int) -> TorchLearner:
        """Trained by Adam as in ``torch.optim``: learning rate 0.001, beta 0.9 and 0.999, epsilon 1e-8.

        The paper prints beta 0.5 and 0.99, calling them Keras' defaults, which are those above; its decay of the
        learning rate, 5e-4 a step, is left out.

        Raises:
            MissingExtra: torch is not installed.
            ModelError: a setting is not possible.
        """
        return TorchLearner(self.make, n_epochs=n_epochs, batch_size=batch_size, name=f"CNN with s = {self.filters}")


class OneByOne(Refit):
    """The plain loop, each model stored and handed to a worker by itself: for models that take minutes.

    Models of this size fill a processor's cache: stacked they take as long as one after another.
    """

    chunk = 1


def scaled_planes(records: Records, side: int, channels: int, *, largest: float = 255.0) -> Records:
    """Images with pixels in [0, 1] and colour by colour, as :class:`Cnn` is given them.

    Args:
        records: a column for each row, column and colour of the image, in this order.
        side: height and width.
        channels: colours.
        largest: the largest value of a pixel.

    Returns:
        The same records, their columns in the order of colour, row and column.

    Raises:
        DataError: there are more or fewer columns than that.
    """
    d = records.schema.n_features
    if d != side * side * channels:
        raise DataError(
            f"images of {side} x {side} pixels in {channels} colours have {side * side * channels} columns, got {d}; "
            "give the side and the number of colours of these"
        )
    order: NDArray[np.int64] = np.arange(d).reshape(side, side, channels).transpose(2, 0, 1).ravel()
    columns = tuple(Column(records.schema.columns[j].name, dtype="float64") for j in order)
    schema = Schema(columns, records.schema.target)
    return Records(records.features[:, order] / largest, records.labels, schema, records.ids)

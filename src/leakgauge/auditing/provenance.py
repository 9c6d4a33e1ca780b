"""Where a result comes from: when, by whom, from which data and models, with checksums of all of it."""

from __future__ import annotations

import getpass
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from leakgauge.escaping import one_line


@dataclass(frozen=True)
class Hashes:
    """Of one model of a run, as SHA-256 or by what the run folder identifies it.

    Args:
        train: of the training records.
        holdout: of the holdout.
        learner: what stands for the training algorithm with its settings; ``None`` where it was not given.
        source: of the model's file, or of what made it; ``None`` for a recipe.
    """

    train: str
    holdout: str
    learner: str | None
    source: str | None


@dataclass(frozen=True)
class Provenance:
    """What a report states about the run that it is of, beside the result itself.

    Args:
        started: date and time with zone, ISO 8601; empty where the run did not say.
        auditor: who ran it, as the file of the audit says, or else the name of the account.
        data: the data set or files.
        source: what the audit was started with: a file or a data set.
        python: the version.
        models: by name.
    """

    started: str = ""
    auditor: str = ""
    data: str = ""
    source: str = ""
    python: str = ""
    models: Mapping[str, Hashes] | None = None

    @classmethod
    def of(cls, manifest: Mapping[str, Any]) -> Provenance:
        """From the manifest of a run; what it lacks, or holds in another form, stays empty."""

        def text(held: Any) -> str:
            return one_line(held) if isinstance(held, str) else ""

        def known(model: Mapping[str, Any]) -> Hashes:
            train, holdout, learner, source = (
                text(model.get(key)) for key in ("train", "holdout", "learner", "source")
            )
            return Hashes(train, holdout, learner or None, source or None)

        inputs = manifest.get("inputs")
        listed = inputs.get("models") if isinstance(inputs, Mapping) else None
        models = [one for one in (listed if isinstance(listed, list) else []) if isinstance(one, Mapping)]
        said = {key: text(manifest.get(key)) for key in ("started", "auditor", "data", "source", "python")}
        return cls(**said, models={text(one.get("name")): known(one) for one in models})


def account() -> str:
    """The name of the account that runs this; empty where there is none."""
    try:
        return getpass.getuser()
    except (OSError, KeyError, ImportError):
        return ""

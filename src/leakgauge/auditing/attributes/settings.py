"""The settings of attribute inference."""

from __future__ import annotations

from dataclasses import dataclass

from leakgauge.checking import Checked, check_fields, either, many, number, optional, setting, text
from leakgauge.errors import ConfigError
from leakgauge.records import Schema


@dataclass(frozen=True)
class SensitiveColumn:
    """A column whose value attackers try to infer about known people.

    Args:
        name: of the column.
        edges: of the bins of a numeric column, at least two, ascending, outermost included; public ones. Categorical
            columns have none.
        prior: how frequent each value is in the population, in the order of the categories or bins; by default among
            the records given.
    """

    name: str
    edges: tuple[float, ...] | None = None
    prior: tuple[float, ...] | None = None

    def __post_init__(self) -> None:
        check_fields(self, name=text)
        check_fields(
            self,
            f"column {self.name!r}: ",
            edges=optional(many(number())),
            prior=optional(many(number(least=0, most=1, hint="it is a share"))),
        )
        if self.edges is not None and len(self.edges) < 3:
            raise ConfigError(
                f"column {self.name!r}: edges must make at least two bins, or there is nothing to infer, got "
                f"{list(self.edges)}; give three numbers or more, such as [0, 10, 20]"
            )


@dataclass(frozen=True, kw_only=True)
class AttributeSettings(Checked):
    """Which columns are inferred.

    Args:
        attributes: the sensitive attributes, by name or as :class:`SensitiveColumn`; by default the columns whose
            role is sensitive.
        group_by: a categorical column by whose groups attribute inference is reported separately.
    """

    attributes: tuple[SensitiveColumn | str, ...] | None = setting(
        None, optional(many(either(SensitiveColumn, otherwise=text))), "the columns that attackers try to infer"
    )
    group_by: str | None = setting(
        None, optional(text), "a categorical column by whose groups attribute inference is reported"
    )

    def hidden(self, schema: Schema) -> tuple[SensitiveColumn, ...]:
        """The columns to infer, in the order given, or in that of the schema.

        Raises:
            ConfigError: a column is named twice.
        """
        wanted = schema.sensitive if self.attributes is None else self.attributes
        columns = tuple(SensitiveColumn(one) if isinstance(one, str) else one for one in wanted)
        names = [column.name for column in columns]
        twice = next((name for name in names if names.count(name) > 1), None)
        if twice is not None:
            raise ConfigError(f"column {twice!r} is inferred twice; name it once")
        return columns

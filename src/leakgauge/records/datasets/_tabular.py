"""Data sets that are tables of text: what their columns mean, and how their files are written."""

from __future__ import annotations

import hashlib
import io
import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np
import numpy.typing as npt

from leakgauge.errors import DataError
from leakgauge.records.columns import INTEGERS, Column, Kind, Native, Role
from leakgauge.records.datasets._files import opened_tar, unpacked
from leakgauge.records.datasets._matrices import classified
from leakgauge.records.schema import Schema
from leakgauge.records.table import Records

if TYPE_CHECKING:
    import pyarrow as pa

Integers: TypeAlias = npt.NDArray[np.integer[Any]]

_MAX_BYTES = 1 << 28  # no table here is longer


def number(name: str, dtype: str = "int64") -> Column:
    """A numeric feature."""
    return Column(name, dtype=dtype)


def category(name: str, dtype: str = "string", role: Role = Role.FEATURE) -> Column:
    """A categorical feature whose categories are frozen from the table."""
    return Column(name, Kind.CATEGORICAL, role, dtype=dtype)


def left_out(name: str) -> Column:
    """A column that the model does not see."""
    return Column(name, role=Role.IGNORE)


def label(name: str, dtype: str = "string") -> Column:
    """The class to predict."""
    return Column(name, Kind.CATEGORICAL, Role.TARGET, dtype=dtype)


ADULT = (
    number("age"),
    category("workclass"),
    left_out("fnlwgt"),
    category("education"),
    number("education_num"),
    category("marital_status", role=Role.SENSITIVE),
    category("occupation"),
    category("relationship"),
    category("race", role=Role.SENSITIVE),
    category("sex", role=Role.SENSITIVE),
    number("capital_gain"),
    number("capital_loss"),
    number("hours_per_week"),
    category("native_country"),
    label("income"),
)

# The description of the data set gives seven attributes as continuous; the others are nominal, also where they are
# written as numbers. The instance weight says how many people a row stands for, and is no attribute.
CENSUS = (
    number("age"),
    category("class_of_worker"),
    category("detailed_industry_recode", "int64"),
    category("detailed_occupation_recode", "int64"),
    category("education"),
    number("wage_per_hour"),
    category("enroll_in_edu_inst_last_wk"),
    category("marital_stat"),
    category("major_industry_code"),
    category("major_occupation_code"),
    category("race", role=Role.SENSITIVE),
    category("hispanic_origin"),
    category("sex", role=Role.SENSITIVE),
    category("member_of_a_labor_union"),
    category("reason_for_unemployment"),
    category("full_or_part_time_employment_stat"),
    number("capital_gains"),
    number("capital_losses"),
    number("dividends_from_stocks"),
    category("tax_filer_stat"),
    category("region_of_previous_residence"),
    category("state_of_previous_residence"),
    category("detailed_household_and_family_stat"),
    category("detailed_household_summary_in_household"),
    left_out("instance_weight"),
    category("migration_code_change_in_msa"),
    category("migration_code_change_in_reg"),
    category("migration_code_move_within_reg"),
    category("live_in_this_house_1_year_ago"),
    category("migration_prev_res_in_sunbelt"),
    number("num_persons_worked_for_employer"),
    category("family_members_under_18"),
    category("country_of_birth_father"),
    category("country_of_birth_mother"),
    category("country_of_birth_self"),
    category("citizenship"),
    category("own_business_or_self_employed", "int64"),
    category("fill_inc_questionnaire_for_veterans_admin"),
    category("veterans_benefits", "int64"),
    number("weeks_worked_in_year"),
    category("year", "int64"),
    label("income"),
)

WARFARIN = (
    category("race"),
    number("age", "float64"),
    number("height", "float64"),
    number("weight", "float64"),
    number("amiodarone"),
    number("decr"),
    category("cyp2c9", role=Role.SENSITIVE),
    category("vkorc1", role=Role.SENSITIVE),
    Column("dose", role=Role.TARGET),
)

# As in ACSIncome (Ding et al. 2021), ten features; SCHL counts the steps of schooling, hence ordinal.
ACS = (
    number("AGEP"),
    category("COW", "int64"),
    Column("SCHL", Kind.ORDINAL, dtype="int64"),
    category("MAR", "int64", role=Role.SENSITIVE),
    category("OCCP", "int64"),
    category("POBP", "int64"),
    category("RELP", "int64"),
    number("WKHP"),
    category("SEX", "int64", role=Role.SENSITIVE),
    category("RAC1P", "int64", role=Role.SENSITIVE),
    label("PINCP", "bool"),
)


@dataclass(frozen=True)
class PublishedForm:
    """What is published about a table of 0 and 1 with a class in front, whose home states no checksum.

    Attributes:
        n_records: Its rows.
        n_features: Its columns of 0 and 1.
        n_classes: The classes are 1 to this, and all occur.
        md5: Of the text, as users of the table state it.
    """

    n_records: int
    n_features: int
    n_classes: int
    md5: str


PURCHASE = PublishedForm(197_324, 600, 100, "dd892f2cedf8b07025d016df49a2eb4f")


def tables(*columns: Column) -> Callable[[Sequence[Path]], Records]:
    """A reader of tables with headers, one after the other."""
    return lambda paths: as_records([unpacked(path, _MAX_BYTES) for path in paths], columns)


read_adult = tables(*ADULT, left_out("split"))
"""The training rows, then the test rows."""

read_census = tables(*CENSUS)
"""Training and test file."""

read_warfarin = tables(*WARFARIN)

read_acs = tables(left_out("STATE"), *ACS)
"""With the state in the first column."""

read_acs_by_state = tables(*ACS)


def read_adult_originals(paths: Sequence[Path]) -> Records:
    """The two original files: no header, a space after each comma, labels of the test file end in a full stop."""
    train, test = (unpacked(path, _MAX_BYTES).decode("ascii").splitlines() for path in paths)
    lines = [line for line in train if line] + [line.rstrip(".") for line in test if line and line[0] != "|"]
    return as_records([_headed("\n".join(lines).replace(", ", ",").encode(), ADULT)], ADULT)


def read_census_originals(paths: Sequence[Path]) -> Records:
    """The two original files: no header, a space after each comma."""
    return as_records([_headed(unpacked(path, _MAX_BYTES).replace(b", ", b","), CENSUS) for path in paths], CENSUS)


def read_eyedata(paths: Sequence[Path]) -> Records:
    """One table of numbers with a header; the response `y` is the last column."""
    (path,) = paths
    header, _, rows = unpacked(path, _MAX_BYTES).decode("ascii").partition("\n")
    names = [name.strip('"') for name in header.strip().split(",")]
    matrix = np.loadtxt(io.StringIO(rows), delimiter=",")
    schema = Schema(tuple(number(name, "float64") for name in names[:-1]), Column(names[-1], role=Role.TARGET))
    return Records(matrix[:, :-1], matrix[:, -1], schema, np.arange(len(matrix)))


def read_location(paths: Sequence[Path]) -> Records:
    """A NumPy archive with `features` and `labels`."""
    (path,) = paths
    with np.load(path, allow_pickle=False) as archive:
        return _clusters(archive["features"], archive["labels"], "visited", 30)


def read_location_archive(paths: Sequence[Path]) -> Records:
    """The member `bangkok` of a tar archive: per line the label, then 446 times 0 or 1, all perhaps quoted."""
    (path,) = paths
    text = tar_member(path, "bangkok").decode("ascii").replace('"', "")
    table = np.loadtxt(io.StringIO(text), delimiter=",", dtype=np.int64)
    return _clusters(table[:, 1:], table[:, 0], "visited", 30)


def read_purchase_archive(paths: Sequence[Path]) -> Records:
    """The member `dataset_purchase` of a tar archive: per line the class, from 1, then 600 times 0 or 1.

    Raises:
        DataError: If it has not the published form.

    Warns:
        UserWarning: If it has, but not the checksum that users of the table state: the home states none.
    """
    (path,) = paths
    text = tar_member(path, "dataset_purchase")
    table = _table_of_bits(text, str(path))
    md5 = hashlib.md5(text, usedforsecurity=False).hexdigest()
    if md5 != PURCHASE.md5:
        warnings.warn(
            f"dataset_purchase has the published form, but the checksum (md5) {md5}, not {PURCHASE.md5} as others have "
            "it: it may be another version; say so with results.",
            UserWarning,
            stacklevel=2,
        )
    return _clusters(table[:, 1:], table[:, 0], "bought", PURCHASE.n_classes)


def _table_of_bits(text: bytes, where: str) -> npt.NDArray[np.uint8]:
    """Class and features ``[n, 1 + d]``, refused where they are not as in `PURCHASE`."""
    import pyarrow as pa
    from pyarrow import csv

    names = [str(j) for j in range(1 + PURCHASE.n_features)]
    try:
        parsed = csv.read_csv(
            io.BytesIO(text),
            read_options=csv.ReadOptions(column_names=names),
            convert_options=csv.ConvertOptions(column_types=dict.fromkeys(names, pa.uint8()), null_values=[]),
        )
    except pa.ArrowInvalid as error:
        raise DataError(f"{where} cannot be read ({type(error).__name__}); fetch it again.") from None
    table = np.stack([parsed[name].to_numpy() for name in names], axis=1)
    classes = np.unique(table[:, 0])
    largest = int(table[:, 1:].max(initial=0))
    if len(table) != PURCHASE.n_records or largest > 1 or classes.tolist() != [*range(1, PURCHASE.n_classes + 1)]:
        raise DataError(
            f"{where} holds {len(table)} rows of {len(classes)} classes with values up to {largest}, expected "
            f"{PURCHASE.n_records} rows of 0 and 1 and the classes 1 to {PURCHASE.n_classes}: it is damaged, or "
            "another version; delete it and fetch it again."
        )
    return table


def tar_member(path: Path, name: str) -> bytes:
    """The content of the regular file of that name, whatever folder of the archive it is in; nothing is unpacked.

    Raises:
        DataError: If there is none, it is too long, or the archive is damaged.
    """
    with opened_tar(path) as archive:
        for member in archive:
            if member.isfile() and member.name.rsplit("/", 1)[-1] == name and member.size <= _MAX_BYTES:
                stream = archive.extractfile(member)
                return stream.read() if stream else b""
    raise DataError(f"{path} holds no file {name!r}; it is not the archive that is meant, so fetch it again.")


def as_records(tables: Sequence[bytes], columns: Sequence[Column]) -> Records:
    """Records of CSV tables one after the other, for models that are asked with NumPy arrays."""
    import pyarrow as pa

    table = pa.concat_tables([_parsed(content, columns) for content in tables])
    return Records.from_frame(table, columns=columns).with_native(Native.NUMPY)


def _parsed(content: bytes, columns: Sequence[Column]) -> pa.Table:
    import pyarrow as pa
    from pyarrow import csv

    types = {column.name: _arrow_type(column) for column in columns}
    try:
        table = csv.read_csv(
            io.BytesIO(content), convert_options=csv.ConvertOptions(column_types=types, null_values=[])
        )
    except pa.ArrowInvalid as error:
        raise DataError(f"the table cannot be read ({type(error).__name__}); fetch its file again.") from None
    for place, column in enumerate(columns):  # codes such as 1.0 are whole numbers
        if column.dtype in INTEGERS and column.is_feature:
            table = table.set_column(place, column.name, table[column.name].cast(pa.int64()))
    return table


def _arrow_type(column: Column) -> pa.DataType:
    import pyarrow as pa

    if column.role is Role.IGNORE:
        return pa.string()
    return {"string": pa.string(), "bool": pa.bool_()}.get(column.dtype, pa.float64())


def _headed(rows: bytes, columns: Sequence[Column]) -> bytes:
    return ",".join(column.name for column in columns).encode() + b"\n" + rows


def _clusters(features: Integers, labels: Integers, verb: str, n_classes: int) -> Records:
    """Columns of 0 and 1, and clusters numbered from 1."""
    names = (f"{verb}_{j}" for j in range(features.shape[1]))
    return classified(features, labels.astype(np.int64) - 1, names, "cluster", range(1, n_classes + 1), "uint8")

"""The public data sets: published counts, and what is in their columns."""

from __future__ import annotations

import subprocess
import sys

import numpy as np
import pytest
from sklearn import datasets as sklearn_datasets

from leakgauge.errors import DataError, MissingExtra
from leakgauge.records import Kind, Native, Task
from leakgauge.records.datasets import _catalogue, enron_messages, enron_spam, load, names
from leakgauge.records.datasets._matrices import classified


def counts(dataset) -> dict:
    records = dataset.records
    return dict(zip(records.schema.classes, np.bincount(records.labels).tolist(), strict=True))


def n_of(dataset, column: str, value) -> int:
    records = dataset.records
    j = records.schema.index(column)
    return int((records.features[:, j] == records.schema.columns[j].categories.index(value)).sum())


# --- those that come with scikit-learn --------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("name", "source"),
    [
        ("breast-cancer", sklearn_datasets.load_breast_cancer),
        ("digits", sklearn_datasets.load_digits),
        ("wine", sklearn_datasets.load_wine),
    ],
)
def test_bundled_classification_is_scikit_learns(name, source):
    bunch, dataset = source(), load(name)
    np.testing.assert_array_equal(dataset.records.features, bunch.data)
    np.testing.assert_array_equal(dataset.records.labels, bunch.target)
    assert dataset.records.schema.names == tuple(bunch.feature_names)
    assert [str(value) for value in dataset.records.schema.classes] == [str(value) for value in bunch.target_names]
    assert dataset.sensitive == ()


@pytest.mark.parametrize(("classes", "dtype"), [(("no", "yes"), "string"), ((0, 1), "int64")])
def test_classes_are_written_back_as_they_are(classes, dtype):
    records = classified([[1.0], [2.0]], [1, 0], ["age"], target="ill", classes=classes)
    assert records.schema.target.dtype == dtype
    assert records.schema.target.categories == classes


def test_bundled_regression_has_sex_as_a_sensitive_category():
    bunch, dataset = sklearn_datasets.load_diabetes(scaled=False), load("diabetes")
    schema = dataset.records.schema
    assert schema.task is Task.REGRESSION
    assert dataset.sensitive == ("sex",)
    assert schema.columns[schema.index("sex")].categories == (1, 2)
    np.testing.assert_array_equal(schema.decode(dataset.records.features), bunch.data)
    np.testing.assert_array_equal(dataset.records.labels, bunch.target)


def test_names_and_what_is_said_about_each():
    assert names() == tuple(sorted(names()))
    assert set(names()) >= {"adult", "acs-income", "census-income", "cifar10", "enron-spam", "eyedata"}
    for name in names():
        entry = _catalogue.ENTRIES[name]
        assert entry.description.endswith(".")
        assert entry.source
        assert entry.licence
        for form in entry.forms:
            assert form.digest or form.reader_checks or all(file.sha256 for file in form.files)
            assert all(file.url.startswith("https://") or not file.url for file in form.files)
        assert not entry.forms or sum(form.can_be_fetched for form in entry.forms) == 1


def test_an_unknown_name_is_told_the_nearest():
    with pytest.raises(DataError, match="no data set 'adlut'; did you mean 'adult'"):
        load("adlut")


def test_importing_records_is_cheap():
    code = (
        "import sys, leakgauge.records; print(sorted({'pyarrow', 'sklearn', 'narwhals', 'pandas'} & set(sys.modules)))"
    )
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout == "[]\n"


# --- those read from files --------------------------------------------------------------------------------------


@pytest.fixture
def get(data_folder):
    return lambda name: load(name, path=data_folder)


def test_adult(get):
    adult = get("adult")
    # Counts of the description in the UCI repository: 24,720 + 12,435 and 7,841 + 3,846
    assert counts(adult) == {"<=50K": 37_155, ">50K": 11_687}
    assert np.bincount(adult.records.labels[:32_561]).tolist() == [24_720, 7_841]
    schema = adult.records.schema
    assert schema.n_features == 13
    assert "fnlwgt" not in schema.names
    assert adult.sensitive == ("marital_status", "race", "sex")
    assert schema.columns[schema.index("education_num")].kind is Kind.NUMERIC
    assert [n_of(adult, name, "?") for name in ("workclass", "occupation", "native_country")] == [2799, 2809, 857]
    assert schema.native is Native.NUMPY
    first = [39, "State-gov", "Bachelors", 13, "Never-married", "Adm-clerical", "Not-in-family", "White", "Male"]
    assert schema.decode(adult.records.features[:1])[0].tolist() == [*first, 2174, 0, 40, "United-States"]
    assert schema.decode_labels(adult.records.labels[-1:]).tolist() == [">50K"]


@pytest.mark.long
def test_census_income(get):
    census = get("census-income")
    train, test = census.records[:199_523], census.records[199_523:]
    # Published: 187,141 / 12,382 and 93,576 / 6,186 rows
    assert np.bincount(train.labels).tolist() == [187_141, 12_382]
    assert np.bincount(test.labels).tolist() == [93_576, 6_186]
    assert census.records.schema.n_features == 40
    assert census.sensitive == ("race", "sex")
    assert (~census.records.schema.categorical).sum() == 7
    # Published: "46716 duplicate or conflicting instances" in the training file, 20936 in the test file
    repeats = [len(part) - len(np.unique(part.features, axis=0)) for part in (train, test)]
    assert repeats == [46_716, 20_936]


def test_location30(get):
    location = get("location30")
    assert location.records.features.shape == (5_010, 446)
    assert location.records.schema.classes == tuple(range(1, 31))
    assert (min(counts(location).values()), max(counts(location).values())) == (97, 308)
    assert location.records.features.mean() == pytest.approx(0.120, abs=5e-4)


def test_warfarin(get):
    warfarin = get("iwpc-warfarin")
    schema = warfarin.records.schema
    assert (len(warfarin.records), schema.task) == (4_819, Task.REGRESSION)
    # Yeom et al. 2018, section 6.1: race 3, CYP2C9 6, VKORC1 3 values
    assert [int(n) for n in schema.n_categories] == [3, 0, 0, 0, 0, 0, 6, 3]
    assert warfarin.sensitive == ("cyp2c9", "vkorc1")
    assert schema.columns[6].categories == ("11", "12", "13", "22", "23", "33")
    assert abs(warfarin.records.labels.mean()) < 0.01


def test_eyedata(get):
    eye = get("eyedata")
    assert eye.records.features.shape == (120, 200)
    assert eye.records.schema.task is Task.REGRESSION
    assert eye.records.schema.names[0] == "1377"
    assert eye.records.features[0, 0] == 3.676134286


def test_acs_income(get):
    acs = get("acs-income")
    assert len(acs.records) == 898_610
    assert acs.records.labels.mean() == pytest.approx(0.370, abs=5e-4)
    assert acs.sensitive == ("MAR", "SEX", "RAC1P")
    assert acs.records.schema.names == (
        *("AGEP", "COW", "SCHL", "MAR", "OCCP", "POBP", "RELP", "WKHP", "SEX", "RAC1P"),
    )
    assert acs.records.schema.classes == (False, True)
    assert acs.records.schema.columns[2].kind is Kind.ORDINAL


def test_mnist(get):
    mnist = get("mnist")
    assert mnist.records.features.shape == (70_000, 784)
    # Counts of the digits in the training file, as published: 5923 zeros, 6742 ones, …, 5949 nines
    assert np.bincount(mnist.records.labels[:60_000]).tolist() == [
        *(5923, 6742, 5958, 6131, 5842, 5421, 5918, 6265, 5851, 5949)
    ]
    assert mnist.records.labels[:5].tolist() == [5, 0, 4, 1, 9]


@pytest.mark.slow
def test_enron_spam(get, data_folder):
    spam = get("enron-spam")
    assert counts(spam) == {"ham": 16_545, "spam": 17_170}
    assert spam.records.schema.n_features == 1000
    assert "the" in spam.records.schema.names
    assert spam.records.ids[0].item() == "enron1/0001.1999-12-10.farmer.ham.txt"
    few = enron_spam(3, path=data_folder)
    assert set(few.records.schema.names) <= set(spam.records.schema.names)
    for j, word in enumerate(few.records.schema.names):
        np.testing.assert_array_equal(
            few.records.features[:, j], spam.records.features[:, spam.records.schema.index(word)]
        )
    messages = enron_messages(path=data_folder)
    assert [message.id for message in messages] == spam.records.ids.tolist()
    assert all(message.text.startswith("Subject:") for message in messages)
    with pytest.raises(DataError, match="n_words must be at least 1, got 0"):
        enron_spam(0, path=data_folder)


def test_words_are_counted_and_the_label_gets_out_of_their_way():
    from leakgauge.records.datasets._text import Corpus, Message, word_counts

    corpus = Corpus(
        (
            Message("enron1", "1.txt", "ham", "The label, the LABEL and me"),
            Message("enron1", "2.txt", "spam", "the money"),
        )
    )
    records = word_counts(corpus, 2)
    assert records.schema.names == ("label", "the")
    assert records.features.tolist() == [[2, 2], [0, 1]]
    assert records.schema.target.name == "is_spam"
    assert records.schema.decode_labels(records.labels).tolist() == ["ham", "spam"]
    assert records.ids.tolist() == ["enron1/1.txt", "enron1/2.txt"]


@pytest.mark.slow
def test_cifar10(get):
    pytest.importorskip("PIL", reason="Pillow is not installed")
    cifar = get("cifar10")
    assert cifar.records.features.shape == (60_000, 3072)
    assert "re-encoded as JPEG" in cifar.description
    assert np.bincount(cifar.records.labels[:50_000]).tolist() == [5000] * 10
    assert cifar.records.labels[:5].tolist() == [6, 9, 9, 4, 1]


def test_cifar10_as_jpeg_says_that_it_needs_pillow(monkeypatch, data_folder):
    monkeypatch.setitem(sys.modules, "PIL", None)
    with pytest.raises(MissingExtra, match=r"need Pillow; run: pip install 'leakgauge\[images\]'"):
        load("cifar10", path=data_folder)


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", [name for name in names() if any(form.digest for form in _catalogue.ENTRIES[name].forms)]
)
def test_digests_are_those_of_the_prepared_files(data_folder, name):
    """The constant that a fetched original must match is the digest of the copy that was checked otherwise."""
    from leakgauge.records.datasets._files import obtain

    entry = _catalogue.ENTRIES[name]
    (expected,) = {form.digest for form in entry.forms if form.digest}
    content = obtain(name, entry.forms, path=data_folder, progress=False).content
    assert content.digest() == expected

"""The public data sets: where each comes from, in which forms it is kept, and what to expect in it."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from leakgauge.records.datasets import _bundled, _images, _tabular, _text
from leakgauge.records.datasets._files import SourceFile, StoredForm
from leakgauge.records.table import Records

_UCI = "https://archive.ics.uci.edu/ml/machine-learning-databases"
_RAW = "https://raw.githubusercontent.com"
_YEOM = f"{_RAW}/samuel-yeom/ml-privacy-csf18/7b302fb80b853b040941eb90b37c0491f55e4928/data"
_SHOKRI = f"{_RAW}/privacytrustlab/datasets/169de9de00de049dd2e571cf7279e64698ac046a"
_SHOKRI_NOW = f"{_RAW}/privacytrustlab/datasets/master"
_FEDA = f"{_RAW}/xheilmann/FeDa4Fair/4fb955679ed0949fcf5001106340e29441638886/src/FeDa4Fair/data/cross_silo_value_final"
_METSIS = "https://www2.aueb.gr/users/ion/data/enron-spam/preprocessed"
_LECUN = "https://ossci-datasets.s3.amazonaws.com/mnist"
_KRIZHEVSKY = "https://www.cs.toronto.edu/~kriz"
_STATES = (
    *("AL", "CO", "CT", "GA", "HI", "IA", "ID", "IL", "IN", "KS", "KY", "MA", "MD", "ME", "MI", "MO", "MT", "NC"),
    *("ND", "NH", "NJ", "NM", "NV", "OK", "PA", "RI", "SC", "SD", "TN", "UT", "VA", "VT", "WA", "WI", "WY"),
)
_MB = 1 << 20


@dataclass(frozen=True)
class Entry:
    """What is known about a data set before it is loaded.

    Attributes:
        description: What a row is, what is predicted, and what was changed.
        source: Public name and home.
        licence: As stated at the home; check it before redistributing.
        forms: The ways in which its files are kept, in order of preference; none if it comes with scikit-learn.
        build: Makes the records: from the content of the files, or from nothing.
    """

    description: str
    source: str
    licence: str
    forms: tuple[StoredForm, ...] = ()
    build: Callable[[Any], Records] = lambda content: content


_SHA256 = {
    "adult.csv.gz": "fbfd5774d1c107366c5fcb3f0317586726c37cc93abf13dff629000f0bc2d666",
    "adult.data": "5b00264637dbfec36bdeaab5676b0b309ff9eb788d63554ca0a249491c86603d",
    "adult.test": "a2a9044bc167a35b2361efbabec64e89d69ce82d9790d2980119aac5fd7e9c05",
    "census_income_kdd_train.csv.xz": "185098ed7606bfd68c06dd2eda25ae5b010df24f6d260503bbb0aa64c6ec23d7",
    "census_income_kdd_test.csv.xz": "27895eb4237f4789ab14e926d58b7372c9b6f3292bf50c1a1b31f436c56ca1a6",
    "census-income.test.gz": "98402b1ab879573d0a7f38a699a40258080e25e33d3401e7bf9c96d3fa0fab8c",
    "location30.npz": "e19ada96711a07cfb45cd585b23ea25421db09c0ce864fb1a9b0f2f16a72cdb1",
    "enron_spam.jsonl.xz": "9c797cd42a9739cb001cf3de4801bb2ce3791fddb696f9c4d9efec3cfbb8fb3e",
    "iwpc_scaled.csv.gz": "6f27ac40749cf0b8d7b8f33008830a7747e4b9e0625daf4aba785881351edea9",
    "iwpc-scaled.csv": "fc81402548298d703a92c63d84c8d2e2da266af7ccda35025d35f431934977f3",
    "eyedata.csv.gz": "45b7b6ad0db548d5ec5c3656b15d8039cbf0ff2d95756fe58c7470128480c962",
    "eyedata.csv": "0f3dcb2ee9fd4012548f689c0b1bd6375f772e3ad8f34db7a809cdcc97f536ff",
    "acsincome_2018_35states.csv.xz": "af394ad0673bfe1c8e570fe4ca83b762d8713affd10adea7c894870bf1ca68ff",
    "mnist.npz": "ee068f36682cba7f38bafdedc77b0f873ebbcf877036f7ebde566966146ac146",
    "train-images-idx3-ubyte.gz": "ba891046e6505d7aadcbbe25680a0738ad16aec93bde7f9b65e87a2fc25776db",
    "train-labels-idx1-ubyte.gz": "65a50cbbf4e906d70832878ad85ccda5333a97f0f4c3dd2ef09a8a9eef7101c5",
    "t10k-images-idx3-ubyte.gz": "0fa7898d509279e482958e8ce81c8e77db3f2f8254e26661ceb7762c4d494ce7",
    "t10k-labels-idx1-ubyte.gz": "ff7bcfd416de33731a308c3f266cc351222c34898ecbeaf847f06e48f7ec33f2",
    "cifar-10-binary.tar.gz": "c4a38c50a1bc5f3a1c5537f2155ab9d68f9f25eb1ed8d9ddda3db29a59bca1dd",
    "cifar10_jpeg.npz": "a4e8ace128d051cc705b270056c5cc55900d303187950cd344e3f099007babd7",
}
"""Of files, by their names; of some that are packed, of their content."""


def _files(folder: str, *names: str, home: str = "", unpacked: bool = False, mb: int = 32) -> tuple[SourceFile, ...]:
    """Files of a folder that can be fetched from their home, if they have one, under the same names."""
    return tuple(
        SourceFile(
            f"{folder}/{name}",
            _SHA256.get(name),
            unpacked,
            f"{home}/{name}" if home else "",
            mb * _MB if home else 0,
        )
        for name in names
    )


# The digests below are those of the content of the prepared files, `Records.digest()` (`Corpus.digest()` for
# enron-spam), computed after the prepared files had been checked against their sums; a test computes them anew.

ENTRIES: dict[str, Entry] = {
    "adult": Entry(
        "48,842 adults of the 1994 US census: the 32,561 rows of the training file, then the 16,281 of the test file. "
        "13 attributes (without fnlwgt); income above or at most 50,000 dollars a year. A missing value is the "
        "category '?'.",
        "UCI Adult (Becker and Kohavi 1996), https://archive.ics.uci.edu/dataset/2/adult",
        "CC BY 4.0",
        (
            StoredForm(_files("adult", "adult.csv.gz"), _tabular.read_adult),
            StoredForm(
                _files("adult", "adult.data", "adult.test", home=f"{_UCI}/adult"), _tabular.read_adult_originals
            ),
        ),
    ),
    "census-income": Entry(
        "299,285 people of the 1994 and 1995 US population surveys: the 199,523 rows of the training file, then the "
        "99,762 of the test file. 40 attributes (without instance_weight); income above or at most 50,000 dollars.",
        "UCI Census-Income (KDD) (Lane and Kohavi 2000), https://archive.ics.uci.edu/dataset/117/census+income+kdd",
        "CC BY 4.0",
        (
            StoredForm(
                _files("census_income_kdd", "census_income_kdd_train.csv.xz", "census_income_kdd_test.csv.xz"),
                _tabular.read_census,
            ),
            StoredForm(
                _files(
                    "census_income_kdd",
                    "census-income.data.gz",
                    "census-income.test.gz",
                    home=f"{_UCI}/census-income-mld",
                    unpacked=True,
                ),
                _tabular.read_census_originals,
                digest="7566488c800ca7c9b17472b92b21d7374f5148b149506de609e40e4b33332baa",
            ),
        ),
    ),
    "location30": Entry(
        "5,010 people by where they checked in around Bangkok: 446 regions or kinds of place, visited or not; 30 "
        "clusters to predict.",
        "Location of Shokri et al. 2017, from check-ins collected by Yang et al.; "
        "https://github.com/privacytrustlab/datasets",
        "none stated; published as research data",
        (
            StoredForm(_files("location30", "location30.npz"), _tabular.read_location),
            StoredForm(
                _files("location30", "dataset_location.tgz", home=_SHOKRI),
                _tabular.read_location_archive,
                digest="c84bff11989a98ed978ccff1b699b3d74dbc6c7551fa2c04d851575dcb7051e7",
            ),
        ),
    ),
    "purchase100": Entry(
        "197,324 customers by what they bought within a year: 600 products or categories, bought or not; 100 clusters "
        "to predict. It is not the table of Long et al. 2017 with 836 attributes and 10 clusters, which was made from "
        "the same transactions, was not published, and cannot be had.",
        "Purchase-100 of Shokri et al. 2017, from the transactions of the Kaggle challenge Acquire Valued Shoppers; "
        "https://github.com/privacytrustlab/datasets",
        "none stated; published as research data",
        (
            StoredForm(
                _files("purchase100", "dataset_purchase.tgz", home=_SHOKRI_NOW, mb=256),
                _tabular.read_purchase_archive,
                note="Its home states no checksum: rows, columns, values and classes were checked.",
                reader_checks=True,
            ),
        ),
    ),
    "enron-spam": Entry(
        "33,715 e-mails, 16,545 ham and 17,170 spam (one of the 33,716 published messages is left out), as counts of "
        "the most frequent words of the whole corpus. The choice of words is public preprocessing: every model sees "
        "the same.",
        "Enron-Spam, preprocessed form (Metsis, Androutsopoulos and Paliouras 2006), "
        "https://www2.aueb.gr/users/ion/data/enron-spam/",
        "none stated; public research corpus",
        (
            StoredForm(_files("enron_spam", "enron_spam.jsonl.xz"), _text.read_lines),
            StoredForm(
                _files("enron_spam", *(f"enron{i}.tar.gz" for i in range(1, 7)), home=_METSIS),
                _text.read_archives,
                digest="54d4310972716df55ffdadf0f33740e95bc1d8f37e6f370489a95ad672d06e8d",
            ),
        ),
        build=lambda corpus: _text.word_counts(corpus, 1000),
    ),
    "iwpc-warfarin": Entry(
        "4,819 patients on warfarin: race, age, height, weight, two drugs, two genotypes; the scaled square root of "
        "the weekly dose is predicted. Cleaned and standardised by Yeom et al. 2018.",
        "International Warfarin Pharmacogenetics Consortium 2009 (PharmGKB), in the form of "
        "https://github.com/samuel-yeom/ml-privacy-csf18",
        "CC BY-SA 4.0, research use (PharmGKB)",
        (
            StoredForm(_files("iwpc_warfarin", "iwpc_scaled.csv.gz"), _tabular.read_warfarin),
            StoredForm(_files("iwpc_warfarin", "iwpc-scaled.csv", home=_YEOM), _tabular.read_warfarin),
        ),
    ),
    "eyedata": Entry(
        "120 rats: expression of 200 genes in the eye; that of gene TRIM32 is predicted. Not standardised.",
        "Scheetz et al. 2006 (GEO series GSE5680), in the form of https://github.com/samuel-yeom/ml-privacy-csf18",
        "public (GEO); GPL-2 as part of the R package flare",
        (
            StoredForm(_files("eyedata", "eyedata.csv.gz"), _tabular.read_eyedata),
            StoredForm(_files("eyedata", "eyedata.csv", home=_YEOM), _tabular.read_eyedata),
        ),
    ),
    "acs-income": Entry(
        "898,610 people in work of the 2018 American Community Survey, in 35 whole states; 10 attributes; personal "
        "income above 50,000 dollars or not. Recoded by its source: MAR is 1 (married) or 2 (not); RAC1P is 1 white, "
        "2 Black, 3 Asian, 4 American Indian or Alaska Native, 5 all others. The state is not an attribute.",
        "U.S. Census Bureau, ACS PUMS 2018; task of Ding et al. 2021 (folktables); in the form of "
        "https://github.com/xheilmann/FeDa4Fair",
        "public domain (census microdata)",
        (
            StoredForm(_files("acs_pums", "acsincome_2018_35states.csv.xz"), _tabular.read_acs),
            StoredForm(
                _files("acs_pums", *(f"{state}_0.csv" for state in _STATES), home=_FEDA),
                _tabular.read_acs_by_state,
                digest="22a4c17a2add9c822656cbe03ee95cc44655c87abdf70abdd6df93740a90c021",
            ),
        ),
    ),
    "mnist": Entry(
        "70,000 handwritten digits, 28 x 28 pixels from 0 to 255: the 60,000 of the training file, then the 10,000 of "
        "the test file, in the original order.",
        "MNIST (LeCun, Cortes and Burges), fetched from https://ossci-datasets.s3.amazonaws.com/mnist",
        "none stated at the home; commonly given as CC BY-SA 3.0",
        (
            StoredForm(_files("mnist", "mnist.npz"), _images.read_mnist),
            StoredForm(
                _files(
                    "mnist",
                    *(
                        f"{part}-{kind}-ubyte.gz"
                        for part in ("train", "t10k")
                        for kind in ("images-idx3", "labels-idx1")
                    ),
                    home=_LECUN,
                    unpacked=True,
                ),
                _images.read_mnist_originals,
            ),
        ),
    ),
    "cifar10": Entry(
        "60,000 photographs of 10 sorts of object, 32 x 32 pixels in red, green and blue from 0 to 255: the 50,000 "
        "of the training batches, then the 10,000 of the test batch, in the original order.",
        "CIFAR-10 (Krizhevsky 2009), binary version, https://www.cs.toronto.edu/~kriz/cifar.html",
        "none stated",
        (
            StoredForm(
                _files("cifar10", "cifar-10-binary.tar.gz", home=_KRIZHEVSKY, mb=163), _images.read_cifar10_binary
            ),
            StoredForm(
                _files("cifar10", "cifar10_jpeg.npz"),
                _images.read_cifar10_jpeg,
                note="This copy was re-encoded as JPEG: pixels differ from the original by 5.8 of 255 on average.",
            ),
        ),
    ),
    "breast-cancer": Entry(
        "569 tumours by 30 measurements of their cell nuclei; malignant or benign.",
        "UCI Breast Cancer Wisconsin (Diagnostic) (Wolberg et al. 1995), as in scikit-learn",
        "CC BY 4.0",
        build=lambda content: _bundled.breast_cancer(),
    ),
    "digits": Entry(
        "1,797 handwritten digits as 8 x 8 counts from 0 to 16.",
        "UCI Optical Recognition of Handwritten Digits, test part (Alpaydin and Kaynak 1998), as in scikit-learn",
        "CC BY 4.0",
        build=lambda content: _bundled.digits(),
    ),
    "wine": Entry(
        "178 wines by 13 chemical measurements; which of three growers they are from.",
        "UCI Wine (Aeberhard and Forina 1992), as in scikit-learn",
        "CC BY 4.0",
        build=lambda content: _bundled.wine(),
    ),
    "diabetes": Entry(
        "442 patients by age, sex, body mass index, blood pressure and six blood values, in original units; the "
        "progression of their disease a year later is predicted.",
        "Efron, Hastie, Johnstone and Tibshirani 2004, as in scikit-learn",
        "none stated; public",
        build=lambda content: _bundled.diabetes(),
    ),
}

"""A stored model is taken again only where everything that made it is the same."""

from __future__ import annotations

import importlib
import os
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
from sklearn.linear_model import LogisticRegression
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import FunctionTransformer
from sklearn.svm import SVC

from leakgauge.records import Records
from leakgauge.training import Execution, FunctionLearner, SklearnLearner, fingerprints, leave_one_out, train_many
from leakgauge.training.fingerprints import UNREPEATABLE, fingerprint
from leakgauge.training.learners import Learner, identity

HELPERS = """
LEVEL = 0.5

def bent(x):
    return 2 * x

def late(x):
    return x + 1
"""

CODE = """
import functools
import typing
from collections import namedtuple
from dataclasses import dataclass

import numpy as np
from sklearn.base import BaseEstimator, ClassifierMixin, TransformerMixin

import own_helpers
from own_helpers import bent

SHARE = 3.0
SHARES = {"a": [1, 2], "b": np.arange(3.0)}
Pair = namedtuple("Pair", "low high")

@dataclass(frozen=True)
class Setting:
    level: float = 0.25

def decorated(function):
    @functools.wraps(function)
    def inner(*given):
        return function(*given) + 0
    return inner

@decorated
def wrapped(x):
    return x * 11

@functools.lru_cache
def cached(x):
    return x * 13

def deep(x):
    return deeper(x)

def deeper(x):
    return x + 17 if x < 100 else deep(x - 1)

def scaled(by):
    def inner(x):
        return x * by
    return inner

tenfold = scaled(10)

class Base:
    factor = 19

    def lifted(self, x):
        return x - 23

class Threshold(ClassifierMixin, Base, BaseEstimator):
    def __init__(self, setting=Setting()):
        self.setting = setting

    def fit(self, X, y):
        self.classes_ = np.unique(y)
        return self

    @property
    def slope(self):
        return 29

    @staticmethod
    def constant():
        return 31

    def predict_proba(self, X, floor=0.01):
        from own_helpers import late
        p = np.full(len(X), 0.37)
        numbers = [SHARE, SHARES["b"].sum(), wrapped(1), cached(1), deep(1), tenfold(1), own_helpers.LEVEL, late(1)]
        numbers += [bent(1), self.slope, self.constant(), self.factor, self.lifted(0), Pair(1, 2).low]
        numbers += map(np.abs, [1])
        p += 1e-6 * sum(numbers) + floor * (lambda x: x + 0.5)(0)
        return np.column_stack([1 - p, p])

    def predict(self, X):
        return self.classes_[self.predict_proba(X).argmax(axis=1)]

class Shift(TransformerMixin, BaseEstimator):
    def fit(self, X, y=None):
        return self

    def transform(self, X):
        return X + 37

def similar(A, B):
    return A @ B.T * 41

def trained(records, seed):
    from leakgauge.models import wrap
    return wrap(Threshold().fit(records.features, records.labels), records.schema)
"""

Load = Callable[..., ModuleType]


@pytest.fixture
def load(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Load:
    """Import the user's two modules, as they are after an edit."""
    monkeypatch.syspath_prepend(str(tmp_path))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)

    def loaded(code: str = CODE, helpers: str = HELPERS) -> ModuleType:
        for name in ("own_code", "own_helpers"):
            sys.modules.pop(name, None)
        (tmp_path / "own_code.py").write_text(code)
        (tmp_path / "own_helpers.py").write_text(helpers)
        importlib.invalidate_caches()
        return importlib.import_module("own_code")

    return loaded


def learners(module: Any) -> dict[str, Learner]:
    return {
        "estimator": SklearnLearner(module.Threshold()),
        "pipeline": SklearnLearner(make_pipeline(module.Shift(), LogisticRegression())),
        "function": FunctionLearner(module.trained),
        "transformer": SklearnLearner(make_pipeline(FunctionTransformer(module.bent), LogisticRegression())),
        "kernel": SklearnLearner(SVC(kernel=module.similar)),
    }


def names(module: Any) -> dict[str, str]:
    return {key: identity(learner) for key, learner in learners(module).items()}


def test_the_same_code_has_the_same_name_and_a_comment_changes_nothing(load: Load) -> None:
    first = names(load())
    assert len(set(first.values())) == len(first)
    assert not any(UNREPEATABLE in name for name in first.values())
    assert names(load()) == first
    assert names(load(CODE.replace("import typing", "import typing  # a comment"))) == first
    assert names(load(CODE + "\n\ndef elsewhere():\n    return 0\n")) == first


BOTH = {"estimator", "function"}


@pytest.mark.parametrize(
    ("before", "after", "changes"),
    [
        ("0.37", "0.38", BOTH),
        ("SHARE = 3.0", "SHARE = 4.0", BOTH),
        ('"b": np.arange(3.0)', '"b": np.arange(4.0)', BOTH),
        ("level: float = 0.25", "level: float = 0.5", BOTH),
        ("function(*given) + 0", "function(*given) + 1", BOTH),
        ("x * 11", "x * 12", BOTH),
        ("x * 13", "x * 14", BOTH),
        ("x + 17", "x + 18", BOTH),
        ("scaled(10)", "scaled(9)", BOTH),
        ("factor = 19", "factor = 20", BOTH),
        ("x - 23", "x - 24", BOTH),
        ("return 29", "return 30", BOTH),
        ("return 31", "return 32", BOTH),
        ("floor=0.01", "floor=0.02", BOTH),
        ("x + 0.5", "x + 0.25", BOTH),
        ("np.abs", "np.sqrt", BOTH),
        ("X + 37", "X + 38", {"pipeline"}),
        ("B.T * 41", "B.T * 42", {"kernel"}),
    ],
)
def test_an_edit_changes_the_names_of_what_it_changes(load: Load, before: str, after: str, changes: set[str]) -> None:
    assert CODE.count(before) == 1
    first, then = names(load()), names(load(CODE.replace(before, after)))
    assert {key for key in first if first[key] != then[key]} == changes


@pytest.mark.parametrize(
    ("before", "after", "changes"),
    [
        ("LEVEL = 0.5", "LEVEL = 0.6", BOTH),
        ("2 * x", "3 * x", BOTH | {"transformer"}),
        ("x + 1", "x + 2", BOTH),
    ],
)
def test_an_edit_of_a_module_that_is_imported_counts_too(
    load: Load, before: str, after: str, changes: set[str]
) -> None:
    first, then = names(load()), names(load(helpers=HELPERS.replace(before, after)))
    assert {key for key in first if first[key] != then[key]} == changes


def test_an_edited_file_is_not_taken_for_the_code_that_runs(load: Load, tmp_path: Path) -> None:
    module = load()
    first = names(module)
    (tmp_path / "own_code.py").write_text(CODE.replace("0.37", "0.38"))
    assert names(module) == first


@pytest.mark.long
def test_another_process_finds_the_same_names(load: Load, tmp_path: Path) -> None:
    first = names(load())
    code = "import sys; sys.path.insert(0, sys.argv[1]); import own_code; from test_fingerprints import names; "
    code += "print(*names(own_code).values())"
    path = os.pathsep.join([str(Path(__file__).parent), os.environ.get("PYTHONPATH", "")])
    for seed in ("1", "2"):  # in which order sets of strings are walked
        environment = {**os.environ, "PYTHONPATH": path, "PYTHONHASHSEED": seed, "PYTHONDONTWRITEBYTECODE": "1"}
        done = subprocess.run(
            [sys.executable, "-c", code, str(tmp_path)], capture_output=True, text=True, check=True, env=environment
        )
        assert done.stdout.split() == list(first.values())


@pytest.mark.parametrize(
    "addition",
    [
        "import threading\nSHARE = threading.Lock()",
        "def deeper(x):\n    return float(open('weights.txt').read())",
        "def deeper(x):\n    return np.load('weights.npy')",
        "def deeper(x):\n    return eval('x')",
        "scope = {}\nexec('def f(x):\\n    return x', scope)\ndeeper = scope['f']",
        "scope = {'__file__': '<cell>'}\nexec('def f(x):\\n    return x', scope)\ndeeper = scope['f']",
        "deeper = np.frompyfunc(bent, 1, 1)",
    ],
    ids=["lock", "open", "load", "eval", "exec", "no such file", "ufunc"],
)
def test_what_cannot_be_followed_has_another_name_each_time(load: Load, addition: str) -> None:
    module = load(CODE + "\n" + addition)
    for key in BOTH:
        first, again = names(module)[key], names(module)[key]
        assert first.startswith(UNREPEATABLE) or UNREPEATABLE in first
        assert first != again


def of_function(module: Any) -> str:
    return identity(FunctionLearner(module.trained))


READERS = {
    "pandas": "import pandas as pd\ndef trained(records, seed):\n    return pd.read_table('w.tsv')",
    "Excel": "import pandas as pd\ndef trained(records, seed):\n    return pd.read_excel('w.xlsx')",
    "Excel file": "import pandas as pd\ndef trained(records, seed):\n    return pd.ExcelFile('w.xlsx').parse()",
    "HDF store": "import pandas as pd\ndef trained(records, seed):\n    return pd.HDFStore('w.h5')['w']",
    "pandas.io": "import pandas as pd\ndef trained(records, seed):\n    return pd.io.parsers.TextFileReader('w')",
    "Feather": "import pandas as pd\ndef trained(records, seed):\n    return pd.read_feather('w.feather')",
    "loadtxt": "import numpy as np\ndef trained(records, seed):\n    return np.loadtxt('w.tsv')",
    "fromregex": "import numpy as np\ndef trained(records, seed):\n    return np.fromregex('w', '.', [('a', float)])",
    "fromfile": "from numpy import fromfile as f\ndef trained(records, seed):\n    return f('w')",
    "memmap": "from numpy import memmap as f\ndef trained(records, seed):\n    return f('w')",
    "system of NumPy": "import numpy as np\ndef trained(records, seed):\n    n = np\n    return n.os.listdir('.')",
    "Polars": "import polars as pl\ndef trained(records, seed):\n    return pl.scan_csv('w.csv').collect()",
    "IPC": "from polars import read_ipc as f\ndef trained(records, seed):\n    return f('w.ipc')",
    "Parquet": "import pyarrow.parquet as pq\ndef trained(records, seed):\n    return pq.ParquetFile('w').schema",
    "dataset": "from pyarrow.dataset import dataset\ndef trained(records, seed):\n    return dataset('w')",
    "SciPy": "from scipy import io\ndef trained(records, seed):\n    return io.mmread('w.mtx')",
    "scikit-learn": "from sklearn.datasets import fetch_openml as f\ndef trained(records, seed):\n    return f('w')",
    "svmlight": "from sklearn import datasets as d\ndef trained(records, seed):\n    return d.load_svmlight_file('w')",
    "joblib": "import joblib\ndef trained(records, seed):\n    return joblib.load('w')",
    "PyTorch": "import torch\ndef trained(records, seed):\n    return torch.load('w.pt')",
    "YAML": "import yaml\ndef trained(records, seed):\n    return yaml.safe_load('a: 1')",
    "requests": "import requests\ndef trained(records, seed):\n    return requests.get('w').text",
    "get": "from requests import get\ndef trained(records, seed):\n    return get('w').text",
    "requests within": "def trained(records, seed):\n    from requests import get\n    return get('w').text",
    "urllib": "from urllib import request as r\ndef trained(records, seed):\n    return r.Request('w')",
    "HDF5": "import h5py\ndef trained(records, seed):\n    return h5py.Group(b'w')",
    "DuckDB": "def trained(records, seed):\n    import duckdb\n    return duckdb.sql('select * from w')",
    "sqlite3": "import sqlite3\ndef trained(records, seed):\n    return sqlite3.connect('w.db')",
    "zipfile": "import zipfile\ndef trained(records, seed):\n    return zipfile.ZipFile('w.zip')",
    "gzip": "from gzip import GzipFile as G\ndef trained(records, seed):\n    return G('w.gz')",
    "subprocess": "import subprocess\ndef trained(records, seed):\n    return subprocess.run(['cat', 'w'])",
    "csv": "import csv\ndef trained(records, seed):\n    return csv.reader(records)",
    "shelve": "import shelve\ndef trained(records, seed):\n    return shelve.Shelf(records)",
    "mmap": "import mmap\ndef trained(records, seed):\n    return mmap.mmap(0, 9)",
    "socket": "from socket import socket\ndef trained(records, seed):\n    return socket().getsockname()",
    "ctypes": "import ctypes\ndef trained(records, seed):\n    return ctypes.CDLL(None)",
    "platform": "import platform\ndef trained(records, seed):\n    return platform.node()",
    "configparser": "from configparser import *\ndef trained(records, seed):\n    return ConfigParser()",
    "io": "import io\ndef trained(records, seed):\n    return io.FileIO('w')",
    "os": "import os\ndef trained(records, seed):\n    return os.read(0, 9)",
    "os within": "def trained(records, seed):\n    import os as o\n    return o.path.getsize('w')",
    "environment": "from os import environ as e\ndef trained(records, seed):\n    return e['W']",
    "alias of open": "f = open\ndef trained(records, seed):\n    return f('w')",
    "codecs": "from codecs import open as f\ndef trained(records, seed):\n    return f('w')",
    "path": "from pathlib import Path\nP = Path('w')\ndef trained(records, seed):\n    return P.stat()",
    "resources": "from importlib.resources import files\ndef trained(records, seed):\n    return files('w')",
    "input": "def trained(records, seed):\n    return input()",
    "alias": "from pandas import read_table as r\ndef trained(records, seed):\n    return r('w')",
    "alias within": "def trained(records, seed):\n    from pandas import read_table as r\n    return r('w')",
    "default": "import pandas as pd\ndef trained(records, seed, r=pd.read_table):\n    return r('w')",
    "closure": "import pandas as pd\ndef by(r):\n    return lambda records, seed: r('w')\ntrained = by(pd.read_table)",
    "partial": "import functools, pandas\ntrained = functools.partial(pandas.read_table, sep=',')",
    "callable": "import pandas as pd\nclass T:\n    def __init__(self):\n        self.r = pd.read_table\n"
    "    def __call__(self, records, seed):\n        return self.r('w')\ntrained = T()",
    "attribute": "import pandas as pd\nclass T:\n    r = staticmethod(pd.read_table)\n"
    "def trained(records, seed):\n    return T.r('w')",
    "method": "import pandas as pd\nclass T:\n    def __call__(self, records, seed):\n"
    "        return (lambda: [pd.read_table(w) for w in 'w'])()\ntrained = T()",
    "list": "import pandas as pd\nRS = [{'r': pd.read_table}]\ndef trained(records, seed):\n    return RS[0]['r']('w')",
    "helper": "import own_helpers\ndef trained(records, seed):\n    return own_helpers.pandas.read_table('w')",
    "alias of a helper": "import own_helpers\ndef trained(records, seed):\n    return own_helpers.get('w')",
    "function of a helper": "import own_helpers\ndef trained(records, seed):\n    return own_helpers.taken('w')",
    "getattr": "import pandas as pd\ndef trained(records, seed, x='table'):\n    return getattr(pd, 'read_' + x)('w')",
    "getattr of a variable": "import pandas as pd\ndef trained(records, seed, x='w'):\n    return getattr(pd, x)('w')",
    "getattr of a reader": "import pandas as pd\ndef trained(records, seed):\n    return getattr(pd, 'read_csv')('w')",
    "getattr of a call": "import pandas as pd\ndef trained(records, seed, x='w'):\n"
    "    return getattr(max(pd, 'w'), x)('w')",
    "alias of getattr": "import pandas as p\ng = getattr\ndef trained(records, seed, x='w'):\n    return g(p, x)('w')",
    "methodcaller": "import operator, pandas\nc = operator.methodcaller('read_table', 'w')\n"
    "def trained(records, seed):\n    return c(pandas)",
    "dictionary": "import pandas as pd\ndef trained(records, seed):\n    return pd.__dict__['read_table']('w')",
    "vars": "import pandas as pd\ndef trained(records, seed):\n    return vars(pd)['read_table']('w')",
    "pattern": "import pandas as pd\ndef trained(records, seed):\n    match pd:\n"
    "        case object(read_table=r):\n            return r('w')",
    "modules": "import sys\ndef trained(records, seed):\n    return sys.modules['pandas']",
    "importlib": "import importlib\ndef trained(records, seed):\n    return importlib.import_module('w')",
    "__import__": "def trained(records, seed):\n    return __import__('w')",
    "builtins": "import builtins\ndef trained(records, seed):\n    b = builtins\n    return b.exec('w')",
    "__builtins__": "def trained(records, seed):\n    return __builtins__['op' + 'en']('w')",
    "compile": "def trained(records, seed):\n    return compile('w', 'w', 'exec')",
    "cloudpickle": "import cloudpickle\ndef trained(records, seed):\n    return cloudpickle.loads(b'w')",
    "argument": "import lightgbm as lgb\ndef trained(records, seed, w='w'):\n    return lgb.Booster(model_file=w + w)",
    "our own": "from leakgauge.records import datasets\ndef trained(records, seed):\n    return datasets.adult",
    "class method": "import polars as pl\nR = pl.DataFrame.deserialize\ndef trained(records, seed):\n    return R('w')",
    "system within": "import numpy as np\ndef trained(records, seed):\n    return np.testing.os.listdir('.')",
    "property": "import functools, pandas\nclass T:\n    @functools.cached_property\n    def w(self):\n"
    "        return pandas.read_table('w')\nT = T()\ndef trained(records, seed):\n    return T.w",
    "base class": "import pandas\nclass B:\n    def __call__(self, records, seed):\n"
    "        return pandas.read_table('w')\nclass T(B):\n    pass\ntrained = T()",
    "folder of weights": "import os\nW = os.path.dirname(__file__)\ndef trained(records, seed, booster=dict):\n"
    "    return booster(w=W + '/w')",
    "file of weights": "W = __file__\ndef trained(records, seed, booster=dict):\n    return booster(w=W)",
}
"""Functions that read what does not stand in them, in ways that differ in where the name of the reader is."""

HELPERS_THAT_READ = """
import pandas
from pandas import read_table as get

def taken(x):
    return pandas.read_table(x)
"""


@pytest.fixture
def stubs(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Stand-ins for packages that are not installed here."""
    for package in ("h5py", "duckdb"):
        (tmp_path / "site-packages" / package).mkdir(parents=True)
        code = "__version__ = '1'\ndef sql(text):\n    return text\nclass Group(str):\n    pass\n"
        (tmp_path / "site-packages" / package / "__init__.py").write_text(code)
        monkeypatch.delitem(sys.modules, package, raising=False)
    monkeypatch.syspath_prepend(str(tmp_path / "site-packages"))
    fingerprints._owner_of.cache_clear()
    yield
    fingerprints._owner_of.cache_clear()
    for package in ("h5py", "duckdb"):
        sys.modules.pop(package, None)


@pytest.mark.filterwarnings("ignore")  # of packages that are imported here for the first time
@pytest.mark.usefixtures("stubs")
@pytest.mark.parametrize("code", READERS.values(), ids=READERS.keys())
def test_what_reads_has_another_name_each_time(load: Load, code: str) -> None:
    assert UNREPEATABLE in of_function(load(code, HELPERS_THAT_READ))


ORDINARY = {
    "processes": "import os\ndef trained(records, seed):\n"
    "    return os.getpid(), os.path.join('a', 'b'), os.cpu_count()",
    "weights of PyTorch": "import torch\ndef trained(records, seed):\n    torch.manual_seed(seed)\n"
    "    net, other = (torch.nn.Linear(2, 2) for _ in range(2))\n"
    "    other.load_state_dict(net.state_dict())\n    net.eval()\n    with torch.no_grad():\n        return net",
    "generated": "from sklearn.datasets import make_blobs\nfrom sklearn import datasets\n"
    "def trained(records, seed):\n    return make_blobs(9), datasets.make_moons(9)",
    "own names": "def load_scaled(x):\n    return x / 2\ndef read(reader):\n    return load_scaled(reader)\n"
    "def trained(records, seed):\n    opened = spread = thread = loadings = read(records.features)\n    return opened",
    "own module": "import own_helpers\ndef trained(records, seed):\n    return own_helpers.load_bent(seed)",
    "own module within": "def trained(records, seed):\n    from own_helpers import load_bent as b\n    return b(seed)",
    "attributes": "def trained(records, seed):\n    a = getattr(records, 'weights', None)\n"
    "    return getattr(records.schema, 'names'), hasattr(a, 'b'), [].append(1), {}.get('a')",
    "modules of Python": "import copy, collections, functools, itertools, json, logging, math, random, re, time\n"
    "import warnings\nfrom datetime import timedelta\nfrom typing import Any\nLOG = logging.getLogger('own')\n"
    "DIGITS = re.compile('[0-9]')\nDAY = timedelta(1)\n@functools.lru_cache\ndef root(x):\n    return math.sqrt(x)\n"
    "def trained(records, seed):\n    LOG.info('training')\n    warnings.warn('slow')\n    time.perf_counter()\n"
    "    random.seed(seed)\n    names = collections.Counter(itertools.chain('ab', json.dumps([1])))\n"
    "    return copy.deepcopy(names), DIGITS.findall('1'), root(2), DAY, re.compile('a')",
    "pandas": "import numpy as np, pandas as pd\nfrom sklearn.pipeline import make_pipeline\n"
    "from sklearn.preprocessing import StandardScaler\nfrom sklearn.linear_model import LogisticRegression\n"
    "LEVELS = pd.DataFrame({'a': [1, 2], 'b': ['u', 'v']})\ndef trained(records, seed):\n"
    "    frame = pd.DataFrame(records.features).join(LEVELS).fillna(0)\n    rng = np.random.default_rng(seed)\n"
    "    X = np.frombuffer(b'abcdefgh') + np.linalg.norm(frame) + rng.normal()\n"
    "    return make_pipeline(StandardScaler(), LogisticRegression()).fit(X, records.labels)",
    "text": "NAMES = {'open', 'load', 'w.tsv'}\ndef trained(records, seed):\n    'Reads read_csv.'\n    return NAMES",
}
"""Functions that read nothing, with names and modules that ordinary code has."""


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("code", ORDINARY.values(), ids=ORDINARY.keys())
def test_ordinary_code_keeps_its_name(load: Load, code: str) -> None:
    helpers = "def load_bent(x):\n    return x\n"
    assert UNREPEATABLE not in of_function(load(code, helpers))
    assert of_function(load(code, helpers)) == of_function(load(code, helpers))


def test_a_model_is_trained_anew_after_a_file_that_it_reads_was_changed(load: Load, tmp_path: Path) -> None:
    code = f"""
import pandas as pd
from sklearn.base import BaseEstimator, ClassifierMixin
from sklearn.tree import DecisionTreeClassifier

class Threshold(ClassifierMixin, BaseEstimator):
    def fit(self, X, y):
        depth = int(pd.read_table({str(tmp_path / "depth.tsv")!r})["depth"][0])
        self.tree_ = DecisionTreeClassifier(max_depth=depth, random_state=0).fit(X, y)
        self.classes_ = self.tree_.classes_
        return self

    def predict(self, X):
        return self.tree_.predict(X)

    def predict_proba(self, X):
        return self.tree_.predict_proba(X)
"""
    rng = np.random.default_rng(0)
    people = Records.from_arrays(rng.normal(size=(40, 2)), np.arange(40) % 2)
    learner = SklearnLearner(load(code).Threshold())

    def answered(depth: int, run: Path) -> Any:
        (tmp_path / "depth.tsv").write_text(f"depth\n{depth}\n")
        return train_many(learner, people, leave_one_out(40), seed=0, execution=Execution(run)).answers

    shallow = answered(1, tmp_path / "run")
    deep = answered(9, tmp_path / "run")
    np.testing.assert_array_equal(deep, answered(9, tmp_path / "fresh"))
    assert (deep != shallow).any()


def test_installed_packages_are_known_by_their_version(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Their code is not looked into; without a version nothing is known of compiled code."""
    folder = tmp_path / "site-packages"
    (folder / "boosted").mkdir(parents=True)
    monkeypatch.syspath_prepend(str(folder))
    monkeypatch.setattr(sys, "dont_write_bytecode", True)

    def named(version: str, answer: int) -> str:
        sys.modules.pop("boosted", None)
        text = f"__version__ = {version!r}\nclass Boosted:\n    def predict(self, X):\n        return {answer}\n"
        (folder / "boosted" / "__init__.py").write_text(text)
        importlib.invalidate_caches()
        fingerprints._owner_of.cache_clear()
        return fingerprint("test", importlib.import_module("boosted").Boosted())

    assert named("1.0", 1) == named("1.0", 2)
    assert named("1.0", 1) != named("1.1", 1)


@pytest.mark.parametrize("library", ["numpy", "scipy", "scikit-learn"])
def test_versions_of_the_libraries_are_part_of_every_name(library: str, monkeypatch: pytest.MonkeyPatch) -> None:
    first = identity(SklearnLearner(LogisticRegression()))
    known = fingerprints.metadata.version
    monkeypatch.setattr(fingerprints.metadata, "version", lambda name: "0.1" if name == library else known(name))
    for kept in (fingerprints._version, fingerprints.versions):
        kept.cache_clear()
    assert identity(SklearnLearner(LogisticRegression())) != first
    monkeypatch.undo()
    for kept in (fingerprints._version, fingerprints.versions):
        kept.cache_clear()
    assert identity(SklearnLearner(LogisticRegression())) == first


def test_a_learner_of_the_users_is_known_by_its_code_beside_its_own_words(load: Load) -> None:
    code = """
from leakgauge.training import Fitted, Learner, SklearnLearner
from sklearn.naive_bayes import GaussianNB

class Mine(Learner):
    name, randomised = "mine", False

    def fit(self, records, *, seed):
        return SklearnLearner(GaussianNB(var_smoothing=1e-9)).fit(records, seed=seed)

    def fingerprint(self):
        return "mine"
"""
    first = identity(load(code).Mine())
    assert identity(load(code).Mine()) == first
    assert identity(load(code.replace("1e-9", "1e-3")).Mine()) != first


def test_a_run_folder_never_mixes_old_code_with_new(load: Load, tmp_path: Path) -> None:
    """The answers of an edited estimator from the folder of the old one are those of a fresh folder."""
    rng = np.random.default_rng(0)
    people = Records.from_arrays(rng.normal(size=(40, 2)), np.arange(40) % 2)

    def answered(code: str, run: Path) -> Any:
        learner = SklearnLearner(load(code).Threshold())
        return train_many(learner, people, leave_one_out(40), seed=0, execution=Execution(run)).answers

    old = answered(CODE, tmp_path / "run")
    edited = CODE.replace("0.37", "0.57")
    new = answered(edited, tmp_path / "run")
    np.testing.assert_array_equal(new, answered(edited, tmp_path / "fresh"))
    assert (new != old).all()

"""What the page on scores tells users to write, written and audited. The blocks go on where a user's training ended."""

from __future__ import annotations

import re
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pandas as pd
import pytest

from leakgauge.auditing.batch import audit_config
from leakgauge.auditing.config import Config, load_config
from leakgauge.auditing.scores_file import read_scores

PAGE = (Path(__file__).parents[2] / "docs" / "scores.md").read_text(encoding="utf-8")


def block(title: str, language: str) -> str:
    """The only block of a section."""
    (found,) = re.findall(rf"```{language}\n(.*?)```", PAGE.split(f"\n## {title}\n")[1].split("\n## ")[0], re.DOTALL)
    return str(found)


def run(code: str, **known: Any) -> None:
    exec(compile(code, "page", "exec"), {"__name__": "page", **known})


@pytest.fixture(autouse=True)
def elsewhere(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def described(*, references: bool) -> Config:
    """The page's file, without what this recipe has not."""
    (text,) = re.findall(r"```toml\n(.*?)```", PAGE, re.DOTALL)
    text = text.replace('["site"]', "[]")
    Path("audit.toml").write_text(text if references else re.sub("references = .*", "", text))
    return load_config("audit.toml")


def test_the_files_of_the_torch_recipe_are_audited() -> None:
    pytest.importorskip("torch")
    run(block("PyTorch", "python"))
    audit = audit_config(described(references=True)).document.audits[0]
    assert {"lira", "rmia"} <= {one.name for one in audit.attacks}
    assert audit.n_games == 8
    assert audit.verdict.value == "fails", "labels drawn by chance are known by heart"


def test_the_losses_of_the_hugging_face_recipe_are_those_of_the_tokens() -> None:
    """A language model that knows nothing but the token before, and texts of several lengths."""
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)

    class Bigrams(torch.nn.Module):  # type: ignore[misc,name-defined,unused-ignore]
        device = "cpu"

        def __init__(self) -> None:
            super().__init__()
            self.table = torch.nn.Embedding(256, 256)

        def forward(self, input_ids: Any, attention_mask: Any) -> SimpleNamespace:
            return SimpleNamespace(logits=self.table(input_ids))

    def tokenizer(texts: list[str], **options: Any) -> dict[str, Any]:
        assert options == {"return_tensors": "pt", "padding": True, "truncation": True}
        ids = [list(text.encode()) for text in texts]
        longest = max(map(len, ids))
        return {
            "input_ids": torch.tensor([one + [0] * (longest - len(one)) for one in ids]),
            "attention_mask": torch.tensor([[1] * len(one) + [0] * (longest - len(one)) for one in ids]),
        }

    model = Bigrams()
    texts = ["abc" * (1 + k % 7) + chr(97 + k % 26) for k in range(200)]
    member = np.arange(200) < 100
    run(
        block("Hugging Face", "py"),
        trainer=SimpleNamespace(model=model),
        tokenizer=tokenizer,
        texts=texts,
        member=member,
    )
    logs = model.table.weight.log_softmax(dim=1).detach().numpy()
    expected = [-np.mean([logs[a, b] for a, b in zip(t.encode(), t.encode()[1:], strict=False)]) for t in texts]
    np.testing.assert_allclose(pd.read_csv("scores.csv").loss, expected, rtol=1e-5)
    assert audit_config(described(references=False)).document.audits[0].verdict.value != "passes"


def test_the_file_of_the_lightning_recipe_is_audited() -> None:
    torch = pytest.importorskip("torch")
    torch.manual_seed(0)
    module = torch.nn.Linear(4, 3)
    module.device = "cpu"
    data = torch.utils.data.TensorDataset(torch.randn(300, 4), torch.randint(0, 3, (300,)))
    loader = torch.utils.data.DataLoader(data, batch_size=32)
    run(block("Lightning", "py"), module=module, loader=loader, member=np.arange(300) < 150)
    assert audit_config(described(references=False)).document.audits[0].verdict.value != "fails"


def test_a_table_as_r_writes_it_is_read() -> None:
    """Quoted names and text, TRUE and FALSE, whole numbers without a point: what the recipe makes of four people."""
    Path("scores.csv").write_text(
        '"id","member","label","p_ill","p_not ill"\n'
        '"p1",TRUE,"ill",0.9,0.1\n"p2",TRUE,"not ill",1,0\n"p3",FALSE,"ill",0.25,0.75\n"p4",FALSE,"ill",1e-05,0.99999\n'
    )
    what = read_scores(Path("scores.csv"), None, groups=(), name="fit")
    assert what.train.ids.tolist() == ["p1", "p2"]
    assert what.train.schema.classes == ("ill", "not ill")
    assert what.train.labels.tolist() == [0, 1]
    assert "write.csv(table" in block("R", "r")

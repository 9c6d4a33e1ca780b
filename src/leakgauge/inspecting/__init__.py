"""What a model file itself holds about its training records, and structural checks."""

from leakgauge.inspecting.findings import Kind, ModelFinding
from leakgauge.inspecting.formats import Content, read_model
from leakgauge.inspecting.inspection import Inspection, inspect
from leakgauge.inspecting.structure import RULES, CheckVerdict, StructuralCheck, StructuralRule

__all__ = [
    "RULES",
    "CheckVerdict",
    "Content",
    "Inspection",
    "Kind",
    "ModelFinding",
    "StructuralCheck",
    "StructuralRule",
    "inspect",
    "read_model",
]

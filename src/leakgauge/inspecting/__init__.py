"""What a model file itself holds about its training records, structural checks, and clean copies."""

from leakgauge.inspecting.cleaning import Cleaned, cleaned, written
from leakgauge.inspecting.converting import Converted, convert_pickle
from leakgauge.inspecting.findings import Kind, ModelFinding
from leakgauge.inspecting.formats import Content, read_model
from leakgauge.inspecting.inspection import Inspection, as_seen, inspect
from leakgauge.inspecting.structure import RULES, CheckVerdict, StructuralCheck, StructuralRule

__all__ = [
    "RULES",
    "CheckVerdict",
    "Cleaned",
    "Content",
    "Converted",
    "Inspection",
    "Kind",
    "ModelFinding",
    "StructuralCheck",
    "StructuralRule",
    "as_seen",
    "cleaned",
    "convert_pickle",
    "inspect",
    "read_model",
    "written",
]

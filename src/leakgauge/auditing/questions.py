"""The questions of an audit, in the order in which they are asked and told of. A new one is added here."""

from __future__ import annotations

from dataclasses import dataclass

from leakgauge.auditing.attributes.question import Attributes
from leakgauge.auditing.attributes.result import AttributesPart
from leakgauge.auditing.file.question import FileOfModel
from leakgauge.auditing.file.result import FileOfModelPart
from leakgauge.auditing.influence.question import InfluenceOfRecords
from leakgauge.auditing.influence.result import InfluencePart
from leakgauge.auditing.membership.question import Membership
from leakgauge.auditing.membership.result import MembershipPart
from leakgauge.auditing.properties.question import Properties
from leakgauge.auditing.properties.result import PropertiesPart
from leakgauge.auditing.question import Question

QUESTIONS: tuple[type[Question], ...] = (InfluenceOfRecords, Membership, Attributes, Properties, FileOfModel)
"""Later ones may use the answers of earlier ones."""


@dataclass(frozen=True, kw_only=True)
class Parts(InfluencePart, MembershipPart, AttributesPart, PropertiesPart, FileOfModelPart):
    """What the questions add to a document."""

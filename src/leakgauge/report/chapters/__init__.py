"""What the report says of each question, in the order of the report. A new question is added here."""

from leakgauge.report.chapters.attributes import AttributesChapter
from leakgauge.report.chapters.chapter import Chapter
from leakgauge.report.chapters.file import FileChapter
from leakgauge.report.chapters.influence import InfluenceChapter
from leakgauge.report.chapters.membership import MembershipChapter
from leakgauge.report.chapters.properties import PropertiesChapter

CHAPTERS: tuple[Chapter, ...] = (
    InfluenceChapter(),
    MembershipChapter(),
    AttributesChapter(),
    PropertiesChapter(),
    FileChapter(),
)

__all__ = ["CHAPTERS", "Chapter"]

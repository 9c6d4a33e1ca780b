"""Pieces of a picture as markup. Colours and dashes are classes of ``figures.css``."""

from __future__ import annotations

from functools import cache
from importlib.resources import files

from markupsafe import Markup

N_COLOURS = N_DASHES = 8
"""Colours and dashes of lines in the style sheet."""

N_LOOKS = N_COLOURS * N_DASHES
"""Each pair of a colour and dashes comes once in so many lines."""


@cache
def style() -> str:
    """The style sheet of all pictures, without its indentation."""
    lines = files("leakgauge.drawing").joinpath("figures.css").read_text("utf-8").split("\n")
    return "\n".join(line.lstrip() for line in lines)


def line_look(i: int) -> str:
    """Return the classes of the style sheet for the i-th line: its colour and its dashes.

    >>> line_look(0), line_look(7), line_look(8)
    ('s0 d0', 's7 d7', 's0 d1')
    """
    return f"s{i % N_COLOURS} d{(i + i // N_COLOURS) % N_DASHES}"


def coordinate(value: float) -> str:
    """A coordinate with one decimal at most.

    >>> coordinate(12.04), coordinate(-0.01), coordinate(7.25)
    ('12', '0', '7.2')
    """
    said = f"{value:.1f}".removesuffix(".0")
    return "0" if said == "-0" else said


def path(look: str, *parts: str | float) -> Markup:
    """A path: commands as text, and coordinates as numbers.

    >>> print(path("limit", "M", 3.14159, 20, "V", 4.0, "h6"))
    <path class="limit" d="M3.1 20V4h6"/>
    """
    drawn = ""
    for part in parts:
        drawn += part if isinstance(part, str) else f"{' ' * drawn[-1:].isdigit()}{coordinate(part)}"
    return Markup('<path class="{}" d="{}"/>').format(look, drawn)


def shape(tag: str, look: str, **places: float) -> Markup:
    """A circle, rectangle and the like.

    >>> print(shape("circle", "dot", cx=1.25, cy=2, r=4))
    <circle class="dot" cx="1.2" cy="2" r="4"/>
    """
    said = " ".join(f'{name}="{coordinate(value)}"' for name, value in places.items())
    return Markup('<{} class="{}" {}/>').format(tag, look, Markup(said))


def text(across: float, up: float, said: str, *, anchor: str = "", look: str = "") -> Markup:
    """Words that start, end or have their middle at ``across``, by their anchor."""
    kind = Markup(' class="{}"').format(look) if look else ""
    held = Markup(' text-anchor="{}"').format(anchor) if anchor else ""
    return Markup('<text{} x="{}" y="{}"{}>{}</text>').format(kind, round(across), round(up), held, said)


def note(across: float, up: float, anchor: str, said: str) -> Markup:
    """Words beside a line of a picture, which cover what is below them."""
    return text(across, up, said, anchor=anchor, look="note")


def joined(*parts: Markup | str) -> Markup:
    """Pieces one after the other, the later above the earlier."""
    return Markup("").join(parts)


def picture(
    look: str, size: tuple[float, float], key: str, title: str, desc: str, *parts: Markup | str, **attributes: str
) -> Markup:
    """A picture of a page, with a title and a description for those who do not see it.

    Args:
        look: class of the style sheet.
        size: width and height.
        key: distinguishes the ids of this picture from all others on the page.
        title: what it is.
        desc: what it shows.
        parts: what is drawn, the later above the earlier.
        attributes: more of the element; ``_`` stands for ``-``.
    """
    more = joined(*(Markup(' {}="{}"').format(name.replace("_", "-"), value) for name, value in attributes.items()))
    return Markup(
        '<svg class="{0}" viewBox="0 0 {1} {2}" role="img" aria-labelledby="{3}-t {3}-d"{4}>'
        '<title id="{3}-t">{5}</title><desc id="{3}-d">{6}</desc>{7}</svg>'
    ).format(look, *map(coordinate, size), key, more, title, desc, joined(*parts))


def standalone(size: tuple[float, float], title: str, desc: str, *parts: Markup, more_style: str = "") -> str:
    """A picture as a file of its own; it brings its style along and follows light and dark."""
    paper = Markup('<style>{}</style><rect class="paper" width="100%" height="100%" rx="6"/>')
    width, height = map(coordinate, size)
    drawn = picture(
        "picture", size, "picture", title, desc, paper.format(Markup(style() + more_style)), *parts,
        xmlns="http://www.w3.org/2000/svg", width=width, height=height,
    )  # fmt: skip
    return f"{drawn}\n"

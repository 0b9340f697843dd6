"""Docstrings are written with a few roles of reStructuredText; this turns them into Markdown before they are shown."""

from __future__ import annotations

import re
from typing import Any

import griffe
from latex2mathml.converter import convert

BOX = '<div class="equation" tabindex="0" role="region" aria-label="Equation">'  # scrolls on a phone
_BLOCK = re.compile(r"^( *)\.\. math:: ?(.*(?:\n\1 +.*)*)", re.MULTILINE)
_MATH = re.compile(r":math:`([^`]+)`")
_DOCTEST = re.compile(r"^( *)>>> .*(?:\n *\S.*)*", re.MULTILINE)
_EXAMPLES = re.compile(r"^ *Examples\n *-+$", re.MULTILINE)
_ROLE = re.compile(r":(?:class|func|mod|meth|attr|data|obj|exc):`([^`]+)`")


def to_markdown(text: str) -> str:
    """Formulas as MathML, cross-references and examples as code."""
    heading = _EXAMPLES.search(text)  # below it examples are known as such
    end = heading.start() if heading else len(text)
    text = _DOCTEST.sub(_example, text[:end]) + text[end:]
    text = _BLOCK.sub(lambda m: f"\n{m[1]}{BOX}{convert(' '.join(m[2].split()), display='block')}</div>\n", text)
    text = _MATH.sub(lambda m: f"<span>{convert(' '.join(m[1].split()))}</span>", text)
    return _ROLE.sub(_reference, text)


def _example(found: re.Match[str]) -> str:
    """Return an example below a section as a section of its own, and any other one as a block of code."""
    above = found.string[: found.start()]
    if re.search(r"^ *-{3,}$", above, re.MULTILINE):
        return f"{found[1]}Examples\n{found[1]}--------\n{found[0]}"
    return f"{found[1]}```pycon\n{found[0]}\n{found[1]}```"


def _reference(found: re.Match[str]) -> str:
    target = found[1]
    short = target.startswith("~")
    target = target.lstrip("~")
    return f"`{target.rsplit('.', 1)[-1] if short else target}`"


class RestructuredText(griffe.Extension):
    """Applied to every docstring as it is read."""

    def on_object(self, *, obj: griffe.Object, **_: Any) -> None:
        """Rewrite the docstring in place."""
        if obj.docstring is not None:
            obj.docstring.value = to_markdown(obj.docstring.value)

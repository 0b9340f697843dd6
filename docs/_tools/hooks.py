"""Build hooks of the documentation: formulas as MathML, and tables written from the registry of rules."""

from __future__ import annotations

import html
import re
from typing import Any

from latex2mathml.converter import convert

_FENCE = re.compile(r"(^```.*?^```[^\n]*$)", re.DOTALL | re.MULTILINE)
_DISPLAY = re.compile(r"^\$\$(.+?)\$\$$", re.DOTALL | re.MULTILINE)
_INLINE = re.compile(r"(?<![\\$\w])\$([^$\n]+?)\$(?!\w)")


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Formulas outside of code, and the marked tables."""
    parts = _FENCE.split(markdown)
    parts[::2] = [_formulas(_tables(part)) for part in parts[::2]]
    return "".join(parts)


def _formulas(text: str) -> str:
    text = _DISPLAY.sub(lambda found: f"\n{convert(found[1].strip(), display='block')}\n", text)
    # in a span: at the beginning of a line a bare <math> would be taken for a block of its own
    return _INLINE.sub(lambda found: f"<span>{convert(found[1])}</span>", text)


def _tables(text: str) -> str:
    for name, made in (("rules", rules_table), ("group rules", group_rules_table)):
        marker = f"<!-- table: {name} -->"
        if marker in text:
            text = text.replace(marker, made())
    return text


def rules_table() -> str:
    """phi, sigma and psi of every elementwise rule of the registry."""
    return _table(grouped=False)


def group_rules_table() -> str:
    """The same of the rules over groups."""
    return _table(grouped=True)


def _table(grouped: bool) -> str:
    from selfpaced.regularizers import REGISTRY, GroupRegularizer

    lines = ["| rule | latent loss φ, weight σ, regularizer ψ | λ opens | reference |", "|---|---|---|---|"]
    for name, rule in REGISTRY.items():
        if issubclass(rule, GroupRegularizer) is grouped:
            formula, opens = rule.formula, "up" if rule.opens > 0 else "**down**"
            parts = (("φ", formula.latent), ("σ", formula.weight), ("ψ", formula.dual))
            stacked = "<br>".join(f"{sign} = {_formula(text)}" for sign, text in parts)
            lines.append(f"| `{name}` | {stacked} | {opens} | {formula.reference} |")
    return "\n" + "\n".join(lines) + "\n"


def _formula(text: str) -> str:
    shown = html.escape(text).replace("|", "&#124;").replace("lam", "λ")
    for word, sign in (("sqrt", "√"), ("alpha", "α"), ("gamma", "γ"), ("&lt;=", "≤"), ("&gt;=", "≥")):
        shown = shown.replace(word, sign)
    shown = re.sub(r"\^(\d)", lambda found: f"<sup>{found[1]}</sup>", shown)
    return f"<code>{shown}</code>"

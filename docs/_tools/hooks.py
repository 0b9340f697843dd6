"""Build hooks of the documentation: formulas as MathML, tables of the registry of rules, sources of the gallery."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

from formulas import latex
from latex2mathml.converter import convert

EQUATION = '<div class="equation" tabindex="0" role="region" aria-label="Equation">'
EXAMPLES = Path(__file__).parents[2] / "examples"
_FENCE = re.compile(r"(^```.*?^```[^\n]*$)", re.DOTALL | re.MULTILINE)
_DISPLAY = re.compile(r"^\$\$(.+?)\$\$$", re.DOTALL | re.MULTILINE)
_SOURCE = re.compile(r"^<!-- source: (\w+\.py) -->$", re.MULTILINE)
_INLINE = re.compile(r"(?<![\\$\w])\$([^$\n]+?)\$(?!\w)")


def on_page_markdown(markdown: str, **_: Any) -> str:
    """Formulas outside of code, and the marked tables."""
    parts = _FENCE.split(markdown)
    parts[::2] = [_sources(_formulas(_tables(part))) for part in parts[::2]]
    return "".join(parts)


def _sources(text: str) -> str:
    """Scripts of the gallery, folded away under the picture that they draw."""
    return _SOURCE.sub(lambda found: _folded(found[1]), text)


def _folded(name: str) -> str:
    code = (EXAMPLES / name).read_text(encoding="utf-8").rstrip()
    lines = [f'??? example "examples/{name}"', "", *f"```python\n{code}\n```".splitlines()]
    return "\n".join([lines[0], *(f"    {line}".rstrip() for line in lines[1:])]) + "\n"


def _formulas(text: str) -> str:
    # in a box of its own, which scrolls on a phone: browsers do not scroll a bare <math>
    text = _DISPLAY.sub(lambda found: f"\n{EQUATION}{convert(found[1].strip(), display='block')}</div>\n", text)
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
    """A formula of the registry as MathML, a piece at a time: a line of the table may break between them."""
    pieces = (convert(piece).replace("<math ", '<math displaystyle="true" ') for piece in latex(text))
    return " ".join(pieces).replace("|", "&#124;")

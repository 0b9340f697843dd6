"""Formulas of the rules, written as one types them (``lam^2 (1 - exp(-l/lam^2))``), as LaTeX.

Products are written by a space, a fraction takes the whole product before it and the factor behind it, and words that
are no names ("if", "below") stay words.
"""

from __future__ import annotations

import re
from collections.abc import Iterator

# "ratio" is a parameter of one rule, and no word
NAMES = {
    "ratio": r"\mathrm{ratio}",
    "lam": r"\lambda",
    "alpha": r"\alpha",
    "gamma": r"\gamma",
    "l": r"\ell",
    "l2": r"\ell_2",
    "dual": r"\psi",
}
FUNCTIONS = {
    "log": r"\log",
    "exp": r"\exp",
    "max": r"\max",
    "min": r"\min",
    "sum": r"\sum",
    "clip": r"\operatorname{clip}",
}
SIGNS = {"<=": r"\le", ">=": r"\ge", "<": "<", ">": ">", "=": "=", "in": r"\in"}
_TOKEN = re.compile(r"\s*(\|\|v\|\|_2|<=|>=|\d+|[A-Za-z]+(?:_[a-z]\b)?\d?|.)")


def latex(text: str) -> list[str]:
    """A formula as LaTeX, in the pieces between which a line may be broken.

    >>> latex("lam^2 / (2 sqrt(l)) if l < lam, else 0")
    ['\\\\frac{\\\\lambda^{2}}{2 \\\\sqrt{\\\\ell}}\\\\ \\\\text{if}\\\\ \\\\ell < \\\\lambda,', '\\\\text{else}\\\\ 0']
    """
    return list(_Reader(_TOKEN.findall(text)).pieces())


class _Reader:
    """Reads tokens from the left; every method gives back the LaTeX of what it has read."""

    def __init__(self, tokens: list[str]) -> None:
        self.tokens, self.at = tokens, 0

    @property
    def next(self) -> str:
        return self.tokens[self.at] if self.at < len(self.tokens) else ""

    def take(self) -> str:
        self.at += 1
        return self.tokens[self.at - 1]

    def pieces(self) -> Iterator[str]:
        parts = list[str]()
        while self.next:
            if self.next in ",;:":
                yield r"\ ".join(parts) + self.take()
                parts.clear()
            elif self._word():
                parts.append(self.words())
            else:
                parts.append(self.relation())
        yield r"\ ".join(parts)

    def words(self) -> str:
        words = [self.take()]
        while self._word() or (self.next == "in" and not self._follows("{", "[")):
            words.append(self.take())
        return rf"\text{{{' '.join(words)}}}"

    def _follows(self, *tokens: str) -> bool:
        return self.at + 1 < len(self.tokens) and self.tokens[self.at + 1] in tokens

    def _word(self) -> bool:
        """A word that is neither a name nor a function nor a sign; "min" before no bracket is one."""
        token = self.next
        if token == "min":
            return not self._follows("(")
        return token.isalpha() and len(token) > 1 and token not in {*NAMES, *FUNCTIONS, *SIGNS, "sqrt"}

    def relation(self) -> str:
        out = self.addition()
        while self.next in SIGNS:
            out += f" {SIGNS[self.take()]} {self.addition()}"
        return out

    def addition(self) -> str:
        out = self.take() if self.next == "-" else ""
        out += self.product()
        while self.next and self.next in "+-":
            out += f" {self.take()} {self.product()}"
        return out

    def product(self) -> str:
        factors = [self.factor()]
        while self.next and (self.next == "/" or self._begins_factor()):
            if self.next == "/":
                self.take()
                factors = [rf"\frac{{{_bare(factors)}}}{{{_bare([self.factor()])}}}"]
            else:
                factors.append(self.factor())
        return " ".join(factors)

    def _begins_factor(self) -> bool:
        known = self.next.isalnum() or "_" in self.next or self.next in "([{"
        return known and not self._word() and self.next not in SIGNS

    def factor(self) -> str:
        out = self.primary()
        if self.next == "^":
            self.take()
            minus = self.take() if self.next == "-" else ""
            out += f"^{{{minus}{_bare([self.primary()])}}}"
        return out

    def primary(self) -> str:
        token = self.take()
        if token in "([{":
            return self._bracket(token)
        if token == "sqrt":
            return rf"\sqrt{{{_bare([self.primary()])}}}"
        if token in FUNCTIONS:
            return f"{FUNCTIONS[token]} {self.factor() if token in ('log', 'sum') else self.primary()}"
        if token == "||v||_2":
            return r"\lVert v \rVert_2"
        if not (token.isalnum() or "_" in token):
            raise ValueError(f"cannot read {token!r} in {' '.join(self.tokens)!r}")
        name, _, index = token.partition("_")
        return NAMES.get(name, name) + (f"_{index}" if index else "")

    def _bracket(self, opened: str) -> str:
        closed, inside = {"(": ")", "[": "]", "{": "}"}[opened], self.relation()
        while self.next == ",":
            inside += f"{self.take()} {self.relation()}"
        if self.next != closed:
            raise ValueError(f"{opened!r} is not closed in {' '.join(self.tokens)!r}")
        self.take()
        mark = "\\" if opened == "{" else ""
        return rf"\left{mark}{opened}{inside}\right{mark}{closed}"


def _bare(factors: list[str]) -> str:
    """A product without the brackets that a fraction, a root or an exponent makes needless."""
    text, depth = " ".join(factors), 0
    for found in re.finditer(r"\\left\(|\\right\)", text):
        depth += 1 if found[0] == r"\left(" else -1
        if depth == 0:  # where the first bracket is closed
            around = text.startswith(r"\left(") and found.end() == len(text)
            return text[len(r"\left(") : -len(r"\right)")] if around else text
    return text

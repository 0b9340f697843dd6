"""Strings of several columns as one bag of n-grams for each row: TF-IDF by column, one hash, one SVD."""

from __future__ import annotations

from typing import Any

import numpy as np
from scipy import sparse
from sklearn.base import BaseEstimator
from sklearn.decomposition import TruncatedSVD
from sklearn.feature_extraction.text import HashingVectorizer, TfidfTransformer

from .cells import CellLevels

HASHES = 1 << 15  # cost: buckets of the n-grams of all columns; eight times as many take four times as long
SHIFT = 7919  # a choice: a prime, by which the buckets of one column are moved against those of the one before
DECIMALS = 6  # numerical safety: of the components of the SVD, which are unit vectors
LONG_TEXT = 8  # a choice: words of a cell, on average, from which words are counted and not letters


class JointText(BaseEstimator):
    """Strings as numbers, additive over columns.

    Each column counts alike: its cells are unit vectors of TF-IDF weights. The components of the SVD keep their sizes,
    so that the penalty of a linear model shrinks the small ones, which are mostly noise.

    Parameters
    ----------
    n_components : int
        Components of the SVD; 0 keeps the buckets, as a sparse matrix.
    random_state : int
        Of the SVD.
    """

    def __init__(self, n_components: int = 120, random_state: int = 0) -> None:
        self.n_components = n_components
        self.random_state = random_state

    def fit(self, columns: dict[str, CellLevels]) -> dict[str, Any]:
        """Learn the weights of the n-grams and the components; return the features of the levels of every column."""
        self.names_ = list(columns)
        self.long_ = [
            float(np.mean([text.count(" ") + 1 for text in one.texts])) >= LONG_TEXT for one in columns.values()
        ]
        self.tfidf_: list[TfidfTransformer] = []
        bags = {}
        for place, (name, levels) in enumerate(columns.items()):
            counts = _hashing(self.long_[place]).transform(levels.texts)
            self.tfidf_.append(TfidfTransformer(sublinear_tf=True).fit(counts))
            bags[name] = self._weighted(place, counts)
        rows = sum(bags[name][levels.codes] for name, levels in columns.items())
        if not self.n_components:  # a bucket of one row only tells that row
            times = np.bincount(rows.indices, minlength=HASHES)
            self.buckets_ = np.flatnonzero(times > min(times.max() - 1, 1))
        else:
            self.buckets_ = np.unique(np.append(rows.indices, 0))  # one at least; the SVD need not see empty ones
            size = min(self.n_components, rows.shape[0] - 1, len(self.buckets_))
            self.svd_ = TruncatedSVD(size, n_iter=3, random_state=self.random_state)
            self.svd_.set_output(transform="default")
            spread = float(self.svd_.fit_transform(rows[:, self.buckets_].astype(np.float64)).var(axis=0).sum())
            # without the digits that another processor computes differently: rows keep their folds there
            self.svd_.components_ = np.round(self.svd_.components_, DECIMALS).astype(np.float32)
            self.scale_ = float(np.sqrt(spread / len(columns))) or 1.0  # a text weighs as much as a column of numbers
        return {name: self._features(bag) for name, bag in bags.items()}

    @property
    def width(self) -> int:
        """Number of features."""
        return len(self.buckets_) if not self.n_components else len(self.svd_.components_)

    def table(self, name: str, levels: CellLevels) -> Any:
        """Return the features of every level of a column, and of a missing cell in the last row (zeros)."""
        place = self.names_.index(name)
        if not levels.texts:
            return self._features(sparse.csr_matrix((1, HASHES), dtype=np.float32))
        return self._features(self._weighted(place, _hashing(self.long_[place]).transform(levels.texts)))

    def _features(self, bag: Any) -> Any:
        bag = bag[:, self.buckets_]
        return bag if not self.n_components else self.svd_.transform(bag) / self.scale_

    def _weighted(self, place: int, counts: Any) -> Any:
        """Return the weights of a column's n-grams; the same word in another column has another bucket."""
        weighted = self.tfidf_[place].transform(counts)
        weighted.indices = ((weighted.indices.astype(np.int64) + SHIFT * place) % HASHES).astype(np.int32)
        weighted.has_sorted_indices = False
        return sparse.vstack([weighted, sparse.csr_matrix((1, HASHES), dtype=np.float32)], format="csr")


def _hashing(long: bool) -> HashingVectorizer:
    grams: dict[str, Any] = {"ngram_range": (1, 2)} if long else {"analyzer": "char_wb", "ngram_range": (3, 4)}
    return HashingVectorizer(n_features=HASHES, norm=None, alternate_sign=False, dtype=np.float32, **grams)

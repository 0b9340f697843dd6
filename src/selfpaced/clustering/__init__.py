"""Multi-view self-paced clustering."""

from .estimator import SelfPacedMultiViewKMeans

__all__ = ["SelfPacedMultiViewKMeans"]

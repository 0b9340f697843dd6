"""Multi-view self-paced clustering."""

from .baselines import concatenated_kmeans, per_view_kmeans, scale_views
from .estimator import SelfPacedMultiViewKMeans

__all__ = ["SelfPacedMultiViewKMeans", "concatenated_kmeans", "per_view_kmeans", "scale_views"]

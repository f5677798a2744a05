"""The accuracy on the class that is recognised worst."""

from hgde.tasks.metrics import CLASSES, Metric


def _worst_class(predictions, truth):
    """Accuracy on the class with the lowest one."""
    right = (predictions.argmax(-1) == truth).double()
    return min(float(right[truth == k].mean()) for k in truth.unique().tolist())


worst_class = Metric("worst_class", _worst_class, (CLASSES,))

"""What is learned: classes, values or label sets of nodes, or links between them."""

from hgde.tasks.base import PARTS, TASKS, Learner, Part, Predicted, Problem, Scores, Table, Task, TaskError
from hgde.tasks.metrics import METRICS, Metric, MetricError, metric

__all__ = [
    "METRICS",
    "PARTS",
    "TASKS",
    "Learner",
    "Metric",
    "MetricError",
    "Part",
    "Predicted",
    "Problem",
    "Scores",
    "Table",
    "Task",
    "TaskError",
    "metric",
]

"""One sentence of advice that follows from the numbers of a comparison, by the rules written here.

*Level* with the best means: the mean difference on the same splits and seeds is within two standard errors of it (those
of the paired test, corrected for overlapping training parts) and at most two points; after a single run, within one
point. What few runs cannot tell apart may still be far apart: nobody should be advised to give up three points for want
of seeds. The rules, the first that applies decides:

1. nothing finished: say so;
2. guessing the majority is level with the best: nothing was learned;
3. a system that sees no edges is level with the best: the graph adds nothing;
4. spreading labels (or a rule of thumb for links) is level with the best: nothing needs to be trained;
5. else the cheapest system that is level with the best.

Rules 3 to 5 add what curvature is worth where HGDE and its flat twin were both run. Whatever is said, systems that did
not finish are named: nothing is known of them.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING

from hgde.experiments.stats import paired_test
from hgde.tasks import METRICS

if TYPE_CHECKING:
    from hgde.experiments.table import Row

SURE = 0.05
MOST_POINTS_LEVEL = 2.0


def advise(rows: Sequence[Row]) -> str:
    """The sentence. ``rows`` are ranked, best first (:func:`hgde.experiments.table.rank_rows`)."""
    missing = [row.name for row in rows if not row.scores]
    advice = _advise(rows)
    if not missing or len(missing) == len(rows):
        return advice
    return f"{advice.removesuffix('.')}; {', '.join(missing)} did not finish: more minutes would show what they can do."


def _advise(rows: Sequence[Row]) -> str:
    done = [row for row in rows if row.scores]
    if not done:
        return "No system finished, so there is nothing to recommend: give more minutes, or look at the failures."
    best = done[0]
    level = [row for row in done if is_level(row, best)]
    named = f"{best.name} ({_score(best)})"
    majority = next((row for row in level if row.name == "majority"), None)
    if majority is not None:
        return (
            f"Nothing here beats guessing the most common answer ({_score(majority)}; best: {named}): check labels, "
            "features and split before choosing a model."
        )
    curvature = _curvature(done)
    without_graph = [row for row in level if not row.sees_edges]
    if without_graph:
        chosen = _cheapest(without_graph)
        return f"Take {chosen.name} ({_score(chosen)}): it sees no edges and is {_as_good(chosen, best)}{curvature}."
    untrained = [row for row in level if not row.system.is_trained]
    if untrained:
        chosen = _cheapest(untrained)
        return (
            f"Take {chosen.name} ({_score(chosen)}): it needs no training and is {_as_good(chosen, best)}{curvature}."
        )
    chosen = _cheapest(level)
    others = ", ".join(row.name for row in level if row is not chosen)
    if not others:
        why = "ahead of all others"
    elif chosen is best:
        why = f"the best, and faster than what is not distinguishable from it ({others})"
    else:
        why = f"the fastest of those not distinguishable from the best ({named})"
    return f"Take {chosen.name} ({_score(chosen)}): {why}{curvature}."


def is_level(row: Row, best: Row) -> bool:
    """Whether a row is not distinguishable from the best."""
    if row is best:
        return True
    test = row.against_best
    if test is None or test.count == 0:
        return False
    limit = 1.0 if math.isnan(test.error) else 2 * test.error
    return abs(test.difference) <= min(limit, MOST_POINTS_LEVEL)


def _curvature(rows: Sequence[Row]) -> str:
    curved = next((row for row in rows if row.name == "hgde"), None)
    flat = next((row for row in rows if row.name == "hgde-flat"), None)
    if curved is None or flat is None:
        return ""
    test = paired_test(curved.scores, flat.scores, curved.test_per_train)
    gain = METRICS.get(curved.metric).gain(test.difference)
    amount = f"{test.difference:+.1f} against the flat twin"
    if test.count < 2:
        return ""
    if abs(test.difference) <= 2 * test.error:
        return f"; curvature makes no difference that these runs show ({amount})"
    if test.p >= SURE:
        return f"; too few runs to tell whether curvature matters ({amount}, p = {test.p:.2g})"
    return f"; curvature {'pays' if gain > 0 else 'costs'} ({amount}, p = {test.p:.2g})"


def _cheapest(rows: Sequence[Row]) -> Row:
    return min(rows, key=lambda row: row.seconds if not math.isnan(row.seconds) else math.inf)


def _as_good(row: Row, best: Row) -> str:
    return "the best there is" if row is best else f"not distinguishable from the best, {best.name} ({_score(best)})"


def _score(row: Row) -> str:
    spread = row.spread
    return f"{spread.mean:.1f} ± {spread.std:.1f}" if spread.count > 1 else f"{spread.mean:.1f}"

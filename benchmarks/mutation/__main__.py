"""One command, resumable: ``python -m benchmarks.mutation --size 60``; see docs/mutation.md."""

from __future__ import annotations

import argparse
import math
import os
import time

os.environ.setdefault("OMP_NUM_THREADS", "1")

from benchmarks.mutation import campaign, processes, report, tests  # threads are counted at import


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.mutation", description=__doc__)
    parser.add_argument("--size", type=int, default=60, help="mutants drawn per package (default 60)")
    parser.add_argument(
        "--seed", type=int, default=0, help="seed of the sample; a larger sample contains a smaller one"
    )
    parser.add_argument("--packages", nargs="+", default=list(tests.PACKAGES), choices=tests.PACKAGES)
    parser.add_argument("--minutes", type=float, default=math.inf, help="stop after so long; the next run goes on")
    parser.add_argument("--report", action="store_true", help="only write docs/mutation.md from what is known")
    chosen = parser.parse_args()
    until = time.monotonic() + 60 * chosen.minutes
    with processes.overlay() as place:
        sources = place.sources(tests.PACKAGES)
        if not chosen.report:
            campaign.LOG.parent.mkdir(parents=True, exist_ok=True)
            campaign.LOG.write_text("")
            processes.warm_up()
            known = tests.record(place, campaign.LOG)
            run = campaign.Campaign(place, sources, known)
            named = list(campaign.named(sources).values())
            samples = [campaign.drawn(sources, package, chosen.size, chosen.seed)[0] for package in chosen.packages]
            for again in (False, True):
                run.run(named, until, again=again)
                # A tenth of every sample at a time, so that a run that is stopped knows something of every package.
                for tenth in range(10):
                    for sample in samples:
                        part = sample[len(sample) * tenth // 10 : len(sample) * (tenth + 1) // 10]
                        run.run(part, until, again=again)
            run.confirm([*named, *(mutant for sample in samples for mutant in sample)])
        report.write(sources, chosen.size, chosen.seed)


if __name__ == "__main__":
    main()

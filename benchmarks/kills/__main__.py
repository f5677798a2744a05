"""One command: ``python -m benchmarks.kills --kills 200``."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
import time
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

from benchmarks.fuzz.__main__ import versions_here
from benchmarks.kills.commands import COMMANDS
from benchmarks.kills.harness import attack, make_template


def main() -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.kills", description=__doc__)
    parser.add_argument("--kills", type=int, default=200, help="how many in all, shared by the commands (default 200)")
    parser.add_argument("--each", type=int, default=5, help="kills on one folder before it is finished (default 5)")
    parser.add_argument("--commands", nargs="+", choices=list(COMMANDS), default=list(COMMANDS))
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--minutes", type=float, default=120.0)
    parser.add_argument("--out", type=Path, help="write a record of it to this JSON file")
    chosen = parser.parse_args()
    began = time.monotonic()
    tallies = {}
    with tempfile.TemporaryDirectory() as place:
        template = Path(place) / "template"
        make_template(template)
        count = len(chosen.commands)
        for number, name in enumerate(chosen.commands):
            share = chosen.kills // count + (number < chosen.kills % count)
            deadline = began + 60 * chosen.minutes * (number + 1) / count
            tallies[name] = attack(name, share, Path(place), template, chosen.seed, chosen.each, deadline)
            print(name, json.dumps(asdict(tallies[name])), flush=True)
    record = {
        "what": "kill -9 at random moments",
        "kills": sum(tally.kills for tally in tallies.values()),
        "results that differ": sum(tally.different for tally in tallies.values()),
        "files lost": sum(len(tally.lost) for tally in tallies.values()),
        "orphans after 5 s": sum(tally.orphans for tally in tallies.values()),
        "failures to go on": sum(len(tally.errors) for tally in tallies.values()),
        "seed": chosen.seed,
        "seconds": round(time.monotonic() - began),
        "date": datetime.now(UTC).date().isoformat(),
        "commands": {name: asdict(tally) for name, tally in tallies.items()},
        "versions": versions_here(),
    }
    if chosen.out is not None:
        chosen.out.write_text(json.dumps(record, indent=1) + "\n")
    print(json.dumps({name: value for name, value in record.items() if name != "commands"}, indent=1))
    sys.exit(0 if all(tally.is_clean for tally in tallies.values()) else 1)


if __name__ == "__main__":
    main()

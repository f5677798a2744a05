"""Put the demonstration's numbers and picture where pages have a place for them.

    hgde demo && python docs/scripts/demo_table.py hgde-demo

Between ``<!-- demo: begin -->`` and ``<!-- demo: end -->`` of README.md and docs/when.md the table is written anew;
``docs/images/taxonomy.png`` becomes the picture of the run.
"""

from __future__ import annotations

import json
import re
import shutil
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[2]
PAGES = (ROOT / "README.md", ROOT / "docs" / "when.md")
PLACE = re.compile(r"(<!-- demo: begin -->\n).*?(<!-- demo: end -->)", re.DOTALL)
WORDS = {
    "hgde": "HGDE",
    "hgde-flat": "its flat twin",
    "gcn": "GCN",
    "mlp": "MLP",
    "label-propagation": "label propagation",
}


def table(demo: Path) -> str:
    """Test accuracy of every system on both sets, the best of each in bold."""
    sets = {title: json.loads((demo / title / "table.json").read_text()) for title in ("taxonomy", "epidemic")}
    scores = {title: {row["system"]: row for row in record["rows"]} for title, record in sets.items()}
    best = {title: max(row["mean"] for row in rows.values()) for title, rows in scores.items()}
    facts = [
        f"{title} ({record['facts']['nodes']} nodes, {record['facts']['parts']['train']} labels to learn from)"
        for title, record in sets.items()
    ]
    lines = ["| test accuracy, % | " + " | ".join(facts) + " |", "| --- | ---: | ---: |"]
    for name, words in WORDS.items():
        cells = []
        for title, rows in scores.items():
            shown = f"{rows[name]['mean']:.1f} ± {rows[name]['std']:.1f}"
            cells.append(f"**{shown}**" if rows[name]["mean"] == best[title] else shown)
        lines.append(f"| {words} | " + " | ".join(cells) + " |")
    return "\n".join(lines) + "\n"


def main(demo: Path) -> None:
    made = table(demo)
    for page in PAGES:
        text = page.read_text(encoding="utf-8")
        if not PLACE.search(text):
            raise SystemExit(f"{page} has no place for the table (<!-- demo: begin -->)")
        page.write_text(PLACE.sub(lambda found: found[1] + made + found[2], text), encoding="utf-8")
    shutil.copyfile(demo / "figures" / "embedding.png", ROOT / "docs" / "images" / "taxonomy.png")


if __name__ == "__main__":
    main(Path(sys.argv[1]))

"""Frames per second of the disk explorer while dragging, in headless chromium, and the size of its page.

    python benchmarks/explorer.py --nodes 100000 --edges 300000

Needs playwright and a chromium. Without a graphics card the explorer draws by itself on a canvas; ``--renderer webgl``
asks for WebGL even if it is emulated. On a busy machine ``busiest_thread_ms_per_frame`` (Linux) says more than frames
per second: it is the processor time per frame of the thread that has most to do; below 33 ms a free core draws 30.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import shutil
import tempfile
import time
from pathlib import Path

import numpy as np
from playwright.sync_api import sync_playwright

from hgde.report.contents import DiskView, EnergyCurve, RunReport
from hgde.report.page import render_html

FLAGS = ["--no-sandbox", "--no-first-run", "--disable-background-networking", "--disable-component-update"]
FLAGS += ["--disable-sync", "--disable-gpu", "--use-gl=angle", "--use-angle=swiftshader", "--enable-unsafe-swiftshader"]

# One drag in circles, a step per frame, counted by the frames that were really drawn.
DRAG = """async (seconds) => {
  const stage = document.querySelector(".hgde-stage");
  const box = stage.getBoundingClientRect();
  const [x, y] = [box.left + box.width / 2, box.top + box.height / 2];
  stage.setPointerCapture = () => {};
  const send = (kind, dx, dy) =>
    stage.dispatchEvent(new PointerEvent(kind, { pointerId: 1, button: 0, clientX: x + dx, clientY: y + dy }));
  send("pointerdown", 0, 0);
  const started = performance.now();
  const before = hgdeExplorer.frames;
  const gaps = [];
  let last = started;
  await new Promise((resolve) => {
    const step = (now) => {
      gaps.push(now - last);
      last = now;
      const t = performance.now() - started;
      if (t > 1000 * seconds) return resolve();
      send("pointermove", 0.25 * box.width * Math.sin(t / 300), 0.25 * box.height * Math.sin(t / 410));
      requestAnimationFrame(step);
    };
    requestAnimationFrame(step);
  });
  const spent = performance.now() - started;
  send("pointerup", 0, 0);
  gaps.sort((a, b) => a - b);
  const fps = ((hgdeExplorer.frames - before) / spent) * 1000;
  return { fps, slowest_1_percent_ms: gaps[Math.floor(0.99 * gaps.length)] };
}"""


def large_report(nodes: int, edges: int, times: int, seed: int = 0) -> RunReport:
    """A random recursive tree with extra edges between near nodes of it, all over the disk."""
    rng = np.random.default_rng(seed)
    parent = (rng.random(nodes) * np.arange(nodes)).astype(np.int64)
    angle = np.zeros(nodes)
    depth = np.zeros(nodes)
    for i in range(1, nodes):
        depth[i] = depth[parent[i]] + 1
        angle[i] = angle[parent[i]] + 3.0 * rng.normal() / depth[i] ** 1.5
    radius = np.tanh(0.22 * depth + 0.1 * rng.random(nodes))
    end = np.stack([radius * np.cos(angle), radius * np.sin(angle)], axis=1)
    tree = np.stack([parent[1:], np.arange(1, nodes)])
    first = rng.integers(0, nodes, max(0, edges - nodes + 1))
    extra = np.stack([first, parent[parent[first]]])
    labels = (angle * 3).astype(np.int64) % 7
    return RunReport(
        title="Explorer benchmark",
        energy=EnergyCurve([0.0, 1.0], {"energy": [1.0, 0.1]}),
        disk=DiskView(
            positions=np.stack([share * end for share in np.linspace(0.3, 1.0, times)]),
            times=np.linspace(0.0, 1.0, times).tolist(),
            edges=np.concatenate([tree, extra], axis=1)[:, :edges],
            ids=[f"paper/{rng.integers(10**9):09d}" for _ in range(nodes)],
            labels=labels,
            predictions=np.where(rng.random(nodes) < 0.9, labels, 0),
            confidences=rng.random(nodes),
            class_names=[f"class {k}" for k in range(7)],
        ),
    )


def thread_seconds() -> dict[tuple[int, int], float]:
    """Processor time of every thread of every process below this one, by their numbers; empty outside Linux."""
    ticks = os.sysconf("SC_CLK_TCK")
    parents: dict[int, int] = {}
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with contextlib.suppress(OSError):
            parents[int(stat.parent.name)] = int(stat.read_text().rpartition(")")[2].split()[1])
    below = {os.getpid()}
    while more := {pid for pid, parent in parents.items() if parent in below} - below:
        below |= more
    spent = {}
    for pid in below - {os.getpid()}:
        for stat in Path(f"/proc/{pid}/task").glob("*/stat"):
            with contextlib.suppress(OSError):
                fields = stat.read_text().rpartition(")")[2].split()
                spent[pid, int(stat.parent.name)] = (int(fields[11]) + int(fields[12])) / ticks
    return spent


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--nodes", type=int, default=100_000)
    parser.add_argument("--edges", type=int, default=300_000)
    parser.add_argument("--times", type=int, default=8)
    parser.add_argument("--seconds", type=float, default=4.0)
    parser.add_argument("--renderer", choices=["auto", "canvas", "webgl"], default="auto")
    parser.add_argument("--chromium", default=shutil.which("chromium"))
    parser.add_argument("--screenshot", type=Path)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as started:
        path = Path(folder) / "report.html"
        path.write_text(render_html(large_report(options.nodes, options.edges, options.times)), encoding="utf-8")
        browser = started.chromium.launch(executable_path=options.chromium, args=FLAGS)
        page = browser.new_page(viewport={"width": 1280, "height": 1000})
        begun = time.perf_counter()
        page.goto(path.as_uri() + ("" if options.renderer == "auto" else f"#renderer={options.renderer}"))
        page.wait_for_selector("[data-ready]", timeout=120_000)
        opened = time.perf_counter() - begun
        page.locator(".hgde-stage").scroll_into_view_if_needed()
        page.wait_for_timeout(2000)
        before = thread_seconds()
        dragged = page.evaluate(DRAG, options.seconds)
        after = thread_seconds()
        busiest = max((after[thread] - before.get(thread, 0.0) for thread in after), default=0.0)
        frames = dragged["fps"] * options.seconds
        result = {
            "nodes": options.nodes,
            "edges": options.edges,
            "renderer": page.evaluate("hgdeExplorer.renderer.name"),
            "page_megabytes": round(path.stat().st_size / 1e6, 2),
            "seconds_to_open": round(opened, 2),
            **dragged,
            "busiest_thread_ms_per_frame": round(1000 * busiest / max(frames, 1), 1),
        }
        if options.screenshot:
            page.wait_for_timeout(3000)
            page.screenshot(path=str(options.screenshot))
        browser.close()
    print(json.dumps(result, indent=2))


if __name__ == "__main__":
    main()

"""The widget in a notebook of a real Jupyter server: a hand in the page is seen by Python, and Python by the page."""

import contextlib
import json
import os
import re
import secrets
import subprocess
import sys
import time

import numpy as np
import pytest

from report.chromium import open_chromium

pytestmark = pytest.mark.slow

HOW = (
    'no notebook server; try pip install "hgde[notebook]" notebook, or name the Python of an environment that has '
    "notebook and anywidget in HGDE_JUPYTER"
)
NODES = 12
# A ring that grows with diffusion time: what a region holds says which time the page shows.
CELLS = [
    f"""\
import json
import numpy as np
from hgde.report.contents import DiskView
from hgde.report.widget import DiskExplorer

angles = 2 * np.pi * np.arange({NODES}) / {NODES}
ring = np.stack([np.cos(angles), np.sin(angles)], axis=1)
names = [f"node-{{i}}" for i in range({NODES})]
view = DiskView(np.stack([0.3 * ring, 0.8 * ring]), times=(0.0, 1.0), ids=names)""",
    "explorer = DiskExplorer(view)\nexplorer",
    "",
]
MARGIN = 10  # pixels between the disk and the edge of its square


def environment(folder):
    """Jupyter's own folders are fresh ones, and the kernel imports what the tests import."""
    names = ("JUPYTER_CONFIG_DIR", "JUPYTER_DATA_DIR", "JUPYTER_RUNTIME_DIR", "IPYTHONDIR")
    here = {name: str(folder / name.lower()) for name in names}
    path = os.pathsep.join(entry for entry in sys.path if entry)
    return os.environ | here | {"PYTHONPATH": path, "JUPYTER_PLATFORM_DIRS": "1", "OMP_NUM_THREADS": "1"}


@pytest.fixture(scope="module")
def server(tmp_path_factory):
    """A server that only this machine reaches: its address, its token and the folder of its files."""
    folder = tmp_path_factory.mktemp("jupyter")
    python, token = os.environ.get("HGDE_JUPYTER", sys.executable), secrets.token_hex(16)
    surroundings = environment(folder) | {"JUPYTER_TOKEN": token}
    needed = [python, "-c", "import notebook, ipykernel, anywidget"]
    if subprocess.run(needed, env=surroundings, capture_output=True, check=False).returncode:
        pytest.skip(HOW)
    files = folder / "files"
    files.mkdir()
    options = ["--no-browser", "--allow-root", "--ip=127.0.0.1", "--port=0", f"--ServerApp.root_dir={files}"]
    with (folder / "log").open("w") as log:
        process = subprocess.Popen([python, "-m", "notebook", *options], env=surroundings, stdout=log, stderr=log)
    try:
        yield wait_for_address(folder, process), token, files
    finally:
        # On this signal the server ends its kernels first.
        process.terminate()
        try:
            process.wait(timeout=30)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def write_notebook(path):
    cells = [
        {"cell_type": "code", "id": f"cell-{k}", "source": code, "metadata": {}, "outputs": [], "execution_count": None}
        for k, code in enumerate(CELLS)
    ]
    kernel = {"name": "python3", "display_name": "Python 3", "language": "python"}
    book = {"cells": cells, "metadata": {"kernelspec": kernel}, "nbformat": 4, "nbformat_minor": 5}
    path.write_text(json.dumps(book), encoding="utf-8")


def wait_for_address(folder, process, seconds=60):
    """The server writes its port, chosen by the system, to a file once it listens."""
    note = folder / "jupyter_runtime_dir" / f"jpserver-{process.pid}.json"
    end = time.monotonic() + seconds
    while process.poll() is None and time.monotonic() < end:
        if note.is_file() and (text := note.read_text(encoding="utf-8")).strip().endswith("}"):
            return json.loads(text)["url"]
        time.sleep(0.1)
    pytest.fail("the notebook server did not start:\n" + (folder / "log").read_text(encoding="utf-8")[-2000:])


@pytest.fixture(params=["notebooks", "lab/tree"])
def page(server, request):
    """A notebook in Jupyter Notebook or JupyterLab, all its cells run; it has asked no other machine for anything."""
    (address, token, files), asked, errors = server, [], []
    name = re.sub(r"\W+", "-", request.node.name)
    write_notebook(files / f"{name}.ipynb")
    with open_chromium() as browser:
        page = browser.new_page(viewport={"width": 1200, "height": 1600})
        page.on("request", lambda request: asked.append(request.url))
        page.on("pageerror", lambda error: errors.append(error.stack))
        with kernel_answering(page):
            # Without reset JupyterLab opens the notebooks of earlier tests again, beside this one.
            page.goto(f"{address}{request.param}/{name}.ipynb?token={token}&reset")
        page.get_by_role("menuitem", name="Run", exact=True).click()
        page.get_by_role("menuitem", name="Run All Cells", exact=True).click()
        page.wait_for_selector(".hgde-stage canvas", timeout=60_000)
        page.wait_for_timeout(1000)  # once all cells have run, Jupyter moves the focus to the last one
        yield page
    assert [url for url in asked if not url.startswith((address, "data:", "blob:"))] == []
    # The widget's module is loaded from a blob; errors from elsewhere are the server's own pages'.
    assert [error for error in errors if "blob:" in error] == []


@contextlib.contextmanager
def kernel_answering(page, seconds=60):
    """Waits at its end until the page hears from its kernel: cells run before that are passed over in silence."""
    heard = []

    def listen(socket):
        if "/api/kernels/" in socket.url:
            socket.on("framereceived", lambda frame: heard.append(frame))

    page.on("websocket", listen)
    yield
    end = time.monotonic() + seconds
    while not heard:
        assert time.monotonic() < end, f"the kernel sent nothing to the page in {seconds} seconds"
        page.wait_for_timeout(100)


def run_cell(page, code):
    """Types a line into the empty cell at the end, runs it and returns what it printed."""
    cells = page.locator(".jp-Notebook .jp-CodeCell")
    cell = cells.nth(cells.count() - 1)
    cell.locator(".cm-content").click()
    page.keyboard.insert_text(code)
    page.keyboard.press("Shift+Enter")
    prompt = cell.locator(".jp-InputPrompt").first
    page.wait_for_function("e => /\\[\\d+\\]/.test(e.textContent)", arg=prompt.element_handle(), timeout=30_000)
    output = cell.locator(".jp-OutputArea-output")
    return output.first.inner_text() if output.count() else ""


def selection(page):
    said = run_cell(page, "print(json.dumps([explorer.selection, explorer.selected_ids]))")
    return json.loads(said)


def window(page, point):
    """The pixel of the window at a point of the disk, as long as the view has not moved."""
    box = page.locator(".hgde-stage").bounding_box()
    radius = min(box["width"], box["height"]) / 2 - MARGIN
    return box["x"] + box["width"] / 2 + radius * point[0], box["y"] + box["height"] / 2 - radius * point[1]


def draw_around(page, left, bottom, right, top):
    page.locator(".hgde-stage").scroll_into_view_if_needed()
    corners = [window(page, point) for point in ((left, bottom), (right, bottom), (right, top), (left, top))]
    page.mouse.move(*corners[0])
    page.mouse.down()
    for corner in corners[1:]:
        page.mouse.move(*corner)
    page.mouse.up()


def ring(radius):
    angles = 2 * np.pi * np.arange(NODES) / NODES
    return radius * np.stack([np.cos(angles), np.sin(angles)], axis=1)


def test_widget_and_python_share_selection_and_time(page):
    card = page.locator(".hgde-card")
    assert selection(page) == [[], []]

    page.get_by_role("button", name="Select region").click()
    draw_around(page, 0.2, -0.9, 0.9, 0.9)
    right = np.flatnonzero(ring(0.8)[:, 0] > 0.2).tolist()
    assert right == [0, 1, 2, 10, 11]
    assert "5 selected" in card.inner_text()
    assert selection(page) == [right, [f"node-{i}" for i in right]]

    run_cell(page, "explorer.selection = [3, 4]")
    card.get_by_text("2 selected").wait_for()
    assert selection(page) == [[3, 4], ["node-3", "node-4"]]

    middle = (-0.5, -0.5, 0.5, 0.5)
    draw_around(page, *middle)
    assert selection(page) == [[], []]
    run_cell(page, "explorer.time = 0.0")
    page.locator(".hgde-time output").get_by_text("0.00").wait_for()
    draw_around(page, *middle)
    assert selection(page)[0] == list(range(NODES))


def test_keys_pressed_on_the_disk_are_the_explorers(page):
    """The notebook has its own meaning for some of them: an arrow goes to the next cell, Enter begins to edit one."""
    stage, card = page.locator(".hgde-stage"), page.locator(".hgde-card")
    stage.click(position={"x": 5, "y": 5})
    stage.focus()
    for key in ("n", "n", "c", "ArrowDown", "ArrowUp", "Home"):
        page.keyboard.press(key)
        assert stage.evaluate("e => e === document.activeElement"), key
    assert "node-1" in card.inner_text()
    page.keyboard.press("Enter")
    assert stage.evaluate("e => e === document.activeElement")

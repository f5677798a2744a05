"""The page and the explorer in a real browser, opened from a file with the network off."""

import csv
import math
from pathlib import Path

import numpy as np
import pytest
import torch

from hgde import pipeline
from hgde.geometry import ball
from hgde.report.from_run import explorer_of_run, report_of_run
from hgde.report.page import render_explorer, render_html, write_report
from report.chromium import open_chromium
from report.runs import settings_for, write_files
from report.samples import HOSTILE, REPORTS, sample_run, sample_view


@pytest.fixture(scope="module")
def browser():
    with open_chromium() as opened:
        yield opened


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("reports")
    for name, make in REPORTS.items():
        (folder / f"{name}.html").write_text(render_html(make()), encoding="utf-8", errors="replace")
    return {name: folder / f"{name}.html" for name in REPORTS}


@pytest.fixture(scope="module")
def trained(tmp_path_factory):
    """A run on a graph in CSV files, with hostile names."""
    folder = tmp_path_factory.mktemp("trained")
    pipeline.fit(settings_for("nodes", write_files(folder)), folder / "run")
    return folder / "run"


@pytest.fixture
def open_page(browser):
    """A function that opens a file; at the end it has said nothing to the console and asked for no address."""
    contexts, said, asked = [], [], []

    def open_file(path: Path, suffix: str = "", **options):
        context = browser.new_context(**{"viewport": {"width": 1200, "height": 900}, **options})
        contexts.append(context)
        context.set_offline(True)
        page = context.new_page()
        page.on("console", lambda message: said.append(message.text))
        page.on("pageerror", lambda error: said.append(str(error)))
        page.on("request", lambda request: asked.append(request.url))
        page.goto(path.as_uri() + suffix)
        if page.locator("[data-hgde-explorer]").count():
            page.wait_for_selector("[data-ready]", timeout=20_000)
        return page

    yield open_file
    for context in contexts:
        context.close()
    # Software rendering warns of its own slowness; that is the machine's, not the page's.
    assert [text for text in said if "GPU stall" not in text] == []
    assert [url for url in asked if not url.startswith(("file:", "blob:"))] == []


@pytest.fixture
def page(open_page, files):
    return open_page(files["run"])


def explorer(page, expression):
    return page.evaluate(f"hgdeExplorer.{expression}")


def positions(page):
    count = explorer(page, "data.count")
    places = page.evaluate(f"Array.from({{length: {count}}}, (_, i) => hgdeExplorer.project(i))")
    return torch.tensor(places, dtype=torch.float64)


def translated(p, q, z):
    """The translation along the geodesic through p and q that takes p to q, by the package's own geometry."""
    p, q = (torch.tensor(x, dtype=torch.float64).expand_as(z) for x in (p, q))
    step = ball.mobius_add(-p, q, 1.0)
    return ball.mobius_add(p, ball.mobius_add(step, ball.mobius_add(-p, z, 1.0), 1.0), 1.0)


@pytest.mark.parametrize("name", REPORTS)
def test_pages_open_alone_and_fit_a_phone(open_page, files, name):
    page = open_page(files[name], viewport={"width": 390, "height": 800})
    assert page.locator("h1").inner_text().strip()
    assert page.evaluate("document.documentElement.scrollWidth <= innerWidth")
    assert page.evaluate("window.broken") is None
    for plot in page.locator("main svg.plot:visible").all():
        box = plot.bounding_box()
        assert box["width"] > 100
        assert box["height"] > 50


@pytest.mark.parametrize(("renderer", "drawn"), [("canvas", "canvas"), ("webgl", "webgl2")])
def test_disk_draws_nodes_in_their_colours(open_page, files, renderer, drawn):
    page = open_page(files["run"], f"#renderer={renderer}")
    assert explorer(page, "renderer.name") == drawn
    page.locator(".hgde-stage").scroll_into_view_if_needed()
    explorer(page, "settle()")
    page.wait_for_timeout(300)
    assert share_drawn(page) > 0.9
    # A frame in motion: the isometry is applied where the frame is drawn, on top of what was drawn at rest.
    page.evaluate("""() => {
        hgdeExplorer.transform = [Math.cosh(0.4), 0, 0.6 * Math.sinh(0.4), 0.8 * Math.sinh(0.4)];
        hgdeExplorer.drawFrame(true);
    }""")
    assert share_drawn(page) > 0.9


def share_drawn(page):
    """The share of nodes whose colour is seen where they should be, of those in the window."""
    shot = read_png(page.screenshot())
    nodes = "Array.from({length: hgdeExplorer.data.count}, (_, i) => hgdeExplorer"
    points = np.array(page.evaluate(f"{nodes}.screen(i))")).astype(int)
    colours = np.array(page.evaluate(f"{nodes}.mode.of(i))"))
    visible = (points[:, 1] >= 0) & (points[:, 1] < len(shot))
    assert visible.sum() > 100
    seen = shot[points[visible, 1], points[visible, 0]].astype(int)
    # Near the boundary nodes of other classes may lie on top of each other.
    return (np.abs(seen - colours[visible]).max(axis=1) < 40).mean()


def test_a_lost_graphics_card_is_replaced_by_the_canvas(open_page, files):
    page = open_page(files["run"], "#renderer=webgl")
    page.evaluate("hgdeExplorer.renderer.gl.getExtension('WEBGL_lose_context').loseContext()")
    page.wait_for_timeout(500)
    assert explorer(page, "renderer.name") == "canvas"
    page.locator(".hgde-stage").scroll_into_view_if_needed()
    assert share_drawn(page) > 0.9


def read_png(data):
    import io

    from matplotlib.image import imread

    return (imread(io.BytesIO(data), format="png")[..., :3] * 255).round().astype(np.uint8)


def test_drag_moves_by_the_isometry_of_the_geometry(page):
    stage = page.locator(".hgde-stage")
    stage.scroll_into_view_if_needed()
    box = stage.bounding_box()
    x, y = box["x"] + 0.4 * box["width"], box["y"] + 0.45 * box["height"]
    before = positions(page)
    start = explorer(page, f"diskPoint({x}, {y})")
    page.mouse.move(x, y)
    page.mouse.down()
    page.mouse.move(x + 60, y - 90)
    page.mouse.move(x + 140, y + 75)
    page.mouse.up()
    end = explorer(page, f"diskPoint({x + 140}, {y + 75})")
    expected = translated(start, end, before)
    assert float((expected - before).norm(dim=1).max()) > 0.1
    assert float((positions(page) - expected).abs().max()) < 1e-6
    distances = [ball.dist(z[:-1], z[1:], 1.0) for z in (before, positions(page))]
    torch.testing.assert_close(*distances, rtol=1e-6, atol=1e-6)


def test_double_click_centres_a_node(page):
    page.locator(".hgde-stage").scroll_into_view_if_needed()
    before = positions(page)
    x, y = explorer(page, "screen(30)")
    page.mouse.dblclick(x, y)
    page.wait_for_timeout(600)
    node = explorer(page, "chosen")
    assert math.hypot(*explorer(page, f"project({node})")) < 1e-9
    expected = ball.mobius_add(-before[node].expand_as(before), before, 1.0)
    assert float((positions(page) - expected).abs().max()) < 1e-6


def test_wheel_keyboard_and_reset(page):
    page.locator(".hgde-stage").scroll_into_view_if_needed()
    before = positions(page)
    x, y = (round(place) for place in explorer(page, "screen(5)"))
    under = explorer(page, f"diskPoint({x}, {y})")
    page.mouse.move(x, y)
    page.mouse.wheel(0, -300)
    page.wait_for_timeout(100)
    assert explorer(page, "view.scale") > 1.3
    # Zooming keeps the point under the pointer there, and moves no node in the disk.
    np.testing.assert_allclose(explorer(page, f"diskPoint({x}, {y})"), under, atol=1e-9)
    assert float((positions(page) - before).abs().max()) == 0.0
    page.locator(".hgde-stage").focus()
    page.keyboard.press("ArrowLeft")
    expected = ball.mobius_add(torch.tensor([0.12, 0.0], dtype=torch.float64).expand_as(before), before, 1.0)
    assert float((positions(page) - expected).abs().max()) < 1e-6
    page.keyboard.press("Home")
    assert float((positions(page) - before).abs().max()) < 1e-12
    page.keyboard.press("n")
    assert explorer(page, "chosen") == 0
    assert "node-0" in page.locator(".hgde-card").inner_text()


def test_slider_follows_geodesics_through_diffusion_time(page):
    view = sample_view()
    slider = page.get_by_label("Diffusion time")
    slider.scroll_into_view_if_needed()
    for time, expected in ((1.0, view.positions[1]), (0.0, view.positions[0])):
        slider.fill(str(time))
        np.testing.assert_allclose(positions(page), expected, atol=1e-6)
    slider.fill("0.5")
    start, end = (torch.tensor(view.positions[k]) for k in (0, 1))
    middle = ball.expmap(start, 0.5 * ball.logmap(start, end, 1.0), 1.0)
    assert float((positions(page) - middle).abs().max()) < 1e-6
    explorer(page, "setTime(0)")
    page.get_by_role("button", name="Play").click()
    page.wait_for_timeout(400)
    assert 0.0 < explorer(page, "time") < 2.0
    page.get_by_role("button", name="Pause").click()


def test_edges_are_geodesics(page):
    arc = torch.tensor(page.evaluate("Array.from(hgdeExplorer.geodesic(40, 300, 16))"), dtype=torch.float64)
    arc = arc.reshape(-1, 2)
    ends = arc[0].expand_as(arc), arc[-1].expand_as(arc)
    total = ball.dist(ends[0], arc, 1.0) + ball.dist(arc, ends[1], 1.0)
    torch.testing.assert_close(total, ball.dist(*ends, 1.0), rtol=1e-6, atol=1e-6)


def test_search_shows_hostile_names_as_text(page):
    page.get_by_label("Find a node by id").fill("</script>")
    page.locator(".hgde-matches button").first.click()
    page.wait_for_timeout(500)
    assert explorer(page, "chosen") == 1
    assert HOSTILE[0] in page.locator(".hgde-card").inner_text()
    for number in range(1, 1 + len(HOSTILE)):
        explorer(page, f"choose({number})")
        assert page.locator(".hgde-card dd").first.evaluate("e => e.textContent") == HOSTILE[number - 1]
    assert page.evaluate("window.broken") is None
    assert page.locator(".hgde-explorer b").count() == 0


def test_selection_exports_ids(page):
    page.locator(".hgde-stage").scroll_into_view_if_needed()
    page.get_by_role("button", name="Select region").click()
    x, y = explorer(page, "screen(0)")
    corners = [(x - 190, y - 190), (x + 190, y - 190), (x + 190, y + 190), (x - 190, y + 190)]
    page.mouse.move(*corners[0])
    page.mouse.down()
    for corner in corners[1:]:
        page.mouse.move(*corner)
    page.mouse.up()
    places = np.array(page.evaluate("Array.from({length: hgdeExplorer.data.count}, (_, i) => hgdeExplorer.screen(i))"))
    inside = np.flatnonzero((np.abs(places - [x, y]) < 190).all(axis=1))
    assert len(inside) > 1
    with page.expect_download() as waiting:
        page.get_by_role("button", name="Export ids").click()
    with Path(waiting.value.path()).open(encoding="utf-8", newline="") as stream:
        rows = list(csv.DictReader(stream))
    ids = sample_view().ids
    assert [row["id"] for row in rows] == [ids[i] for i in inside]


def test_colours_change(page):
    for name in ("class", "prediction", "confidence", "degree", "error"):
        page.get_by_label("Colour nodes by").select_option(name)
        assert explorer(page, "mode.name") == name
        nodes = "Array.from({length: hgdeExplorer.data.count}, (_, i) => hgdeExplorer"
        assert len(set(page.evaluate(f"{nodes}.mode.of(i).join())"))) > 1, name
        assert page.locator(".hgde-legend li").count() >= 1, name


def test_weights_of_a_node_are_listed_and_drawn(page):
    view = sample_view()
    explorer(page, "choose(14)")
    words = page.locator(".hgde-card").inner_text()
    assert "Local weights" in words
    assert "Global weights" in words
    rows = explorer(page, "weightsOf('local', 14)")
    assert [row[0] for row in rows] == [j for j in view.local_weights.nodes[14] if j >= 0]


def test_a_page_without_optional_parts_opens(open_page, tmp_path):
    from hgde.report.contents import DiskView, RunReport

    report = RunReport("bare", disk=DiskView(np.array([[[0.1, 0.2], [-0.5, 0.3]]])))
    page = open_page(write_report(report, tmp_path).html)
    assert explorer(page, "modes.map((m) => m.name)") == ["degree"]
    assert page.get_by_label("Diffusion time").count() == 0


def test_widget_shares_its_selection_with_python(browser, tmp_path):
    """The widget's module in a page, its model's messages carried to and from the real Python widget."""
    widgets = pytest.importorskip("hgde.report.widget", reason="anywidget is not installed")
    from hgde.report.explorer import explorer_script, explorer_style

    widget = widgets.DiskExplorer(sample_run().disk)
    page = browser.new_page()
    page.set_content("<!doctype html><title>notebook</title><div id=cell></div>")
    page.add_style_tag(content=explorer_style())
    page.expose_function("toPython", lambda state: widget.set_state(state))
    start = """async ([source, state]) => {
        const handlers = {};
        window.model = {
            get: (name) => state[name],
            set: (name, value) => { state[name] = value; },
            save_changes: () => window.toPython({ selection: state.selection }),
            on: (name, handler) => { handlers[name] = handler; },
        };
        window.fromPython = (name, value) => { state[name] = value; handlers[`change:${name}`](); };
        const address = URL.createObjectURL(new Blob([source], { type: "text/javascript" }));
        const module = await import(address);
        await module.default.render({ model: window.model, el: document.getElementById("cell") });
    }"""
    page.evaluate(start, [explorer_script(), {"payload": widget.payload, "selection": [], "time": 2.0}])
    stage = page.locator(".hgde-stage")
    box = stage.bounding_box()
    page.get_by_role("button", name="Select region").click()
    x, y = box["x"] + box["width"] / 2, box["y"] + box["height"] / 2
    page.mouse.move(x - 150, y - 150)
    page.mouse.down()
    for dx, dy in ((150, -150), (150, 150), (-150, 150)):
        page.mouse.move(x + dx, y + dy)
    page.mouse.up()
    page.wait_for_timeout(200)
    assert 0 in widget.selection
    assert widget.selected_ids[0] == "node-0"
    page.evaluate("fromPython('selection', [3, 4])")
    assert "2 selected" in page.locator(".hgde-card").inner_text()
    page.close()


def test_pages_of_a_run_on_csv_files_open(open_page, trained, tmp_path):
    for name, make in {"report": report_of_run, "explore": explorer_of_run}.items():
        made = make(trained, **({"baselines": False} if name == "report" else {}))
        path = tmp_path / f"{name}.html"
        path.write_text(render_html(made) if name == "report" else render_explorer(*made), encoding="utf-8")
        page = open_page(path)
        assert explorer(page, "data.count") == 70
        assert page.evaluate("window.broken") is None
        places = positions(page)
        assert bool((places.norm(dim=1) < 1).all())
        assert len(places.unique(dim=0)) > 30

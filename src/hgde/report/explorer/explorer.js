// The explorer: state, drawing, and the methods that the page, the notebook and the tests call.

const MARGIN = 10; // pixels between the disk and the edge of its square
const REST_AFTER = 140; // milliseconds without motion until everything is drawn

class Explorer {
  constructor(root, data, options = {}) {
    this.root = root;
    this.data = data;
    this.modes = colourModes(data);
    this.transform = [...IDENTITY];
    this.view = { scale: 1, x: 0, y: 0 };
    this.tool = "move";
    this.chosen = -1;
    this.hovered = -1;
    this.selected = [];
    this.lasso = null;
    this.onselect = options.onselect ?? (() => {});
    this.frames = 0;
    this.flow = new Float64Array(2 * data.count);
    this.parts = buildPanel(root, this);
    this.useRenderer(options.renderer ?? "auto");
    this.pen = this.parts.overlay.getContext("2d");
    connectControls(this.parts.stage, this);
    this.colourBy(this.modes[0].name);
    this.setTime(data.times[data.times.length - 1]);
    this.choose(-1);
    this.cleanUp = this.watch();
    this.resize();
  }

  makeRenderer(wanted) {
    if (wanted !== "canvas") {
      try {
        const renderer = new WebglRenderer(this.parts.drawing, wanted === "webgl");
        this.parts.drawing.addEventListener("webglcontextlost", () => this.useRenderer("canvas"));
        return renderer;
      } catch (reason) {
        if (wanted === "webgl") throw reason;
      }
    }
    // A canvas that was once asked for a WebGL context gives no other kind.
    const fresh = element("canvas", { "aria-hidden": "true" });
    this.parts.drawing.replaceWith(fresh);
    this.parts.drawing = fresh;
    return new RasterRenderer(fresh);
  }

  useRenderer(wanted) {
    this.renderer = this.makeRenderer(wanted);
    this.renderer.setData(this.data.count, this.data.edges);
    this.size = null;
    if (!this.mode) return;
    this.refreshColours();
    this.resize();
  }

  watch() {
    const sizes = new ResizeObserver(() => this.resize());
    sizes.observe(this.parts.stage);
    const dark = matchMedia("(prefers-color-scheme: dark)");
    const restyle = () => this.restyle();
    dark.addEventListener("change", restyle);
    const theme = new MutationObserver(restyle);
    theme.observe(document.documentElement, { attributes: true, attributeFilter: ["data-theme", "class"] });
    return () => {
      sizes.disconnect();
      dark.removeEventListener("change", restyle);
      theme.disconnect();
    };
  }

  // --- drawing -------------------------------------------------------------------------------------------------

  resize() {
    const box = this.parts.stage.getBoundingClientRect();
    if (!box.width || !box.height) return;
    this.ratio = Math.min(window.devicePixelRatio || 1, this.renderer.maxRatio);
    const [width, height] = [Math.round(box.width * this.ratio), Math.round(box.height * this.ratio)];
    if (this.parts.overlay.width === width && this.parts.overlay.height === height && this.size) return;
    this.size = { width, height };
    this.renderer.resize(width, height);
    this.parts.overlay.width = width;
    this.parts.overlay.height = height;
    this.restyle();
  }

  restyle() {
    const style = getComputedStyle(this.root);
    const colour = (name) => [1, 3, 5].map((i) => parseInt(style.getPropertyValue(name).trim().slice(i, i + 2), 16));
    const crowd = Math.max(1, this.data.edges.length / 2 / 4000);
    const radius = this.data.count > 50_000 ? 1.1 : this.data.count > 8_000 ? 1.7 : this.data.count > 1_500 ? 2.6 : 4;
    this.style = {
      fill: colour("--hgde-disk"),
      edge: colour("--hgde-edge"),
      text: style.getPropertyValue("--hgde-text").trim(),
      edgeInk: 1.2 * Math.sqrt(crowd),
      pointRadius: radius * (this.ratio || 1) * Math.max(0.6, Math.min(1, this.parts.stage.clientWidth / 640)),
    };
    this.settle();
  }

  pixelView() {
    const radius = (Math.min(this.size.width, this.size.height) / 2 - MARGIN * this.ratio) * this.view.scale;
    return {
      radius,
      x: this.size.width / 2 - radius * this.view.x,
      y: this.size.height / 2 + radius * this.view.y,
    };
  }

  requestFrame() {
    clearTimeout(this.restTimer);
    this.restTimer = setTimeout(() => this.settle(), REST_AFTER);
    if (this.frameWaiting || !this.size) return;
    this.frameWaiting = true;
    requestAnimationFrame(() => {
      this.frameWaiting = false;
      this.drawFrame(true);
    });
  }

  requestOverlay() {
    requestAnimationFrame(() => this.drawOverlay());
  }

  settle() {
    if (!this.size) return;
    clearTimeout(this.restTimer);
    this.drawFrame(false);
    const more = () => {
      if (this.frameWaiting || this.renderer.continueEdges(this.pixelView(), this.style)) return;
      requestAnimationFrame(more);
    };
    requestAnimationFrame(more);
  }

  drawFrame(moving) {
    this.renderer.draw(this.flow, this.transform, this.pixelView(), this.style, moving);
    this.drawOverlay();
    this.frames += 1;
  }

  drawOverlay() {
    const { pen, size, ratio } = this;
    if (!size) return;
    const view = this.pixelView();
    const { rim } = this.parts;
    const [radius, x, y] = [view.radius / ratio, view.x / ratio, view.y / ratio];
    rim.style.cssText = `left: ${x - radius}px; top: ${y - radius}px; width: ${2 * radius}px; height: ${2 * radius}px`;
    pen.clearRect(0, 0, size.width, size.height);
    if (this.chosen >= 0) this.drawChosen(view);
    for (const [node, width] of [[this.hovered, 1.5], [this.chosen, 2.5]]) {
      if (node < 0) continue;
      const [px, py] = this.project(node);
      pen.beginPath();
      pen.arc(view.x + view.radius * px, view.y - view.radius * py, this.style.pointRadius + 3 * ratio, 0, 2 * Math.PI);
      pen.lineWidth = width * ratio;
      pen.strokeStyle = this.style.text;
      pen.stroke();
    }
    if (this.lasso) this.drawLasso();
  }

  drawChosen(view) {
    const kinds = [["local", "#2f6fde"], ["global", "#d5281e"]];
    const given = kinds.filter(([kind]) => this.data[kind]);
    for (const [kind, colour] of given) {
      const rows = this.weightsOf(kind, this.chosen);
      const most = rows.reduce((a, [, w]) => Math.max(a, w), 1e-30);
      for (const [j, w] of rows) this.drawGeodesic(view, this.chosen, j, colour, 0.75 + (3 * w) / most, 0.25 + (0.7 * w) / most);
    }
    if (given.length) return;
    for (const j of this.data.neighboursOf(this.chosen).slice(0, 400)) {
      this.drawGeodesic(view, this.chosen, j, this.style.text, 1.4, 0.7);
    }
  }

  drawGeodesic(view, i, j, colour, width, strength) {
    const { pen } = this;
    const arc = this.geodesic(i, j, 32);
    pen.beginPath();
    for (let k = 0; k < arc.length; k += 2) pen.lineTo(view.x + view.radius * arc[k], view.y - view.radius * arc[k + 1]);
    pen.globalAlpha = strength;
    pen.lineWidth = width * this.ratio;
    pen.strokeStyle = colour;
    pen.stroke();
    pen.globalAlpha = 1;
  }

  drawLasso() {
    const { pen, ratio } = this;
    const box = this.parts.stage.getBoundingClientRect();
    pen.beginPath();
    for (const [x, y] of this.lasso) pen.lineTo((x - box.left) * ratio, (y - box.top) * ratio);
    pen.closePath();
    pen.setLineDash([6 * ratio, 4 * ratio]);
    pen.lineWidth = 1.5 * ratio;
    pen.strokeStyle = this.style.text;
    pen.stroke();
    pen.setLineDash([]);
  }

  // --- places --------------------------------------------------------------------------------------------------

  getTransform() {
    return [...this.transform];
  }

  setTransform(transform) {
    this.transform = normalise(transform);
    this.requestFrame();
  }

  /** Where node number `i` is drawn, in coordinates of the disk. */
  project(i) {
    return apply(this.transform, this.flow[2 * i], this.flow[2 * i + 1]);
  }

  /** Where node number `i` is drawn, in CSS pixels of the window. */
  screen(i) {
    const view = this.pixelView();
    const box = this.parts.stage.getBoundingClientRect();
    const [x, y] = this.project(i);
    return [box.left + (view.x + view.radius * x) / this.ratio, box.top + (view.y - view.radius * y) / this.ratio];
  }

  /** The point of the disk under a pixel of the window, held off the boundary. */
  diskPoint(clientX, clientY) {
    const view = this.pixelView();
    const box = this.parts.stage.getBoundingClientRect();
    const x = ((clientX - box.left) * this.ratio - view.x) / view.radius;
    const y = (view.y - (clientY - box.top) * this.ratio) / view.radius;
    const away = Math.hypot(x, y);
    return away > FARTHEST ? [(x * FARTHEST) / away, (y * FARTHEST) / away] : [x, y];
  }

  geodesic(i, j, pieces) {
    return geodesic(...this.project(i), ...this.project(j), pieces);
  }

  nearest(clientX, clientY, within) {
    const view = this.pixelView();
    const box = this.parts.stage.getBoundingClientRect();
    const x = ((clientX - box.left) * this.ratio - view.x) / view.radius;
    const y = (view.y - (clientY - box.top) * this.ratio) / view.radius;
    return this.nearestTo(x, y, (within * this.ratio) / view.radius);
  }

  nearestToCentre() {
    return this.nearestTo(this.view.x, this.view.y, Infinity);
  }

  currentPlaces() {
    this.places ??= new Float64Array(this.flow.length);
    return applyAll(this.transform, this.flow, this.places);
  }

  nearestTo(x, y, within) {
    const places = this.currentPlaces();
    let [best, least] = [-1, within * within];
    for (let i = 0; i < places.length; i += 2) {
      const away = (places[i] - x) ** 2 + (places[i + 1] - y) ** 2;
      if (away < least) [best, least] = [i / 2, away];
    }
    return best;
  }

  /** Numbers of the nodes inside a polygon of window pixels. */
  inside(polygon) {
    const found = [];
    const view = this.pixelView();
    const box = this.parts.stage.getBoundingClientRect();
    const places = this.currentPlaces();
    for (let i = 0; i < this.data.count; i++) {
      const x = box.left + (view.x + view.radius * places[2 * i]) / this.ratio;
      const y = box.top + (view.y - view.radius * places[2 * i + 1]) / this.ratio;
      let odd = false;
      for (let a = 0, b = polygon.length - 1; a < polygon.length; b = a++) {
        const [[ax, ay], [bx, by]] = [polygon[a], polygon[b]];
        if (ay > y !== by > y && x < ((bx - ax) * (y - ay)) / (by - ay) + ax) odd = !odd;
      }
      if (odd) found.push(i);
    }
    return found;
  }

  // --- actions -------------------------------------------------------------------------------------------------

  /** Moves the view by the translation that takes the origin to (x, y). */
  shift(x, y) {
    this.setTransform(compose(leftTranslation(x, y), this.transform));
  }

  /** Brings a node to the disk's centre along its geodesic; `animate: false` does it at once. */
  centreOn(i, { animate = true } = {}) {
    const from = this.transform;
    const [x, y] = this.project(i);
    const r = Math.hypot(x, y);
    this.view = { ...this.view, x: 0, y: 0 };
    const goTo = (s) => {
      const part = r < 1e-12 ? 0 : Math.tanh(s * Math.atanh(r)) / r;
      this.setTransform(compose(leftTranslation(-part * x, -part * y), from));
    };
    const calm = matchMedia("(prefers-reduced-motion: reduce)").matches;
    if (!animate || calm) {
      goTo(1);
      return Promise.resolve();
    }
    return this.animate(350, (s) => goTo(s * s * (3 - 2 * s)));
  }

  animate(duration, step) {
    this.animation = (this.animation ?? 0) + 1;
    const mine = this.animation;
    const started = performance.now();
    return new Promise((resolve) => {
      const tick = () => {
        if (this.animation !== mine) return resolve();
        const s = Math.min(1, Math.max(0, (performance.now() - started) / duration));
        step(s);
        return s < 1 ? requestAnimationFrame(tick) : resolve();
      };
      tick();
    });
  }

  zoom(factor, clientX, clientY) {
    const { view } = this;
    const scale = Math.max(0.5, Math.min(4000, view.scale * factor));
    if (clientX !== undefined && this.size) {
      const box = this.parts.stage.getBoundingClientRect();
      const radius = Math.min(box.width, box.height) / 2 - MARGIN;
      const [dx, dy] = [clientX - box.left - box.width / 2, box.top + box.height / 2 - clientY];
      const change = (1 / view.scale - 1 / scale) / radius;
      this.view = { scale, x: view.x + dx * change, y: view.y + dy * change };
    } else {
      this.view = { ...view, scale };
    }
    this.requestFrame();
  }

  reset() {
    this.view = { scale: 1, x: 0, y: 0 };
    this.setTransform([...IDENTITY]);
  }

  colourBy(name) {
    this.mode = this.modes.find((mode) => mode.name === name) ?? this.modes[0];
    this.parts.colour.value = this.mode.name;
    showLegend(this.parts, this.mode);
    this.refreshColours();
  }

  refreshColours() {
    const colours = new Uint8Array(4 * this.data.count);
    const background = this.selected.length ? 60 : 235;
    for (let i = 0; i < this.data.count; i++) {
      colours.set(this.mode.of(i), 4 * i);
      colours[4 * i + 3] = background;
    }
    for (const i of this.selected) colours[4 * i + 3] = 255;
    this.renderer.setColours(colours);
    this.requestFrame();
  }

  /** Shows the nodes at a diffusion time; between stored times they follow geodesics. */
  setTime(time) {
    const { times, frames } = this.data;
    this.time = Math.max(times[0], Math.min(times[times.length - 1], time));
    let k = 0;
    while (k + 2 < times.length && times[k + 1] <= this.time) k++;
    if (times.length === 1 || this.time === times[k]) this.flow.set(frames[k]);
    else interpolateAll(frames[k], frames[k + 1], (this.time - times[k]) / (times[k + 1] - times[k]), this.flow);
    if (this.time === times[times.length - 1]) this.flow.set(frames[times.length - 1]);
    if (this.parts.time) {
      this.parts.time.value = this.time;
      this.parts.timeWords.textContent = this.time.toFixed(2);
    }
    this.parts.showEnergyTime?.(this.time);
    this.renderer.invalidate();
    this.requestFrame();
  }

  /** Plays the flow from the start, or from where it stands; stops it when it plays. */
  play(duration = 4000) {
    const { times } = this.data;
    const [first, last] = [times[0], times[times.length - 1]];
    if (times.length < 2) return;
    const show = (on) => {
      this.playing = on;
      this.parts.play.textContent = on ? "Pause" : "Play";
      this.parts.play.setAttribute("aria-pressed", String(on));
    };
    if (this.playing) {
      this.animation += 1;
      show(false);
      return;
    }
    const from = this.time >= last ? first : this.time;
    show(true);
    this.animate((duration * (last - from)) / (last - first), (s) => this.setTime(from + s * (last - from))).then(() => show(false));
  }

  hover(clientX, clientY) {
    const node = this.nearest(clientX, clientY, 10);
    const { hover, stage } = this.parts;
    if (node !== this.hovered) {
      this.hovered = node;
      hover.hidden = node < 0;
      if (node >= 0) {
        const lines = cardLines(this.data, node).map(([word, value]) => [word, value.slice(0, 120)]);
        hover.replaceChildren(cardTable(lines));
      }
      this.requestOverlay();
    }
    if (node < 0) return;
    const box = stage.getBoundingClientRect();
    const [x, y] = [clientX - box.left, clientY - box.top];
    hover.style.left = `${Math.min(x + 14, box.width - hover.offsetWidth - 4)}px`;
    hover.style.top = `${y + 14 + hover.offsetHeight > box.height ? y - hover.offsetHeight - 10 : y + 14}px`;
  }

  /** Makes a node the chosen one (-1: none), shows its card, and centres it on request. */
  choose(i, centre = false) {
    this.chosen = i;
    showCard(this.parts, this);
    this.requestOverlay();
    if (centre && i >= 0) this.centreOn(i);
  }

  /** Pairs of a node's number and its weight in the row of `i`, the largest first. */
  weightsOf(kind, i) {
    const given = this.data[kind];
    if (!given) return [];
    const rows = [];
    for (let k = i * given.width; k < (i + 1) * given.width; k++) {
      if (given.nodes[k] >= 0 && given.values[k] > 0) rows.push([given.nodes[k], given.values[k]]);
    }
    return rows.sort((a, b) => b[1] - a[1]);
  }

  /** Numbers of up to 20 nodes whose id contains the text; an equal id first, then those that begin with it. */
  search(text) {
    const wanted = text.trim().toLowerCase();
    if (!wanted) return [];
    const ranks = [[], [], []];
    for (let i = 0; i < this.data.count && ranks[2].length < 4000; i++) {
      const place = this.data.ids[i].toLowerCase().indexOf(wanted);
      if (place >= 0) ranks[place > 0 ? 2 : this.data.ids[i].length === wanted.length ? 0 : 1].push(i);
    }
    return ranks.flat().slice(0, 20);
  }

  setTool(tool) {
    this.tool = tool;
    this.parts.select.setAttribute("aria-pressed", String(tool === "select"));
    this.parts.stage.classList.toggle("selecting", tool === "select");
  }

  select(nodes) {
    this.selected = [...nodes];
    this.parts.export.disabled = this.parts.clear.disabled = !this.selected.length;
    this.refreshColours();
    showCard(this.parts, this);
    this.onselect(this.selected);
  }

  /** The selection as comma-separated values, one line per node. */
  exportText() {
    const { data } = this;
    const quoted = (text) => `"${String(text).replaceAll('"', '""')}"`;
    const name = (k) => quoted(k < 0 ? "" : (data.classes[k] ?? k));
    const columns = [["id", (i) => quoted(data.ids[i])]];
    if (data.labels) columns.push(["label", (i) => name(data.labels[i])]);
    if (data.predictions) columns.push(["prediction", (i) => name(data.predictions[i])]);
    if (data.confidences) columns.push(["confidence", (i) => data.confidences[i].toPrecision(6)]);
    columns.push(["x", (i) => this.flow[2 * i]], ["y", (i) => this.flow[2 * i + 1]]);
    const lines = this.selected.map((i) => columns.map(([, value]) => value(i)).join(","));
    return [columns.map(([word]) => word).join(","), ...lines, ""].join("\n");
  }

  download() {
    const link = element("a", { download: "selection.csv" });
    link.href = URL.createObjectURL(new Blob([this.exportText()], { type: "text/csv" }));
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 1000);
  }
}

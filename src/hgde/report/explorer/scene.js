// The scene: nodes and edges at a diffusion time, seen through an isometry of the disk and a zoom.

const MARGIN = 10; // pixels between the disk and the edge of its square
const REST_AFTER = 140; // milliseconds without motion until everything is drawn

class Scene {
  constructor(root, data) {
    this.root = root;
    this.data = data;
    this.transform = [...IDENTITY];
    this.view = { scale: 1, x: 0, y: 0 };
    this.flow = new Float64Array(2 * data.count); // where the nodes are at the time shown, before the isometry
    this.chosen = -1;
    this.hovered = -1;
    this.lasso = null;
    this.frames = 0;
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
    if (!this.colours) return;
    this.renderer.setColours(this.colours);
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
      local: style.getPropertyValue("--hgde-local").trim(),
      global: style.getPropertyValue("--hgde-global").trim(),
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
    const given = ["local", "global"].filter((kind) => this.data[kind]);
    for (const kind of given) {
      const rows = this.weightsOf(kind, this.chosen);
      const most = rows.reduce((a, [, w]) => Math.max(a, w), 1e-30);
      for (const [j, w] of rows) {
        this.drawGeodesic(view, this.chosen, j, this.style[kind], 0.75 + (3 * w) / most, 0.25 + (0.7 * w) / most);
      }
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
}

// The explorer: what the page, the notebook and the tests call.

class Explorer extends Scene {
  constructor(root, data, options = {}) {
    super(root, data);
    this.modes = colourModes(data);
    this.tool = "move";
    this.selected = [];
    this.onselect = options.onselect ?? (() => {});
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
    this.colours = colours;
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
    const wait = (duration * (last - from)) / (last - first);
    this.animate(wait, (s) => this.setTime(from + s * (last - from))).then(() => show(false));
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

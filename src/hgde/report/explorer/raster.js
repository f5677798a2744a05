// Drawing without a graphics card: lines and points are written into an image by hand. With 100,000 nodes this is
// several times faster than WebGL emulated in software, and than the canvas's own paths.

class RasterRenderer {
  constructor(canvas) {
    this.canvas = canvas;
    this.context = canvas.getContext("2d", { alpha: true });
    this.name = "canvas";
    this.budget = 400_000; // pixels of edges per moving frame; follows the measured time per frame
  }

  setData(count, edges) {
    this.edges = edges;
    this.points = new Float64Array(2 * count);
    // A scale factor of two on a slow machine costs four times the pixels, which large graphs cannot afford.
    this.maxRatio = count > 20_000 ? 1 : 2;
    this.pending = null;
  }

  setColours(colours) {
    this.colours = colours;
    this.solid = new Uint32Array(colours.length / 4);
    for (let i = 0; i < this.solid.length; i++) {
      const [r, g, b, strength] = colours.subarray(4 * i, 4 * i + 4);
      this.solid[i] = ((strength < 128 ? strength << 24 : 0xff000000) | (b << 16) | (g << 8) | r) >>> 0;
    }
  }

  resize(width, height) {
    this.canvas.width = width;
    this.canvas.height = height;
    this.image = this.context.createImageData(width, height);
    this.pixels = new Uint32Array(this.image.data.buffer);
    this.ink = new Float32Array(width * height);
    this.settledInk = null;
  }

  invalidate() {}

  /** `transform` acts on `positions`; `view` is {radius, x, y}: the disk's radius and centre in pixels. */
  draw(positions, transform, view, style, moving) {
    const started = performance.now();
    applyAll(transform, positions, this.points);
    if (moving) {
      this.pending = null;
      this.settledInk = null;
      this.ink.fill(0);
      this.drawEdges(0, this.edges.length / 2, view, this.budget, Infinity);
      this.paint(this.ink, view, style, true);
      const spent = performance.now() - started;
      this.budget = Math.max(20_000, Math.min(6e6, this.budget * (spent > 20 ? 0.8 : spent < 13 ? 1.1 : 1)));
      return;
    }
    if (!this.settledInk) {
      if (!this.pending) this.pending = { next: 0, ink: new Float32Array(this.ink.length) };
    }
    this.paint(this.settledInk ?? this.ink, view, style, false);
  }

  /** Draws some more of the edges at rest; true when there is nothing left to do. */
  continueEdges(view, style) {
    if (!this.pending) return true;
    const shown = this.ink;
    this.ink = this.pending.ink;
    this.pending.next = this.drawEdges(this.pending.next, this.edges.length / 2, view, Infinity, performance.now() + 12);
    this.ink = shown;
    if (this.pending.next < this.edges.length / 2) return false;
    this.settledInk = this.pending.ink;
    this.pending = null;
    this.paint(this.settledInk, view, style, false);
    return true;
  }

  /** Edges from `first` on until the budget of pixels or the time is spent; the number of the next one. */
  drawEdges(first, last, view, budget, deadline) {
    const { points, edges } = this;
    const { radius, x: ox, y: oy } = view;
    let spent = 0;
    for (let e = first; e < last; e++) {
      const i = 2 * edges[2 * e];
      const j = 2 * edges[2 * e + 1];
      const ax = points[i], ay = points[i + 1], bx = points[j], by = points[j + 1];
      const length = (Math.abs(ax - bx) + Math.abs(ay - by)) * radius;
      // The farther a chord runs from the origin's lines, the more its geodesic bends; 2|a × b| bounds the sagitta.
      const bend = Math.abs(ax * by - ay * bx) * length;
      if (bend < 2) {
        this.line(ox + radius * ax, oy - radius * ay, ox + radius * bx, oy - radius * by);
      } else {
        const arc = geodesic(ax, ay, bx, by, Math.min(24, 2 + Math.ceil(Math.sqrt(bend))));
        for (let k = 2; k < arc.length; k += 2) {
          this.line(ox + radius * arc[k - 2], oy - radius * arc[k - 1], ox + radius * arc[k], oy - radius * arc[k + 1]);
        }
      }
      spent += 8 + length;
      if (spent > budget) return e + 1;
      if ((e & 255) === 0 && performance.now() > deadline) return e + 1;
    }
    return last;
  }

  /** A smooth line: each column (or row) shares one unit of ink between the two nearest pixels. */
  line(x0, y0, x1, y1) {
    const { width, height } = this.canvas;
    const { ink } = this;
    const steep = Math.abs(y1 - y0) > Math.abs(x1 - x0);
    if (steep) [x0, y0, x1, y1] = [y0, x0, y1, x1];
    if (x0 > x1) [x0, y0, x1, y1] = [x1, y1, x0, y0];
    const along = steep ? height : width;
    const across = steep ? width : height;
    const slope = x1 - x0 < 1e-9 ? 0 : (y1 - y0) / (x1 - x0);
    const from = Math.max(0, Math.ceil(x0));
    const to = Math.min(along - 1, Math.floor(x1));
    const stepAlong = steep ? width : 1;
    const stepAcross = steep ? 1 : width;
    for (let x = from; x <= to; x++) {
      const y = y0 + slope * (x - x0);
      const row = Math.floor(y);
      if (row < 0 || row >= across - 1) continue;
      const place = x * stepAlong + row * stepAcross;
      const part = y - row;
      ink[place] += 1 - part;
      ink[place + stepAcross] += part;
    }
  }

  paint(ink, view, style, moving) {
    const { width, height } = this.canvas;
    const { pixels } = this;
    const [fr, fg, fb] = style.fill;
    const [er, eg, eb] = style.edge;
    const fill = (255 << 24) | (fb << 16) | (fg << 8) | fr;
    const saturation = style.edgeInk;
    pixels.fill(0);
    for (let y = 0; y < height; y++) {
      const across = (y + 0.5 - view.y) / view.radius;
      if (Math.abs(across) >= 1) continue;
      const reach = view.radius * Math.sqrt(1 - across * across);
      const from = y * width + Math.max(0, Math.round(view.x - reach));
      const to = y * width + Math.min(width, Math.round(view.x + reach));
      pixels.fill(fill, from, to);
      for (let place = from; place < to; place++) {
        const amount = ink[place];
        if (amount === 0) continue;
        const a = (0.6 * amount) / (amount + saturation);
        pixels[place] = (255 << 24) | ((fb + a * (eb - fb)) << 16) | ((fg + a * (eg - fg)) << 8) | (fr + a * (er - fr));
      }
    }
    if (moving && this.points.length > 60_000) this.paintDots(view);
    else this.paintPoints(view, style);
    this.context.putImageData(this.image, 0, 0);
  }

  /** Squares of two pixels, for many nodes in motion: a quarter of the time of discs. */
  paintDots(view) {
    const { width, height } = this.canvas;
    const { points, solid, pixels } = this;
    const { radius, x, y } = view;
    for (let i = 0; i < solid.length; i++) {
      const px = (x + radius * points[2 * i] - 0.5) | 0;
      const py = (y - radius * points[2 * i + 1] - 0.5) | 0;
      if (px < 0 || py < 0 || px >= width - 1 || py >= height - 1) continue;
      const colour = solid[i];
      const place = py * width + px;
      pixels[place] = colour;
      if (colour < 0xff000000) continue; // not of the selection: one faint pixel
      pixels[place + 1] = colour;
      pixels[place + width] = colour;
      pixels[place + width + 1] = colour;
    }
  }

  /** Discs with smooth edges; two colour channels are blended by one multiplication. */
  paintPoints(view, style) {
    const { width, height } = this.canvas;
    const { points, colours, pixels } = this;
    const { stencils, reach } = pointStencils(style.pointRadius, width);
    const count = points.length / 2;
    for (let i = 0; i < count; i++) {
      const sx = view.x + view.radius * points[2 * i];
      const sy = view.y - view.radius * points[2 * i + 1];
      const px = Math.floor(sx), py = Math.floor(sy);
      if (px < reach || py < reach || px >= width - reach || py >= height - reach) continue;
      const { offsets, covers } = stencils[4 * (((sy - py) * 4) | 0) + (((sx - px) * 4) | 0)];
      const redBlue = colours[4 * i] | (colours[4 * i + 2] << 16);
      const green = colours[4 * i + 1] << 8;
      const strength = colours[4 * i + 3];
      const centre = py * width + px;
      for (let k = 0; k < offsets.length; k++) {
        const place = centre + offsets[k];
        const below = pixels[place];
        const a = (covers[k] * strength) >> 8;
        const mixed = (Math.imul(redBlue, a) + Math.imul(below & 0xff00ff, 256 - a)) >>> 8;
        const mixedGreen = (Math.imul(green, a) + Math.imul(below & 0xff00, 256 - a)) >>> 8;
        // Outside the disk the image is clear, and a disc's edge there is drawn as clear as its cover.
        const opacity = below === 0 ? a << 24 : 0xff000000;
        pixels[place] = below === 0 ? redBlue | green | opacity : (mixed & 0xff00ff) | (mixedGreen & 0xff00) | opacity;
      }
    }
  }
}

const STENCILS = new Map();

/** Pixels and coverage (of 256) of a disc for each quarter of a pixel its centre may be in. */
function pointStencils(radius, width) {
  const key = `${radius.toFixed(2)} ${width}`;
  if (!STENCILS.has(key)) {
    const reach = Math.ceil(radius + 0.5);
    const stencils = [];
    for (let quarter = 0; quarter < 16; quarter++) {
      const [u, v] = [((quarter & 3) + 0.5) / 4, ((quarter >> 2) + 0.5) / 4];
      const [offsets, covers] = [[], []];
      for (let y = -reach; y <= reach; y++) {
        for (let x = -reach; x <= reach; x++) {
          const cover = Math.round(257 * Math.max(0, Math.min(1, radius + 0.5 - Math.hypot(x + 0.5 - u, y + 0.5 - v))));
          if (cover < 8) continue;
          offsets.push(y * width + x);
          covers.push(cover);
        }
      }
      stencils.push({ offsets: Int32Array.from(offsets), covers: Int32Array.from(covers) });
    }
    STENCILS.set(key, { stencils, reach });
  }
  return STENCILS.get(key);
}

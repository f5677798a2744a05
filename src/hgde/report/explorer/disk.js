// Orientation-preserving isometries of the unit disk, T(z) = (αz + β) / (conj(β) z + conj(α)) with |α|² - |β|² = 1.
// An isometry is kept as [Re α, Im α, Re β, Im β]; every function here returns a new one.

const IDENTITY = Object.freeze([1, 0, 0, 0]);

function normalise([ar, ai, br, bi]) {
  const scale = 1 / Math.sqrt(ar * ar + ai * ai - br * br - bi * bi);
  return [ar * scale, ai * scale, br * scale, bi * scale];
}

/** The isometry that applies `second` first and `first` to its result. */
function compose(first, second) {
  const [ar, ai, br, bi] = first;
  const [cr, ci, dr, di] = second;
  return normalise([
    ar * cr - ai * ci + br * dr + bi * di,
    ar * ci + ai * cr + bi * dr - br * di,
    ar * dr - ai * di + br * cr + bi * ci,
    ar * di + ai * dr + bi * cr - br * ci,
  ]);
}

function inverse([ar, ai, br, bi]) {
  return [ar, -ai, -br, -bi];
}

function apply([ar, ai, br, bi], x, y) {
  const nr = ar * x - ai * y + br;
  const ni = ar * y + ai * x + bi;
  const dr = br * x + bi * y + ar;
  const di = br * y - bi * x - ai;
  const size = dr * dr + di * di;
  return [(nr * dr + ni * di) / size, (ni * dr - nr * di) / size];
}

/** z ↦ a ⊕ z, the Möbius addition of the Python package with a on the left. */
function leftTranslation(x, y) {
  const scale = 1 / Math.sqrt(1 - x * x - y * y);
  return [scale, 0, x * scale, y * scale];
}

/** The translation along the geodesic through p and q that takes p to q: p ⊕ ((-p ⊕ q) ⊕ (-p ⊕ z)). */
function translation(px, py, qx, qy) {
  const back = leftTranslation(-px, -py);
  const [sx, sy] = apply(back, qx, qy);
  return compose(leftTranslation(px, py), compose(leftTranslation(sx, sy), back));
}

/** All points [x0, y0, x1, y1, ...] of `source` moved into `target`. */
function applyAll([ar, ai, br, bi], source, target) {
  for (let i = 0; i < source.length; i += 2) {
    const x = source[i];
    const y = source[i + 1];
    const nr = ar * x - ai * y + br;
    const ni = ar * y + ai * x + bi;
    const dr = br * x + bi * y + ar;
    const di = br * y - bi * x - ai;
    const size = 1 / (dr * dr + di * di);
    target[i] = (nr * dr + ni * di) * size;
    target[i + 1] = (ni * dr - nr * di) * size;
  }
  return target;
}

/**
 * Points on the geodesic between two points of the disk, `pieces + 1` of them as [x, y, ...].
 * A geodesic is a chord in Klein's model, k = 2z / (1 + |z|²), and z = k / (1 + sqrt(1 - |k|²)) leads back. The root is
 * steep near the boundary, so the chord is divided like a cosine, densely at its ends.
 */
function geodesic(ax, ay, bx, by, pieces) {
  const fa = 2 / (1 + ax * ax + ay * ay);
  const fb = 2 / (1 + bx * bx + by * by);
  const line = new Float64Array(2 * pieces + 2);
  for (let i = 0; i <= pieces; i++) {
    const s = 0.5 - 0.5 * Math.cos((Math.PI * i) / pieces);
    const kx = (1 - s) * fa * ax + s * fb * bx;
    const ky = (1 - s) * fa * ay + s * fb * by;
    const scale = 1 / (1 + Math.sqrt(Math.max(0, 1 - kx * kx - ky * ky)));
    line[2 * i] = kx * scale;
    line[2 * i + 1] = ky * scale;
  }
  line[0] = ax;
  line[1] = ay;
  line[2 * pieces] = bx;
  line[2 * pieces + 1] = by;
  return line;
}

/** For every pair of points the one that divides their geodesic in proportion s: a ⊕ (s ⊗ (-a ⊕ b)). */
function interpolateAll(from, to, s, target) {
  for (let i = 0; i < from.length; i += 2) {
    const ax = from[i], ay = from[i + 1], bx = to[i], by = to[i + 1];
    const a2 = ax * ax + ay * ay;
    const ab = ax * bx + ay * by;
    const b2 = bx * bx + by * by;
    const backward = 1 / (1 - 2 * ab + a2 * b2);
    const wx = ((1 - a2) * bx - (1 - 2 * ab + b2) * ax) * backward;
    const wy = ((1 - a2) * by - (1 - 2 * ab + b2) * ay) * backward;
    const r = Math.sqrt(wx * wx + wy * wy);
    const scale = r < 1e-12 ? s : Math.tanh(s * Math.atanh(Math.min(r, 1 - 1e-15))) / r;
    const vx = scale * wx, vy = scale * wy;
    const av = ax * vx + ay * vy;
    const v2 = vx * vx + vy * vy;
    const forward = 1 / (1 + 2 * av + a2 * v2);
    target[i] = ((1 + 2 * av + v2) * ax + (1 - a2) * vx) * forward;
    target[i + 1] = ((1 + 2 * av + v2) * ay + (1 - a2) * vy) * forward;
  }
  return target;
}

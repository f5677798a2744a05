// From the packed form written by payload.py to typed arrays.

const ARRAY_TYPES = {
  f8: Float64Array, f4: Float32Array, u4: Uint32Array, i4: Int32Array, u2: Uint16Array, i2: Int16Array, u1: Uint8Array,
};

async function unpackBytes(packed) {
  const text = atob(packed.data);
  let bytes = new Uint8Array(text.length);
  for (let i = 0; i < text.length; i++) bytes[i] = text.charCodeAt(i);
  if (packed.deflate) {
    const stream = new Blob([bytes]).stream().pipeThrough(new DecompressionStream("deflate"));
    bytes = new Uint8Array(await new Response(stream).arrayBuffer());
  }
  return bytes;
}

async function unpack(packed) {
  if (!packed) return null;
  const bytes = await unpackBytes(packed);
  return new ARRAY_TYPES[packed.type](bytes.buffer, bytes.byteOffset, bytes.byteLength / Number(packed.type[1]));
}

async function unpackIds(ids, count) {
  if (ids.kind === "range") return Array.from({ length: count }, (_, i) => String(i));
  return JSON.parse(new TextDecoder().decode(await unpackBytes(ids.text)));
}

async function unpackWeights(packed) {
  if (!packed) return null;
  return { width: packed.width, nodes: await unpack(packed.nodes), values: await unpack(packed.values) };
}

/** Edges in an order in which any beginning is a fair sample, the same at every visit. */
function shuffledEdges(edges) {
  if (!edges) return new Uint32Array(0);
  const result = Uint32Array.from(edges);
  let seed = 12345;
  for (let i = result.length / 2 - 1; i > 0; i--) {
    seed = (Math.imul(seed, 1664525) + 1013904223) >>> 0;
    const j = Math.floor((seed / 4294967296) * (i + 1));
    for (let k = 0; k < 2; k++) {
      const kept = result[2 * i + k];
      result[2 * i + k] = result[2 * j + k];
      result[2 * j + k] = kept;
    }
  }
  return result;
}

/** For each node the places of its edges: `start[i] .. start[i + 1]` in `other`. */
function neighbourLists(edges, count) {
  const start = new Uint32Array(count + 1);
  for (const node of edges) start[node + 1]++;
  for (let i = 0; i < count; i++) start[i + 1] += start[i];
  const next = start.slice(0, count);
  const other = new Uint32Array(edges.length);
  for (let i = 0; i < edges.length; i += 2) {
    other[next[edges[i]]++] = edges[i + 1];
    other[next[edges[i + 1]]++] = edges[i];
  }
  return { start, other };
}

async function readPayload(payload) {
  const count = payload.count;
  const positions = await unpack(payload.positions);
  const edges = shuffledEdges(await unpack(payload.edges));
  const { start, other } = neighbourLists(edges, count);
  const counted = () => Uint32Array.from({ length: count }, (_, i) => start[i + 1] - start[i]);
  return {
    title: payload.title,
    count,
    times: payload.times,
    frames: payload.times.map((_, t) => positions.subarray(2 * t * count, 2 * (t + 1) * count)),
    edges,
    neighboursOf: (i) => other.subarray(start[i], start[i + 1]),
    ids: await unpackIds(payload.ids, count),
    classes: payload.classes,
    labels: await unpack(payload.labels),
    predictions: await unpack(payload.predictions),
    confidences: await unpack(payload.confidences),
    degrees: (await unpack(payload.degrees)) ?? counted(),
    local: await unpackWeights(payload.local),
    global: await unpackWeights(payload.global),
    energy: payload.energy,
  };
}

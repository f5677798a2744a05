// What stands around the disk: controls, legend, card, energy curve. All words from data go in as text, never as markup.

function element(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (value !== false && value !== null) node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.filter((child) => child !== null));
  return node;
}

function svgElement(tag, attributes = {}) {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  return node;
}

const shortNumber = (value) => (Number.isInteger(value) ? String(value) : value.toPrecision(3));
const percent = (value) => `${(100 * value).toFixed(1)} %`;

/** Builds the panel inside `root` for `explorer` and returns what it must refresh. */
function buildPanel(root, explorer) {
  const { data } = explorer;
  const parts = {};
  const button = (text, action, more = {}) => element("button", { type: "button", onclick: action, ...more }, text);
  parts.stage = element("div", {
    class: "hgde-stage", tabindex: "0", role: "application", "aria-roledescription": "hyperbolic disk",
    "aria-label": `${data.title}: ${data.count} nodes and ${data.edges.length / 2} edges in the Poincaré disk. ` +
      "Arrow keys move, plus and minus zoom, N steps through the nodes, C centres, Home resets the view, Space plays.",
  });
  parts.rim = element("div", { class: "hgde-rim" });
  parts.drawing = element("canvas", { "aria-hidden": "true" });
  parts.overlay = element("canvas", { "aria-hidden": "true", class: "hgde-overlay" });
  parts.hover = element("div", { class: "hgde-hover", hidden: true });
  parts.stage.append(parts.rim, parts.drawing, parts.overlay, parts.hover);

  parts.colour = element(
    "select",
    { "aria-label": "Colour nodes by", onchange: () => explorer.colourBy(parts.colour.value) },
    ...explorer.modes.map((mode) => element("option", { value: mode.name }, mode.words)),
  );
  parts.search = element("input", {
    type: "search", placeholder: "Find a node by id", "aria-label": "Find a node by id", autocomplete: "off",
    oninput: () => showMatches(parts, explorer),
    onkeydown: (event) => {
      const [first] = explorer.search(parts.search.value);
      if (event.key === "Enter" && first !== undefined) explorer.choose(first, true);
    },
  });
  parts.matches = element("ul", { class: "hgde-matches", hidden: true, "aria-label": "Nodes found" });
  parts.select = button("Select region", () => explorer.setTool(explorer.tool === "select" ? "move" : "select"), {
    "aria-pressed": "false",
    title: "Draw around nodes; Shift and drag does the same",
  });
  parts.export = button("Export ids", () => explorer.download(), { disabled: true });
  parts.clear = button("Clear", () => explorer.select([]), { disabled: true });
  parts.legend = element("ul", { class: "hgde-legend", "aria-label": "Colours" });
  parts.card = element("div", { class: "hgde-card", role: "status", "aria-live": "polite" });
  const bar = element(
    "div", { class: "hgde-bar" },
    element("label", {}, "Colour ", parts.colour),
    element("div", { class: "hgde-search" }, parts.search, parts.matches),
    parts.select, parts.export, parts.clear,
    button("Reset view", () => explorer.reset()),
  );
  const side = element("div", { class: "hgde-side" }, parts.legend, parts.card);
  if (data.times.length > 1) side.append(timeControls(parts, explorer));
  if (data.energy) side.append(energyCurve(parts, explorer));
  const help = "Drag to move, double click to centre a node, wheel or pinch to zoom, click for a node's card.";
  side.append(element("p", { class: "hgde-help" }, help));
  root.append(bar, element("div", { class: "hgde-main" }, parts.stage, side));
  return parts;
}

function timeControls(parts, explorer) {
  const { times } = explorer.data;
  const [first, last] = [times[0], times[times.length - 1]];
  parts.time = element("input", {
    type: "range", min: first, max: last, step: (last - first) / 200, "aria-label": "Diffusion time",
    oninput: () => explorer.setTime(Number(parts.time.value)),
  });
  parts.timeWords = element("output", {}, "");
  parts.play = element("button", { type: "button", onclick: () => explorer.play(), "aria-pressed": "false" }, "Play");
  const words = element("span", {}, "Diffusion time ");
  return element("div", { class: "hgde-time" }, words, parts.timeWords, parts.time, parts.play);
}

function energyCurve(parts, explorer) {
  const { times, curves } = explorer.data.energy;
  const [width, height, left, bottom, top] = [260, 120, 40, 18, 8];
  const log = (value) => Math.log10(Math.max(value, 1e-300));
  const logs = curves.flatMap((curve) => curve.values).map(log);
  const [low, high] = [Math.min(...logs), Math.max(...logs)];
  const span = Math.max(times[times.length - 1] - times[0], 1e-12);
  const x = (t) => left + ((t - times[0]) / span) * (width - left - 6);
  const y = (v) => top + ((high - log(v)) / Math.max(high - low, 1e-12)) * (height - top - bottom);
  const svg = svgElement("svg", {
    viewBox: `0 0 ${width} ${height}`, class: "hgde-energy", role: "img",
    "aria-label": `Dirichlet energy from ${shortNumber(curves[0].values[0])} to ${shortNumber(curves[0].values.at(-1))}`,
  });
  const text = (words, tx, ty, anchor) => {
    const node = svgElement("text", { x: tx, y: ty, "text-anchor": anchor });
    node.textContent = words;
    svg.append(node);
  };
  svg.append(svgElement("path", { d: `M${left} ${top}V${height - bottom}H${width - 6}`, class: "axis" }));
  curves.forEach((curve, k) => {
    const points = curve.values.map((v, i) => `${x(times[i]).toFixed(1)},${y(v).toFixed(1)}`).join(" ");
    svg.append(svgElement("polyline", { points, style: `stroke: ${css(classColour(k))}` }));
  });
  text((10 ** high).toPrecision(2), left - 4, top + 6, "end");
  text((10 ** low).toPrecision(2), left - 4, height - bottom, "end");
  text(shortNumber(times[0]), left, height - 4, "middle");
  text(shortNumber(times[times.length - 1]), width - 10, height - 4, "end");
  const now = svgElement("line", { y1: top, y2: height - bottom, class: "now" });
  svg.append(now);
  parts.showEnergyTime = (t) => {
    now.setAttribute("x1", x(t));
    now.setAttribute("x2", x(t));
  };
  return element("figure", {}, svg, element("figcaption", {}, "Dirichlet energy along the diffusion"));
}

function showMatches(parts, explorer) {
  const matches = explorer.search(parts.search.value);
  parts.matches.hidden = matches.length === 0;
  parts.matches.replaceChildren(
    ...matches.map((i) => {
      const pick = () => {
        explorer.choose(i, true);
        parts.matches.hidden = true;
      };
      const words = explorer.data.ids[i].slice(0, 60);
      return element("li", {}, element("button", { type: "button", onclick: pick }, words));
    }),
  );
}

function showLegend(parts, mode) {
  const entries = mode.legend().slice(0, 24);
  const items = entries.map(([colour, words]) =>
    element("li", {}, element("span", { class: "swatch", style: `background: ${colour}` }), words),
  );
  if (mode.ramp) {
    const stops = RAMP.map(css).join(", ");
    const strip = element("span", { class: "strip", style: `background: linear-gradient(90deg, ${stops})` });
    items.push(element("li", {}, mode.ramp[0], strip, mode.ramp[1]));
  }
  parts.legend.replaceChildren(...items);
}

/** The lines of a node's card: pairs of a word and a value. */
function cardLines(data, i) {
  const lines = [["node", data.ids[i]]];
  const name = (k) => (k < 0 ? "unlabelled" : (data.classes[k] ?? `class ${k}`));
  if (data.labels) lines.push(["class", name(data.labels[i])]);
  if (data.predictions) lines.push(["prediction", name(data.predictions[i])]);
  if (data.confidences) lines.push(["confidence", percent(data.confidences[i])]);
  lines.push(["degree", String(data.degrees[i])]);
  return lines;
}

function cardTable(lines) {
  const rows = lines.map(([word, value]) => [element("dt", {}, word), element("dd", {}, value)]);
  return element("dl", {}, ...rows.flat());
}

function showCard(parts, explorer) {
  const { data, chosen, selected } = explorer;
  const counts = selected.length ? [element("p", {}, `${selected.length} selected`)] : [];
  if (chosen < 0) {
    const words = `${data.count} nodes, ${data.edges.length / 2} edges`;
    parts.card.replaceChildren(element("p", {}, words), ...counts);
    return;
  }
  const lists = [];
  for (const [kind, words] of [["local", "Local weights"], ["global", "Global weights"]]) {
    const rows = explorer.weightsOf(kind, chosen).slice(0, 5);
    if (!rows.length) continue;
    const items = rows.map(([j, w]) => element("li", {}, `${w.toPrecision(3)}  ${data.ids[j].slice(0, 40)}`));
    lists.push(element("p", { class: `weights ${kind}` }, words), element("ol", {}, ...items));
  }
  parts.card.replaceChildren(cardTable(cardLines(data, chosen)), ...lists, ...counts);
}

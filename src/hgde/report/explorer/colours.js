// Colours of nodes, chosen to be told apart on light and dark paper and by colour-blind readers.

const CLASS_COLOURS = [
  [0, 114, 178], [230, 159, 0], [0, 158, 115], [213, 94, 0], [204, 121, 167],
  [86, 180, 233], [148, 103, 60], [123, 97, 204], [120, 160, 40], [200, 60, 90],
];
const UNKNOWN = [140, 140, 140];
const RAMP = [[68, 60, 140], [49, 104, 142], [33, 145, 140], [83, 197, 104], [240, 215, 50]];

function classColour(k) {
  if (k < 0) return UNKNOWN;
  if (k < CLASS_COLOURS.length) return CLASS_COLOURS[k];
  const hue = (k * 137.508) % 360;
  const part = (n) => {
    const place = (n + hue / 30) % 12;
    return Math.round(255 * (0.5 - 0.38 * Math.max(-1, Math.min(place - 3, 9 - place, 1))));
  };
  return [part(0), part(8), part(4)];
}

function rampColour(s) {
  const place = Math.max(0, Math.min(1, s)) * (RAMP.length - 1);
  const k = Math.min(RAMP.length - 2, Math.floor(place));
  return RAMP[k].map((from, i) => Math.round(from + (place - k) * (RAMP[k + 1][i] - from)));
}

const css = ([r, g, b]) => `rgb(${r} ${g} ${b})`;

/** The ways to colour that the data allow: name, words, colour of a node, legend entries. */
function colourModes(data) {
  const modes = [];
  const byClass = (values) => ({
    of: (i) => classColour(values[i]),
    legend: () => {
      const seen = new Set(values);
      const known = [...seen].filter((k) => k >= 0).sort((a, b) => a - b);
      const entries = known.map((k) => [css(classColour(k)), data.classes[k] ?? `class ${k}`]);
      return seen.has(-1) ? [...entries, [css(UNKNOWN), "unlabelled"]] : entries;
    },
  });
  const continuous = (values, low, high, format, warp = (v) => v) => ({
    of: (i) => rampColour((warp(values[i]) - warp(low)) / (warp(high) - warp(low) || 1)),
    ramp: [format(low), format(high)],
    legend: () => [],
  });
  if (data.labels) modes.push({ name: "class", words: "Class", ...byClass(data.labels) });
  if (data.predictions) modes.push({ name: "prediction", words: "Prediction", ...byClass(data.predictions) });
  if (data.confidences) {
    const percent = (v) => `${Math.round(100 * v)} %`;
    modes.push({ name: "confidence", words: "Confidence", ...continuous(data.confidences, 0, 1, percent) });
  }
  const most = data.degrees.reduce((a, b) => Math.max(a, b), 1);
  modes.push({ name: "degree", words: "Degree", ...continuous(data.degrees, 0, most, String, (v) => Math.log1p(v)) });
  if (data.labels && data.predictions) {
    const state = (i) => (data.labels[i] < 0 ? 2 : Number(data.labels[i] !== data.predictions[i]));
    const shades = [[0, 114, 178], [213, 40, 30], UNKNOWN];
    modes.push({
      name: "error",
      words: "Error",
      of: (i) => shades[state(i)],
      legend: () => ["right", "wrong", "unlabelled"].map((word, k) => [css(shades[k]), word]),
    });
  }
  return modes;
}

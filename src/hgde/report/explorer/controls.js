// Pointer, wheel and keyboard.

const FARTHEST = 0.985; // beyond it a pixel is so long that a drag would jump

function connectControls(stage, explorer) {
  const pointers = new Map();
  let drag = null;

  const start = (event) => {
    const at = explorer.diskPoint(event.clientX, event.clientY);
    const selecting = explorer.tool === "select" || event.shiftKey;
    drag = { at, from: explorer.transform, moved: false, lasso: selecting ? [[event.clientX, event.clientY]] : null };
    if (selecting) explorer.lasso = drag.lasso;
  };
  const pinch = () => {
    const [a, b] = [...pointers.values()];
    return { size: Math.hypot(a.x - b.x, a.y - b.y), x: (a.x + b.x) / 2, y: (a.y + b.y) / 2 };
  };
  stage.addEventListener("pointerdown", (event) => {
    if (event.button !== 0) return;
    stage.focus({ preventScroll: true });
    stage.setPointerCapture(event.pointerId);
    pointers.set(event.pointerId, { x: event.clientX, y: event.clientY });
    if (pointers.size === 1) start(event);
    else if (pointers.size === 2) drag = { pinch: pinch() };
  });
  stage.addEventListener("pointermove", (event) => {
    if (!pointers.has(event.pointerId)) {
      explorer.hover(event.clientX, event.clientY);
      return;
    }
    pointers.set(event.pointerId, { x: event.clientX, y: event.clientY });
    if (!drag) return;
    if (drag.pinch) {
      if (pointers.size < 2) return;
      const now = pinch();
      explorer.zoom(now.size / drag.pinch.size, now.x, now.y);
      drag.pinch = now;
      return;
    }
    drag.moved = true;
    if (drag.lasso) {
      drag.lasso.push([event.clientX, event.clientY]);
      explorer.requestOverlay();
      return;
    }
    // From the drag's start to now in one isometry, so that the result does not depend on the way in between.
    const to = explorer.diskPoint(event.clientX, event.clientY);
    explorer.setTransform(compose(translation(...drag.at, ...to), drag.from));
  });
  const stop = (event) => {
    if (!pointers.delete(event.pointerId) || !drag) return;
    if (drag.lasso) {
      explorer.lasso = null;
      if (drag.moved) explorer.select(explorer.inside(drag.lasso));
      explorer.requestOverlay();
    } else if (!drag.moved && !drag.pinch) {
      explorer.choose(explorer.nearest(event.clientX, event.clientY, 14));
    }
    drag = null;
  };
  stage.addEventListener("pointerup", stop);
  stage.addEventListener("pointercancel", stop);
  stage.addEventListener("pointerleave", () => explorer.hover(-1e6, -1e6));
  stage.addEventListener("dblclick", (event) => {
    const node = explorer.nearest(event.clientX, event.clientY, 24);
    if (node >= 0) explorer.choose(node, true);
  });
  stage.addEventListener(
    "wheel",
    (event) => {
      event.preventDefault();
      explorer.zoom(Math.exp(-0.0015 * event.deltaY * (event.deltaMode ? 30 : 1)), event.clientX, event.clientY);
    },
    { passive: false },
  );
  stage.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    const step = 0.12;
    const actions = {
      ArrowLeft: () => explorer.shift(step, 0),
      ArrowRight: () => explorer.shift(-step, 0),
      ArrowUp: () => explorer.shift(0, -step),
      ArrowDown: () => explorer.shift(0, step),
      "+": () => explorer.zoom(1.25),
      "=": () => explorer.zoom(1.25),
      "-": () => explorer.zoom(0.8),
      Home: () => explorer.reset(),
      " ": () => explorer.play(),
      n: () => explorer.choose((explorer.chosen + 1) % explorer.data.count),
      p: () => explorer.choose((Math.max(explorer.chosen, 0) + explorer.data.count - 1) % explorer.data.count),
      c: () => explorer.chosen >= 0 && explorer.centreOn(explorer.chosen),
      Enter: () => explorer.choose(explorer.nearestToCentre()),
      Escape: () => {
        explorer.select([]);
        explorer.choose(-1);
      },
    };
    const action = actions[event.key] ?? actions[event.key.toLowerCase()];
    if (!action) return;
    event.preventDefault();
    action();
  });
}

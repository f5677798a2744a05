// Where the explorer lives: a report page, or a cell of a notebook.

async function mount(root, payload, options) {
  root.classList.add("hgde-explorer");
  return new Explorer(root, await readPayload(payload), options);
}

/** In a report: every element with data-hgde-explorer names the script element that holds its data. */
async function mountAll() {
  for (const root of document.querySelectorAll("[data-hgde-explorer]")) {
    const payload = JSON.parse(document.getElementById(root.dataset.hgdeExplorer).textContent);
    const wanted = /[#&]renderer=(webgl|canvas)/.exec(location.hash);
    window.hgdeExplorer = await mount(root, payload, { renderer: wanted?.[1] });
    root.dataset.ready = window.hgdeExplorer.renderer.name;
  }
}

/** In a notebook: anywidget calls render() with the model that Python shares. */
async function render({ model, el }) {
  const root = document.createElement("div");
  el.append(root);
  const explorer = await mount(root, model.get("payload"), {
    onselect: (nodes) => {
      if (nodes.join() === model.get("selection").join()) return;
      model.set("selection", nodes);
      model.save_changes();
    },
  });
  // Jupyter hears keys before the disk does and would take some: an arrow goes to the next cell, C copies the cell.
  explorer.parts.stage.dataset.lmSuppressShortcuts = "true";
  const follow = () => {
    if (explorer.selected.join() !== model.get("selection").join()) explorer.select(model.get("selection"));
  };
  model.on("change:selection", follow);
  model.on("change:time", () => explorer.setTime(model.get("time")));
  if (model.get("selection").length) follow();
  return () => explorer.cleanUp();
}

mountAll();

export default { render };

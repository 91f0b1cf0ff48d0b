// The script that anywidget sends with every widget. It loads what all widgets of a kernel share, once a page: live.js
// and the style sheet, which are the state of one model, see SharedScript in live.py.
const loaded = (globalThis.kgwbLoaded ??= new Map());

async function load(id, manager) {
  if (!globalThis.DecompressionStream) throw new Error("the browser has no DecompressionStream, which those since 2023 have");
  const shared = await manager.get_model(id);
  const style = document.getElementById("kgwb-style") ?? document.createElement("style");
  style.id = "kgwb-style";
  style.textContent = shared.get("style");
  document.head.append(style);
  const address = URL.createObjectURL(new Blob([shared.get("script")], { type: "text/javascript" }));
  return import(address).finally(() => URL.revokeObjectURL(address));
}

async function render({ model, el }) {
  const id = model.get("script_id");
  try {
    if (!loaded.has(id)) loaded.set(id, load(id, model.widget_manager));
    const { default: widget } = await loaded.get(id);
    return widget.render({ model, el });
  } catch (error) {
    loaded.delete(id); // the next view tries again
    el.textContent = `This widget cannot be drawn: ${error.message}. Reload the page, or use a newer browser.`;
    throw error; // to the browser's console
  }
}

export default { render };

// The window around the sandboxed frame: hands it graph and colours, and takes nothing from it but a node's id.
const COLOURS = {
  ground: ["--jp-layout-color1", "#ffffff"],
  text: ["--jp-ui-font-color1", "#212121"],
  aside: ["--jp-ui-font-color2", "#616161"],
  linked: ["--jp-brand-color1", "#1565c0"],
  unknown: ["--jp-warn-color1", "#b25d00"],
  answer: ["--jp-success-color1", "#2e7d32"],
  selected: ["--jp-layout-color2", "#e8eef5"],
};

function themeOf(element) {
  const style = getComputedStyle(element);
  // vis-network computes with colours: let the browser write what it understood ("white" is rgb(...)).
  const probe = document.createElement("span");
  element.append(probe);
  const colours = {};
  for (const [name, [variable, fallback]] of Object.entries(COLOURS)) {
    probe.style.color = style.getPropertyValue(variable).trim() || fallback;
    colours[name] = getComputedStyle(probe).color;
  }
  probe.remove();
  return colours;
}

function render({ model, el }) {
  const frame = document.createElement("iframe");
  frame.setAttribute("sandbox", "allow-scripts"); // an origin of its own: it sees nothing of the notebook
  frame.title = model.get("title");
  frame.tabIndex = 0;
  // The border stands around it: a frame of a fraction of a pixel more would cover its own.
  frame.style.cssText = "display: block; width: calc(100% - 1px); border: 0";
  const border = document.createElement("div");
  border.style.border = "1px solid var(--jp-border-color1, #bdbdbd)";
  border.append(frame);
  const say = (what) => frame.contentWindow?.postMessage({ kgwb: what }, "*");
  const size = () => (frame.style.height = `${model.get("height")}px`);
  const told = {
    graph: () => say({ graph: model.get("graph"), lit: model.get("lit"), picked: model.get("picked") }),
    lit: () => say({ lit: model.get("lit") }),
    picked: () => say({ picked: model.get("picked") }),
  };
  const colour = () => say({ theme: themeOf(el) });

  function heard(event) {
    if (event.source !== frame.contentWindow) return;
    const id = event.data?.kgwb?.picked;
    if (!model.get("graph").nodes.some((node) => node.id === id)) return;
    model.set("picked", id);
    model.save_changes();
  }

  frame.addEventListener("load", () => {
    colour();
    told.graph();
  });
  frame.srcdoc = model.get("page");
  size();
  el.append(border);

  addEventListener("message", heard);
  for (const name in told) model.on(`change:${name}`, told[name]);
  model.on("change:height", size);
  // A theme's style sheet may arrive after its name.
  const switched = new MutationObserver(() => [0, 200, 1000].forEach((wait) => setTimeout(colour, wait)));
  for (const root of [document.body, document.documentElement])
    switched.observe(root, { attributeFilter: ["data-jp-theme-name", "data-jp-theme-light", "theme", "class"] });

  return () => {
    removeEventListener("message", heard);
    for (const name in told) model.off(`change:${name}`, told[name]);
    model.off("change:height", size);
    switched.disconnect();
  };
}

export default { render };

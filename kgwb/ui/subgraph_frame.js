// Runs in the sandboxed frame, after vis-network: draws the graph that it receives by messages, and reports what is
// chosen in it, and Escape.
const nodes = new vis.DataSet();
const edges = new vis.DataSet();
const network = new vis.Network(document.getElementById("graph"), { nodes, edges }, {
  physics: { enabled: false }, // the places are the layout's, the same each time
  interaction: { hover: true, tooltipDelay: 400, zoomView: false },
  nodes: { margin: 10 },
});

(() => {
  const READABLE = 0.6; // the least scale at which labels can be read
  let theme = { ground: "rgb(255, 255, 255)", text: "rgb(33, 33, 33)", aside: "rgb(97, 97, 97)",
                linked: "rgb(21, 101, 192)", unknown: "rgb(178, 93, 0)", answer: "rgb(46, 125, 50)",
                selected: "rgb(227, 242, 253)" };
  let lit = null; // what stands out: {nodes, edges}, or null

  // Faint and still opaque: no line shows through what recedes. A text must still be read: 4.5:1.
  function faint(colour, share = 0.25) {
    const [front, back] = [colour, theme.ground].map((one) => one.match(/[\d.]+/g).map(Number));
    return `rgb(${[0, 1, 2].map((part) => Math.round(share * front[part] + (1 - share) * back[part]))})`;
  }

  function asText(text) { // vis-network may read a string as markup; an element of text it cannot
    const element = document.createElement("div");
    element.textContent = text;
    return element;
  }

  function lookOfNode(node) {
    const on = lit && lit.nodes.includes(node.id);
    const shade = lit && !on ? faint : (colour) => colour;
    const colour = shade(theme[node.kind === "literal" ? "ground" : node.kind] ?? theme.aside);
    const fill = { background: theme.ground, border: colour };
    return {
      id: node.id,
      title: asText(node.told),
      borderWidth: on ? 3 : 1.6,
      borderWidthSelected: 3,
      color: { ...fill, hover: fill, highlight: { background: theme.selected, border: colour } },
      font: { color: shade(theme.text, 0.72), size: 13, face: "sans-serif", strokeWidth: 0 },
      shapeProperties: { borderRadius: node.kind === "linked" ? 14 : 2,
                         borderDashes: node.kind === "unknown" ? [5, 3] : false },
    };
  }

  function lookOfEdge(edge) {
    const on = lit && lit.edges.includes(edge.id);
    const colour = on ? theme.answer : lit ? faint(theme.aside) : theme.aside;
    edge.plain ??= edge.label;
    return {
      id: edge.id,
      plain: edge.plain,
      label: on ? "✓ " + edge.plain : lit ? " " : edge.plain,
      title: asText(edge.told),
      width: on ? 4 : 1.4,
      dashes: edge.found && !on ? [5, 4] : false,
      arrows: { to: { enabled: true, scaleFactor: 0.6 } },
      color: { color: colour, hover: colour, highlight: colour },
      font: { color: theme.text, size: on ? 12 : 11, face: "sans-serif",
              strokeWidth: 0, background: lit && !on ? "none" : theme.ground, align: "horizontal" },
    };
  }

  function restyle() {
    for (const name in theme) document.body.style.setProperty(`--${name}`, theme[name]);
    nodes.update(nodes.map(lookOfNode));
    edges.update(edges.map(lookOfEdge));
  }

  const whole = () => network.fit({ maxZoomLevel: 1 });

  // All of it where that can be read; else from the left, where a question begins.
  function fit() {
    const { clientWidth: width, clientHeight: height } = network.canvas.frame;
    if (!width || !height || !nodes.length) return; // hidden: a size comes once it is shown
    whole();
    if (network.getScale() >= READABLE) return;
    const left = Math.min(...nodes.getIds().map((id) => network.getBoundingBox(id).left));
    const { x, y } = network.getViewPosition();
    network.moveTo({ scale: READABLE, position: { x: Math.min(x, left - 10 + width / 2 / READABLE), y } });
  }

  // The second frame of an answer, inside the first, where no arrow crosses it.
  network.on("afterDrawing", (canvas) => {
    for (const node of nodes.get()) {
      if (node.kind !== "answer") continue;
      const box = network.getBoundingBox(node.id);
      canvas.strokeStyle = node.color.border;
      canvas.lineWidth = (node.borderWidth ?? 1.6) / 1.6;
      canvas.strokeRect(box.left + 5.5, box.top + 5.5, box.right - box.left - 11, box.bottom - box.top - 11);
    }
  });

  const tell = (what) => parent.postMessage({ kgwb: what }, "*");

  network.on("click", (event) => {
    if (event.nodes.length) tell({ picked: event.nodes[0] });
  });

  // Arrow keys choose the nearest node in their direction, as in the picture, and Escape leaves the frame.
  addEventListener("keydown", (event) => {
    if (event.key === "Escape") return tell({ left: true });
    const direction = DIRECTIONS[event.key];
    if (!direction || !nodes.length) return;
    event.preventDefault();
    const [from] = network.getSelectedNodes();
    const ids = nodes.getIds();
    const positions = network.getPositions();
    const places = ids.map((id) => [positions[id].x, positions[id].y]);
    const picked = from === undefined ? ids[0] : ids[nearest(places, ids.indexOf(from), direction)];
    if (picked === undefined) return;
    network.selectNodes([picked], false);
    network.moveTo({ position: positions[picked] });
    tell({ picked });
  });
  network.on("doubleClick", whole);
  network.on("resize", () => queueMicrotask(fit)); // after vis-network has put back what was seen before
  // The wheel scrolls the page until the person is inside the frame.
  const enter = (isInside) => {
    network.setOptions({ interaction: { zoomView: isInside } });
    document.body.classList.toggle("focused", isInside);
  };
  addEventListener("focus", () => enter(true));
  addEventListener("blur", () => enter(false));

  addEventListener("message", (event) => {
    const said = event.source === parent && event.data?.kgwb;
    if (!said) return;
    if (said.theme) theme = said.theme;
    if (said.graph) {
      edges.clear();
      nodes.clear();
      nodes.add(said.graph.nodes);
      edges.add(said.graph.edges);
    }
    if ("lit" in said) lit = said.lit?.nodes ? said.lit : null;
    restyle();
    if (said.graph) {
      fit();
      network.once("afterDrawing", fit); // which is when boxes get their sizes, and late where nobody looks
    }
    if ("picked" in said) network.selectNodes(nodes.get(said.picked) ? [said.picked] : [], false);
  });

  restyle();
})();

// Shows the HTML that Python makes, and sends Python what the person does. Idiomorph and nearest.js stand above.
// In the HTML:  data-do="name" (+ data-*)  a click, submit or change is sent   data-input="name"  typing is sent, later
//               data-key="j ArrowDown"     a key presses it                    data-rev="2"       overwrite what was typed
//               data-keep="id"             its contents are never touched      data-say="…"       read out when it changes
//               data-follow="3"            comes into view when it changes
//               data-focus="debugger-1"    gets the focus, and comes into view, when it appears or changes
//               data-page="name"           a sandboxed frame that shows data-graph; what is chosen in it is sent
//               data-then="id"             gets the focus if what had it is gone, or if Escape leaves the frame
const TYPED = "textarea, input:not([type=radio]):not([type=checkbox]):not([type=submit]):not([type=button])";
const LATER_MS = 250;

const THEME = { ground: "--bg", text: "--ink", aside: "--soft", linked: "--search", unknown: "--code", answer: "--c",
                selected: "--accent-bg" };

function painted(node, colour) { // as red, green and blue, however the style sheet says it
  const canvas = document.createElement("canvas").getContext("2d", { willReadFrequently: true });
  const probe = document.createElement("span");
  probe.style.color = `var(${colour})`;
  node.append(probe);
  canvas.fillStyle = getComputedStyle(probe).color;
  probe.remove();
  canvas.fillRect(0, 0, 1, 1);
  return `rgb(${[...canvas.getImageData(0, 0, 1, 1).data].slice(0, 3).join(", ")})`;
}

function next(from, direction) { // the nearest of the same kind in that direction, for the arrow keys
  const nodes = [...from.closest("svg, [role=tablist]").querySelectorAll(`[role=${from.getAttribute("role")}]`)];
  const middles = nodes.map((node) => {
    const { left, top, width, height } = node.getBoundingClientRect();
    return [left + width / 2, top + height / 2];
  });
  return nodes[nearest(middles, nodes.indexOf(from), direction)];
}

const values = (form) => (form ? Object.fromEntries(new FormData(form)) : {});

async function unpack(packed) { // the HTML that Python has compressed by zlib
  const inflated = new DecompressionStream("deflate");
  const writer = inflated.writable.getWriter();
  writer.write(packed);
  writer.close();
  return new Response(inflated.readable).text();
}

// What was typed and is not in Python's HTML yet must stay; data-rev says that Python means to overwrite it.
const unsaved = (old, fresh) =>
  old.matches(TYPED) && old.dataset.rev === fresh.dataset.rev && old.value !== old.defaultValue;

const callbacks = {
  beforeNodeMorphed(old, fresh) {
    if (old.nodeType !== 1 || fresh.nodeType !== 1) return true;
    if (old.isEqualNode(fresh) && !old.matches("input, textarea, select, option")) return false; // nothing to do below
    if (old.dataset.keep && old.dataset.keep === fresh.dataset.keep) {
      if (fresh.dataset.graph) old.dataset.graph = fresh.dataset.graph;
      return false;
    }
    if (unsaved(old, fresh)) {
      old.ariaInvalid = fresh.ariaInvalid;
      return false;
    }
    if (old.matches("details") && !old.firstChild) old.open = fresh.open; // a new one, which Idiomorph fills
    if (old.matches(TYPED) && old.dataset.rev !== fresh.dataset.rev) old.value = fresh.defaultValue ?? fresh.value;
    return true;
  },
  beforeAttributeUpdated: (name, node) => // what is the person's, and what focusin below has set
    !(name === "open" && node.matches("details, dialog")) && name !== "data-lm-suppress-shortcuts",
};

const RESTARTED = "The kernel was restarted: run this cell again.";
const RESTARTED_NOTE = `<div class="band"><div class="note">${RESTARTED}</div></div>`; // also in saved.py
const VIEW = "application/vnd.jupyter.widget-view+json";

function* widgetOutputs(notebook) { // of kgwb: each has HTML beside the widget
  for (const { outputs } of notebook.cells) {
    for (let place = 0; place < (outputs?.length ?? 0); place++) {
      const output = outputs.get(place).toJSON();
      const { [VIEW]: view, "text/html": html } = output.data ?? {};
      if (view && String(html).includes("data-static")) yield { outputs, place, output, html, id: view.model_id };
    }
  }
}

// JupyterLab and Notebook 7 say "model not found" for a widget of an earlier kernel, although there is HTML beside it.
// So the widget is taken out of the output. That is done at once for what no kernel of this page has made, and with
// the next save for what is there when the kernel ends. kgwb lab, which saves the state of widgets, does it itself.
const ended = new WeakMap(); // by notebook, the ids of the widgets whose kernel has ended

function keepHtml(manager, hasEnded) {
  const { context, _settings: settings } = manager ?? {};
  if (!context?.model?.cells || settings?.saveState) return;
  const leave = (isGone) => {
    for (const { outputs, place, output, html, id } of widgetOutputs(context.model)) {
      if (!isGone(id)) continue;
      const shown = html.replace("</style>", `$&${RESTARTED_NOTE}`);
      outputs.set(place, { ...output, data: { "text/plain": output.data["text/plain"], "text/html": shown } });
    }
  };
  if (hasEnded) {
    const gone = ended.get(context) ?? new Set();
    if (!ended.has(context)) context.saveState.connect((_, stage) => stage === "started" && leave((id) => gone.has(id)));
    ended.set(context, gone);
    for (const { id } of widgetOutputs(context.model)) gone.add(id);
  } else if (manager.restoredStatus) leave((id) => !manager.has_model(id));
}

// anywidget gives up a model whose script it has not loaded within 2 s, as on a slow machine: the model is drawn, and
// never hears from Python again. Such a model is connected as ipywidgets connects its own, and asks for its state.
// lose() is called when the connection ends, as it does when the kernel is restarted.
async function revive(model, lose) {
  let whole = null; // the model behind the one that anywidget gives us: a change tells of it, once for each model
  const meet = (one) => { whole = one };
  model.on("change:kgwb_met", meet);
  model.set("kgwb_met", true);
  model.off("change:kgwb_met", meet);
  whole?.on?.("comm_live_update", () => {
    if (whole.comm_live) return;
    keepHtml(whole.widget_manager, true);
    lose();
  });
  keepHtml(whole?.widget_manager, false);
  const comm = whole?.comm;
  const usual = whole && Object.getPrototypeOf(whole.constructor.prototype)?._handle_comm_msg;
  if (!comm?.on_msg || !usual) return;
  try {
    await whole._handle_comm_msg({ content: { data: { method: "nothing" } } });
  } catch {
    comm.on_msg((message) => usual.call(whole, message));
    comm.send({ method: "request_state" }, {});
  }
}

function render({ model, el }) {
  const root = document.createElement("div");
  const spoken = document.createElement("div");
  spoken.setAttribute("role", "status"); // stands outside of what is morphed: it must outlive every state
  spoken.style.cssText = "position:absolute;width:1px;height:1px;overflow:hidden;clip-path:inset(50%)";
  el.append(root, spoken);
  let sent = 0;
  let timer = null;
  let pending = null;
  let followed = null;
  let focused = null;
  let isLost = false;
  let latest = null;

  // --- from Python to the page

  function describe(node) { // how to find again what had the focus
    if (!node || !root.contains(node)) return null;
    const { id, dataset } = node;
    const around = []; // the innermost first
    for (let place = node.parentElement; place && place !== root; place = place.parentElement) if (place.id) around.push(place.id);
    return { id, what: dataset.do, arg: dataset.arg, then: dataset.then, around, isSeen: isSeen(node) };
  }

  const byId = (id) => id && root.querySelector(`[id="${CSS.escape(id)}"]`);

  function isSeen(node) { // whether its middle is inside of all that scrolls, and not below something else
    const { left, top, width, height } = node.getBoundingClientRect();
    const hit = document.elementFromPoint(left + width / 2, top + height / 2);
    return Boolean(hit) && (node.contains(hit) || hit.contains(node));
  }

  function nearby(was) { // of the innermost place that is still there: the step or tab that it shows, else a button
    const place = was.around.map(byId).find((node) => node);
    return place && (place.querySelector("[aria-current]") || place.querySelector("[role=tab][aria-selected=true]")
      || root.querySelector(`[aria-controls="${CSS.escape(place.id)}"]`) || place.querySelector("[data-do]:not(form)"));
  }

  function refocus(was) {
    if (!was) return;
    if (!root.contains(document.activeElement)) {
      const near = byId(was.id)
        || [...root.querySelectorAll("[data-do]")].find(
          (node) => node.dataset.do === was.what && node.dataset.arg === was.arg)
        || byId(was.then) || nearby(was)
        || root.querySelector("[aria-current], .primary:not([aria-disabled=true]), button");
      near?.focus({ preventScroll: true });
    }
    const now = document.activeElement;
    if (was.isSeen && root.contains(now) && !isSeen(now)) now.scrollIntoView({ block: "nearest" });
  }

  async function show() {
    const packed = latest = model.get("packed");
    if (!packed?.byteLength) return; // nothing is drawn before Python knows of this page
    const html = await unpack(packed);
    if (packed !== latest) return; // there was a change meanwhile, which is drawn
    const was = describe(document.activeElement);
    if (root.firstElementChild) Idiomorph.morph(root, html, { morphStyle: "innerHTML", callbacks });
    else root.innerHTML = html;
    const top = root.firstElementChild;
    if (Number(top.dataset.seen || 0) < sent) top.setAttribute("aria-busy", "true"); // does not know of the latest click
    else root.querySelectorAll(".pressed").forEach((node) => node.classList.remove("pressed"));
    const say = top.dataset.say || "";
    if (spoken.textContent !== say) spoken.textContent = say;
    root.querySelectorAll("[data-page]").forEach(frame);
    refocus(was); // asks for places, and so for a layout: after all that changes it
    const newest = root.querySelector("[data-follow]");
    if (newest && followed !== null && newest.dataset.follow !== followed) newest.scrollIntoView({ block: "nearest" });
    followed = newest ? newest.dataset.follow : "";
    const wanted = root.querySelector("[data-focus]");
    if (wanted && focused !== null && wanted.dataset.focus !== focused) {
      wanted.focus({ preventScroll: true });
      wanted.scrollIntoView({ block: wanted.matches(TYPED) ? "nearest" : "start" });
    }
    focused = wanted ? wanted.dataset.focus : "";
    if (isLost) sayLost();
  }

  // A page of its own in a sandbox: what it shows is data, and all that it says is which node was chosen, or that
  // Escape was pressed.
  function frame(place) {
    const known = place.firstElementChild;
    if (known) return fill(place, known);
    const made = document.createElement("iframe");
    made.setAttribute("sandbox", "allow-scripts");
    made.title = place.title;
    made.srcdoc = model.get("frame_page");
    made.onload = () => { made.dataset.ready = "yes"; fill(place, made) };
    place.append(made);
  }

  function fill(place, made) {
    const text = place.dataset.graph;
    if (!made.dataset.ready || made.told === text) return;
    made.told = text;
    const theme = Object.fromEntries(Object.entries(THEME).map(([name, colour]) => [name, painted(place, colour)]));
    made.contentWindow.postMessage({ kgwb: { ...JSON.parse(text), theme } }, "*");
  }

  function heard(event) {
    const place = [...root.querySelectorAll("[data-page]")].find(
      (node) => node.firstElementChild?.contentWindow === event.source);
    const { picked, left } = event.data?.kgwb ?? {};
    if (place && Number.isInteger(picked)) send(place.dataset.page, place, null, { arg: String(picked) });
    if (place && left) byId(place.dataset.then)?.focus();
  }

  // --- from the page to Python

  function lose() { // the kernel that made the widget is gone: nothing can be pressed, and the reason is said
    if (isLost) return;
    isLost = true;
    clearTimeout(timer);
    pending = null;
    root.inert = true;
    sayLost();
  }

  function sayLost() { // again by show(), if its state came before the kernel was lost
    root.firstElementChild?.insertAdjacentHTML("afterbegin", RESTARTED_NOTE);
    root.firstElementChild?.setAttribute("aria-busy", "false");
    root.querySelectorAll(".pressed").forEach((node) => node.classList.remove("pressed"));
    spoken.textContent = RESTARTED;
  }

  function tell(message) {
    if (isLost) return;
    try {
      model.send(message);
    } catch {
      lose();
    }
  }

  function send(name, node, form, data = node.dataset) {
    flush();
    sent += 1;
    const scope = node.closest("[data-scope]")?.dataset.scope; // a widget inside of the widget
    tell({ ...data, scope, seq: sent, do: name, form: values(form) });
  }

  function flush() { // what was typed reaches Python before the click that follows it
    clearTimeout(timer);
    const node = pending;
    pending = null;
    const scope = node?.closest("[data-scope]")?.dataset.scope;
    if (node) tell({ scope, seq: sent, do: node.dataset.input, value: node.value, form: values(node.form) });
  }

  function act(node, form) {
    if (node.getAttribute("aria-disabled") === "true") return;
    node.classList.add("pressed");
    root.firstElementChild.setAttribute("aria-busy", "true");
    send(node.dataset.do, node, form);
  }

  const on = (name, does) => root.addEventListener(name, does);
  on("click", (event) => {
    const node = event.target.closest("[data-do]");
    if (!node || node.matches("form, select, input, textarea")) return;
    if (window.getSelection().type === "Range" && !node.matches(".btn, .chip")) return;
    event.preventDefault();
    act(node, node.closest("form"));
  });
  on("submit", (event) => {
    event.preventDefault();
    act(event.target, event.target);
  });
  on("change", (event) => {
    const node = event.target.closest("select[data-do], input[data-do]");
    if (node) send(node.dataset.do, node, node.form);
  });
  on("input", (event) => {
    if (!event.target.dataset.input) return;
    pending = event.target;
    clearTimeout(timer);
    timer = setTimeout(flush, LATER_MS);
  });
  on("focusin", (event) => { // Notebook 7's own b, j, k, Enter must not fire; only an attribute of the target counts
    event.target.dataset.lmSuppressShortcuts = "true";
  });
  on("keydown", (event) => {
    const typing = event.target.matches("input:not([type=radio]):not([type=checkbox]), textarea, select");
    const own = event.target.matches("button, a, summary, input") && (event.key === "Enter" || event.key === " ");
    const name = (event.ctrlKey || event.metaKey ? "Control+" : "") + event.key;
    const keyed = (node) => node.dataset.key?.split(" ").includes(name);
    if (typing && keyed(event.target) && !event.shiftKey) {
      event.preventDefault();
      event.target.form?.requestSubmit();
    } else if (typing && event.target.matches("input") && event.key === "Enter") {
      event.preventDefault();
      event.target.form?.requestSubmit();
    } else if (!typing && event.target.matches("[role=button]") && (event.key === "Enter" || event.key === " ")) {
      event.preventDefault();
      act(event.target, null);
    } else if (!typing && event.target.matches("[role=tab], svg [role=button]") && DIRECTIONS[event.key]) {
      event.preventDefault();
      next(event.target, DIRECTIONS[event.key])?.focus();
    } else if (!typing && !own && !event.altKey) {
      const node = [...root.querySelectorAll("[data-key]")].find(keyed);
      if (node) {
        event.preventDefault();
        node.focus({ preventScroll: true });
        node.scrollIntoView({ block: "nearest" });
        act(node, node.closest("form"));
      }
    }
    if (event.key === "Escape") el.closest(".jp-Cell")?.focus(); // back to the notebook and its own keys
    if (!event.ctrlKey && !event.metaKey) event.stopPropagation();
  });

  const display = Math.random().toString(36); // what no page displays is not drawn
  addEventListener("message", heard);
  model.on("change:packed", show);
  show();
  tell({ do: "shown", display });
  revive(model, lose);
  return () => {
    flush();
    removeEventListener("message", heard);
    model.off("change:packed", show);
    tell({ do: "gone", display });
  };
}

export default { render };

"""What the harness has the page do, in JavaScript."""

READY = """() => {
  const context = window.jupyterapp?.shell?.currentWidget?.sessionContext;
  return context?.isReady && context.session?.kernel?.status === "idle";
}"""
CHANGE_THEME = """theme => jupyterapp.commands.execute("apputils:change-theme", {theme})"""
# The page does not render what is out of sight, and what a cell above it draws later moves the output out of
# sight again.  An output without any place on the page (a cell that put nothing out) is not waited for.
SHOW = """output => new Promise(done => {
  const rendered = () => output.checkVisibility({contentVisibilityAuto: true}) || !output.checkVisibility();
  const scroll = () => {
    output.scrollIntoView({block: "nearest"});
    requestAnimationFrame(() => requestAnimationFrame(() => rendered() ? done() : scroll()));
  };
  scroll();
})"""
REST = """(output, ms) => new Promise(done => {
  const later = () => setTimeout(() => { observer.disconnect(); done() }, ms);
  const observer = new MutationObserver(() => { clearTimeout(timer); timer = later() });
  let timer = later();
  observer.observe(output, {subtree: true, childList: true, characterData: true});
})"""
# The second frame after the change begins when the first, which has the change in it, was painted.
# What comes while the output is out of sight has no text, and is not noticed: PAINTED_MS ends the measuring then.
WATCH = """(output, text) => {
  let clicked = null;
  const shown = () => output.innerText.replace(/\\s+/g, " ").includes(text);
  document.addEventListener("click", event => { clicked = event.timeStamp }, {capture: true, once: true});
  window.kgwbPainted = new Promise(done => {
    window.kgwbSeen = () => {
      observer.disconnect();
      requestAnimationFrame(() => requestAnimationFrame(() => done(performance.now() - clicked)));
    };
    const observer = new MutationObserver(() => { if (clicked !== null && shown()) window.kgwbSeen() });
    observer.observe(output, {subtree: true, childList: true, characterData: true, attributes: true});
  });
}"""
PAINTED_MS = """() => {
  window.kgwbSeen();
  return window.kgwbPainted;
}"""
"""The milliseconds that WATCH measured; the text is on the page when this is asked."""

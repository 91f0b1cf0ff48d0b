"""All text of the widgets has the contrast that WCAG 2 AA asks for, light and dark."""

from __future__ import annotations

import pytest

from browser.harness import Site

CELLS = (
    "import kgwb\nworkbench = kgwb.Workbench(kgwb.open_kg('films'), 'rules')\n"
    "run = workbench.ask('When was Harry Potter\\'s first movie released?')\n"
    "none = workbench.ask('What did Denis Villeneuve eat for breakfast?')",
    "workbench.cell('vertex_selection')",
    "workbench.cell('query_generator')",
    "kgwb.debug(run)",
    "workbench.chat()",
    "kgwb.compare(run, none)",
    "from kgwb.ui.choosers import GraphChooser\nGraphChooser('films')",
    "run",
)
LOW = """
() => {
  const canvas = document.createElement("canvas").getContext("2d", {willReadFrequently: true});
  const colour = (text) => {  // any CSS colour as red, green, blue, alpha
    canvas.clearRect(0, 0, 1, 1); canvas.fillStyle = text; canvas.fillRect(0, 0, 1, 1);
    const [r, g, b, a] = canvas.getImageData(0, 0, 1, 1).data; return [r, g, b, a / 255];
  };
  const over = (top, under) => top.slice(0, 3).map((c, i) => c * top[3] + under[i] * (1 - top[3]));
  const light = (rgb) => rgb.map((c) => (c /= 255) <= 0.04045 ? c / 12.92 : ((c + 0.055) / 1.055) ** 2.4)
    .reduce((sum, c, i) => sum + c * [0.2126, 0.7152, 0.0722][i], 0);
  const behind = (node) => {
    const layers = [];
    for (let e = node; e; e = e.parentElement) layers.push(colour(getComputedStyle(e).backgroundColor));
    return layers.reverse().reduce((under, layer) => over(layer, under), [255, 255, 255]);
  };
  const low = [], seen = [];
  for (const root of document.querySelectorAll(".kg")) {
    const walker = document.createTreeWalker(root, NodeFilter.SHOW_TEXT);
    while (walker.nextNode()) {
      const text = walker.currentNode.textContent.trim(), node = walker.currentNode.parentElement;
      const box = node.getBoundingClientRect(), style = getComputedStyle(node);
      const skipped = node.closest("style, [aria-disabled=true], .vh, svg");
      if (!text || !box.width || !box.height || skipped) continue;
      const ground = behind(node), ink = over(colour(style.color), ground);
      const [one, other] = [light(ink), light(ground)].sort((a, b) => b - a);
      const size = parseFloat(style.fontSize), large = size >= (style.fontWeight >= 700 ? 18.66 : 24);
      const ratio = (one + 0.05) / (other + 0.05);
      seen.push(ratio);
      if (ratio < (large ? 3 : 4.5)) low.push(`${ratio.toFixed(2)} ${node.className}: ${text.slice(0, 40)}`);
    }
  }
  return [seen.length, low];
}
"""
"""How many texts there are, and those with less than 4.5 (large ones: 3) between them and what is behind."""


@pytest.mark.parametrize("theme", ["light", "dark"])
def test_every_text_has_the_contrast_of_wcag_aa(lab: Site, theme: str) -> None:
    with lab.visit(lab.server.write("contrast.ipynb", *CELLS), theme=theme) as page:
        page.run_all()
        for place in range(1, len(CELLS)):
            page.cell(place).wait(" ").settle()
        count, low = page.page.evaluate(LOW)
        assert count > 300
        assert not low, low
        page.page.evaluate("document.querySelector('.kg b').style.color = '#888'")
        page.page.evaluate("document.querySelector('.kg b').style.backgroundColor = '#777'")
        assert len(page.page.evaluate(LOW)[1]) == 1, "the script sees what cannot be read"

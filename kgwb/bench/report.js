const table = document.getElementById("questions"), rows = [...table.tBodies[0].rows];
const words = document.getElementById("words"), which = document.getElementById("which");
function show() {
  const wanted = words.value.toLowerCase();
  for (const row of rows)
    row.hidden = !(row.textContent.toLowerCase().includes(wanted) && row.className.includes(which.value));
  document.getElementById("shown").textContent = rows.filter(row => !row.hidden).length + " shown";
}
words.oninput = which.onchange = show;
table.tHead.onclick = event => {
  const head = event.target.closest("th"), place = head.cellIndex, up = head.ariaSort !== "ascending";
  for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
  head.ariaSort = up ? "ascending" : "descending";
  const order = new Intl.Collator(undefined, {numeric: true}).compare;
  const sorted = rows.map(row => [row.cells[place].textContent, row]);
  sorted.sort(([one], [other]) => (up ? 1 : -1) * order(one, other));
  table.tBodies[0].append(...sorted.map(([, row]) => row));
};
document.getElementById("filter").hidden = false;
show();

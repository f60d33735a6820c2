// Draws the weights of a sentence, source words beside those of its translation.
const number = (id) => Number($(id).value) - 1; // -1: the mean
let place = [0, 0]; // row and column that the keyboard is at

// The pieces of each word, from start to end, and their text.
function groups(pieces, words) {
  const starts = words.flatMap((word, i) => (word !== words[i - 1] || !$("words").checked ? [i] : []));
  return starts.map((start, i) => {
    const end = starts[i + 1] ?? pieces.length;
    return { start, end, text: pieces.slice(start, end).join("").trim() || "␣" };
  });
}

// Rows of weights: the mean of the chosen maps, and of a word's pieces in the translation; sums of those in the source.
function weights(sentence) {
  const [layer, head] = [number("layer"), number("head")], [S, U] = [sentence.source.length, sentence.target.length];
  const all = new Uint16Array(bytes(sentence.weights).buffer), count = all.length / (U * S);
  const maps = Array.from({ length: count }, (_, i) => i).filter((i) =>
    (layer < 0 || Math.floor(i / data.heads) === layer) && (head < 0 || i % data.heads === head));
  const columns = groups(sentence.source, sentence.source_words), rows = groups(sentence.target, sentence.target_words);
  const values = rows.map((row) => columns.map((column) => {
    let total = 0;
    for (const map of maps)
      for (let u = row.start; u < row.end; u++)
        for (let s = column.start; s < column.end; s++) total += all[(map * U + u) * S + s];
    return total / (65535 * maps.length * (row.end - row.start));
  }));
  return { rows, columns, values };
}

function draw() {
  const sentence = data.sentences[$("sentence").value], { rows, columns, values } = weights(sentence);
  const cells = rows.map((row, r) => columns.map((column, c) => {
    const weight = values[r][c], shown = $("numbers").checked ? weight.toFixed(2) : "";
    const label = `${row.text} reads ${column.text}: ${weight.toFixed(3)}`;
    return el("td", { style: `--weight:${weight}`, class: weight > 0.5 && "dark", "aria-label": label, tabindex: -1 }, shown);
  }));
  const head = el("tr", {}, el("td", { class: "corner" }), columns.map((column) =>
    el("th", { scope: "col" }, el("span", {}, column.text))));
  const body = rows.map((row, r) => el("tr", {}, el("th", { scope: "row" }, row.text), cells[r]));
  $("map").className = $("numbers").checked ? "numbers" : "";
  const table = el("table", { "aria-label": "Rows are the translation, columns the source", role: "grid" }, el("thead", {}, head), el("tbody", {}, body));
  $("map").replaceChildren(table);

  const show = (r, c) => {
    for (const marked of table.querySelectorAll(".marked")) marked.classList.remove("marked");
    head.children[c + 1].classList.add("marked");
    body[r].children[0].classList.add("marked");
    $("shown").textContent = `“${rows[r].text}” reads “${columns[c].text}” with weight ${values[r][c].toFixed(3)}`;
  };
  const enter = (r, c) => {
    cells[place[0]]?.[place[1]]?.setAttribute("tabindex", -1);
    place = [Math.max(0, Math.min(r, rows.length - 1)), Math.max(0, Math.min(c, columns.length - 1))];
    cells[place[0]][place[1]].setAttribute("tabindex", 0);
  };
  enter(...place);
  const where = (event) => [event.target.parentNode.rowIndex - 1, event.target.cellIndex - 1];
  const of_cell = (act) => (event) => { if (event.target.matches?.("tbody td")) act(...where(event), event); };
  table.addEventListener("mouseover", of_cell(show));
  table.addEventListener("focusin", of_cell((r, c) => { enter(r, c); show(r, c); }));
  table.addEventListener("keydown", of_cell((r, c, event) => {
    const to = { ArrowUp: [r - 1, c], ArrowDown: [r + 1, c], ArrowLeft: [r, c - 1], ArrowRight: [r, c + 1],
      Home: [r, 0], End: [r, columns.length - 1] }[event.key];
    if (!to) return;
    event.preventDefault();
    enter(...to);
    cells[place[0]][place[1]].focus();
  }));
}

function download() {
  const sentence = data.sentences[$("sentence").value], { rows, columns, values } = weights(sentence);
  const lines = rows.map((row, r) => [quoted(row.text), ...values[r]].join(","));
  const part = ["layer", "head"].map((id) => `${id}-${number(id) < 0 ? "mean" : number(id)}`).join("-");
  const head = ["", ...columns.map((column) => quoted(column.text))].join(",");
  save(`attention-${sentence.number}-${part}.csv`, [head, ...lines]);
}

function move(by) {
  const next = Number($("sentence").value) + by;
  if (data.sentences[next]) $("sentence").value = next;
  choose();
}
function choose() {
  $("before").disabled = !data.sentences[Number($("sentence").value) - 1];
  $("next").disabled = !data.sentences[Number($("sentence").value) + 1];
  draw();
}

const counted = (count) => ["mean", ...Array.from({ length: count }, (_, i) => String(i))];
const start = (text) => (text.length > 60 ? `${text.slice(0, 60)}…` : text);
const some = data.sentences.length < data.total ? `${data.sentences.length} of ${data.total}` : data.total;
$("about").textContent = `${data.model}: ${some} ${data.total === 1 ? "sentence" : "sentences"}`;
fill("sentence", data.sentences.map((sentence) => `${sentence.number}  ${start(sentence.text)}`), 0);
fill("layer", counted(data.layers), 0);
fill("head", counted(data.heads), 0);
for (const id of ["layer", "head", "words", "numbers"]) $(id).addEventListener("change", draw);
$("sentence").addEventListener("change", choose);
$("before").addEventListener("click", () => move(-1));
$("next").addEventListener("click", () => move(1));
$("csv").addEventListener("click", download);
if (data.sentences.length) choose();

// Draws the weights of each word of a caption over its picture.
const number = (id) => Number($(id).value) - 1; // -1: the mean

// Words, and for each its weights, row by row: the mean of the chosen maps and of the word's pieces.
function weights(picture) {
  const [layer, head] = [number("layer"), number("head")], cells = data.rows * data.columns, U = picture.target.length;
  const all = new Uint16Array(bytes(picture.weights).buffer), count = all.length / (U * cells);
  const maps = Array.from({ length: count }, (_, i) => i).filter((i) =>
    (layer < 0 || Math.floor(i / data.heads) === layer) && (head < 0 || i % data.heads === head));
  const starts = picture.words.flatMap((word, i) => (word !== picture.words[i - 1] ? [i] : []));
  return starts.map((start, i) => {
    const end = starts[i + 1] ?? U;
    const values = Array.from({ length: cells }, (_, cell) => {
      let total = 0;
      for (const map of maps) for (let u = start; u < end; u++) total += all[(map * U + u) * cells + cell];
      return total / (65535 * maps.length * (end - start));
    });
    return { text: picture.target.slice(start, end).join("").trim() || "␣", values };
  });
}

// The picture, its cells as dark as their weights are below the largest; without weights as it is.
function drawn(picture, values, label) {
  const canvas = el("canvas", { width: data.width, height: data.height, role: "img", "aria-label": label });
  const context = canvas.getContext("2d"), image = context.createImageData(data.width, data.height);
  const pixels = picture.pixels ? bytes(picture.pixels) : null, most = values ? Math.max(...values) : 1;
  for (let x = 0; x < data.height; x++) {
    for (let y = 0; y < data.width; y++) {
      const row = Math.floor((x * data.rows) / data.height), column = Math.floor((y * data.columns) / data.width);
      const light = values ? 0.15 + 0.85 * (values[row * data.columns + column] / (most || 1)) : 1;
      for (let c = 0; c < 3; c++) {
        const color = pixels ? pixels[(x * data.width + y) * 3 + c] : 255;
        image.data[(x * data.width + y) * 4 + c] = values ? light * (0.75 * color + 64) : color;
      }
      image.data[(x * data.width + y) * 4 + 3] = 255;
    }
  }
  context.putImageData(image, 0, 0);
  return canvas;
}

function draw() {
  const picture = data.pictures[$("picture").value], words = weights(picture);
  $("caption").textContent = words.slice(0, -1).map((word) => word.text).join(" ");
  const figures = words.map(({ text, values }) => {
    const most = Math.max(...values), cell = values.indexOf(most);
    const place = `row ${Math.floor(cell / data.columns) + 1}, column ${(cell % data.columns) + 1}`;
    const label = `${text}: most at ${place}, ${most.toFixed(3)}`;
    return el("figure", { title: label }, drawn(picture, values, label), el("figcaption", {}, `${text} ${most.toFixed(2)}`));
  });
  if (picture.pixels) figures.unshift(el("figure", {}, drawn(picture, null, picture.name), el("figcaption", {}, picture.name)));
  $("maps").replaceChildren(...figures);
}

function download() {
  const picture = data.pictures[$("picture").value];
  const part = ["layer", "head"].map((id) => `${id}-${number(id) < 0 ? "mean" : number(id)}`).join("-");
  const lines = weights(picture).flatMap(({ text, values }) =>
    values.map((value, cell) => [quoted(text), Math.floor(cell / data.columns), cell % data.columns, value].join(",")));
  save(`attention-${Number($("picture").value) + 1}-${part}.csv`, ["word,row,column,weight", ...lines]);
}

function move(by) {
  const next = Number($("picture").value) + by;
  if (data.pictures[next]) $("picture").value = next;
  choose();
}
function choose() {
  $("before").disabled = !data.pictures[Number($("picture").value) - 1];
  $("next").disabled = !data.pictures[Number($("picture").value) + 1];
  draw();
}

const counted = (count) => ["mean", ...Array.from({ length: count }, (_, i) => String(i))];
const some = data.pictures.length < data.total ? `${data.pictures.length} of ${data.total}` : data.total;
$("about").textContent = `${data.model}: ${some} ${data.total === 1 ? "picture" : "pictures"}`;
fill("picture", data.pictures.map((picture) => picture.name), 0);
fill("layer", counted(data.layers), 0);
fill("head", counted(data.heads), 0);
for (const id of ["layer", "head"]) $(id).addEventListener("change", draw);
$("picture").addEventListener("change", choose);
$("before").addEventListener("click", () => move(-1));
$("next").addEventListener("click", () => move(1));
$("csv").addEventListener("click", download);
if (data.pictures.length) choose();

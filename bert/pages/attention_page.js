"use strict";
// Draws the page and follows what its reader changes.
const row = (cells, attributes, tag = "td") =>
  el("tr", attributes, cells.map((cell) => el(tag, tag === "th" && { scope: "col" }, cell)));
const table = (head, body, foot = []) =>
  el("table", {}, el("thead", {}, row(head, {}, "th")), el("tbody", {}, body), el("tfoot", {}, foot));

// ---- parts of the page ----

function strip(numbers) {
  const largest = numbers.reduce((a, x) => Math.max(a, Math.abs(x)), 1e-12);
  const bars = (wanted) => Array.from(numbers, (x, i) =>
    Math.sign(x) === wanted ? `M${i + 0.1} 1h.8v${-x / largest}h-.8z` : "").join("");
  const [low, high] = [Math.min(...numbers), Math.max(...numbers)].map(rounded);
  const label = `${numbers.length} numbers from ${low} to ${high}; bars upwards are positive, downwards negative`;
  const box = { class: "strip", viewBox: `0 0 ${numbers.length} 2`, preserveAspectRatio: "none", role: "img" };
  return el("svg", { ...box, "aria-label": label }, el("line", { x1: 0, x2: numbers.length, y1: 1, y2: 1 }),
    el("path", { class: "plus", d: bars(1) }), el("path", { class: "minus", d: bars(-1) }));
}
const columns = (cells, more) => [...cells.map((cell) => el("span", { class: "number" }, cell)), more ? " …" : ""];
const few = (numbers) => columns(Array.from(numbers.slice(0, 4), rounded), numbers.length > 4);
const name = (t) => (toy ? data.tokens[t] : `${t} ${data.tokens[t]}`);

function pieces() {
  const boxes = data.tokens.map((piece, t) => {
    const masked = data.ids[t] === data.mask_id;
    return el("li", { class: masked && "marked" }, el("b", {}, piece), masked ? " masked" : "",
      el("small", {}, `position ${t}`), el("small", {}, `id ${data.ids[t]}`));
  });
  const sizes = data.sizes.map(([what, size]) => `${what}: ${size.toLocaleString("en")}`).join(" · ");
  return [el("p", { class: "wide" }, sizes), el("ol", { class: "pieces" }, boxes)];
}

function vectorTable(a) {
  const rows = data.tokens.map((_, t) => {
    const cells = [name(t), few(a.k[t]), strip(a.k[t]), few(a.v[t]), strip(a.v[t])];
    return row(cells, { class: t === a.t && "marked" });
  });
  const query = `Query of ${name(a.t)}, ${a.width} numbers (d_k = ${a.width}): `;
  return [el("p", { class: "wide" }, query, few(a.q), " ", strip(a.q)), table(["token", "key", "", "value", ""], rows)];
}

const empty = () => el("span", { class: "blank", "aria-label": "to be filled in" });
const put = (x, blank) => (blank ? empty() : rounded(x));
// A number that opens the sum that makes it, in a line below; a blank on a worksheet.
function cell(key, value, blank) {
  if (blank) return empty();
  const toggle = () => { state.open = state.open === key ? "" : key; draw(key); };
  return el("button", { type: "button", "data-key": key, "aria-expanded": String(state.open === key), onclick: toggle },
    rounded(value));
}
function explained(prefix, texts, columns, blank) {
  const text = !blank && state.open.startsWith(prefix) && texts(...state.open.slice(prefix.length).split(" "));
  return text ? [el("tr", {}, el("td", { class: "explained", colspan: columns, role: "status" }, text))] : [];
}
const factor = (x) => short(x).replace(/^−.*/, "($&)");
// The products, each of them computed, and their sum; of one product, its value only.
function products(a, b, total) {
  const pairs = Array.from(a, (x, i) => [x, b[i]]);
  const [left, right] = [pairs.map(([x, y]) => `${factor(x)} · ${factor(y)}`), pairs.map(([x, y]) => factor(x * y))];
  return [left.join(" + "), ...(a.length > 1 ? [right.join(" + ")] : []), rounded(total)].join(" = ");
}
const power = (x, shift) => (shift ? `e^(${rounded(x)} − ${rounded(shift)})` : `e^${rounded(x)}`);

function steps(a, blank) {
  const show = Math.min(4, a.width), raw = $("unscaled").checked;
  const texts = (what, s, h) => {
    if (what === "a") return `q · k = ${products(a.q, a.k[s], a.scores[s])}`;
    if (what === "b")
      return raw ? "Not divided: the switch “without √d_k” is on."
        : `${rounded(a.scores[s])} / √${a.width} = ${rounded(a.scores[s])} / ${rounded(a.divisor)} = ` +
          rounded(a.scaled[s]);
    if (what === "e") return `${power(a.scaled[s], a.soft.shift)} = ${rounded(a.soft.exponentials[s])}`;
    if (what === "w")
      return `${rounded(a.soft.exponentials[s])} / ${rounded(a.soft.total)} = ${rounded(a.soft.shares[s])}`;
    if (what === "p")
      return `weight · value = ${products([a.soft.shares[s]], [a.v[s][h]], a.soft.shares[s] * a.v[s][h])}`;
    return `number ${Number(s) + 1} of the result: weights times values, ` +
      products(a.soft.shares, a.v.map((value) => value[s]), a.mixture[s]);
  };
  const body = data.tokens.flatMap((_, s) => {
    const off = a.closed.has(s), always = data.hidden?.[a.layer][a.t].includes(s);
    const change = (event) => { state.hidden[event.target.checked ? "add" : "delete"](s); draw(`hide ${s}`); };
    const box = el("input", { type: "checkbox", "aria-label": `hide the key of ${name(s)}`, checked: off,
      disabled: always, "data-key": `hide ${s}`, onchange: change });
    const share = a.soft.shares[s];
    const bar = el("span", { class: "bar", "aria-hidden": true }, el("i", { style: `width:${100 * share}%` }));
    const part = Array.from(a.v[s].slice(0, show), (x, h) => cell(`step p ${s} ${h}`, share * x, blank));
    const cells = [name(s), box, cell(`step a ${s}`, a.scores[s], blank), cell(`step b ${s}`, a.scaled[s], blank),
      off ? "hidden" : cell(`step e ${s}`, a.soft.exponentials[s], blank),
      off ? "0" : [cell(`step w ${s}`, share, blank), ...(blank ? [] : [bar])], columns(part, a.width > 4)];
    const below = new RegExp(`^step [abewp] ${s}\\b`).test(state.open);
    return [row(cells, { class: off && "off" }), ...(below ? explained("step ", texts, 7, blank) : [])];
  });
  if (a.closed.size === a.k.length)
    return [el("p", { class: "error" }, "Every key is hidden: a softmax over nothing has no value. Show one again."),
      table(["token", "hide", "(a) q · k", "(b)", "(c)", "weight", "(d)"], body)];
  const result = columns(Array.from({ length: show }, (_, h) => cell(`step y ${h}`, a.mixture[h], blank)), a.width > 4);
  const sums = [put(a.soft.total, blank), put(sum(a.soft.shares), blank), result];
  const below = state.open.startsWith("step y") ? explained("step ", texts, 7, blank) : [];
  const foot = [row(["sum", "", "", "", ...sums]), ...below];
  const b = raw ? "(b) not divided" : `(b) divided by √d_k = √${a.width}`;
  const c = a.soft.shift ? "(c) e^(b − largest)" : "(c) e^b";
  const head = ["token", "hide", "(a) q · k", b, c, "weight: share of the sum", "(d) weight · value"];
  const more = blank ? `Round to ${state.digits} decimals, and go on with the unrounded numbers.` : "The whole result: ";
  return [table(head, body, foot), el("p", {}, more, blank ? "" : strip(a.mixture))];
}

function between(a) {
  if (toy)
    return [el("p", {}, "The sheet gives the logits of step (e). In a model they do not follow from (d) directly: the " +
      "results of all heads are put side by side, and pass the output projection, the residual connection, layer " +
      "norm, the feed-forward part and all later layers.")];
  const D = data.hidden_size, N = (what, layer = a.layer) => data.norms[what][layer][a.t];
  const lines = [
    [`all heads side by side: ${D / a.width} · ${a.width} = ${D} numbers`, null, N("heads")],
    ["output projection", N("heads"), N("projected")],
    [`residual: plus the block's input, of length ${rounded(N("input"))}`, N("projected"), N("attention_sum")],
    ["layer norm", N("attention_sum"), N("attention_norm")],
    ["feed-forward part", N("attention_norm"), N("feed_forward")],
    ["residual: plus the input of that part", N("feed_forward"), N("feed_forward_sum")],
    ["layer norm: the input of the next layer", N("feed_forward_sum"), N("output")],
    ...data.layers.map((layer, i) => [`all of layer ${layer}`, N("input", i), N("output", i)]).slice(a.layer + 1),
  ];
  const rows = lines.map(([what, ...lengths]) => row([what, ...lengths.map((x) => (x === null ? "" : rounded(x)))]));
  const rest = data.layers.length < data.layer_count ? " The other layers are not in this file." : "";
  return [el("p", {}, `Step (e) does not follow from (d) alone. Between them, the vector of ${name(a.t)} changes as ` +
    `follows; lengths are Euclidean, of the model without the switches above.${rest}`),
    table(["what", "length before", "length after"], rows),
    el("p", {}, "At the mask, the last vector passes one more layer, activation and norm, and is compared with the " +
      "vector of each entry of the vocabulary; with a bias, these are the logits.")];
}

function words(p, blank) {
  const soft = p.soft;
  const texts = (id) => `${power(p.logits[id], soft.shift)} / sum of all = ${rounded(soft.exponentials[id])} / ` +
    `${rounded(soft.total)} = ${rounded(soft.shares[id])}`;
  const body = p.shown.flatMap((id) => {
    const rank = p.order.indexOf(id) + 1, key = `share ${id}`, chosen = id === state.word;
    const cells = [data.vocabulary[id] + (chosen ? " ← true word" : ""), String(id), blank ? empty() : String(rank),
      rounded(p.logits[id]), put(soft.exponentials[id], blank), cell(key, soft.shares[id], blank)];
    const below = state.open === key ? explained("share ", texts, 6, blank) : [];
    return [row(cells, { class: chosen && "marked" }), ...below];
  });
  const inside = sum(p.shown.map((id) => soft.shares[id])), rest = soft.shares.length - p.shown.length;
  const left = soft.exponentials.reduce((total, e, id) => (p.shown.includes(id) ? total : total + e), 0);
  const others = [`${rest.toLocaleString("en")} others`, "", "", "", put(left, blank), put(left / soft.total, blank)];
  const total = ["sum", "", "", "", put(soft.total, blank), put(inside + left / soft.total, blank)];
  const foot = rest ? [row(others), row(total)] : [row(total)];
  const guess = blank ? "" : ` The prediction is “${data.vocabulary[p.order[0]]}”.`;
  const where = toy ? "" : `For the mask at position ${p.position}` +
    (data.masks.length > 1 ? ` (choose the query of another mask above; predicted: ${data.masks.join(", ")}). ` : ". ");
  return [el("p", {}, `${where}Softmax at temperature 1.${guess}`),
    table(["word", "id", "rank", "logit", soft.shift ? "e^(logit − largest)" : "e^logit", "probability"], body, foot)];
}

function loss(p, blank) {
  const nats = p.soft.log - p.logits[state.word], shown = (x) => put(x, blank);
  const rows = p.shown.map((id) => {
    const target = id === state.word ? 1 : 0;
    return row([data.vocabulary[id], shown(p.soft.shares[id]), String(target), shown(p.soft.shares[id] - target)],
      { class: target && "marked" });
  });
  const share = p.soft.shares[state.word];
  return [el("p", { class: "wide" }, `True word: ${data.vocabulary[state.word]}. Cross-entropy: −ln `, shown(share),
    " = ", shown(nats), " nats = ", shown(nats / Math.LN2), " bits; perplexity e^loss = ", shown(Math.exp(nats)), "."),
  el("p", {}, "The gradient of each logit is its probability, minus 1 for the true word:"),
  table(["word", "p", "target", "p − target"], rows)];
}

function draw(focus) {
  state.digits = Number($("digits").value);
  const blank = $("worksheet").checked, a = attention(), p = prediction();
  if (!toy) $("pieces").replaceChildren(...pieces());
  $("vectors").replaceChildren(...vectorTable(a));
  $("steps").replaceChildren(...steps(a, blank));
  $("between").replaceChildren(...between(a));
  $("prediction").replaceChildren(...words(p, blank));
  $("loss").replaceChildren(...loss(p, blank));
  $("answers-section").hidden = !blank;
  const parts = blank ? [["(a) to (d)", steps(a, false)], ["(e)", words(p, false)], ["(f)", loss(p, false)]] : [];
  $("answers").replaceChildren(...parts.flatMap(([title, nodes]) => [el("h3", {}, title), ...nodes]));
  if (focus) document.querySelector(`[data-key="${focus}"]`)?.focus();
}

// ---- what a user changes ----

function readLines(id, what) {
  const lines = $(id).value.split("\n").filter((line) => line.trim());
  return lines.map((line, i) => {
    const cut = line.lastIndexOf(":"), numbers = line.slice(cut + 1).trim().split(/\s+/);
    if (cut < 0) throw Error(`${what}, line ${i + 1}: no colon after the name; write NAME: 0.2 0.5`);
    const wrong = numbers.find((word) => word === "" || !Number.isFinite(Number(word)));
    if (wrong !== undefined) throw Error(`${what}, line ${i + 1}: “${wrong}” is no number; write it as 0.5`);
    return [line.slice(0, cut).trim(), numbers.map(Number)];
  });
}
function readOwn() {
  const ids = ["keys", "queries", "values", "logits"], read = ids.map((id) => readLines(id, id));
  const [tokens, words] = [read[0], read[3]].map((lines) => lines.map(([word]) => word));
  read.forEach((lines, i) => {
    if (!lines.length) throw Error(`${ids[i]}: empty; write a line for each of them`);
    if (i < 3 && lines.map(([word]) => word).join("\n") !== tokens.join("\n"))
      throw Error(`${ids[i]}: not the tokens of the keys, in their order`);
    const width = i === 3 ? 1 : read[i === 1 ? 0 : i][0][1].length; // queries are as wide as keys
    const odd = lines.findIndex(([, x]) => x.length !== width);
    if (odd >= 0) throw Error(`${ids[i]}, line ${odd + 1}: ${lines[odd][1].length} numbers; it must have ${width}`);
  });
  const [keys, queries, values, logits] = read.map((lines) => lines.map(([, numbers]) => numbers));
  state.word = Math.max(0, words.indexOf(data.vocabulary[state.word]));
  Object.assign(data, { tokens, keys, queries, values, vocabulary: words, logits: logits.flat() });
}
function fillQuery(chosen) {
  fill("query", data.tokens.map((_, t) => name(t)), chosen);
  const likely = prediction().order.slice(0, 50).map((id) => data.vocabulary[id]);
  $("words").replaceChildren(...likely.map((word) => el("option", { value: word })));
}
function own() {
  $("own-error").textContent = "";
  try {
    readOwn();
  } catch (error) {
    $("own-error").textContent = `${error.message}. The numbers below are unchanged.`;
    return;
  }
  state.hidden.clear();
  state.open = "";
  fillQuery(Math.min(Number($("query").value), data.tokens.length - 1));
  draw();
}
function chooseWord() {
  const id = data.vocabulary.indexOf($("word").value.trim());
  $("word-error").textContent = id < 0 ? "not in the vocabulary; write one of its entries" : "";
  if (id >= 0) state.word = id;
  draw();
}
function download() {
  const a = attention();
  const line = (what, t, numbers) => [what, t, quoted(data.tokens[t]), ...numbers].join(",");
  const lines = [["what", "position", "token", ...Array.from({ length: a.width }, (_, i) => i + 1)].join(","),
    line("query", a.t, a.q), ...a.k.map((x, t) => line("key", t, x)), ...a.v.map((x, t) => line("value", t, x)),
    line("mixture", a.t, a.mixture)];
  const part = toy ? "sheet" : `layer${data.layers[a.layer]}-head${data.heads[a.head]}`;
  save(`attention-${part}.csv`, lines);
}

document.body.classList.toggle("toy", toy);
$("about").textContent = toy ? "The numbers of a class sheet; write your own below." : `${data.model}: ${data.text}`;
fillQuery(toy ? data.tokens.length - 1 : data.masks[0]);
const tops = [5, 10, 20, 50].filter((n) => n !== data.top).concat(data.top).sort((a, b) => a - b);
$("top").replaceChildren(...tops.map((n) => el("option", { selected: n === data.top }, n)));
if (!toy) {
  fill("layer", data.layers, data.layers.indexOf(data.layer));
  fill("head", data.heads, data.heads.indexOf(data.head));
} else {
  const lines = (texts, rows) => texts.map((text, i) => `${text}: ${[rows[i]].flat().join(" ")}`).join("\n");
  for (const id of ["keys", "queries", "values"]) $(id).value = lines(data.tokens, data[id]);
  $("logits").value = lines(data.vocabulary, data.logits);
  for (const id of ["keys", "queries", "values", "logits"]) $(id).addEventListener("input", own);
}
for (const id of ["layer", "head", "query", "digits", "unscaled", "worksheet", "top"])
  $(id).addEventListener("change", () => draw());
$("word").addEventListener("change", chooseWord);
$("csv").addEventListener("click", download);
draw();
$("word").value = data.vocabulary[state.word];

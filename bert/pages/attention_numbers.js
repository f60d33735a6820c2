// What the page computes from its data, in double precision: attention of a head, softmax, the prediction.
const toy = !data.layers;
const state = { hidden: new Set(), open: "", digits: 4 };

function rounded(x) {
  if (!Number.isFinite(x)) return x > 0 ? "∞" : x < 0 ? "−∞" : "none";
  const text = Math.abs(x) >= 1e7 ? x.toExponential(state.digits) : x.toFixed(state.digits);
  return (x !== 0 && Number(text) === 0 ? x.toExponential(1) : text).replaceAll("-", "−"); // 3.6e−5, not 0.0000
}
const short = (x) => String(Number(x.toFixed(state.digits))).replace("-", "−"); // without closing zeros: 0.7
const sum = (xs) => xs.reduce((total, x) => total + x, 0);
const dot = (a, b) => sum(Array.from(a, (x, i) => x * b[i]));
const norm = (a) => Math.sqrt(dot(a, a));

function softmax(logits) {
  const largest = logits.reduce((a, b) => Math.max(a, b), -Infinity);
  const shift = largest > 300 ? largest : 0; // beyond some 700, exp would be infinite
  const exponentials = Array.from(logits, (x) => Math.exp(x - shift));
  const total = sum(exponentials);
  return { shift, exponentials, total, shares: exponentials.map((e) => e / total), log: shift + Math.log(total) };
}

// ---- the head that is shown ----

const floats = (base64) => new Float32Array(bytes(base64).buffer);
const arrays = toy ? {} : Object.fromEntries(["q", "k", "v", "logits"].map((name) => [name, floats(data[name])]));

function vectors(name, layer, head) {
  if (toy) return data[{ q: "queries", k: "keys", v: "values" }[name]];
  const [T, H] = [data.tokens.length, data.width];
  const first = (layer * data.heads.length + head) * T * H;
  return data.tokens.map((_, t) => arrays[name].subarray(first + t * H, first + (t + 1) * H));
}

function attention() {
  const [layer, head, t] = ["layer", "head", "query"].map((id) => Number($(id).value || 0));
  const [q, k, v] = ["q", "k", "v"].map((name) => vectors(name, layer, head));
  const closed = new Set([...state.hidden, ...(data.hidden?.[layer][t] ?? [])]);
  const width = q[t].length;
  const divisor = $("unscaled").checked ? 1 : Math.sqrt(width);
  const scores = k.map((key) => dot(q[t], key));
  const scaled = scores.map((score) => score / divisor);
  const soft = softmax(scaled.map((x, s) => (closed.has(s) ? -Infinity : x)));
  const mixture = Array.from(v[0], (_, h) => dot(soft.shares, v.map((value) => value[h])));
  return { layer, head, t, q: q[t], k, v, closed, width, divisor, scores, scaled, soft, mixture };
}

function prediction() {
  const V = toy ? data.logits.length : arrays.logits.length / data.masks.length;
  const mask = toy ? 0 : Math.max(0, data.masks.indexOf(Number($("query").value)));
  const logits = toy ? data.logits : arrays.logits.subarray(mask * V, (mask + 1) * V);
  const order = Array.from(data.vocabulary.keys()).sort((a, b) => logits[b] - logits[a] || a - b);
  const count = Math.min(Number($("top").value), order.length);
  if (state.word === undefined) state.word = toy ? data.vocabulary.indexOf(data.word) : order[0];
  const shown = order.slice(0, count);
  if (toy) shown.sort((a, b) => a - b);
  if (!shown.includes(state.word)) shown.push(state.word);
  return { logits, order, shown, soft: softmax(logits), position: toy ? null : data.masks[mask] };
}

"use strict";
// The data of a page, and its elements. Texts become text nodes only, never markup.
const data = JSON.parse(document.getElementById("data").textContent);
const $ = (id) => document.getElementById(id);
function el(tag, attributes, ...children) {
  const drawing = ["svg", "path", "line"].includes(tag);
  const node = drawing ? document.createElementNS("http://www.w3.org/2000/svg", tag) : document.createElement(tag);
  for (const [name, value] of Object.entries(attributes ?? {})) {
    if (name.startsWith("on")) node.addEventListener(name.slice(2), value);
    else if (value !== false && value != null) node.setAttribute(name, value === true ? "" : value);
  }
  node.append(...children.flat());
  return node;
}
function fill(id, texts, chosen) {
  $(id).replaceChildren(...texts.map((text, i) => el("option", { value: i, selected: i === chosen }, text)));
}
// What atob gives, as numbers: bytes(text).buffer.
const bytes = (base64) => Uint8Array.from(atob(base64), (c) => c.charCodeAt(0));
function save(name, lines) {
  const url = URL.createObjectURL(new Blob([lines.join("\n") + "\n"], { type: "text/csv" }));
  el("a", { href: url, download: name }).click();
  setTimeout(() => URL.revokeObjectURL(url), 1000);
}
const quoted = (text) => `"${text.replaceAll('"', '""')}"`;

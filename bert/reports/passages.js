// Lists of passages: a filter, an order; for tokens their numbers: those of one in a line, of all in a table or below.

for (const list of document.querySelectorAll(".passages")) {
  const items = [...list.querySelectorAll(".passage")];
  const [filter, order, found] = ["input[type=search]", "select", "output"].map((name) => list.querySelector(name));
  filter.addEventListener("input", () => {
    const sought = filter.value.toLowerCase();
    for (const item of items) item.hidden = !item.textContent.toLowerCase().includes(sought);
    const left = items.filter((item) => !item.hidden).length;
    found.textContent = sought ? `${left} of these ${items.length} contain the text.` : found.dataset.of;
  });
  order.addEventListener("change", () => {
    items.sort((a, b) => b.dataset[order.value] - a.dataset[order.value]).forEach((item) => list.append(item));
  });
}

// [name, text] of the numbers of a token: votes, where there are some, and probabilities; of a word its tags, too.
function numbersOf(token) {
  const { truth, predicted, p, votes: counted } = token.dataset;
  if (predicted !== undefined) return [["truth", truth ?? ""], ["predicted", predicted], ["p", p], ["votes", counted ?? ""]];
  const value = (name) => Number(token.style.getPropertyValue(name) || 0);
  const three = (what, b, i) => [["B", b], ["I", i], ["O", 1 - b - i]].map(([tag, p]) => [`${what} ${tag}`, Math.abs(p).toFixed(4)]);
  const votes = token.closest(".unvoted") ? [] : three("votes", value("--B"), value("--I"));
  return [...votes, ...three("p", value("--b"), value("--i"))];
}

for (const text of document.querySelectorAll(".passage .tokens, .passage .words")) {
  const tokens = [...text.querySelectorAll(".t")];
  const readout = text.closest(".passage").querySelector(".readout");
  let at = -1;
  const show = (number) => {
    tokens[at]?.classList.remove("here");
    at = Math.max(0, Math.min(number, tokens.length - 1));
    tokens[at].classList.add("here");
    readout.textContent = [tokens[at].textContent, ...numbersOf(tokens[at]).map((pair) => pair.join(" "))].join("   ");
  };
  text.addEventListener("pointerover", (event) => event.target.matches(".t") && show(tokens.indexOf(event.target)));
  text.addEventListener("focus", () => show(Math.max(at, 0)));
  text.addEventListener("keydown", (event) => {
    const step = { ArrowRight: 1, ArrowLeft: -1 }[event.key];
    if (!step) return;
    event.preventDefault();
    show(at + step * (getComputedStyle(text).direction === "rtl" ? -1 : 1));
  });
  const fold = text.closest(".passage").querySelector("details.token-numbers");
  fold.addEventListener("toggle", () => {
    if (fold.querySelector("table")) return;
    const table = fold.appendChild(document.createElement("table"));
    table.createCaption().textContent = "Votes and probabilities of each token";
    const line = (part, cells, kind) => {
      const row = part.insertRow();
      for (const cell of cells) row.appendChild(document.createElement(kind)).textContent = cell;
    };
    line(table.createTHead(), ["token", ...numbersOf(tokens[0]).map(([name]) => name)], "th");
    const body = table.createTBody();
    for (const token of tokens) line(body, [token.textContent, ...numbersOf(token).map(([, number]) => number)], "td");
  });
}

for (const box of document.querySelectorAll(".passages input[type=checkbox]")) {
  box.addEventListener("change", () => {
    const list = box.closest(".passages");
    list.classList.toggle("numbers", box.checked);
    for (const token of list.querySelectorAll(".passage .t")) {
      token.dataset.below = numbersOf(token).slice(-3).map(([, p]) => Number(p).toFixed(2).replace(/^0/, "")).join("\n");
    }
  });
}

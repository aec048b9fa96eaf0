"use strict";
const page = JSON.parse(document.getElementById("data").textContent);
const dark = window.matchMedia("(prefers-color-scheme: dark)");

function drawCharts() {
  const style = getComputedStyle(document.documentElement);
  const ink = style.getPropertyValue("--ink").trim(), line = style.getPropertyValue("--line").trim();
  const config = {
    background: "transparent",
    axis: { labelColor: ink, titleColor: ink, gridColor: line, domainColor: line, tickColor: line },
    legend: { labelColor: ink, titleColor: ink, orient: "bottom", columns: 3 },
    view: { stroke: null },
  };
  for (const [name, spec] of Object.entries(page.charts)) {
    vegaEmbed(`#chart-${name}`, spec, { config, actions: false, renderer: "svg" });
  }
}

function make(tag, properties = {}, ...children) {
  const node = document.createElement(tag);
  for (const [key, value] of Object.entries(properties)) {
    if (key in node) node[key] = value; else node.setAttribute(key, value);
  }
  node.append(...children.filter((child) => child !== null));
  return node;
}

/* Text of any language: its direction is its own, its language is known to screen readers and fonts. */
function text(value, lang) {
  return make("p", { className: "text", dir: "auto", lang: lang || "" }, String(value ?? ""));
}

function sortable(table) {
  const body = table.tBodies[0];
  [...table.tHead.rows[0].cells].forEach((head, column) => {
    const button = make("button", { type: "button" }, head.textContent);
    head.replaceChildren(button);
    button.addEventListener("click", () => {
      const down = head.getAttribute("aria-sort") !== "descending";
      for (const other of table.tHead.rows[0].cells) other.removeAttribute("aria-sort");
      head.setAttribute("aria-sort", down ? "descending" : "ascending");
      const value = (row) => row.cells[column].dataset.value ?? row.cells[column].textContent;
      const compare = (a, b) => {
        const x = Number(value(a)), y = Number(value(b));
        const numbers = value(a) !== "" && value(b) !== "" && !Number.isNaN(x) && !Number.isNaN(y);
        return numbers ? x - y : value(a).localeCompare(value(b));
      };
      const blank = (row) => value(row) === "";
      const rows = [...body.rows].sort((a, b) => blank(a) - blank(b) || (down ? compare(b, a) : compare(a, b)));
      body.append(...rows);
    });
  });
}

/* Right and wrong by the most trustworthy metric that a sample has. */
const CORRECT = ["acc", "judged_accuracy", "match", "exact_match"];
function outcome(sample) {
  const metric = CORRECT.find((name) => name in sample.values);
  if (metric) return sample.values[metric] ? "right" : "wrong";
  return CORRECT.some((name) => name in sample.unscored) ? "unscored" : "no verdict";
}
const found = (sample) => (sample.retrieved === null || sample.retrieved === undefined ? "unknown" : sample.retrieved ? "retrieved" : "not retrieved");

function details(sample) {
  const body = make("div", { className: "body" });
  const part = (title, ...nodes) => body.append(make("h3", {}, title), ...nodes);
  part("Question", text(sample.question, sample.lang));
  if (sample.choices) part("Options", ...sample.choices.map((choice, i) => text(`${String.fromCharCode(65 + i)}. ${choice}`)));
  part("Reply", text(sample.reply));
  if (sample.answer && sample.answer !== sample.reply) part("Answer read from it", text(sample.answer));
  if (sample.references.length) part("Reference answers", ...sample.references.map((answer) => text(answer, sample.lang)));
  const values = Object.entries(sample.values).map(([name, value]) => `${name} ${Math.round(value * 1000) / 10}`);
  const missing = Object.entries(sample.unscored).map(([name, reason]) => `${name}: ${reason}`);
  part("Scores (× 100)", make("p", {}, [...values, ...missing].join(" · ")));
  if (sample.votes) {
    part("Votes", make("ul", {}, ...Object.entries(sample.votes).map(([judge, vote]) => {
      const verdict = vote.verdict === null || vote.verdict === undefined ? `abstains (${vote.error ?? ""})` : vote.verdict ? "correct" : "incorrect";
      return make("li", {}, `${judge}: ${verdict}`, vote.justification ? text(vote.justification) : null);
    })));
  }
  if (sample.passages.length) {
    part(`Passages shown (${sample.passages.length})`, ...sample.passages.map(([index, score, gold], i) => {
      const passage = page.passages[index];
      const head = make("p", { className: "soft" }, `${i + 1} · `, make("span", { className: "tag" }, passage.lang), score === null ? "" : ` · score ${score}`, gold ? " · supporting" : "");
      return make("div", { className: gold ? "passage gold" : "passage" }, head, passage.title ? text(passage.title, passage.lang) : null, passage.text ? text(passage.text, passage.lang) : make("p", { className: "soft" }, passage.id));
    }));
  }
  if (sample.trace) part("Trace", text(JSON.stringify(sample.trace, null, 1)));
  return body;
}

function browser() {
  const list = document.getElementById("samples");
  if (!list) return;
  const controls = Object.fromEntries([...document.querySelectorAll(".filters [name]")].map((node) => [node.name, node]));
  const keys = { task: (s) => s.task, language: (s) => s.lang, outcome, retrieved: found };
  for (const [name, key] of Object.entries(keys)) {
    const options = [...new Set(page.samples.map(key))].filter(Boolean).sort();
    controls[name].append(...options.map((option) => make("option", { value: option }, option)));
  }
  const STEP = 40;
  let shown = STEP;
  function draw() {
    const wanted = controls.words.value.trim().toLocaleLowerCase();
    const kept = page.samples.filter((sample) =>
      Object.entries(keys).every(([name, key]) => !controls[name].value || key(sample) === controls[name].value) &&
      (!wanted || `${sample.id} ${sample.question} ${sample.reply}`.toLocaleLowerCase().includes(wanted)));
    document.getElementById("count").textContent = `${kept.length} of ${page.samples.length} samples`;
    list.replaceChildren(...kept.slice(0, shown).map((sample) => {
      const state = outcome(sample);
      const tone = state === "right" ? "tag good" : state === "wrong" ? "tag bad" : "tag";
      const summary = make("summary", {}, make("span", { className: tone }, state), make("span", { className: "tag" }, sample.lang || "?"),
        make("span", { className: "question", dir: "auto", lang: sample.lang || "" }, sample.question), make("span", { className: "soft" }, sample.task));
      const item = make("details", {}, summary);
      item.addEventListener("toggle", () => { if (item.open && item.children.length === 1) item.append(details(sample)); });
      return item;
    }));
    if (kept.length > shown) {
      const more = make("button", { type: "button", className: "more" }, `Show ${Math.min(STEP, kept.length - shown)} more`);
      more.addEventListener("click", () => { shown += STEP; draw(); });
      list.append(more);
    }
  }
  for (const control of Object.values(controls)) control.addEventListener("input", () => { shown = STEP; draw(); });
  draw();
}

drawCharts();
dark.addEventListener("change", drawCharts);
document.querySelectorAll("table.sortable").forEach(sortable);
browser();

"use strict";
/* Names come from files. The library of the charts keeps them as keys of objects ("constructor", "__proto__"), and puts
   them into expressions, which cannot hold every line end. */
const harmless = (key, value) => (typeof value !== "string" ? value : value in Object.prototype ? `${value}\u2060` : value.replace(/[\u2028\u2029]/g, "\n"));
const page = JSON.parse(document.getElementById("data").textContent, harmless);
const named = (code) => page.names[code] ?? code;

function make(tag, properties = {}, ...children) {
  const node = document.createElement(tag);
  for (const [key, value] of Object.entries(properties)) {
    if (key in node && key !== "list") node[key] = value; else node.setAttribute(key, value);
  }
  node.append(...children.filter((child) => child !== null && child !== undefined));
  return node;
}

/* Text in a known language runs as that language does; any other text as its first letter. */
function text(value, lang, className = "text") {
  const dir = lang && page.names[lang] ? page.directions[lang] ?? "ltr" : "auto";
  return make("p", { className, dir, lang: lang || "" }, String(value ?? ""));
}
/* Spans of a text are marked, without a break in its direction. */
function marked(value, spans = [], lang = "", title = "no passage shown supports this") {
  const node = text("", lang);
  const ends = spans.flatMap(([start, end]) => [start, end]);
  [0, ...ends].forEach((start, i) => {
    const part = value.slice(start, ends[i]);
    node.append(i % 2 ? make("mark", { title }, part) : part);
  });
  return node;
}
const tag = (code) => make("span", { className: "tag", title: code }, named(code) || "?");

/* ---------------------------------------------------------------- tables */

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

const LANGUAGES = ["language", "question", "document", "answer", "over"];
const shown = (field, value) => (value === null || value === undefined ? "" : LANGUAGES.includes(field) ? named(value) : String(value));

function tableOf(caption, heads, rows) {
  const table = make("table", { className: "sortable" }, make("caption", {}, caption),
    make("thead", {}, make("tr", {}, ...heads.map((head) => make("th", { scope: "col" }, head)))),
    make("tbody", {}, ...rows.map((cells) => make("tr", {}, ...cells))));
  sortable(table);
  return make("div", { className: "scroll", tabIndex: 0, role: "region", "aria-label": caption }, table);
}

const cellOf = (value) => make("td", typeof value === "number" ? { className: "number" } : {}, String(value ?? ""));

/* The values of a chart as it stands, as a table; of a heat map crosswise, with a button for the samples of each cell. */
function dataTable(name, spec, view) {
  const chosen = (spec.params ?? []).map((param) => param.name);
  const points = spec.data.values.filter((point) => chosen.every((key) => point[key] === view.signal(key)));
  const settings = chosen.map((key) => view.signal(key)).join(", ");
  const caption = settings ? `${spec.description}: ${settings}` : spec.description;
  const { columns, pivot } = spec.usermeta;
  if (!pivot) {
    const keys = Object.keys(columns);
    return tableOf(caption, Object.values(columns), points.map((point) =>
      keys.map((key, i) => (i ? cellOf(typeof point[key] === "number" ? point[key] : shown(key, point[key])) : make("th", { scope: "row" }, shown(key, point[key]))))));
  }
  const [down, across] = pivot;
  const values = (key) => [...new Set(points.map((point) => point[key]))];
  const heads = values(across);
  const rows = values(down).map((row) => [make("th", { scope: "row" }, shown(down, row)), ...heads.map((head) => {
    const point = points.find((each) => each[down] === row && each[across] === head);
    if (!point || typeof point.value !== "number") return make("td", { "data-value": "" });
    const limits = typeof point.low !== "number" || typeof point.high !== "number" ? "" : `[${point.low.toFixed(1)}, ${point.high.toFixed(1)}] `;
    const figure = point.value.toFixed(1);
    const filters = filtersOf(name, point);
    const label = filters ? make("button", { type: "button", className: "open", "aria-label": `${shown(down, row)}, ${shown(across, head)}: ${figure}, open the samples` }, figure) : figure;
    if (filters) label.addEventListener("click", () => openSamples(filters));
    return make("td", { className: "number", "data-value": point.value }, label, make("small", {}, `${limits}n=${point.n}`));
  })]);
  return tableOf(caption, [columns[down] ?? down, ...heads.map((head) => shown(across, head))], rows);
}

/* ---------------------------------------------------------------- charts */

const INK = { labelColor: "#1b1f24", titleColor: "#1b1f24" };
const views = {};

/* Legends are whole: as many columns as their longest name leaves room for. */
function configOf(name, spec) {
  const room = document.getElementById(`plot-${name}`).clientWidth;
  const field = [spec, ...(spec.layer ?? [])].map((each) => each.encoding?.color?.field).find(Boolean);
  const longest = Math.max(6, ...spec.data.values.map((point) => (field ? shown(field, point[field]).length : 0)));
  const legend = { ...INK, symbolOpacity: 1, orient: "bottom", columns: Math.max(1, Math.min(6, Math.floor(room / (40 + 7 * longest)))), labelLimit: Math.max(80, room - 60) };
  const limit = Math.round(room * (room < 600 ? 0.3 : 0.35)), letters = Math.floor(limit / 6.8);
  // names often differ at their end alone
  const labelExpr = `length(datum.label) > ${letters} ? '…' + slice(datum.label, ${1 - letters}) : datum.label`;
  return { background: "transparent", axis: { ...INK, labelLimit: limit, labelExpr }, legend, rule: { color: "#7b8794" }, view: { stroke: null } };
}

async function drawCharts() {
  for (const [name, spec] of Object.entries(page.charts)) {
    const plot = document.getElementById(`plot-${name}`), across = spec.usermeta.pivot?.[1];
    const least = across ? 34 * new Set(spec.data.values.map((point) => point[across])).size : 0;
    // the figures of a narrow heat map stand apart, and it is moved sideways
    const wide = least > 0.6 * plot.clientWidth;
    if (wide) plot.tabIndex = 0;
    const drawn = wide ? { ...spec, width: least, autosize: { type: "pad" } } : spec;
    const { view } = await vegaEmbed(plot, drawn, { config: configOf(name, spec), actions: false, renderer: "svg" });
    views[name] = view;
    // a layer without marks has nothing to name
    for (const node of plot.querySelectorAll('[role="graphics-symbol"]:empty')) node.setAttribute("aria-hidden", "true");
    view.addEventListener("click", (event, item) => {
      const filters = item && item.datum ? filtersOf(name, item.datum) : null;
      if (filters) openSamples(filters);
    });
    const details = document.querySelector(`details.data[data-chart="${name}"]`);
    const draw = () => { if (details.open) details.lastElementChild.replaceChildren(dataTable(name, spec, view)); };
    details.addEventListener("toggle", draw);
    const chosen = () => addressed(`chart-${name}`, Object.fromEntries((spec.params ?? []).map((param) => [param.name, view.signal(param.name)])));
    for (const param of spec.params ?? []) view.addSignalListener(param.name, () => { draw(); chosen(); });
  }
  follow();
  document.documentElement.dataset.drawn = "yes";
}

/* What the samples of a point are found by; nothing where a point has none. */
function filtersOf(name, point) {
  if (!page.samples.length) return null;
  const opens = page.opens[name];
  return opens ? Object.fromEntries(Object.entries(opens).map(([filter, field]) => [filter, point[field]])) : null;
}

/* ------------------------------------------------------------- addresses */

/* An address is the id of an element, and what is chosen there: #browser?language=ar, #chart-scores?metric=f1. */
function addressed(id, chosen) {
  const query = new URLSearchParams(Object.entries(chosen).filter(([, value]) => value));
  try { history.replaceState(null, "", `#${id}${query.size ? `?${query}` : ""}`); } catch { /* a page without an address */ }
}

function follow() {
  const [id, query] = location.hash.slice(1).split("?");
  let node = null;
  try { node = document.getElementById(decodeURIComponent(id)); } catch { return; }
  if (!node) return;
  for (let each = node; each; each = each.parentElement) if (each.tagName === "DETAILS") each.open = true;
  const board = node.closest(".board");
  if (board) chooseBoard(board);
  const chosen = Object.fromEntries([...new URLSearchParams(query ?? "")].map(([key, value]) => [key, harmless(key, value)]));
  const name = node.id.replace(/^chart-/, "");
  if (node.id === "browser" && query && controls.task) return openSamples(chosen, Boolean(chosen.row));
  for (const { name: key } of page.charts[name]?.params ?? []) if (views[name] && Object.hasOwn(chosen, key)) views[name].signal(key, chosen[key]).run();
  node.scrollIntoView();
}

/* Headings and rows link to themselves; rows by mouse alone, as a table would else hold a stop of the keyboard a row. */
function links() {
  for (const node of document.querySelectorAll("main > h2[id], main > h3[id], main details > h3[id], tr[id]")) {
    const head = node.tagName === "TR" ? node.querySelector("th") : node;
    head?.append(make("a", { className: "address", href: `#${encodeURIComponent(node.id)}`, tabIndex: head === node ? 0 : -1, "aria-label": `Link to ${head.textContent.trim()}` }));
  }
}

/* ------------------------------------------------------------ leaderboard */

function leaderboard() {
  const choice = document.getElementById("board-choice");
  if (!choice) return;
  const [benchmark, metric] = choice.querySelectorAll("select");
  const boards = [...document.querySelectorAll(".board")];
  const show = () => boards.forEach((board) => { board.hidden = board.dataset.benchmark !== benchmark.value || board.dataset.metric !== metric.value; });
  const fill = () => {
    const names = boards.filter((board) => board.dataset.benchmark === benchmark.value).map((board) => board.dataset.metric);
    metric.replaceChildren(...names.map((name) => make("option", {}, name)));
    metric.closest("label").hidden = names.length < 2;
    show();
  };
  benchmark.addEventListener("input", fill);
  metric.addEventListener("input", show);
  fill();
  return (board) => { benchmark.value = board.dataset.benchmark; fill(); metric.value = board.dataset.metric; show(); };
}

/* --------------------------------------------------------------- samples */

const values = (sample) => Object.entries(sample.values ?? {}).map(([name, value]) => `${name} ${value}`);
/* A row that is neither right nor wrong shows its first score. */
const outcome = (sample) => (sample.right === undefined ? (values(sample).length ? "scored" : "unscored") : sample.right ? "right" : "wrong");
const found = (sample) => (sample.retrieved === undefined ? "unknown" : sample.retrieved ? "retrieved" : "not retrieved");

/* Where a text has one of some answers. */
function places(value, answers = []) {
  const words = answers.filter((answer) => answer.trim().length > 1).map((answer) => answer.replace(/[\\^$.*+?()[\]{}|\/]/g, "\\$&"));
  if (!words.length) return [];
  return [...value.matchAll(new RegExp(words.sort((a, b) => b.length - a.length).join("|"), "giu"))].map((found) => [found.index, found.index + found[0].length]);
}

function passageOf([index, score, gold], number, extra = [], answers = []) {
  const passage = page.passages[index];
  const head = make("p", { className: "soft head" }, `${number} · `, tag(passage.lang), passage.from ? ` translated from ${named(passage.from)}` : "",
    score === null ? "" : ` · score ${score}`, gold ? " · supporting" : "", ...extra);
  return make("div", { className: gold ? "passage gold" : "passage" }, head, passage.title ? text(passage.title, passage.lang, "text title") : null,
    passage.text ? marked(passage.text, gold ? places(passage.text, answers) : [], passage.lang, "a reference answer") : make("p", { className: "soft" }, passage.id));
}

function roundOf(each, number) {
  const nodes = [make("h4", {}, `Round ${number}`)];
  nodes.push(make("p", { className: "head" }, "searched in ", ...(each.languages ?? []).flatMap((code) => [tag(code), " "])));
  if (each.query) nodes.push(text(each.query));
  (each.hits ?? []).forEach(([index, score, fresh, valid, critic], i) => {
    const said = critic ? ` · critic ${["relevance", "usefulness", "clarity_specificity", "compatibility"].map((key) => critic[key] ?? "–").join("/")}${critic.total === undefined ? "" : ` = ${critic.total}`}` : "";
    const extra = [` · ${fresh ? "new" : "seen before"} · `, make("span", { className: valid ? "tag good" : "tag bad" }, valid ? "kept" : "discarded"), said];
    const node = passageOf([index, score, false], i + 1, extra);
    if (critic && critic.critique) node.append(text(critic.critique, "", "text soft"));
    nodes.push(node);
  });
  if (each.enough !== undefined) nodes.push(make("p", { className: "head" }, each.enough ? "Enough. " : "Not enough. "));
  if (each.reason) nodes.push(text(each.reason));
  if (each.faults) nodes.push(make("p", { className: "soft" }, `faults: ${Object.entries(each.faults).map(([fault, n]) => `${fault} ${n}`).join(", ")}`));
  return nodes;
}

function details(sample) {
  const body = make("div", { className: "body" });
  const part = (title, ...nodes) => body.append(make("h3", {}, title), ...nodes.filter(Boolean));
  part(sample.source && sample.source !== sample.lang ? `Question, about a culture whose language is ${named(sample.source)}` : "Question", text(sample.question, sample.lang));
  if (sample.choices) part("Options", ...sample.choices.map((choice, i) => text(`${String.fromCharCode(65 + i)}. ${choice}`, sample.lang)));
  const read = sample.answer && sample.answer !== sample.reply;
  const replyOf = (one, spans) => [one.reply ? marked(one.reply, spans) : null, why(one) ? make("p", { className: "soft" }, why(one)) : null];
  const beside = same(sample).slice(0, 3);
  if (!beside.length) part("Reply", ...replyOf(sample, read ? [] : sample.unsupported));
  else part("Replies", make("div", { className: "two" }, ...[sample, ...beside].map((one) => make("div", {},
    make("p", { className: "head" }, ...systemOf(one), " ", outcomeTag(one)), ...replyOf(one, one === sample && !read ? sample.unsupported : [])))));
  if (read) part("Answer read from it", marked(sample.answer, sample.unsupported));
  if (sample.claims) part("Its claims", make("p", {}, sample.claims.map(([verdict, passage, lang], i) =>
    `${i + 1} ${verdict.replace("_", " ")}${passage ? ` by passage ${passage}${lang ? ` (${named(lang)})` : ""}` : ""}`).join(" · ")));
  if (sample.references) part("Reference answers", ...sample.references.map((answer) => text(answer, sample.lang)));
  const missing = Object.entries(sample.unscored ?? {}).map(([name, reason]) => `${name}: ${reason}`);
  part("Scores (× 100)", make("p", {}, [...values(sample), ...missing].join(" · ") || "none"));
  if (sample.votes) {
    part("Votes", make("ul", {}, ...Object.entries(sample.votes).map(([judge, vote]) => {
      const none = vote.verdict === null || vote.verdict === undefined;
      const words = {true: "correct", false: "incorrect"};
      const verdict = none ? `abstains (${vote.error ?? ""})` : words[vote.verdict] ?? `${vote.verdict}`;
      return make("li", {}, `${judge}: ${verdict}`, vote.justification ? text(vote.justification) : null);
    })));
  }
  if (sample.passages) part(`Passages shown (${sample.passages.length})`, ...sample.passages.map((hit, i) => passageOf(hit, i + 1, [], sample.references)));
  if (sample.prompt) body.append(make("details", { className: "data" }, make("summary", {}, "Prompt"), text(sample.prompt)));
  if (sample.trace) {
    const { stopped, rounds, usage } = sample.trace;
    const cost = usage ? ` · ${usage.calls} calls, ${usage.tokens_in} + ${usage.tokens_out} tokens` : "";
    part("Trace", make("p", { className: "soft" }, `ended: ${String(stopped).replaceAll("_", " ")}${cost}`), ...(rounds ?? []).flatMap((each, i) => roundOf(each, i + 1)));
  }
  body.append(make("p", {}, make("a", { href: `#browser?${new URLSearchParams({ task: sample.task, row: sample.id })}` }, "Link to this sample")));
  return body;
}

/* Why a row has no reply, or only a part of one, or no score. */
const FATES = { "empty": "The model's reply is empty.", "refusal": "The provider says that the model refused.", "thinking cut": "The model was still thinking at its limit of tokens.",
  "cut off": "Cut off at the limit of tokens.", "failed": "No reply came.", "not asked": "The model was not asked." };
const why = (sample) => [FATES[sample.fate] ?? sample.fate ?? (sample.reply ? "" : "No reply was kept."), ...(sample.failures ?? [])].filter(Boolean).join(" ");
const several = new Set(Object.values(page.tasks).map((task) => task.system)).size > 1;
const systemOf = (sample) => [make("span", { className: "swatch", style: `background:${page.tasks[sample.task].colour}` }), page.tasks[sample.task].system];

function outcomeTag(sample) {
  const state = outcome(sample);
  return make("span", { className: state === "right" ? "tag good" : state === "wrong" ? "tag bad" : "tag" }, state === "scored" ? values(sample)[0] : state);
}

/* The replies of other systems to the same question. */
const questionOf = (sample) => JSON.stringify([page.tasks[sample.task].benchmark, sample.lang, sample.id, sample.question]);
const asked = new Map();
for (const sample of page.samples) asked.set(questionOf(sample), [...(asked.get(questionOf(sample)) ?? []), sample]);
const same = (sample) => asked.get(questionOf(sample)).filter((other) => other !== sample && other.task !== sample.task);
const agreement = (sample) => (same(sample).length ? (same(sample).some((other) => outcome(other) !== outcome(sample)) ? "differ" : "agree") : "");

const controls = Object.fromEntries([...document.querySelectorAll("#sample-filters [name]")].map((node) => [node.name, node]));
const KEYS = {
  model: (s) => page.tasks[s.task].model, benchmark: (s) => page.tasks[s.task].benchmark, mode: (s) => page.tasks[s.task].mode,
  task: (s) => s.task, language: (s) => s.source, outcome, systems: agreement, retrieved: found, document: (s) => s.doc_lang,
};
const STEP = 40;
let most = STEP;

function drawSamples() {
  const list = document.getElementById("samples");
  const wanted = controls.words.value.trim().toLocaleLowerCase();
  const kept = page.samples.filter((sample) =>
    Object.entries(KEYS).every(([name, key]) => !controls[name].value || key(sample) === controls[name].value) &&
    (!wanted || `${sample.id} ${sample.question} ${sample.reply}`.toLocaleLowerCase().includes(wanted)));
  const drawn = page.drawn > page.samples.length ? ` (drawn from ${page.drawn.toLocaleString("en")})` : "";
  document.getElementById("count").textContent = `${kept.length} of ${page.samples.length} samples${drawn}`;
  list.replaceChildren(...kept.slice(0, most).map((sample) => {
    const question = text(sample.question, sample.lang, "question");
    question.style.margin = 0;
    const summary = make("summary", {}, outcomeTag(sample), tag(sample.source || sample.lang),
      make("span", { className: "question", dir: question.dir, lang: sample.lang || "" }, sample.question), make("span", { className: "soft" }, ...(several ? systemOf(sample) : [Object.keys(page.tasks).length > 1 ? sample.task : ""]), sample.fate ? ` · ${sample.fate}` : outcome(sample) === "unscored" ? ` · ${Object.values(sample.unscored ?? {})[0] ?? ""}` : ""));
    const item = make("details", { "data-row": sample.id }, summary);
    item.addEventListener("toggle", () => { if (item.open && item.children.length === 1) item.append(details(sample)); });
    return item;
  }));
  if (kept.length > most) {
    const more = make("button", { type: "button", className: "more" }, `Show ${Math.min(STEP, kept.length - most)} more`);
    more.addEventListener("click", () => {
      const first = most;
      most += STEP;
      drawSamples();
      list.children[first]?.querySelector("summary").focus();
    });
    list.append(more);
  }
  return kept.length;
}

/* Show the samples of a chart's cell or of an address, and open the first, or the row that is named. */
function openSamples(filters, open = true) {
  for (const [name, control] of Object.entries(controls)) control.value = filters[name] ?? "";
  if (filters.row) controls.words.value = filters.row;
  most = filters.row ? page.samples.length : STEP;
  drawSamples();
  addressed("browser", filters);
  document.getElementById("browser").scrollIntoView();
  const items = [...document.querySelectorAll("#samples details")];
  const first = items.find((item) => item.dataset.row === filters.row) ?? items[0];
  if (open && first) { first.open = true; first.querySelector("summary").focus({ preventScroll: true }); }
}

function browser() {
  if (!controls.task) return;
  for (const [name, key] of Object.entries(KEYS)) {
    const options = [...new Set(page.samples.map(key))].filter(Boolean).sort();
    const label = ["language", "document"].includes(name) ? (code) => (named(code) === code ? code : `${named(code)} (${code})`) : (value) => value;
    controls[name].append(...options.map((option) => make("option", { value: option }, label(option))));
    controls[name].closest("label").hidden = options.length < 2;
  }
  const choose = () => { most = STEP; drawSamples(); addressed("browser", Object.fromEntries(Object.entries(controls).map(([name, control]) => [name, control.value]))); };
  for (const control of Object.values(controls)) control.addEventListener("input", choose);
  drawSamples();
}

document.querySelectorAll("table.sortable").forEach(sortable);
addEventListener("beforeprint", () => { for (const node of document.querySelectorAll("#measured")) node.open = true; });
const chooseBoard = leaderboard();
browser();
links();
window.addEventListener("hashchange", follow);
drawCharts();

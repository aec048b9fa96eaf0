/* What every reader of a page needs: names for controls, one order of headings, heads and captions for tables. */
() => {
  const found = [];
  const name = (node) => (node.getAttribute("aria-label") || node.getAttribute("aria-labelledby") ||
    node.closest("label")?.textContent || node.textContent || node.title || "").trim();
  const named = "a, button, select, input, summary, nav, [role=region], [role=figure], [role=search]";
  for (const node of document.querySelectorAll(named)) {
    if (!name(node)) found.push("no name: " + node.outerHTML.slice(0, 80));
  }
  for (const node of document.querySelectorAll("[aria-labelledby], [aria-describedby]")) {
    for (const id of [node.getAttribute("aria-labelledby"), node.getAttribute("aria-describedby")]) {
      if (id && !document.getElementById(id)) found.push("no element " + id);
    }
  }
  const ids = [...document.querySelectorAll("[id]")].map((node) => node.id);
  for (const id of new Set(ids)) if (ids.filter((each) => each === id).length > 1) found.push("twice: " + id);
  let last = 0;
  for (const head of document.querySelectorAll("h1, h2, h3, h4")) {
    const level = Number(head.tagName[1]);
    if (level > last + 1) found.push(`h${level} after h${last}: ${head.textContent}`);
    last = level;
  }
  if (document.querySelectorAll("h1").length !== 1 || document.querySelectorAll("main").length !== 1) found.push("h1, main");
  for (const table of document.querySelectorAll("table")) {
    if (!table.caption || !table.caption.textContent.trim()) found.push("no caption: " + table.textContent.slice(0, 40));
    if (table.querySelectorAll("th:not([scope])").length) found.push("no scope: " + table.caption.textContent);
  }
  for (const figure of document.querySelectorAll("[role=figure] svg")) {
    const described = figure.getAttribute("aria-label") || figure.querySelector("[aria-label]");
    if (!described) found.push("no description: " + figure.parentElement.id);
  }
  for (const link of document.querySelectorAll("nav a")) if (!document.querySelector(link.getAttribute("href"))) found.push("nowhere: " + link.href);
  return found;
}

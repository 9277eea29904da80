"use strict";
/* The page is whole without this: it only says more under the pointer, and sorts tables. */
(() => {
  const tip = document.getElementById("tip");
  const show = (event, text) => {
    tip.textContent = text;
    tip.hidden = false;
    const box = tip.getBoundingClientRect();
    tip.style.left = Math.max(4, Math.min(event.clientX + 14, innerWidth - box.width - 8)) + "px";
    tip.style.top = (event.clientY + 18 + box.height > innerHeight ? event.clientY - box.height - 10 : event.clientY + 18) + "px";
  };
  const maps = [...document.querySelectorAll(".heat-data")].map((data) => {
    const found = JSON.parse(data.textContent);
    found.broken = new Set(found.failed.map((pair) => pair.join(" ")));
    return found;
  });
  const cell = (svg, event) => {
    const map = maps[svg.dataset.heat];
    const point = new DOMPoint(event.clientX, event.clientY).matrixTransform(svg.getScreenCTM().inverse());
    const to = Math.floor((point.x - svg.dataset.left) / map.side);
    const from = Math.floor((point.y - svg.dataset.top) / map.side);
    if (from === to || !(from in map.names) || !(to in map.names)) return "";
    const value = map.values[from][to];
    const said = map.broken.has(from + " " + to) ? "does not work" : value === null ? "not measured" : value + " " + map.unit;
    return map.names[from] + " → " + map.names[to] + ": " + said;
  };
  document.addEventListener("pointermove", (event) => {
    const source = event.target.closest("[data-tip]");
    const svg = event.target.closest("[data-heat]");
    const text = source ? source.dataset.tip : svg ? cell(svg, event) : "";
    if (text) show(event, text);
    else tip.hidden = true;
  });
  document.addEventListener("pointerleave", () => { tip.hidden = true; });
  const order = new Intl.Collator("en", { numeric: true });
  for (const table of document.querySelectorAll("table.sortable")) {
    table.querySelectorAll("thead th").forEach((head, column) => {
      const button = document.createElement("button");
      button.textContent = head.textContent;
      head.replaceChildren(button);
      button.addEventListener("click", () => {
        const down = head.getAttribute("aria-sort") === "ascending";
        table.querySelectorAll("thead th").forEach((other) => other.removeAttribute("aria-sort"));
        head.setAttribute("aria-sort", down ? "descending" : "ascending");
        const rows = [...table.tBodies[0].rows];
        const signs = (part) => part.classList && part.classList.contains("mark");
        const text = (row) => [...row.cells[column].childNodes].filter((part) => !signs(part))
          .map((part) => part.textContent).join("").trim();
        rows.sort((one, other) => (down ? -1 : 1) * order.compare(text(one), text(other)));
        table.tBodies[0].append(...rows);
      });
    });
  }
  addEventListener("beforeprint", () => document.querySelectorAll("details").forEach((one) => { one.open = true; }));
})();

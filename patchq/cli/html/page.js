"use strict";
(() => {
  const table = document.querySelector("table");
  const body = table.tBodies[0];
  const rows = [...body.rows];
  const find = document.getElementById("find");
  const words = [...document.querySelectorAll("#words button")];
  const shown = document.getElementById("shown");

  const texts = new Map();

  function textOf(row) {
    if (!texts.has(row)) {
      const parts = [...row.cells];
      if ("deep" in table.dataset) {
        const links = [...row.querySelectorAll("a")].map((one) => one.getAttribute("href"));
        parts.push(...[...new Set(links)].map((link) => document.getElementById(link.slice(1))));
      }
      texts.set(row, parts.map((one) => one.textContent.toLowerCase()).join("\n"));
    }
    return texts.get(row);
  }

  function filter() {
    const text = find.value.trim().toLowerCase();
    const pressed = words
      .filter((one) => one.getAttribute("aria-pressed") === "true")
      .map((one) => one.dataset.word);
    let count = 0;
    for (const row of rows) {
      const cells = [...row.cells];
      const has = (word) =>
        cells.some((cell) => (word === "*" ? "marked" in cell.dataset : cell.dataset.word === word));
      const fits = !text || textOf(row).includes(text);
      row.hidden = !fits || !(pressed.length === 0 || pressed.some(has));
      count += row.hidden ? 0 : 1;
    }
    shown.textContent = `${count} of ${rows.length} rows`;
  }

  function compare(column) {
    return (one, other) => {
      const [a, b] = [one.cells[column], other.cells[column]];
      if ("order" in a.dataset && "order" in b.dataset) return a.dataset.order - b.dataset.order;
      return a.textContent.localeCompare(b.textContent, undefined, { numeric: true });
    };
  }

  function sort(heading, column) {
    const down = heading.getAttribute("aria-sort") === "ascending";
    for (const one of table.tHead.rows[0].cells) one.removeAttribute("aria-sort");
    heading.setAttribute("aria-sort", down ? "descending" : "ascending");
    const sorted = [...rows].sort(compare(column));
    body.append(...(down ? sorted.reverse() : sorted));
  }

  function open() {
    const name = location.hash;
    for (const link of document.querySelectorAll("a.word")) {
      link.classList.toggle("open", link.getAttribute("href") === name);
    }
    const why = document.querySelector(".why:target");
    if (why) why.focus();
  }

  [...table.tHead.rows[0].cells].forEach((heading, column) => {
    const button = document.createElement("button");
    button.type = "button";
    button.append(...heading.childNodes);
    button.addEventListener("click", () => sort(heading, column));
    heading.append(button);
  });
  for (const one of words) {
    one.addEventListener("click", () => {
      one.setAttribute("aria-pressed", String(one.getAttribute("aria-pressed") !== "true"));
      filter();
    });
  }
  find.addEventListener("input", filter);
  document.getElementById("controls").addEventListener("submit", (event) => event.preventDefault());
  document.addEventListener("keydown", (event) => {
    const why = document.querySelector(".why:target");
    if (event.key !== "Escape" || !why) return;
    const name = `at-${why.id}`;
    location.hash = name;
    document.getElementById(name).querySelector("a").focus();
  });
  window.addEventListener("hashchange", open);
  document.getElementById("controls").hidden = false;
  filter();
  open();
})();

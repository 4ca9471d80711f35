"use strict";
(() => {
  const all = (selector) => [...document.querySelectorAll(selector)];
  const one = (selector) => document.querySelector(selector);
  const slot = 12;
  document.documentElement.classList.add("js");

  // --- tracks -------------------------------------------------------------------------------------------
  const switches = all(".switch");
  const methods = switches.filter((box) => /^m\d+$/.test(box.dataset.for));
  const every = one("#every");

  const show = (box) => {
    for (const row of all(`.${box.dataset.for}`)) row.toggleAttribute("hidden", !box.checked);
  };
  const sum_up = () => {
    const on = methods.filter((box) => box.checked).length;
    every.checked = on === methods.length;
    every.indeterminate = on > 0 && on < methods.length;
  };
  for (const box of switches) {
    box.addEventListener("change", () => { show(box); sum_up(); });
  }
  every.addEventListener("change", () => {
    for (const box of methods) { box.checked = every.checked; show(box); }
    sum_up();
  });

  // --- shades of the letters: one path a shade, as the page was written ---------------------------------
  const paths = (text) => {
    const strokes = new Map();
    for (let start = 0, end; start < text.length; start = end) {
      for (end = start + 1; text[end] === text[start]; end += 1);
      const before = strokes.get(text[start]) ?? "";
      strokes.set(text[start], `${before}M${start * slot} 0h${(end - start) * slot}`);
    }
    strokes.delete("0");
    return strokes;
  };
  const shade = (group, number) => {
    const text = group.dataset.l.split(" ")[number];
    group.replaceChildren();
    if (text === "-") return;
    for (const [letter, stroke] of paths(text)) {
      const path = document.createElementNS("http://www.w3.org/2000/svg", "path");
      path.setAttribute("class", `l${letter}`);
      path.setAttribute("d", stroke);
      group.append(path);
    }
  };
  one("#shade").addEventListener("change", (event) => {
    for (const group of all("[data-l]")) shade(group, Number(event.target.value));
  });

  // --- records: search and step -------------------------------------------------------------------------
  const entries = all("#index li").map((entry) => ({
    entry,
    text: entry.textContent.toLowerCase(),
    record: one(entry.querySelector("a").getAttribute("href")),
  }));
  one("#filter").addEventListener("input", (event) => {
    const wanted = event.target.value.trim().toLowerCase();
    let found = 0;
    for (const { entry, text, record } of entries) {
      const hidden = !text.includes(wanted);
      entry.toggleAttribute("hidden", hidden);
      record.toggleAttribute("hidden", hidden);
      found += hidden ? 0 : 1;
    }
    one("#none").hidden = found > 0;
    one("#found").textContent = wanted ? `${found} of ${entries.length}` : "";
  });

  const step = (by) => {
    const records = entries.map(({ record }) => record).filter((record) => !record.hidden);
    const margin = (record) => parseFloat(getComputedStyle(record).scrollMarginTop);
    const tops = records.map((record) => record.getBoundingClientRect().top - margin(record));
    const next = by > 0 ? tops.findIndex((top) => top > 4) : tops.findLastIndex((top) => top < -4);
    if (next < 0) return;
    records[next].scrollIntoView();
    records[next].focus({ preventScroll: true });
  };
  document.addEventListener("keydown", (event) => {
    if (event.ctrlKey || event.metaKey || event.altKey) return;
    if (/^(INPUT|SELECT|TEXTAREA)$/.test(event.target.tagName) && event.target.type !== "checkbox") return;
    if (event.key === "j") step(1);
    if (event.key === "k") step(-1);
  });
  one("#controls").addEventListener("submit", (event) => event.preventDefault());
  if (matchMedia("(max-width: 1150px)").matches) one("nav details").open = false;
})();

"use strict";
(() => {
  const one = (selector) => document.querySelector(selector);
  document.documentElement.classList.add("js");
  if (matchMedia("(max-width: 1150px)").matches) one("nav details").open = false;
  const data = one("#data") && JSON.parse(one("#data").textContent);
  if (!data) return;

  // --- calls from their columns -------------------------------------------------------------------------
  const running = (steps) => { let sum = 0; return steps.map((step) => (sum += step)); };
  const name = (column, i) => (data[column] ? data.names[data[column][i]] : "");
  const numbers = running(data.first), boxes = data.boxes ?? []; // in reading direction
  const calls = running(data.site).map((site, i) => ({
    order: i, card: `c${numbers[i]}`, contig: name("contig", i), site, strand: data.minus[i] === "1" ? "\u2212" : "+",
    score: data.score[i], trust: name("trust", i), precision: data.precision?.[i],
    gene: name("gene", i), locus: name("locus", i), distance: data.distance?.[i],
    within: name("within", i) + (data.opposite?.[i] === "1" ? ", antisense" : ""), place: data.place?.[i],
    spacer: data.spacer?.[i], ...Object.fromEntries(boxes.map((box, k) => [`box${k}`, data.names[box.letters[i]]])),
  }));
  for (const call of calls) call.text = [call.gene, call.locus, call.within, call.contig].join("\n").toLowerCase();

  // --- columns: key, heading, whether a number, text of a cell --------------------------------------------
  const whole = new Intl.NumberFormat("en-US");
  const known = (digits) => (value) => (value < 0 ? "" : digits === undefined ? String(value) : value.toFixed(digits));
  const several = new Set(calls.map((call) => call.contig)).size > 1;
  const columns = [
    several && ["contig", "sequence", false, String],
    ["site", "position", true, (site) => whole.format(site)],
    ["strand", "strand", false, String],
    ["score", "score", true, known(3)],
    data.trust && ["trust", "trust", false, String],
    data.precision && ["precision", "precision", true, known(2)],
    data.gene && ["gene", "gene", false, String],
    data.gene && ["distance", "bases to gene", true, known()],
    data.gene && ["within", "lies inside", false, String],
    ...boxes.flatMap((box, k) => [k && ["spacer", "spacer", true, known()], [`box${k}`, `${box.name} box`, false, String]]),
  ].filter(Boolean);

  // --- search ---------------------------------------------------------------------------------------------
  const matcher = (query) => {
    const place = /^(?:(.+):)?\s*(\d[\d,]*)(?:\s*(?:[-\u2013]|\.\.)\s*(\d[\d,]*))?(?:\s*\([+\u2212-]\))?$/.exec(query);
    if (!place) return (call) => call.text.includes(query);
    const [first, last] = [place[2], place[3]].map((text) => text && Number(text.replaceAll(",", "")));
    const [low, high] = last === undefined ? [first - 500, first + 500] : [first, last];
    const there = (call) => call.site >= low && call.site <= high;
    const named = (call) => !place[1] || call.contig.toLowerCase() === place[1];
    return (call) => (there(call) && named(call)) || call.text.includes(query);
  };

  const SIZE = 100;
  let key = "order", falling = false, page = 0, found = calls;

  const search = () => {
    const wanted = matcher(one("#query").value.trim().toLowerCase());
    const place = one("#place")?.value ?? "", least = Number(one("#least").value) || 0;
    found = calls.filter((call) => wanted(call) && (!place || call.place === place) && call.score >= least);
    page = 0;
    show();
  };
  const compare = (a, b) => {
    const [x, y] = [a[key], b[key]];
    if (x === y) return a.order - b.order;
    if (x === "" || x === -1) return 1; // what is not known comes last
    if (y === "" || y === -1) return -1;
    const order = typeof x === "number" ? x - y : x.localeCompare(y, "en", { numeric: true });
    return falling ? -order : order;
  };

  // --- table: all text is set as text -----------------------------------------------------------------------
  const element = (tag, text, kind) => {
    const made = document.createElement(tag);
    if (text !== undefined) made.textContent = text;
    if (kind) made.className = kind;
    return made;
  };
  const heading = ([column, title, numeric]) => {
    const cell = element("th", undefined, numeric ? "n" : "");
    const sort = key === column || (key === "order" && column === "site" && !several);
    cell.scope = "col";
    cell.setAttribute("aria-sort", sort ? (falling ? "descending" : "ascending") : "none");
    const button = element("button", title);
    button.type = "button";
    button.dataset.column = column;
    button.addEventListener("click", () => {
      falling = key === column ? !falling : ["score", "precision"].includes(column);
      key = column;
      page = 0;
      show();
      one(`[data-column=${column}]`).focus();
    });
    cell.append(button);
    return cell;
  };
  const row = (call) => {
    const line = element("tr");
    for (const [column, , numeric, write] of columns) {
      const cell = element("td", undefined, numeric ? "n" : "");
      const text = write(call[column]);
      const drawn = column === "site" && document.getElementById(call.card);
      const inner = element(drawn ? "a" : "bdi", text);
      if (drawn) { inner.href = `#${call.card}`; inner.title = "to its map"; }
      cell.append(inner);
      line.append(cell);
    }
    return line;
  };
  const show = () => {
    const sorted = [...found].sort(compare);
    const pages = Math.max(1, Math.ceil(sorted.length / SIZE));
    const table = element("table", undefined, "calls"), head = element("thead"), body = element("tbody");
    table.append(element("caption", "Calls"), head, body);
    head.append(element("tr"));
    head.firstChild.append(...columns.map(heading));
    body.append(...sorted.slice(page * SIZE, (page + 1) * SIZE).map(row));
    one("#table").replaceChildren(table);
    one("#shown").textContent = `${whole.format(found.length)} of ${whole.format(calls.length)} calls`;
    one("#none").hidden = found.length > 0;
    one("#printed").textContent = `${whole.format(body.rows.length)} of ${whole.format(calls.length)} calls; the files of the scan have all.`;
    one("#printed").hidden = body.rows.length === calls.length;
    one("#page").textContent = `page ${page + 1} of ${pages}`;
    one("#previous").disabled = page === 0;
    one("#next").disabled = page >= pages - 1;
  };

  for (const [i, place] of (data.places ?? []).entries()) {
    const option = element("option", place);
    option.value = String(i);
    one("#place").append(option);
  }
  for (const id of ["query", "place", "least"]) one(`#${id}`)?.addEventListener("input", search);
  one("#search").addEventListener("submit", (event) => event.preventDefault());
  one("#previous").addEventListener("click", () => { page -= 1; show(); });
  one("#next").addEventListener("click", () => { page += 1; show(); });
  show();
})();

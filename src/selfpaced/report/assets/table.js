// The table of suspects: search, sort, pages, a row's features, export. Cells are only ever set as text.
const data = JSON.parse(document.getElementById("data").textContent);
const columns = data.table;
if (columns?.[0]?.values.length) start();

function start() {
  const get = (id) => document.getElementById(id);
  const length = columns[0].values.length, review = window.suspectReview;
  const everyone = Uint32Array.from({ length }, (_, i) => i);
  const isNumber = (column) => column.kind !== "text";
  // people know a row by its line in the file, where there is one
  // and the level of a row is the heading of its part of the table
  const level = columns.find((column) => column.key === "level");
  const hidden = (column) => column === level || (column.key === "row" && columns.some((other) => other.key === "line"));
  // one column of bars: how probably a row is wrong where that is known, else its weight
  const bar = columns.find((c) => c.key === "noise_probability") ?? columns.find((c) => c.kind === "weight");
  let shown = everyone, page = 0, sorted = { column: -1, down: false }, haystack = null;

  const make = (tag, text, className) => {
    const element = document.createElement(tag);
    if (text !== undefined && text !== null) element.textContent = text;
    if (className) element.className = className;
    return element;
  };

  const format = (value, kind) => {
    if (value === null) return "";
    if (kind === "weight") return value.toFixed(3);
    return kind === "number" ? String(Number(value.toPrecision(5))) : String(value);
  };

  // Built once, on the first search: one lower-case line per row, of the cells as they are shown.
  const lines = () => (haystack ??= Array.from(everyone, (i) => columns.map((c) => format(c.values[i], c.kind)).join("\u0001").toLowerCase()));

  const order = (rows) => {
    if (sorted.column < 0) return rows;
    const { values, kind } = columns[sorted.column];
    const collator = new Intl.Collator(undefined, { numeric: true });
    const sign = sorted.down ? -1 : 1;
    return Uint32Array.from(rows).sort((a, b) => {
      const [x, y] = [values[a], values[b]];
      if (x === null || y === null) return (x === null) - (y === null) || a - b; // empty cells last, either way
      return sign * (kind === "text" ? collator.compare(x, y) : x - y) || a - b;
    });
  };

  const refresh = () => {
    const words = get("search").value.trim().toLowerCase();
    let found = words ? everyone.filter((i) => lines()[i].includes(words)) : everyone;
    if (review) found = found.filter(review.passes);
    shown = order(found);
    page = 0;
    draw();
    get("table").dataset.searched = words;
  };

  const header = () => {
    const row = make("tr");
    const plain = (text) => { const th = make("td", text); if (text) th.className = "head"; row.append(th); };
    if (data.features) plain("");
    if (data.pictures.length) plain("");
    if (review) plain("Decision");
    columns.forEach((column, j) => {
      if (hidden(column)) return;
      const th = make("th", null, isNumber(column) ? "n" : "");
      const mark = sorted.column === j ? (sorted.down ? " ▾" : " ▴") : "";
      const button = make("button", column.label + mark);
      button.type = "button";
      button.dataset.column = j;
      th.scope = "col";
      th.ariaSort = sorted.column === j ? (sorted.down ? "descending" : "ascending") : "none";
      button.addEventListener("click", () => {
        sorted = { column: j, down: sorted.column === j && !sorted.down };
        refresh();
        get("table").tHead.querySelector(`[data-column="${j}"]`).focus();
      });
      th.append(button);
      row.append(th);
    });
    get("table").tHead.replaceChildren(row);
  };

  const cell = (column, i) => {
    const td = make("td", null, isNumber(column) ? "n" : "");
    const value = column.values[i];
    td.dataset.label = column.label;
    if (column === bar && value !== null) {
      const meter = make("span", null, "meter"), fill = make("span");
      fill.style.width = `${100 * value}%`;
      meter.append(fill);
      td.append(meter);
    }
    td.append(format(value, column.kind));
    return td;
  };

  // Likely errors are claims, rows worth a look are not: they stay apart unless somebody sorts the table.
  const HEADINGS = {
    "likely error": (n) => `${n === 1 ? "1 likely error" : `${n.toLocaleString("en")} likely errors`}`,
    "worth a look": (n) => `${n === 1 ? "1 row" : `${n.toLocaleString("en")} rows`} worth a look, if any are wrong`,
  };
  const heading = (name) => {
    const row = make("tr", null, "level"), th = make("th");
    const text = (HEADINGS[name] ?? (() => name))(shown.reduce((sum, i) => sum + (level.values[i] === name), 0));
    th.colSpan = columns.length + Boolean(data.features) + (data.pictures.length > 0) + Boolean(review);
    th.scope = "colgroup";
    th.textContent = text;
    row.append(th);
    return row;
  };

  const picture = (i) => {
    const td = make("td");
    if (i >= data.pictures.length) return td;
    const image = make("img", null, "thumbnail");
    image.src = data.pictures[i]; // a PNG that Python has written, inline
    image.alt = "The input of this row";
    td.append(image);
    return td;
  };

  const details = (i) => {
    const { names, rows, leftOut } = data.features;
    const row = make("tr", null, "cells"), td = make("td"), list = make("dl");
    td.colSpan = columns.length + 1 + (data.pictures.length > 0) + Boolean(review);
    names.forEach((name, j) => {
      const pair = make("div");
      pair.append(make("dt", name), make("dd", rows[i][j] ?? "–"));
      list.append(pair);
    });
    td.append(list);
    if (leftOut) td.append(make("small", `and ${leftOut} further features`));
    row.append(td);
    return row;
  };

  const opener = (i, row) => {
    const td = make("td");
    if (i >= data.features.rows.length) return td;
    const button = make("button", "▸", "open");
    button.type = "button";
    button.ariaLabel = "Show the features of this row";
    button.ariaExpanded = "false";
    button.addEventListener("click", () => {
      const open = button.ariaExpanded === "true";
      if (open) row.nextSibling.remove();
      else row.after(details(i));
      button.ariaExpanded = String(!open);
      button.textContent = open ? "▸" : "▾";
    });
    td.append(button);
    return td;
  };

  const draw = () => {
    header();
    const size = Number(get("page-size").value);
    const pages = Math.max(1, Math.ceil(shown.length / size));
    page = Math.min(Math.max(page, 0), pages - 1);
    const from = page * size, to = Math.min(from + size, shown.length);
    const grouped = level && sorted.column < 0;
    const rows = Array.from(shown.subarray(from, to)).flatMap((i, position) => {
      const row = make("tr");
      const first = grouped && (position === 0 || level.values[i] !== level.values[shown[from + position - 1]]);
      if (data.features) row.append(opener(i, row));
      if (data.pictures.length) row.append(picture(i));
      if (review) {
        row.append(review.cell(i));
        if (from + position === review.cursor()) { row.className = "current"; row.ariaCurrent = "true"; }
        row.addEventListener("click", (event) => { if (!event.target.closest("button, input")) { review.go(i); draw(); } });
      }
      columns.forEach((column) => hidden(column) || row.append(cell(column, i)));
      return first && level.values[i] ? [heading(level.values[i]), row] : [row];
    });
    get("table").tBodies[0].replaceChildren(...rows);
    const number = (n) => n.toLocaleString("en");
    get("position").textContent = shown.length ? `${number(from + 1)}–${number(to)} of ${number(shown.length)}` : "nothing found";
    get("first").disabled = get("previous").disabled = page === 0;
    get("next").disabled = get("last").disabled = page >= pages - 1;
  };

  const isNumeral = (text) => /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i.test(text);

  const RISKY = /^'*[=+\-@\t\r\n\uFF1D\uFF0B\uFF0D\uFF20][\s\S]/;

  const quote = (value) => {
    const given = value === null ? "" : String(value);
    // as selfpaced.tables.formulas: a spreadsheet would run such a text, so it is marked as one
    const text = typeof value === "string" && RISKY.test(given) && !isNumeral(given) ? `'${given}` : given;
    return /[",\r\n]/.test(text) ? `"${text.replaceAll('"', '""')}"` : text;
  };

  const download = (rows, name) => {
    const text = rows.map((row) => row.map(quote).join(",")).join("\r\n");
    const link = make("a");
    link.href = URL.createObjectURL(new Blob([text, "\r\n"], { type: "text/csv;charset=utf-8" }));
    link.download = name;
    link.click();
    setTimeout(() => URL.revokeObjectURL(link.href), 60_000); // long after even a slow browser has begun
  };

  get("export").addEventListener("click", () => {
    const rows = Array.from(shown, (i) => columns.map((c) => c.values[i]));
    download([columns.map((c) => c.key), ...rows], "suspects.csv");
  });

  const turn = (id, next) => get(id).addEventListener("click", () => { page = next(); draw(); });
  turn("first", () => 0);
  turn("previous", () => page - 1);
  turn("next", () => page + 1);
  turn("last", () => Infinity);
  get("page-size").addEventListener("change", () => { page = 0; draw(); });
  let pause;
  get("search").addEventListener("input", () => { clearTimeout(pause); pause = setTimeout(refresh, 120); });
  window.suspectTable = {
    shown: () => shown, refresh, redraw: draw, download,
    reveal: (position) => { page = Math.floor(position / Number(get("page-size").value)); draw(); },
  };
  refresh();
}

// The table of rows: two lists, search, sort, pages, the cells of a row, export. Cells are only ever set as text.
const data = JSON.parse(document.getElementById("data").textContent);
const columns = data.table;
if (columns?.[0]?.values.length) start();

function start() {
  const get = (id) => document.getElementById(id);
  const length = columns[0].values.length, review = window.suspectReview;
  const everyone = Uint32Array.from({ length }, (_, i) => i);
  const isNumber = (column) => column.kind !== "text";
  const find = (key) => columns.find((column) => column.key === key);
  const level = find("level"), ifAny = find("probability_if_noisy"), why = find("why"), against = find("against");
  // People know a row by its line in the file. The level is a heading, the sentence stands below the contributing
  // columns, and the weight is a matter of the model.
  const hiddenKeys = new Set(["level", "probability_if_noisy"]);
  if (find("line")) hiddenKeys.add("row");
  if (review) ["weight", "residual", "stability"].forEach((key) => hiddenKeys.add(key));
  if (against && why) hiddenKeys.add("why");
  const hidden = (column) => hiddenKeys.has(column.key);
  // one column of bars: the probability of an error if it is known, else the weight
  const bar = find("noise_probability") ?? columns.find((c) => c.kind === "weight");
  const LOOK = "worth a look";
  let shown = everyone, page = 0, sorted = { column: -1, down: false }, haystack = null, list = "";
  const opened = new Set(), closed = new Set(); // rows whose cells were opened, and current rows that were closed

  const make = (tag, text, className) => {
    const element = document.createElement(tag);
    if (text !== undefined && text !== null) element.textContent = text;
    if (className) element.className = className;
    return element;
  };

  // numbers as people write them: 1,610,800 and 0.0123
  const format = (value, kind) => {
    if (value === null || value === undefined) return "";
    if (kind === "weight") return value.toFixed(3);
    if (typeof value !== "number" || kind === "cell") return String(value);
    if (Math.abs(value) >= 10000) return value.toLocaleString("en", { maximumFractionDigits: Number.isInteger(value) ? 0 : 2 });
    return kind === "integer" || Number.isInteger(value) ? String(value) : String(Number(value.toPrecision(5)));
  };
  const percent = (share) => { // no row is certainly wrong
    const value = Math.min(100 * share, 99.9);
    return `${(value > 0 && value < 9.95) || value > 99 ? value.toFixed(1) : Math.round(value)} %`;
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
    if (list) found = found.filter((i) => level.values[i] === list);
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
    if (review) plain("Decision");
    get("table").tHead.replaceChildren(row);
  };

  // A value that is worth a look has no probability of its own: its distance from the expected one is shown.
  const offBy = (i) => {
    const [given, expected] = [find("given")?.values[i], find("expected")?.values[i]];
    if (ifAny || level?.values[i] !== LOOK || typeof given !== "number" || typeof expected !== "number") return null;
    return `off by ${format(Number((given - expected).toPrecision(4)), "number")}`;
  };

  const cell = (column, i) => {
    const td = make("td", null, isNumber(column) ? "n" : "");
    td.dataset.label = column.label;
    if (column.key === "given") td.classList.add("given");
    if (column.key === "expected") td.classList.add("expected");
    const unproven = column === bar && ifAny && level?.values[i] === LOOK; // its probability holds if there are errors at all
    const value = unproven ? ifAny.values[i] : column.values[i];
    if (column === bar && value !== null && offBy(i) === null) {
      const meter = make("span", null, "meter"), fill = make("span");
      fill.style.width = `${100 * value}%`;
      meter.append(fill);
      td.append(meter);
    }
    const probability = column.key === "noise_probability" && value !== null;
    td.append(probability ? (offBy(i) ?? percent(value)) : format(value, column.kind));
    if (unproven) td.append(make("small", "if any are", "under"));
    if (column === against && why?.values[i]) td.append(make("small", why.values[i], "under"));
    return td;
  };

  // Likely errors are claims, rows worth a look are not: they are two lists unless the table is sorted.
  const plural = (n, one, many) => (n === 1 ? `1 ${one}` : `${n.toLocaleString("en")} ${many}`);
  const HEADINGS = {
    "likely error": (n) => plural(n, "likely error", "likely errors"),
    [LOOK]: (n) => plural(n, "row worth a look", "rows worth a look"),
  };
  const named = (name, rows) => (HEADINGS[name] ?? (() => name))(rows.reduce((sum, i) => sum + (level.values[i] === name), 0));
  const heading = (name) => {
    const row = make("tr", null, "level"), th = make("th", named(name, shown));
    th.colSpan = columns.length + 3;
    th.scope = "colgroup";
    row.append(th);
    return row;
  };

  const switches = () => {
    const names = level ? [...new Set(level.values)].filter(Boolean) : [];
    if (names.length < 2) return;
    const buttons = [["", "Both lists"], ...names.map((name) => [name, named(name, everyone)])].map(([name, text]) => {
      const button = make("button", text);
      button.type = "button";
      button.ariaPressed = String(name === list);
      button.addEventListener("click", () => { list = name; review?.start(); switches(); refresh(); });
      button.title = "l: the next list";
      return button;
    });
    get("lists").replaceChildren(...buttons);
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

  // The cells of a row: contributing columns first; a line of them, or all if the row is open.
  const BRIEF = 8;
  const details = (i, open) => {
    const { names, rows, left_out: leftOut } = data.features;
    const contributing = new Set(String(against?.values[i] ?? "").split(", "));
    const places = names.map((_, j) => j).filter((j) => names[j] !== data.review?.target);
    const first = places.filter((j) => contributing.has(names[j])), rest = places.filter((j) => !contributing.has(names[j]));
    const known = rest.filter((j) => rows[i][j] !== null);
    const used = open ? [...first, ...rest] : [...first, ...known].slice(0, BRIEF);
    const row = make("tr", null, open ? "cells" : "cells brief"), td = make("td"), pairs = make("dl");
    td.colSpan = columns.length + 3;
    used.forEach((j) => {
      const text = rows[i][j] === null ? "–" : format(rows[i][j], Number.isInteger(rows[i][j]) ? "cell" : "number"); // 98112 may be a code
      const pair = make("div", null, `${contributing.has(names[j]) ? "contributing" : ""} ${text.length > 60 ? "long" : ""}`.trim());
      pair.append(make("dt", names[j]), make("dd", text));
      pairs.append(pair);
    });
    td.append(pairs);
    if (open && leftOut) td.append(make("small", `and ${leftOut} further columns`));
    row.append(td);
    return row;
  };

  const isOpen = (i, current) => (current ? !closed.has(i) : opened.has(i));
  const toggle = (i, current) => {
    const rows = current ? closed : opened;
    if (!rows.delete(i)) rows.add(i);
    draw();
  };

  const opener = (i, current) => {
    const td = make("td", null, "opener");
    if (i >= data.features.rows.length) return td;
    const open = isOpen(i, current), button = make("button", open ? "▾" : "▸", "open");
    button.type = "button";
    button.ariaLabel = "All cells of this row";
    button.ariaExpanded = String(open);
    button.addEventListener("click", () => toggle(i, current));
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
      const row = make("tr"), current = Boolean(review) && from + position === review.cursor();
      const first = grouped && (position === 0 || level.values[i] !== level.values[shown[from + position - 1]]);
      if (data.features) row.append(opener(i, current));
      if (data.pictures.length) row.append(picture(i));
      if (review) {
        if (current) { row.className = "current"; row.ariaCurrent = "true"; }
        row.addEventListener("click", (event) => { if (!event.target.closest("button, input")) { review.go(i); draw(); } });
      }
      columns.forEach((column) => hidden(column) || row.append(cell(column, i)));
      if (review) row.append(review.cell(i));
      const made = first && level.values[i] ? [heading(level.values[i]), row] : [row];
      return data.features && i < data.features.rows.length ? [...made, details(i, isOpen(i, current))] : made;
    });
    get("table").tBodies[0].replaceChildren(...rows);
    const number = (n) => n.toLocaleString("en");
    get("position").textContent = shown.length ? `${number(from + 1)}–${number(to)} of ${number(shown.length)}` : "nothing found";
    get("first").disabled = get("previous").disabled = page === 0;
    get("next").disabled = get("last").disabled = page >= pages - 1;
  };

  // as selfpaced.tables.formulas: a spreadsheet would run such a text, so it is marked as one
  const RISKY = /^'*[=+\-@\t\r\n\uFF1D\uFF0B\uFF0D\uFF20][\s\S]/, NUMERAL = /^[+-]?(\d+\.?\d*|\.\d+)(e[+-]?\d+)?$/i;
  const quote = (value) => {
    const given = value === null ? "" : String(value);
    const text = typeof value === "string" && RISKY.test(given) && !NUMERAL.test(given) ? `'${given}` : given;
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
    shown: () => shown, refresh, redraw: draw, download, toggle: (i) => toggle(i, true), format,
    nextList: () => (get("lists").querySelector("[aria-pressed=true] + button") ?? get("lists").querySelector("button"))?.click(),
    reveal: (position) => { page = Math.floor(position / Number(get("page-size").value)); draw(); },
  };
  switches();
  refresh();
}

// Decisions about rows. They are kept in this browser or, if `selfpaced review` serves the page, in the run's folder;
// one row at a time, so that two tabs do not lose each other's decisions.
const data = JSON.parse(document.getElementById("data").textContent);
const asked = data.review;
if (asked && data.table?.[0]?.values.length) window.suspectReview = start();

function start() {
  const get = (id) => document.getElementById(id);
  const column = (key) => data.table.find((c) => c.key === key)?.values ?? [];
  const [rows, given, expected, lines] = ["row", "given", "expected", "line"].map(column);
  const place = new Map(rows.map((row, i) => [String(row), i]));
  const values = asked.kind === "values";
  const verb = values ? "set" : "relabel to";
  const made = new Map(); // row -> decision
  const done = []; // what undo goes back to: [row, decision before]
  let cursor = 0;

  // ------------------------------------------------------------------------------------------------- memory
  const token = location.protocol === "http:" ? new URLSearchParams(location.search).get("token") : null;
  const key = `selfpaced ${asked.key}`;

  const adopt = (found) => {
    const known = Object.entries(found).filter(([row]) => place.has(row));
    // nothing new: a table drawn anew between the press and the release of a button would swallow the click
    if (known.length === made.size && known.every(([row, decision]) => made.get(row) === decision)) return;
    made.clear();
    for (const [row, decision] of known) made.set(row, decision);
    tell();
    if (!document.querySelector("#table .decision form")) window.suspectTable?.redraw(); // a value being typed is not lost
  };

  const fromBrowser = () => {
    try { return JSON.parse(localStorage.getItem(key) ?? "{}"); } catch { return {}; }
  };

  const call = async (body) => {
    const answer = await fetch("decisions", {
      method: body ? "POST" : "GET", body: body && JSON.stringify(body),
      headers: { "X-Token": token, ...(body && { "Content-Type": "application/json" }) },
    });
    if (!answer.ok) throw new Error(await answer.text());
    return answer.json();
  };

  let last = Promise.resolve(), waiting = 0; // one after the other; only the last answer knows all that was sent
  const ask = (body) => {
    waiting += 1;
    last = last.then(() => call(body)).finally(() => { waiting -= 1; })
      .then((found) => { if (!waiting) adopt(found); say(""); }, (error) => say(`Not saved: ${error.message}`));
  };

  const keep = (row, decision) => {
    if (token) return ask({ row, decision });
    const found = fromBrowser(); // again, because another tab may have written
    if (decision) found[row] = decision;
    else delete found[row];
    try { localStorage.setItem(key, JSON.stringify(found)); say(""); } catch { say("This browser does not save decisions: export them before you leave."); }
  };

  const say = (text) => { get("review-problem").textContent = text; };

  // --------------------------------------------------------------------------------------------- decisions
  const decide = (i, decision, undoing = false) => {
    const row = String(rows[i]), before = made.get(row) ?? "";
    if (!undoing) done.push([row, before]);
    if (decision) made.set(row, decision);
    else made.delete(row);
    keep(row, decision);
    tell();
  };

  const onward = (i) => { // to the next row that is not decided
    const shown = window.suspectTable.shown(), at = shown.indexOf(i);
    let next = at;
    while (next + 1 < shown.length) if (!made.has(String(rows[shown[++next]]))) break;
    move(next);
  };

  const choose = (i, decision) => {
    decide(i, made.get(String(rows[i])) === decision ? "" : decision);
    onward(i);
  };

  const undo = () => {
    const [row, before] = done.pop() ?? [];
    if (row === undefined) return;
    decide(place.get(row), before, true);
    const at = window.suspectTable.shown().indexOf(place.get(row));
    if (at >= 0) move(at);
    else window.suspectTable.redraw();
  };

  const move = (position) => {
    const shown = window.suspectTable.shown();
    if (!shown.length) return window.suspectTable.redraw();
    cursor = Math.min(Math.max(position, 0), shown.length - 1);
    const inside = document.activeElement?.closest("#table .decision"); // the table is drawn anew: the focus goes along
    window.suspectTable.reveal(cursor);
    const row = document.querySelector("#table tr.current");
    row?.scrollIntoView({ block: "nearest" });
    if (inside) row?.querySelector(".decision button").focus();
  };

  // -------------------------------------------------------------------------------------------------- the row
  const choices = (i) => [
    ["keep", "Keep", `Keep ${given[i]}`],
    [`${verb} ${expected[i]}`, `${values ? "Set" : "Relabel"} ${short(expected[i])}`, `Replace ${given[i]} by ${expected[i]}`],
    ["drop", "Drop", "Drop the row"],
  ];
  const short = (value) => (typeof value === "number" ? window.suspectTable.format(Number(value.toPrecision(4))) : value);

  const cell = (i) => {
    const td = document.createElement("td"), current = made.get(String(rows[i])) ?? "";
    td.className = "decision";
    td.dataset.label = "Decision";
    for (const [decision, text, label] of choices(i)) td.append(button(text, label, current === decision, () => choose(i, decision)));
    const own = current && !choices(i).some(([decision]) => decision === current);
    td.append(button(own ? current.slice(verb.length + 1) : "Other…", "Another value", Boolean(own), () => other(i, td)));
    return td;
  };

  const button = (text, label, pressed, act) => {
    const element = document.createElement("button");
    element.type = "button";
    element.textContent = text;
    element.title = label;
    element.ariaPressed = String(pressed);
    element.addEventListener("click", act);
    return element;
  };

  const other = (i, td) => {
    const form = document.createElement("form"), field = document.createElement("input");
    field.ariaLabel = values ? "The right value" : "The right label";
    field.setAttribute("list", "classes");
    if (values) field.inputMode = "decimal";
    form.append(field);
    form.addEventListener("submit", (event) => {
      event.preventDefault();
      const text = field.value.trim();
      if (!text || (values && !Number.isFinite(Number(text)))) return field.setCustomValidity("Enter a number"), field.reportValidity();
      choose(i, `${verb} ${text}`);
    });
    field.addEventListener("input", () => field.setCustomValidity(""));
    field.addEventListener("keydown", (event) => { if (event.key === "Escape") window.suspectTable.redraw(); });
    td.replaceChildren(form);
    field.focus();
  };

  // ------------------------------------------------------------------------------------------------- filters
  const pairs = rows.map((_, i) => `${given[i]} → ${expected[i]}`);
  const options = (id, found) => {
    const counts = new Map();
    for (const name of found) counts.set(name, (counts.get(name) ?? 0) + 1);
    const names = [...counts].sort((a, b) => b[1] - a[1]).slice(0, 100);
    get(id).append(...names.map(([name, count]) => new Option(`${name} (${count})`, name)));
    get(id).addEventListener("change", () => { cursor = 0; window.suspectTable.refresh(); });
  };
  if (!values) {
    options("by-given", given.map(String));
    options("by-pair", pairs);
  }
  get("by-state").addEventListener("change", () => { cursor = 0; window.suspectTable.refresh(); });

  const passes = (i) => {
    const state = get("by-state").value;
    if (state && made.has(String(rows[i])) !== (state === "decided")) return false;
    if (values) return true;
    const [one, pair] = [get("by-given").value, get("by-pair").value];
    return (!one || String(given[i]) === one) && (!pair || pairs[i] === pair);
  };

  // ------------------------------------------------------------------------------------------------ the whole
  const tell = () => {
    get("progress").value = made.size;
    get("progress-text").textContent = `${made.size.toLocaleString("en")} of ${rows.length.toLocaleString("en")} decided`;
    get("undo").disabled = !done.length;
  };

  get("undo").addEventListener("click", undo);
  get("export-decisions").addEventListener("click", () => {
    const table = [["row", "line", "given", "expected", "decision", "target", "fingerprint"]];
    rows.forEach((row, i) => {
      const decision = made.get(String(row));
      if (decision) table.push([row, lines[i] ?? null, given[i], expected[i], decision, asked.target, asked.marks[i] ?? null]);
    });
    window.suspectTable.download(table, "decisions.csv");
  });

  const size = () => Number(get("page-size").value);
  document.addEventListener("keydown", (event) => {
    const inField = event.target.closest("input:not([type=checkbox]), select, textarea");
    if (inField || event.ctrlKey || event.metaKey || event.altKey || !get("keys").checked) return;
    const shown = window.suspectTable.shown(), i = shown[cursor];
    const act = {
      j: () => move(cursor + 1), k: () => move(cursor - 1), u: undo,
      1: () => choose(i, choices(i)[0][0]), 2: () => choose(i, choices(i)[1][0]), 3: () => choose(i, choices(i)[2][0]),
      4: () => other(i, document.querySelector("#table tr.current .decision")),
      Enter: () => window.suspectTable.toggle(i), "/": () => get("search").focus(), f: () => get("by-state").focus(),
      l: window.suspectTable.nextList, n: () => move(cursor + size()), p: () => move(cursor - size()),
    }[event.key];
    if (event.key === "Enter" && event.target.closest("button, a, summary")) return; // it presses that button
    if (!act || (i === undefined && !"/fl".includes(event.key))) return;
    event.preventDefault();
    act();
  });

  const again = () => (token ? ask() : adopt(fromBrowser()));
  window.addEventListener("storage", (event) => { if (event.key === key) again(); });
  window.addEventListener("focus", again);
  if (!token) adopt(fromBrowser());
  else ask();
  tell();
  return { cell, passes, cursor: () => cursor, start: () => { cursor = 0; }, go: (i) => { cursor = window.suspectTable.shown().indexOf(i); } };
}

// The table of a pool's endpoints. A row is made once; after that only texts that are
// different are set, and rows are moved only when their order is another one. Its rows are
// grids in the style sheet, so their roles are said.
import { byId, make, setText, setData, percent, percentOrDash, secondsOrDash, count } from "./dom.js";

// By their numbers, 10.0.0.9 comes before 10.0.0.10.
const orders = new Map();
function orderOf(address) {
  let order = orders.get(address);
  if (!order) orders.set(address, order = address.replace(/\d+/g, (n) => n.padStart(5, "0")));
  return order;
}

// The mean times where the cache was expected to be warm and cold; where nothing is
// expected that time alone, or third.
function firstTokens(m) {
  if (!m.firstTokenWarm && !m.firstTokenCold) return secondsOrDash(m.firstTokenUnknown);
  const times = [m.firstTokenWarm, m.firstTokenCold];
  if (m.firstTokenUnknown) times.push(m.firstTokenUnknown);
  return times.map(secondsOrDash).join(" / ");
}

const columns = [
  { name: "Endpoint", of: (m) => orderOf(m.address), text: true },
  { name: "State", of: (m) => m.state, text: true },
  { name: "Zone", of: (m) => m.zone || "", text: true },
  { name: "Running", of: (m) => m.outstanding + (m.others || 0) },
  { name: "Requests", of: (m) => m.requests, title: "in the last minute" },
  { name: "Share", of: (m) => m.share, title: "of the pool's requests in the last minute" },
  { name: "Overflow", of: (m) => m.overflow, title: "of its requests came because others had no room" },
  { name: "Expected hits", of: (m) => m.expected ?? -1, title: "of the prompts' characters, by what was sent there before" },
  { name: "Actual hits", of: (m) => m.actual ?? -1, title: "of the prompts' tokens, as the engine says" },
  { name: "First token", of: (m) => m.firstTokenWarm || m.firstTokenCold || m.firstTokenUnknown || 0, title: "mean time to it, where the cache was expected to be warm / cold; where nothing is expected that time alone, or third" },
];

// Rows that are sorted by what changes all the time change places once a second.
const placeEvery = 1000;
// Only the rows in view are kept up to date, with some around them, and a few of the
// others each time, for those who search in the page or have it read out.
const around = 8;
const others = 10;

export class Fleet {
  constructor() {
    this.pools = [];
    this.rows = new Map(); // by address
    this.order = "";
    this.placed = -placeEvery; // when the rows were put in order
    this.shown = []; // the members in the order of the rows
    byId("fleet").parentElement.addEventListener("scroll", () => this.#fillVisible(), { passive: true });
    this.sort = { column: 0, up: true };
    const head = byId("fleet").tHead.rows[0];
    columns.forEach((c, i) => {
      const button = make("button", { type: "button" }, c.name);
      if (c.title) button.title = c.title;
      button.addEventListener("click", () => this.#sortBy(i));
      head.append(make("th", { scope: "col", role: "columnheader", "aria-sort": i === 0 ? "ascending" : "none", class: c.text ? "" : "number" }, button));
    });
  }

  pool() { return this.pools.find((p) => p.name === byId("pool").value) || this.pools[0]; }

  draw(pools) {
    this.pools = pools;
    const names = pools.map((p) => p.name);
    const select = byId("pool");
    if (names.join("\n") !== [...select.options].map((o) => o.value).join("\n")) {
      const chosen = select.value;
      select.replaceChildren(...names.map((name) => make("option", { value: name }, name)));
      if (names.includes(chosen)) select.value = chosen;
    }
    this.redraw();
  }

  // redraw shows what is known; again says that another order was asked for.
  redraw(again = false) {
    const pool = this.pool();
    if (!pool) return;
    const wanted = byId("filter").value.trim().toLowerCase();
    const has = (m) => `${m.address} ${m.state} ${m.zone || ""}`.toLowerCase().includes(wanted);
    const shown = wanted ? pool.members.filter(has) : pool.members.slice();
    const { of, text } = columns[this.sort.column];
    const sign = this.sort.up ? 1 : -1;
    const before = text ? (a, b) => (of(a) < of(b) ? -1 : of(a) > of(b) ? 1 : 0) : (a, b) => of(a) - of(b);
    shown.sort((a, b) => sign * before(a, b) || (orderOf(a.address) < orderOf(b.address) ? -1 : 1));
    this.#facts(pool, shown.length);
    if (!text && !again && performance.now() - this.placed < placeEvery && shown.length === this.shown.length) {
      const now = new Map(shown.map((m) => [m.address, m]));
      this.shown = this.shown.map((m) => now.get(m.address) || m);
    } else {
      this.placed = performance.now();
      this.shown = shown;
      this.#place(shown.map((m) => this.#row(m.address).node));
    }
    this.#fillVisible();
    for (let i = 0; i < Math.min(others, this.shown.length); i++) {
      this.next = ((this.next || 0) + 1) % this.shown.length;
      this.#fill(this.shown[this.next]);
    }
    if (this.rows.size > pool.members.length) this.#forget(pool);
  }

  // fillVisible brings the rows in view up to date. All rows are of one height.
  #fillVisible() {
    const frame = byId("fleet").parentElement;
    const height = byId("fleet").tBodies[0].rows[0]?.offsetHeight || 28;
    const first = Math.max(Math.floor(frame.scrollTop / height) - around, 0);
    const last = Math.ceil((frame.scrollTop + frame.clientHeight) / height) + around;
    for (const m of this.shown.slice(first, last)) this.#fill(m);
  }

  #facts(pool, shown) {
    const all = pool.members.length;
    setText(byId("endpoints-count"), shown === all ? count(all) : `${count(shown)} of ${count(all)}`);
    const running = pool.members.reduce((n, m) => n + m.outstanding + (m.others || 0), 0);
    setText(byId("pool-facts"), `${pool.strategy}, prefixLength ${pool.prefixLength}, concurrencyThreshold ${pool.concurrencyThreshold}. ` +
      `${count(running)} running. In the last minute ${count(pool.requests)} requests, overflow ${percent(pool.overflow)}, ` +
      `expected hits ${percentOrDash(pool.expected)}, actual ${percentOrDash(pool.actual)}.`);
  }

  #row(address) {
    let row = this.rows.get(address);
    if (!row) this.rows.set(address, row = newRow(address));
    return row;
  }

  #fill(m) {
    const row = this.#row(m.address);
    const running = m.outstanding + (m.others || 0);
    setText(row.state, m.state);
    setData(row.state, "state", m.state);
    const cause = m.cause || "";
    if (row.state.title !== cause) row.state.title = cause;
    setText(row.zone, m.zone || "\u2013");
    setText(row.running, m.bound > 0 ? `${running} / ${m.bound}` : String(running));
    const part = m.bound > 0 ? Math.round(Math.min(running / m.bound, 1) * 100) : 0;
    if (row.part !== part) row.running.style.setProperty("--part", (row.part = part) + "%");
    setText(row.requests, count(m.requests));
    setText(row.share, percent(m.share));
    setText(row.overflow, percent(m.overflow));
    setText(row.expected, percentOrDash(m.expected));
    setText(row.actual, percentOrDash(m.actual));
    setText(row.first, firstTokens(m));
  }

  #place(nodes) {
    const order = nodes.map((n) => n.dataset.address).join(" ");
    if (order === this.order) return;
    this.order = order;
    const body = byId("fleet").tBodies[0];
    const focused = document.activeElement;
    body.replaceChildren(...nodes);
    if (nodes.length === 0) {
      const empty = byId("filter").value ? "No endpoint is like that." : "The pool has no endpoints.";
      body.append(make("tr", { role: "row" }, make("td", { colspan: columns.length, class: "empty", role: "cell" }, empty)));
    }
    if (focused && focused !== document.activeElement && focused.isConnected) focused.focus();
  }

  #forget(pool) {
    const members = new Set(pool.members.map((m) => m.address));
    for (const address of this.rows.keys()) if (!members.has(address)) this.rows.delete(address);
    orders.clear();
  }

  #sortBy(column) {
    const up = this.sort.column === column ? !this.sort.up : Boolean(columns[column].text);
    this.sort = { column, up };
    [...byId("fleet").tHead.rows[0].cells].forEach((cell, i) => {
      cell.setAttribute("aria-sort", i === column ? (up ? "ascending" : "descending") : "none");
    });
    this.redraw(true);
  }
}

function newRow(address) {
  const cell = (number) => make("td", number ? { class: "number", role: "cell" } : { role: "cell" }, "");
  const row = { state: cell(), zone: cell(), requests: cell(true), share: cell(true), overflow: cell(true), expected: cell(true), actual: cell(true), first: cell(true) };
  row.running = make("td", { class: "number load", role: "cell" }, "");
  row.node = make("tr", { "data-address": address, role: "row" }, make("th", { scope: "row", role: "rowheader", class: "mono", title: address }, address),
    row.state, row.zone, row.running, row.requests, row.share, row.overflow, row.expected, row.actual, row.first);
  return row;
}

// The table of the last decisions. Its rows stay where they are and get other texts.
import { byId, make, setText, setData } from "./dom.js";

const keep = 200;
const rows = 50;
// Nobody reads faster; out of view it is for those who search in the page.
const drawEvery = 400;
const unseenEvery = 2000;

export class Decisions {
  constructor() {
    this.byId = new Map(); // in the order of their ids
    this.reasons = new Set();
    this.rows = [];
    this.drawn = -unseenEvery;
    this.seen = true;
    new IntersectionObserver((entries) => { this.seen = entries.at(-1).isIntersecting; }).observe(byId("decisions"));
    this.empty = make("tr", {}, make("td", { colspan: "7", class: "empty" }, "No decision is to be shown yet."));
    byId("last").tBodies[0].append(this.empty);
  }

  add(snapshot) {
    if (snapshot.reasons) {
      this.byId.clear();
      const select = byId("reason");
      const chosen = select.value;
      select.replaceChildren(make("option", { value: "" }, "all"), ...snapshot.reasons.map((r) => make("option", { value: r }, r)));
      select.value = chosen;
    }
    for (const d of snapshot.decisions || []) this.byId.set(d.id, d);
    const extra = this.byId.size - keep;
    if (extra > 0) {
      const ids = [...this.byId.keys()].sort((a, b) => a - b);
      for (const id of ids.slice(0, extra)) this.byId.delete(id);
    }
  }

  // draw shows the newest; again says that others were asked for.
  draw(again = false) {
    if (!again && performance.now() - this.drawn < (this.seen ? drawEvery : unseenEvery)) return;
    this.drawn = performance.now();
    const reason = byId("reason").value;
    const wanted = byId("search").value.trim().toLowerCase();
    const shown = [];
    for (const d of [...this.byId.values()].sort((a, b) => b.id - a.id)) {
      if (reason && d.reason !== reason) continue;
      if (wanted && !`${d.chosen} ${d.served || ""} ${d.key || ""} ${d.requestId || ""} ${d.model || ""} ${d.pool}`.toLowerCase().includes(wanted)) continue;
      if (shown.push(d) === rows) break;
    }
    const body = byId("last").tBodies[0];
    while (this.rows.length < shown.length) {
      const row = newRow();
      this.rows.push(row);
      body.append(row.node);
    }
    this.rows.forEach((row, i) => {
      if (i < shown.length) fill(row, shown[i]);
      row.node.hidden = i >= shown.length;
    });
    this.empty.hidden = shown.length > 0;
  }
}

function newRow() {
  const row = { time: make("td"), reason: make("td"), chosen: make("td", { class: "mono" }), cached: make("td", { class: "number" }), took: make("td", { class: "number" }), status: make("td"), why: make("td", { class: "why" }) };
  row.node = make("tr", {}, ...Object.values(row));
  return row;
}

function fill(row, d) {
  setText(row.time, d.at.slice(11, 23).padEnd(12, "0"));
  setText(row.reason, d.reason);
  setData(row.reason, "reason", d.reason);
  setText(row.chosen, d.chosen || "\u2013");
  setText(row.cached, d.cached < 0 || !d.characters ? "\u2013" : Math.round((100 * d.cached) / d.characters) + " %");
  setText(row.took, Math.round(d.micros) + " \u00b5s");
  setText(row.status, status(d));
  row.status.classList.toggle("bad", d.status >= 500 || Boolean(d.missed));
  setText(row.why, d.sentence);
  const title = [d.requestId && "request " + d.requestId, d.model && "model " + d.model, d.key && "key " + d.key, "pool " + d.pool].filter(Boolean).join(", ");
  if (row.node.title !== title) row.node.title = title;
}

function status(d) {
  if (!d.status) return d.ended ? "no answer" : "waiting";
  const tries = d.attempts > 1 ? `, ${d.attempts} tries` : "";
  return d.status + (d.ended ? "" : ", running") + tries;
}

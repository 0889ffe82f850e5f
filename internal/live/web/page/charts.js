// The time lines, each with its present value and a sentence for those who do not see it.
import { make, setText, percent, count } from "./dom.js";

const width = 600;
const height = 84;
const keep = 900;
// A sentence that changes each second is read by nobody.
const sentenceEvery = 5;

const overflowing = new Set(["overflow", "relief", "saturated"]);

const charts = [
  { title: "Requests a second", first: (s) => s.requests, other: (s) => s.failed, names: ["requests", "failed (5xx)"],
    show: (n) => count(Math.round(n * 10) / 10), unit: " a second" },
  { title: "Overflow", first: (s) => s.overflow, of: (s) => s.requests, show: percent, fixed: 1, names: ["away from home, by load"],
    ratio: true },
  { title: "Expected cache hits", first: (s) => s.cached, of: (s) => s.characters, show: percent, fixed: 1, names: ["characters known to be there"],
    ratio: true },
  { title: "Time to decide", first: (s) => (s.requests ? s.p99 : NaN), other: (s) => (s.requests ? s.p50 : NaN), names: ["P99", "P50"], show: (n) => Math.round(n) + " \u00b5s", worst: true },
];

const svg = (tag, attributes) => {
  const node = document.createElementNS("http://www.w3.org/2000/svg", tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  return node;
};

export class Charts {
  constructor(container) {
    this.span = 120;
    this.seconds = []; // in order
    this.reasons = [];
    this.drawn = "";
    this.panels = charts.map((c, i) => this.#panel(container, c, i));
  }

  #panel(container, chart, i) {
    const now = make("span", { class: "now" }, "\u2013");
    const legend = make("span", { class: "note" });
    chart.names.forEach((name, k) => legend.append(make("span", { class: k ? "key other" : "key" }), name + (k + 1 < chart.names.length ? "  " : "")));
    const summary = make("p", { class: "summary", id: "summary-" + i });
    const picture = svg("svg", { class: "chart", viewBox: `0 0 ${width} ${height}`, preserveAspectRatio: "none", role: "img", "aria-labelledby": "summary-" + i });
    const area = svg("path", { class: "area" });
    const first = svg("path", { class: "first" });
    const other = svg("path", { class: "other" });
    picture.append(area, first, other);
    const title = make("h3", {}, chart.title);
    container.append(make("figure", {}, make("figcaption", {}, title, now), picture, legend, summary));
    return { chart, now, summary, area, first, other, said: -sentenceEvery };
  }

  add(snapshot) {
    if (snapshot.reasons) { // the first of a stream: perhaps of another process
      this.reasons = snapshot.reasons.map((name) => overflowing.has(name));
      this.seconds = [];
      this.panels.forEach((p) => { p.said = -sentenceEvery; });
    }
    for (const s of snapshot.seconds || []) {
      s.overflow = 0;
      s.byReason.forEach((n, i) => { if (this.reasons[i]) s.overflow += n; });
      this.seconds.push(s);
    }
    if (this.seconds.length > keep) this.seconds.splice(0, this.seconds.length - keep);
  }

  draw() {
    const last = this.seconds.at(-1);
    const state = (last ? last.second : "") + "/" + this.span;
    if (state === this.drawn) return;
    this.drawn = state;
    const shown = this.seconds.slice(-this.span);
    for (const p of this.panels) this.#line(p, shown, last);
  }

  #line(p, shown, last) {
    const { chart } = p;
    const first = values(shown, chart.first, chart.of);
    const other = chart.other ? values(shown, chart.other) : [];
    const most = chart.fixed || top(Math.max(1, ...first.filter(Number.isFinite), ...other.filter(Number.isFinite)));
    const x = (i) => ((this.span - shown.length + i + 0.5) * width) / this.span;
    const y = (v) => (height - 3 - (Math.min(v, most) / most) * (height - 8)).toFixed(1);
    const line = path(first, x, y);
    p.first.setAttribute("d", line);
    p.other.setAttribute("d", path(other, x, y));
    p.area.setAttribute("d", area(first, x, y));
    const recent = summarize(shown.slice(-5), chart);
    setText(p.now, recent === null ? "\u2013" : chart.show(recent));
    if (last && last.second - p.said >= sentenceEvery) {
      p.said = last.second;
      setText(p.summary, sentence(chart, shown, first));
    }
  }
}

// values are those of each second; NaN where there is none.
function values(seconds, part, of) {
  return seconds.map((s) => (of ? (of(s) ? part(s) / of(s) : NaN) : part(s)));
}

// summarize is one value for some seconds, null if there is none.
function summarize(seconds, chart) {
  if (seconds.length === 0) return null;
  const sum = (f) => seconds.reduce((n, s) => n + f(s), 0);
  if (chart.ratio) return sum(chart.of) ? sum(chart.first) / sum(chart.of) : null;
  if (chart.worst) {
    const all = seconds.map(chart.first).filter(Number.isFinite);
    return all.length ? Math.max(...all) : null;
  }
  return sum(chart.first) / seconds.length;
}

function sentence(chart, shown, first) {
  const all = first.filter(Number.isFinite);
  const mean = summarize(shown, chart);
  if (mean === null || all.length === 0) return "No requests in this time.";
  const kind = chart.worst ? "at worst" : "on the whole";
  return `In ${shown.length} s: ${chart.show(mean)} ${kind}, between ${chart.show(Math.min(...all))} and ${chart.show(Math.max(...all))} in a second.`;
}

// top is a round number at or above n, so that the scale changes seldom.
function top(n) {
  const unit = 10 ** Math.floor(Math.log10(n));
  for (const step of [1, 2, 5, 10]) if (n <= step * unit) return step * unit;
  return 10 * unit;
}

function path(list, x, y) {
  let d = "";
  let drawing = false;
  list.forEach((v, i) => {
    if (!Number.isFinite(v)) { drawing = false; return; }
    d += (drawing ? "L" : "M") + x(i).toFixed(1) + " " + y(v);
    drawing = true;
  });
  return d;
}

function area(list, x, y) {
  let d = "";
  let start = -1;
  for (let i = 0; i <= list.length; i++) {
    if (i < list.length && Number.isFinite(list[i])) {
      if (start < 0) { start = i; d += `M${x(i).toFixed(1)} ${height}`; }
      d += `L${x(i).toFixed(1)} ${y(list[i])}`;
    } else if (start >= 0) {
      d += `L${x(i - 1).toFixed(1)} ${height}Z`;
      start = -1;
    }
  }
  return d;
}

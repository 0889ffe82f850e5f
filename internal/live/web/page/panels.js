// Warnings, hot prefixes and policies on trial.
import { byId, make, setData, setText, percent, percentOrDash, count } from "./dom.js";

// showWarnings announces what kinds of warnings there are, and not the numbers in them,
// which change all the time.
export function showWarnings(container, warnings) {
  while (container.children.length > warnings.length) container.lastElementChild.remove();
  while (container.children.length < warnings.length) {
    container.append(make("div", { class: "warning" }, make("p", {}, make("strong")), make("p")));
  }
  warnings.forEach((w, i) => {
    const [text, advice] = container.children[i].children;
    setData(container.children[i], "kind", w.kind);
    setText(text.firstElementChild, w.text);
    setText(advice, w.advice);
  });
  const kinds = warnings.map((w) => `${w.kind} in pool ${w.pool}`).join(", ");
  setText(byId("warned"), kinds && "Warnings: " + kinds);
}

const lines = [];

export function showHot(pool) {
  if (!pool) return;
  const body = byId("hot").tBodies[0];
  while (lines.length < pool.hot.length) {
    const line = { key: make("th", { scope: "row", class: "mono" }), depth: make("td", { class: "number" }), share: make("td", { class: "number" }), homes: make("td", { class: "number" }), holders: make("td", { class: "mono" }) };
    line.node = make("tr", {}, ...Object.values(line));
    lines.push(line);
    body.append(line.node);
  }
  lines.forEach((line, i) => {
    line.node.hidden = i >= pool.hot.length;
    if (line.node.hidden) return;
    const h = pool.hot[i];
    setText(line.key, h.key);
    setText(line.depth, count(h.depth));
    setText(line.share, percent(h.share));
    setText(line.homes, String(h.homes));
    setText(line.holders, (h.holders || []).join("  "));
  });
  setText(byId("prefixes-note"), pool.hot.length > 0
    ? "Beginnings that many recent prompts have in common, where they part. Only hashes are known here."
    : pool.strategy === "PREFIX_AWARE" || pool.strategy === "KV_AWARE" ? "No beginning is common to several recent prompts." : `${pool.strategy} does not look at prompts.`);
}

const tries = [];

function tryLine() {
  const line = { name: make("th", { scope: "row" }), policy: make("td"), requests: make("td", { class: "number" }), expected: make("td", { class: "number" }), overflow: make("td", { class: "number" }), busiest: make("td", { class: "number" }), moved: make("td", { class: "number" }) };
  line.node = make("tr", {}, ...Object.values(line));
  tries.push(line);
  byId("tried").tBodies[0].append(line.node);
}

// showTrials shows two lines for each policy on trial: the pool's own, and it.
export function showTrials(pool) {
  const list = (pool && pool.trials) || [];
  byId("trials").hidden = list.length === 0;
  while (tries.length < 2 * list.length) tryLine();
  tries.forEach((line, i) => {
    const t = list[i >> 1];
    line.node.hidden = !t;
    if (!t) return;
    const own = i % 2 === 0;
    const of = own ? t.main : t.tried;
    const policy = own ? pool : t;
    setText(line.name, own ? "now" : `${t.kind}, ${percent(t.share)}`);
    setText(line.policy, `${policy.strategy}, ${policy.prefixLength}, ${policy.concurrencyThreshold}`);
    setText(line.requests, count(of.requests));
    setText(line.expected, percentOrDash(of.expected));
    setText(line.overflow, percent(of.overflow));
    setText(line.busiest, of.busiestOverMean === undefined ? "\u2013" : of.busiestOverMean.toFixed(2));
    setText(line.moved, own ? "" : percentOrDash(t.moved));
  });
}

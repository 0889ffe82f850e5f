// Warnings and hot prefixes.
import { byId, make, setText, percent, count } from "./dom.js";

let warned = "";

export function showWarnings(container, warnings) {
  const kinds = warnings.map((w) => w.kind + w.advice).join("\n");
  if (kinds !== warned) { // numbers that change are not announced again and again
    warned = kinds;
    container.replaceChildren(...warnings.map((w) => make("div", { class: "warning", "data-kind": w.kind },
      make("p", {}, make("strong", {}, w.text)), make("p", {}, w.advice))));
  }
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

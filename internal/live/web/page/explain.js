// The form that asks what would be decided on a request body.
import { byId, make, count } from "./dom.js";

const mostBytes = 4 << 20;

export function prepareExplain() {
  byId("ask").addEventListener("submit", async (e) => {
    e.preventDefault();
    const button = e.target.querySelector("button");
    button.disabled = true;
    try {
      show(await ask(byId("path").value, byId("body").value));
    } catch (error) {
      byId("answer").replaceChildren(make("p", { class: "lost" }, error.message));
    } finally {
      button.disabled = false;
    }
  });
}

async function ask(path, body) {
  if (body.trim() === "") throw new Error("There is no request body to explain.");
  if (new Blob([body]).size > mostBytes) throw new Error("The body has more than 4 MiB.");
  let answer;
  try {
    answer = await fetch("api/explain?path=" + encodeURIComponent(path), {
      method: "POST", headers: { "content-type": "application/json" }, body, cache: "no-store",
    });
  } catch {
    throw new Error("The server did not answer.");
  }
  const value = await answer.json();
  if (!answer.ok) throw new Error(value.detail || answer.statusText);
  return value;
}

function show(x) {
  const d = x.decision;
  const list = make("dl");
  const line = (name, text) => list.append(make("dt", {}, name), make("dd", {}, text));
  line("Reason", d.reason);
  line("Pool", x.pool);
  line("API", x.api + (x.kind === "none" ? ", no prompt text found" : ""));
  line("Tenant", "from " + x.tenantSource);
  if (d.key) line("Key", `${d.key} of ${d.depth > 0 ? "the first " + count(d.depth) + " of " : ""}${count(x.textChars)} characters`);
  x.homes.forEach((h, i) => line(i === 0 ? "Home" : "Then", `${h.address}, ${h.load} running, at most ${h.bound}`));
  if (d.cached >= 0) line("Cached", `${count(d.cached)} of ${count(d.characters)} characters, as far as is known`);
  if (x.notes.length > 0) line("Notes", x.notes.join(", "));
  byId("answer").replaceChildren(make("p", {}, make("strong", {}, d.sentence)), list);
}

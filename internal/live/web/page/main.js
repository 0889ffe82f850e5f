// The page: one stream from the server, and a panel for each part of it.
import { connect } from "./stream.js";
import { Charts } from "./charts.js";
import { Fleet } from "./fleet.js";
import { Decisions } from "./decisions.js";
import { showHot, showTrials, showWarnings } from "./panels.js";
import { prepareExplain } from "./explain.js";
import { prepareTheme } from "./themes.js";
import { byId, setText } from "./dom.js";

const charts = new Charts(byId("charts"));
const fleet = new Fleet();
const decisions = new Decisions();
let held = false;
let waiting = null; // the newest snapshot that is not drawn yet

// Everything that came between two frames is drawn at once.
function take(snapshot) {
  charts.add(snapshot);
  decisions.add(snapshot);
  if (snapshot.config) setText(byId("config"), snapshot.config);
  if (snapshot.version) setText(byId("version"), snapshot.version);
  const first = waiting === null;
  waiting = snapshot;
  if (first && !held) requestAnimationFrame(draw);
}

function draw() {
  const snapshot = waiting;
  waiting = null;
  if (snapshot === null || held) return;
  setText(byId("generation"), String(snapshot.generation));
  setText(byId("clock"), snapshot.at.slice(11, 19));
  byId("clock").dateTime = snapshot.at;
  showWarnings(byId("warnings"), snapshot.warnings);
  charts.draw();
  fleet.draw(snapshot.pools);
  showHot(fleet.pool());
  showTrials(fleet.pool());
  decisions.draw();
}

const names = { connecting: "connecting", live: "live", lost: "reconnecting", held: "held" };
let connection = "connecting";

function showState() {
  const state = held && connection === "live" ? "held" : connection;
  byId("state").dataset.state = state;
  setText(byId("state"), names[state]);
  document.body.toggleAttribute("data-stale", state === "lost");
}

const stream = connect(take, (state) => { connection = state; showState(); });

byId("interval").addEventListener("change", (e) => stream.setInterval(e.target.value));
byId("hold").addEventListener("click", (e) => {
  held = !held;
  e.target.setAttribute("aria-pressed", String(held));
  showState();
  if (!held && waiting !== null) requestAnimationFrame(draw);
});
byId("span").addEventListener("change", (e) => { charts.span = Number(e.target.value); charts.draw(); });
for (const id of ["pool", "filter"]) byId(id).addEventListener("input", () => { fleet.redraw(true); showHot(fleet.pool()); showTrials(fleet.pool()); });
for (const id of ["reason", "search"]) byId(id).addEventListener("input", () => decisions.draw(true));
prepareTheme(byId("theme"));
prepareExplain();

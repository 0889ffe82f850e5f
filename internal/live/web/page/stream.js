// The stream of snapshots. When it breaks the page says so, and tries again ever less
// often; what was missed comes with the first snapshot of the next stream, which is whole.
const firstWait = 500;
const longestWait = 10000;

export function connect(take, tell) {
  let source = null;
  let interval = "1s";
  let wait = firstWait;
  let timer = 0;
  let last = 0; // when the last event came

  function open() {
    clearTimeout(timer);
    if (source) source.close();
    source = new EventSource("api/live/events?interval=" + interval);
    last = performance.now();
    source.onmessage = (e) => {
      last = performance.now();
      wait = firstWait;
      tell("live");
      take(JSON.parse(e.data));
    };
    source.onerror = lost;
  }

  function lost() {
    if (source) source.close();
    source = null;
    tell("lost");
    clearTimeout(timer);
    timer = setTimeout(open, wait);
    wait = Math.min(wait * 2, longestWait);
  }

  // A connection that is open and silent is lost too. In a hidden page timers are slow,
  // and so are events.
  setInterval(() => {
    if (source && !document.hidden && performance.now() - last > 3 * milliseconds(interval) + 5000) lost();
  }, 1000);
  document.addEventListener("visibilitychange", () => { last = performance.now(); });

  open();
  return { setInterval(value) { interval = value; open(); } };
}

function milliseconds(text) {
  return text.endsWith("ms") ? Number.parseInt(text, 10) : 1000 * Number.parseInt(text, 10);
}

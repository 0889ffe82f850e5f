package browser

import (
	"context"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/chromedp/chromedp"
	"github.com/chromedp/chromedp/kb"

	"github.com/warmpath/warmpath/extproc"
	"github.com/warmpath/warmpath/internal/route"
	"github.com/warmpath/warmpath/internal/trial"
)

// rate is how many requests a second the tests send.
const rate = 100

func shown(t *testing.T, endpoints int, policy route.Policy, width, height int64) (context.Context, *site) {
	t.Helper()
	s := newSite(t, endpoints, policy)
	ctx := tab(t, width, height)
	s.past(40, rate)
	s.traffic(t, rate)
	open(t, ctx, s)
	return ctx, s
}

// text is that of an element.
func text(t *testing.T, ctx context.Context, selector string) string {
	t.Helper()
	return value[string](t, ctx, fmt.Sprintf("document.querySelector(%q).innerText", selector))
}

// Every panel shows what the server knows.
func TestPanels(t *testing.T) {
	ctx, _ := shown(t, 8, auto(), 1280, 900)
	until(t, ctx, `document.querySelectorAll("#last tbody tr").length > 5 && document.querySelectorAll("#hot tbody tr").length > 5`)
	until(t, ctx, `document.querySelectorAll(".summary:not(:empty)").length === 4`)
	for selector, want := range map[string]string{
		"#version": "v0.1.0", "#generation": "3", "#config": "routingStrategy: PREFIX_AWARE",
		"#pool-facts": "PREFIX_AWARE, prefixLength auto, concurrencyThreshold auto", "#endpoints-count": "8",
		"#summary-0": "In 1", "#summary-2": "%", "#summary-3": "\u00b5s",
	} {
		if got := text(t, ctx, selector); !strings.Contains(got, want) {
			t.Errorf("%s: %q, want %q in it", selector, got, want)
		}
	}
	for condition, what := range map[string]string{
		`[...document.querySelectorAll("svg.chart .first")].filter(p => p.getAttribute("d").length > 50).length === 4`:                     "four lines are drawn",
		`document.querySelector("#fleet tbody tr:nth-child(6) td").textContent === "unhealthy"`:                                            "the sixth endpoint is unhealthy",
		`document.querySelector("#fleet tbody tr:nth-child(6) td").title === "3 probes in a row failed"`:                                   "its cause is told",
		`document.querySelectorAll("#fleet tbody tr:first-child td")[2].textContent.includes(" / ")`:                                       "load stands against the bound",
		`[...document.querySelectorAll("#fleet tbody tr")].some(r => r.lastChild.textContent.includes("80 ms"))`:                           "the time to the first token is told",
		`/^[0-9a-f]{16}$/.test(document.querySelector("#hot tbody th").textContent)`:                                                       "prefixes are hashes",
		`document.querySelector("#hot tbody td").textContent === "5,632"`:                                                                  "the rules of 5,888 characters are the hottest, as far as levels tell",
		`[...document.querySelectorAll("#last tbody tr")].some(r => r.lastChild.textContent.includes("home"))`:                             "decisions are explained",
		`[...document.querySelectorAll("#last tbody tr")].every(r => r.hidden || r.title.includes("request"))`:                             "decisions can be told by their request ids",
		`[...document.querySelectorAll("input, select, textarea, meter")].every(e => e.labels.length > 0 || e.getAttribute("aria-label"))`: "every field has a label",
		`[...document.querySelectorAll("table")].every(e => e.caption)`:                                                                    "every table has a caption",
		`new Set([...document.querySelectorAll("[id]")].map(e => e.id)).size === document.querySelectorAll("[id]").length`:                 "ids are there once",
		`performance.getEntriesByType("resource").every(e => e.name.startsWith(location.origin))`:                                          "nothing comes from elsewhere",
	} {
		if !value[bool](t, ctx, condition) {
			t.Errorf("not so: %s (%s)", what, condition)
		}
	}
	// The other pool is empty, and says so.
	run(t, ctx, chromedp.SetValue("#pool", "embeddings"), dispatch("#pool", "input"))
	until(t, ctx, `document.querySelector("#fleet tbody").innerText.includes("no endpoints")`)
	if got := text(t, ctx, "#prefixes-note"); got != "RANDOM does not look at prompts." {
		t.Errorf("hot prefixes of RANDOM: %q", got)
	}
}

// A policy on trial is shown against the pool's own while it is on trial, and in its pool.
func TestTrials(t *testing.T) {
	ctx, s := shown(t, 8, auto(), 1280, 900)
	until(t, ctx, `document.querySelector("#pool-facts").innerText.includes("PREFIX_AWARE") && document.querySelector("#trials").hidden`)
	s.trials.Set(trial.Settings{Share: 1, ShareLength: 256, Policy: route.Policy{Strategy: route.LeastOutstandingRequests}}, trial.Settings{})
	until(t, ctx, `!document.querySelector("#trials").hidden && document.querySelectorAll("#tried tbody tr").length === 2`)
	until(t, ctx, `Number(document.querySelectorAll("#tried td")[1].textContent) > 20`)
	run(t, ctx, chromedp.Evaluate[chromedp.Void](`document.querySelector("#trials").scrollIntoView()`))
	picture(t, ctx, "trials", false)
	for condition, what := range map[string]string{
		`document.querySelector("#tried tbody tr:nth-child(1) th").textContent === "now"`:                                                       "the pool's own comes first",
		`document.querySelector("#tried tbody tr:nth-child(2) th").textContent === "shadow, 100.0 %"`:                                           "the trial is named",
		`document.querySelector("#tried tbody tr:nth-child(2) td").textContent.startsWith("LEAST_OUTSTANDING_REQUESTS")`:                        "its policy is told",
		`[...document.querySelectorAll("#tried tbody tr")].every(r => /^[0-9.]+ %$/.test(r.cells[3].textContent))`:                              "hit rates are known",
		`[...document.querySelectorAll("#tried tbody tr")].every(r => Number(r.cells[5].textContent) >= 1)`:                                     "so is the balance",
		`parseFloat(document.querySelector("#tried tbody tr:nth-child(2)").cells[6].textContent) > 10`:                                          "some would move",
		`document.querySelector("#trials").scrollWidth <= document.querySelector("main").clientWidth + 40 && document.body.scrollWidth <= 1280`: "it fits",
	} {
		if !value[bool](t, ctx, condition) {
			t.Errorf("not so: %s (%s)", what, condition)
		}
	}
	run(t, ctx, chromedp.SetValue("#pool", "embeddings"), dispatch("#pool", "input"))
	until(t, ctx, `document.querySelector("#trials").hidden`)
}

func dispatch(selector, event string) chromedp.Action[chromedp.Void] {
	return chromedp.Evaluate[chromedp.Void](fmt.Sprintf("document.querySelector(%q).dispatchEvent(new Event(%q, {bubbles: true}))", selector, event))
}

// A pool that is skewed is warned of, with what to do.
func TestWarnings(t *testing.T) {
	ctx, _ := shown(t, 8, route.Policy{Strategy: route.PrefixAware, PrefixLength: 1024, ConcurrencyThreshold: 900}, 1280, 900)
	until(t, ctx, `document.querySelector(".warning[data-kind=skew]") !== null`)
	if got := text(t, ctx, ".warning"); !strings.Contains(got, "Pool default is skewed") || !strings.Contains(got, "Set prefixLength: auto") {
		t.Errorf("the warning says %q", got)
	}
}

// A warning tells of now: it names the endpoint that is the busiest since, and its numbers
// follow. Who hears the page is told once of what kind it is and where, not of each number.
func TestWarningsFollow(t *testing.T) {
	s := newSite(t, 8, route.Policy{})
	ctx := tab(t, 1280, 900)
	open(t, ctx, s)
	burst := func(endpoint, requests int) {
		for range requests {
			now := time.Now()
			s.store.Decided(&extproc.Record{Began: now, Scanned: now, Decided: now, Decision: route.Decision{Chosen: addressOf(endpoint), Reason: route.ByRandom}})
		}
	}
	says := func(endpoint, requests, of int) string {
		return fmt.Sprintf(`document.querySelector(".warning[data-kind=skew] strong")?.innerText.includes("%s had ") && document.querySelector(".warning strong").innerText.includes("(%d of %d)")`,
			addressOf(endpoint), requests, of)
	}
	burst(0, 300)
	until(t, ctx, says(0, 300, 300))
	until(t, ctx, `document.getElementById("warned").textContent === "Warnings: skew in pool default"`)
	run(t, ctx, chromedp.Evaluate[chromedp.Void](`
		window.said = 0;
		window.first = document.querySelector(".warning");
		new MutationObserver(() => { said++; }).observe(document.getElementById("warned"), { subtree: true, childList: true, characterData: true });
		void 0`))
	burst(1, 500)
	until(t, ctx, says(1, 500, 800))
	burst(1, 10)
	until(t, ctx, says(1, 510, 810))
	for condition, what := range map[string]string{
		`said === 0`: "nothing is announced again",
		`first === document.querySelector(".warning") && document.querySelectorAll(".warning").length === 1`:                                "it is the same warning",
		`document.getElementById("warned").ariaLive === "polite" && !document.querySelector("#warnings[aria-live], #warnings [aria-live]")`: "only the kind is announced",
		`document.getElementById("warned").getBoundingClientRect().height <= 1`:                                                             "what is announced is not seen",
	} {
		if !value[bool](t, ctx, condition) {
			t.Errorf("not so: %s (%s)", what, condition)
		}
	}
}

// The tables can be sorted, searched and filtered while they change.
func TestSortAndFilter(t *testing.T) {
	ctx, _ := shown(t, 120, auto(), 1280, 900)
	first := `document.querySelector("#fleet tbody th").textContent`
	if got := value[string](t, ctx, first); got != addressOf(0) {
		t.Errorf("the first endpoint is %s", got)
	}
	// While it changes all the time the order follows once a second: it is held.
	run(t, ctx, chromedp.Click("#hold"), chromedp.Click("#fleet thead th:nth-child(5) button"))
	until(t, ctx, `document.querySelector("#fleet thead th:nth-child(5)").ariaSort === "descending"`)
	const sorted = `(() => { const n = [...document.querySelectorAll("#fleet tbody tr")].slice(0, 15).map(r => Number(r.cells[4].textContent)); return n.length === 15 && n[0] > 0 && n.every((x, i) => i === 0 || n[i - 1] >= x); })()`
	until(t, ctx, sorted)
	run(t, ctx, chromedp.Click("#hold"))
	run(t, ctx, chromedp.Click("#fleet thead th:nth-child(1) button"), chromedp.Click("#fleet thead th:nth-child(1) button"))
	until(t, ctx, first+fmt.Sprintf(" === %q", addressOf(119)))
	run(t, ctx, chromedp.SendKeys("#filter", "unhealthy"))
	until(t, ctx, `document.querySelectorAll("#fleet tbody tr").length === 2 && document.getElementById("endpoints-count").textContent === "2 of 120"`)
	run(t, ctx, chromedp.SendKeys("#filter", "x"))
	until(t, ctx, `document.querySelector("#fleet tbody").innerText.includes("No endpoint is like that")`)
	run(t, ctx, chromedp.SetValue("#reason", "home"), dispatch("#reason", "input"), chromedp.SendKeys("#search", "10.0.0.1"))
	until(t, ctx, `(() => { const rows = [...document.querySelectorAll("#last tbody tr")].filter(r => !r.hidden); return rows.length > 0 && rows.every(r => r.cells.length < 2 || r.cells[1].textContent === "home" && r.cells[2].textContent.includes("10.0.0.1")); })()`)
	run(t, ctx, chromedp.SendKeys("#search", "nobody"))
	until(t, ctx, `document.querySelector("#last tbody").innerText.includes("No decision")`)
}

// Everything can be done by keys alone.
func TestKeyboard(t *testing.T) {
	ctx, s := shown(t, 8, auto(), 1280, 900)
	focused := `(document.activeElement.id || document.activeElement.textContent)`
	tabTo := func(want string) {
		t.Helper()
		for range 60 {
			run(t, ctx, chromedp.KeyEvent(kb.Tab))
			if value[string](t, ctx, focused) == want {
				if value[string](t, ctx, `getComputedStyle(document.activeElement).outlineStyle`) == "none" {
					t.Errorf("%s has the focus and does not show it", want)
				}
				return
			}
		}
		t.Fatalf("%s cannot be reached by Tab", want)
	}
	tabTo("Skip to the endpoints")
	run(t, ctx, chromedp.KeyEvent(kb.Enter))
	until(t, ctx, `location.hash === "#endpoints"`)
	run(t, ctx, chromedp.Evaluate[chromedp.Void](`document.activeElement.blur(); location.hash = ""; document.body.focus()`), chromedp.Reload())
	until(t, ctx, isLive)
	tabTo("interval")
	tabTo("hold")
	run(t, ctx, chromedp.KeyEvent(" "))
	until(t, ctx, `document.getElementById("state").textContent === "held"`)
	run(t, ctx, chromedp.KeyEvent(" "))
	until(t, ctx, isLive)
	tabTo("theme")
	tabTo("span")
	tabTo("filter")
	tabTo("State")
	run(t, ctx, chromedp.KeyEvent(kb.Enter))
	until(t, ctx, `document.querySelector("#fleet thead th:nth-child(2)").ariaSort === "ascending"`)
	tabTo("reason")
	tabTo("body")
	run(t, ctx, chromedp.KeyEvent(`{"messages":[{"role":"user","content":"a secret of mine"}]}`), chromedp.KeyEvent(kb.Tab), chromedp.KeyEvent(kb.Enter))
	until(t, ctx, `document.getElementById("answer").innerText.includes("Home")`)
	s.mu.Lock()
	defer s.mu.Unlock()
	if len(s.explained) != 1 || s.explained[0].Path != "/v1/chat/completions" || !strings.Contains(string(s.explained[0].Body), "a secret of mine") {
		t.Errorf("asked %d times: %+v", len(s.explained), s.explained)
	}
	if strings.Contains(text(t, ctx, "#answer"), "secret") {
		t.Error("the answer has the text in it")
	}
}

// What is wrong with a body to explain is said in words.
func TestExplainFails(t *testing.T) {
	ctx, s := shown(t, 2, auto(), 800, 700)
	run(t, ctx, chromedp.Click("#ask button"))
	until(t, ctx, `document.getElementById("answer").innerText.includes("no request body")`)
	run(t, ctx, chromedp.SetValue("#body", "{}"), chromedp.SetValue("#path", "nowhere"), chromedp.Click("#ask button"))
	until(t, ctx, `document.getElementById("answer").innerText.includes("begins with /")`)
	s.stop()
	run(t, ctx, chromedp.Click("#ask button"))
	until(t, ctx, `document.getElementById("answer").innerText.includes("did not answer")`)
}

// The system's colours are taken, until one's own are chosen, which stay.
func TestThemes(t *testing.T) {
	ctx, _ := shown(t, 2, auto(), 800, 700)
	ground := `getComputedStyle(document.body).backgroundColor`
	const light, dark = "rgb(247, 247, 245)", "rgb(21, 23, 26)"
	for _, c := range []struct{ system, want string }{{"light", light}, {"dark", dark}} {
		prefer(t, ctx, "color-scheme", c.system)
		if got := value[string](t, ctx, ground); got != c.want {
			t.Errorf("%s: the ground is %s", c.system, got)
		}
	}
	run(t, ctx, chromedp.Click("#theme"), chromedp.Click("#theme")) // dark, then light
	if got := value[string](t, ctx, ground); got != light {
		t.Errorf("light by choice: the ground is %s", got)
	}
	run(t, ctx, chromedp.Reload())
	until(t, ctx, isLive)
	if got, label := value[string](t, ctx, ground), text(t, ctx, "#theme"); got != light || label != "Theme: light" {
		t.Errorf("after a reload: the ground is %s, the button says %s", got, label)
	}
	for _, system := range []string{"light", "dark"} { // WCAG 2 AA
		prefer(t, ctx, "color-scheme", system)
		run(t, ctx, chromedp.Evaluate[chromedp.Void](`delete document.documentElement.dataset.theme`))
		if got := value[float64](t, ctx, leastContrast); got < 4.5 {
			t.Errorf("%s: the least contrast of a text is %.2f, want 4.5", system, got)
		}
	}
}

// leastContrast is that of the page's texts against what they stand on.
const leastContrast = `(() => {
	const parse = (c) => c.match(/[\d.]+/g).map(Number);
	const light = (c) => { const [r, g, b] = parse(c).map((v) => (v /= 255) <= 0.03928 ? v / 12.92 : ((v + 0.055) / 1.055) ** 2.4); return 0.2126 * r + 0.7152 * g + 0.0722 * b; };
	const ground = (e) => { for (; e; e = e.parentElement) { const c = parse(getComputedStyle(e).backgroundColor); if (c.length < 4 || c[3] === 1) return getComputedStyle(e).backgroundColor; } return "rgb(255, 255, 255)"; };
	let least = 21;
	for (const e of document.querySelectorAll("p, td, th, a, h1, h2, h3, label, button, dd, dt, strong, span")) {
		if (e.innerText === "" || !e.checkVisibility({contentVisibilityAuto: true})) continue;
		const a = light(getComputedStyle(e).color), b = light(ground(e));
		least = Math.min(least, (Math.max(a, b) + 0.05) / (Math.min(a, b) + 0.05));
	}
	return least;
})()`

// On a narrow screen nothing sticks out: wide tables scroll in their own frames.
func TestNarrow(t *testing.T) {
	ctx, _ := shown(t, 8, auto(), 360, 740)
	until(t, ctx, `document.querySelectorAll("#last tbody tr").length > 3`)
	if wide := value[int](t, ctx, `document.documentElement.scrollWidth`); wide > 360 {
		t.Errorf("the page is %d pixels wide", wide)
	}
	if n := value[int](t, ctx, `[...document.querySelectorAll("button, select, input, textarea")].filter(e => !e.closest(".scroll") && e.getBoundingClientRect().right > 360).length`); n > 0 {
		t.Errorf("%d fields stick out", n)
	}
}

// A stream that breaks is said to be lost, and is taken up again.
func TestLostConnection(t *testing.T) {
	ctx, s := shown(t, 8, auto(), 800, 700)
	s.stop()
	until(t, ctx, `document.getElementById("state").textContent === "reconnecting" && document.body.hasAttribute("data-stale")`)
	s.start(t, s.address)
	until(t, ctx, isLive)
	until(t, ctx, `!document.body.hasAttribute("data-stale")`)
	before := text(t, ctx, "#clock")
	until(t, ctx, fmt.Sprintf(`document.getElementById("clock").textContent !== %q`, before))
}

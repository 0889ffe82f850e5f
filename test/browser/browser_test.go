// Package browser tests the live page in a real Chromium.
package browser

import (
	"context"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"testing"
	"time"

	"github.com/chromedp/cdproto/emulation"
	"github.com/chromedp/chromedp"

	"github.com/warmpath/warmpath/internal/route"
)

// auto is the policy of most tests.
func auto() route.Policy {
	return route.Policy{Strategy: route.PrefixAware, PrefixLength: route.AutoPrefixLength}
}

// tab opens a browser of its own with an empty page of a size.
func tab(t *testing.T, width, height int64) context.Context {
	t.Helper()
	path := ""
	for _, name := range []string{os.Getenv("CHROMIUM"), "chromium", "chromium-browser", "google-chrome"} {
		if found, err := exec.LookPath(name); err == nil {
			path = found
			break
		}
	}
	if path == "" {
		t.Fatal("no Chromium: make test-browser installs one, or set CHROMIUM to its path")
	}
	options := append(chromedp.DefaultExecAllocatorOptions[:], chromedp.ExecPath(path), chromedp.WindowSize(int(width), int(height)))
	if os.Geteuid() == 0 {
		options = append(options, chromedp.NoSandbox)
	}
	allocator, stop := chromedp.NewExecAllocator(t.Context(), options...)
	t.Cleanup(stop)
	ctx, cancel := chromedp.NewContext(allocator)
	t.Cleanup(cancel)
	ctx, expire := context.WithTimeout(ctx, 2*time.Minute)
	t.Cleanup(expire)
	run(t, ctx, chromedp.EmulateViewport(width, height))
	return ctx
}

func run(t *testing.T, ctx context.Context, actions ...chromedp.Action[chromedp.Void]) {
	t.Helper()
	if err := chromedp.Do(ctx, actions...); err != nil {
		t.Fatal(err)
	}
}

// until polls a condition in the page, from outside: the page's policy forbids code that
// is made of text.
func until(t *testing.T, ctx context.Context, condition string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(ctx, 20*time.Second)
	defer cancel()
	ticker := time.NewTicker(50 * time.Millisecond)
	defer ticker.Stop()
	for {
		ok, err := chromedp.Run(ctx, chromedp.Evaluate[bool](condition))
		if ok {
			return
		}
		select {
		case <-ticker.C:
		case <-ctx.Done():
			t.Fatalf("%s: %v, %v", condition, ctx.Err(), err)
		}
	}
}

// value evaluates an expression in the page.
func value[T any](t *testing.T, ctx context.Context, expression string) T {
	t.Helper()
	v, err := chromedp.Run(ctx, chromedp.Evaluate[T](expression))
	if err != nil {
		t.Fatalf("%s: %v", expression, err)
	}
	return v
}

// prefer sets what the system prefers, such as the color-scheme dark.
func prefer(t *testing.T, ctx context.Context, feature, value string) {
	t.Helper()
	_, err := chromedp.Call(ctx, emulation.SetEmulatedMedia, emulation.SetEmulatedMediaParams{
		Features: []*emulation.MediaFeature{{Name: "prefers-" + feature, Value: value}},
	})
	if err != nil {
		t.Fatal(err)
	}
}

// Screenshots are kept in the folder of SCREENSHOTS, for people to look at.
func picture(t *testing.T, ctx context.Context, name string, full bool) {
	t.Helper()
	folder := os.Getenv("SCREENSHOTS")
	if folder == "" {
		return
	}
	take := chromedp.CaptureScreenshot()
	if full {
		take = chromedp.FullScreenshot(100)
	}
	png, err := chromedp.Run(ctx, take)
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(folder, name+".png"), png, 0o600); err != nil {
		t.Fatal(err)
	}
}

const isLive = `document.getElementById("state").dataset.state === "live"`

// open shows the page and waits until it is live.
func open(t *testing.T, ctx context.Context, s *site) {
	t.Helper()
	run(t, ctx, chromedp.Navigate(s.url+"/"))
	until(t, ctx, isLive)
	until(t, ctx, `document.querySelectorAll("#fleet tbody tr").length > 0`)
}

// Pictures in both colours, narrow and wide, with few and with many endpoints.
func TestPictures(t *testing.T) {
	if os.Getenv("SCREENSHOTS") == "" {
		return
	}
	for _, c := range []struct {
		endpoints, rate int
		width           int64
		scheme          string
	}{
		{8, 60, 1280, "light"},
		{8, 60, 1280, "dark"},
		{8, 60, 360, "dark"},
		{500, 100, 1440, "dark"},
		{500, 100, 360, "dark"},
	} {
		name := fmt.Sprintf("%d-%d-%s", c.endpoints, c.width, c.scheme)
		t.Run(name, func(t *testing.T) {
			s := newSite(t, c.endpoints, auto())
			ctx := tab(t, c.width, 900)
			s.past(120, c.rate)
			s.traffic(t, c.rate)
			prefer(t, ctx, "color-scheme", c.scheme)
			open(t, ctx, s)
			until(t, ctx, `document.querySelectorAll("#last tbody tr").length > 5`)
			picture(t, ctx, name, true)
			picture(t, ctx, name+"-top", false)
		})
	}
}

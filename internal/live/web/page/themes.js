// The colours: the system's, or one's own choice, which is kept.
import { setText } from "./dom.js";

const next = { auto: "dark", dark: "light", light: "auto" };

export function prepareTheme(button) {
  show(button);
  button.addEventListener("click", () => {
    const theme = next[current()];
    if (theme === "auto") delete document.documentElement.dataset.theme;
    else document.documentElement.dataset.theme = theme;
    try {
      if (theme === "auto") localStorage.removeItem("warmpath-theme");
      else localStorage.setItem("warmpath-theme", theme);
    } catch {
      // It holds until the page is closed, then.
    }
    show(button);
  });
}

const current = () => document.documentElement.dataset.theme || "auto";

function show(button) { setText(button, "Theme: " + current()); }

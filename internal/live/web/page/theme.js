// Before anything is drawn, so that the page does not flash in the other colours.
"use strict";
try {
  const theme = localStorage.getItem("warmpath-theme");
  if (theme === "dark" || theme === "light") document.documentElement.dataset.theme = theme;
} catch {
  // Without storage the system's colours are used.
}

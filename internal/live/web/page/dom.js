// Small words for the document. Text is only ever set as text.
const known = new Map();

export function byId(id) {
  let node = known.get(id);
  if (!node) known.set(id, node = document.getElementById(id));
  return node;
}

// setText touches the document only if the text is another one.
export function setText(node, text) {
  if (node.firstChild && node.firstChild.nodeType === Node.TEXT_NODE && node.childNodes.length === 1) {
    if (node.firstChild.data !== text) node.firstChild.data = text;
  } else {
    node.textContent = text;
  }
}

export function setData(node, name, value) {
  if (node.dataset[name] !== value) node.dataset[name] = value;
}

export function make(tag, attributes = {}, ...children) {
  const node = document.createElement(tag);
  for (const [name, value] of Object.entries(attributes)) node.setAttribute(name, value);
  node.append(...children);
  return node;
}

export const percent = (f) => (100 * f).toFixed(1) + " %";
// From 1 ms to hours in four digits or fewer.
export const secondsOrDash = (s) => (!s ? "\u2013" : s < 0.9995 ? `${Math.max(Math.round(s * 1000), 1)} ms` : `${s < 99.5 ? Number(s.toPrecision(2)) : Math.round(s)} s`);
export const percentOrDash = (f) => (f === undefined || f === null ? "\u2013" : percent(f));
export const count = (n) => n.toLocaleString("en-US");

// Elements from data. Text becomes text nodes and nothing else: what a database holds is never markup.

/** An element: `el("p.note", {title: "…"}, "text", child, …)`. Attributes that are null or false are left out. */
export function el(name, attributes = {}, ...children) {
  const [tag, ...classes] = name.split(".");
  const node = document.createElement(tag || "div");
  if (classes.length) node.className = classes.join(" ");
  for (const [key, value] of Object.entries(attributes)) {
    if (value === null || value === undefined || value === false) continue;
    if (key.startsWith("on")) node.addEventListener(key.slice(2), value);
    else node.setAttribute(key, value === true ? "" : String(value));
  }
  node.append(...children.flat().filter((child) => child !== null && child !== undefined && child !== ""));
  return node;
}

const PATHS = {
  rename: "M3 13.5V11l7.6-7.6a1.6 1.6 0 0 1 2.3 2.3L5.4 13.4z M9.4 4.6l2.3 2.3",
  delete: "M3 4.5h10 M6.5 4.5V3h3v1.5 M4.5 4.5l.6 8.5h5.8l.6-8.5 M6.8 7v3.6 M9.2 7v3.6",
};

/** A small picture for a button, in the colour of its text. */
export function icon(name) {
  const space = "http://www.w3.org/2000/svg";
  const svg = document.createElementNS(space, "svg");
  for (const [key, value] of Object.entries({ viewBox: "0 0 16 16", class: "glyph", "aria-hidden": "true" })) svg.setAttribute(key, value);
  const path = document.createElementNS(space, "path");
  path.setAttribute("d", PATHS[name]);
  svg.append(path);
  return svg;
}

export const byId = (id) => document.getElementById(id);

/** Calls `work` at most once in `ms`, with the last call never lost. */
export function throttled(work, ms) {
  let timer = null;
  const call = () => {
    if (timer !== null) return;
    timer = setTimeout(() => {
      timer = null;
      work();
    }, ms);
  };
  call.now = () => {
    clearTimeout(timer);
    timer = null;
    work();
  };
  return call;
}

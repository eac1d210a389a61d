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

// The address of a server, as people give it.

/** What is wrong with an address; null: nothing. The server looks closer. */
export function wrongAddress(text: string): "connect.noAddress" | "connect.keyInAddress" | null {
  const url = parsed(text);
  if (url === null) return "connect.noAddress";
  return url.username || url.password || url.search || url.hash ? "connect.keyInAddress" : null;
}

/** A name for a server, from its address: as in `own:NAME/model`. Two of one host differ by their paths. */
export function serverName(text: string): string {
  const url = parsed(text);
  const path = url?.pathname.replace(/(\/v\d+)?(\/chat\/completions|\/models)?\/*$/, "") ?? "";
  return `${url?.host ?? ""}${path}`
    .toLowerCase()
    .replaceAll(/[^a-z0-9._-]+/g, "-")
    .replace(/^[._-]+/, "")
    .slice(0, 40);
}

function parsed(text: string): URL | null {
  const given = text.trim();
  if (!given || /\s/.test(given)) return null;
  try {
    const url = new URL(given.includes("://") ? given : `http://${given}`);
    return /^https?:$/.test(url.protocol) && url.hostname ? url : null;
  } catch {
    return null;
  }
}

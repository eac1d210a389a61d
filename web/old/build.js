// Writes vega.js and vega.LICENSES.txt into the page's folder. The same lock file gives the same bytes.

import { readdirSync, readFileSync, writeFileSync } from "node:fs";
import { build } from "esbuild";

const page = new URL("../../src/longthread/server/web/", import.meta.url);
const made = await build({
  entryPoints: ["vega.js"],
  bundle: true,
  minify: true,
  format: "esm",
  target: "es2022",
  legalComments: "none",
  // Vega-Lite takes four small functions from it, which come from there.
  alias: { vega: "vega-util" },
  metafile: true,
  write: false,
});

const folders = Object.keys(made.metafile.inputs).map((path) => /^.*node_modules\/(?:@[^/]+\/)?[^/]+(?=\/)/.exec(path)?.[0]);
const parts = [...new Set(folders.filter(Boolean))].sort().map((folder) => {
  const { name, version } = JSON.parse(readFileSync(`${folder}/package.json`, "utf8"));
  const file = readdirSync(folder).find((each) => /^licen[cs]e/i.test(each));
  if (!file) throw new Error(`${folder} has no licence`);
  return { said: `${name} ${version}`, text: readFileSync(`${folder}/${file}`, "utf8").trim() };
});

const texts = new Map();
for (const { said, text } of parts) texts.set(text, [...(texts.get(text) ?? []), said]);
const licences = [...texts].map(([text, said]) => `${[...new Set(said)].join(", ")}\n\n${text}\n`);
const [{ text: code }] = made.outputFiles;
const named = parts.filter(({ said }) => /^vega(-lite|-view)? /.test(said)).map(({ said }) => said);
writeFileSync(new URL("vega.js", page), `// ${named.join(", ")}, built by web/build.js; licences: vega.LICENSES.txt\n${code}`);
writeFileSync(new URL("vega.LICENSES.txt", page), licences.join(`\n${"-".repeat(72)}\n\n`));

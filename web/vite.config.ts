import { createHash } from "node:crypto";
import { readFileSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import { compileMessage } from "@lingui/message-utils/compileMessage";
import react from "@vitejs/plugin-react";
import { type Plugin, defineConfig } from "vite";
import { messages as en } from "./src/i18n/en";
import { account as enAccount } from "./src/i18n/en/account";
import { boards as enBoards } from "./src/i18n/en/boards";
import { catalog as enCatalog } from "./src/i18n/en/catalog";
import { chart as enChart } from "./src/i18n/en/chart";
import { connect as enConnect } from "./src/i18n/en/connect";
import { files as enFiles } from "./src/i18n/en/files";
import { login as enLogin } from "./src/i18n/en/login";
import { projects as enProjects } from "./src/i18n/en/projects";
import { settings as enSettings } from "./src/i18n/en/settings";
import { share as enShare } from "./src/i18n/en/share";
import { sql as enSql } from "./src/i18n/en/sql";
import { team as enTeam } from "./src/i18n/en/team";
import { messages as zh } from "./src/i18n/zh";
import { account as zhAccount } from "./src/i18n/zh/account";
import { boards as zhBoards } from "./src/i18n/zh/boards";
import { catalog as zhCatalog } from "./src/i18n/zh/catalog";
import { chart as zhChart } from "./src/i18n/zh/chart";
import { connect as zhConnect } from "./src/i18n/zh/connect";
import { files as zhFiles } from "./src/i18n/zh/files";
import { login as zhLogin } from "./src/i18n/zh/login";
import { projects as zhProjects } from "./src/i18n/zh/projects";
import { settings as zhSettings } from "./src/i18n/zh/settings";
import { share as zhShare } from "./src/i18n/zh/share";
import { sql as zhSql } from "./src/i18n/zh/sql";
import { team as zhTeam } from "./src/i18n/zh/team";

const OUT = "../src/longthread/server/page";

/** Names the build in the service worker: another one keeps its files apart. */
function worker(): Plugin {
  return {
    name: "worker",
    apply: "build",
    closeBundle() {
      const build = createHash("sha256")
        .update(readFileSync(`${OUT}/index.html`))
        .digest("hex")
        .slice(0, 12);
      writeFileSync(`${OUT}/sw.js`, readFileSync(`${OUT}/sw.js`, "utf8").replace("BUILD-OF-THE-PAGE", build));
    },
  };
}

/** Writes each text file again as `.gz`: the server compresses nothing while it answers. */
function gzip(): Plugin {
  return {
    name: "gzip",
    apply: "build",
    closeBundle() {
      for (const entry of readdirSync(OUT, { recursive: true, withFileTypes: true })) {
        if (!/\.(js|css|svg)$/.test(entry.name)) continue;
        const path = join(entry.parentPath, entry.name);
        writeFileSync(`${path}.gz`, gzipSync(readFileSync(path), { level: 9 }));
      }
    },
  };
}

/** Of KaTeX's fonts, only the form that every browser of today reads. */
function fonts(): Plugin {
  return {
    name: "fonts",
    enforce: "pre",
    transform: (code, id) =>
      id.endsWith("/katex.min.css") ? code.replaceAll(/,url\([^)]*\) ?format\("(?:woff|truetype)"\)/g, "") : null,
  };
}

/** Writes the licences of all packages that are in the page. */
function licences(): Plugin {
  return {
    name: "licences",
    apply: "build",
    generateBundle(_, bundle) {
      const modules = Object.values(bundle).flatMap((each) => (each.type === "chunk" ? each.moduleIds : []));
      const folders = new Set(
        modules
          .map((id) => /^.*\/node_modules\/(?:@[^/]+\/)?[^/]+(?=\/)/.exec(id)?.[0])
          .filter((each) => each !== undefined),
      );
      const texts = new Map<string, string[]>();
      for (const folder of [...folders].toSorted()) {
        const { name, version, license } = JSON.parse(readFileSync(join(folder, "package.json"), "utf8")) as Record<
          string,
          string
        >;
        const file = readdirSync(folder).find((each) => /^licen[cs]e/i.test(each));
        const text = file ? readFileSync(join(folder, file), "utf8").trim() : `Licence: ${license}`;
        texts.set(text, [...(texts.get(text) ?? []), `${name} ${version}`]);
      }
      const parts = [...texts].map(([text, names]) => `${[...new Set(names)].join(", ")}\n\n${text}\n`);
      this.emitFile({ type: "asset", fileName: "LICENSES.txt", source: parts.join(`\n${"-".repeat(72)}\n\n`) });
    },
  };
}

/** The files of messages, and what they export. */
const MESSAGES: Record<string, { name: string; messages: Record<string, string> }> = {
  "en/index": { name: "messages", messages: en },
  "zh/index": { name: "messages", messages: zh },
  "en/account": { name: "account", messages: enAccount },
  "zh/account": { name: "account", messages: zhAccount },
  "en/team": { name: "team", messages: enTeam },
  "zh/team": { name: "team", messages: zhTeam },
  "en/boards": { name: "boards", messages: enBoards },
  "zh/boards": { name: "boards", messages: zhBoards },
  "en/catalog": { name: "catalog", messages: enCatalog },
  "zh/catalog": { name: "catalog", messages: zhCatalog },
  "en/chart": { name: "chart", messages: enChart },
  "zh/chart": { name: "chart", messages: zhChart },
  "en/connect": { name: "connect", messages: enConnect },
  "zh/connect": { name: "connect", messages: zhConnect },
  "en/files": { name: "files", messages: enFiles },
  "en/login": { name: "login", messages: enLogin },
  "zh/login": { name: "login", messages: zhLogin },
  "en/projects": { name: "projects", messages: enProjects },
  "en/settings": { name: "settings", messages: enSettings },
  "zh/files": { name: "files", messages: zhFiles },
  "zh/projects": { name: "projects", messages: zhProjects },
  "zh/settings": { name: "settings", messages: zhSettings },
  "en/share": { name: "share", messages: enShare },
  "zh/share": { name: "share", messages: zhShare },
  "en/sql": { name: "sql", messages: enSql },
  "zh/sql": { name: "sql", messages: zhSql },
};

/** Tells `early.js` which files each language and a conversation need besides those that the page names. */
function early(): Plugin {
  const WANTED = {
    en: ["/i18n/en/index.ts"],
    zh: ["/i18n/zh/index.ts"],
    thread: ["/chat/Thread.tsx", "/results/ResultCardView.tsx"],
  };
  return {
    name: "early",
    apply: "build",
    transformIndexHtml: {
      order: "post",
      handler(html, { bundle = {} }) {
        const filesOf = (names: readonly string[]) => {
          const found = new Set<string>();
          const take = (name: string) => {
            const chunk = bundle[name];
            if (chunk?.type !== "chunk" || found.has(name) || html.includes(name)) return;
            found.add(name);
            chunk.viteMetadata?.importedCss.forEach((css) => html.includes(css) || found.add(css));
            chunk.imports.forEach(take);
          };
          for (const each of Object.values(bundle)) {
            if (each.type === "chunk" && names.some((name) => each.moduleIds.some((id) => id.endsWith(`/src${name}`))))
              take(each.fileName);
          }
          return [...found].map((file) => `/${file}`).join(" ");
        };
        const data = Object.entries(WANTED).map(([name, modules]) => ` data-${name}="${filesOf(modules)}"`);
        return html.replace('src="/early.js"', `src="/early.js"${data.join("")}`);
      },
    },
  };
}

/** Parses the messages while the page is built, so that it needs no parser. */
function compiled(): Plugin {
  return {
    name: "messages",
    load(id) {
      const file = /\/src\/i18n\/((?:en|zh)\/\w+)\.ts$/.exec(id)?.[1];
      const found = file === undefined ? undefined : MESSAGES[file];
      if (!found) return null;
      const entries = Object.entries(found.messages).map(([name, message]) => [name, compileMessage(message)]);
      return `export const ${found.name} = ${JSON.stringify(Object.fromEntries(entries))};`;
    },
  };
}

// `npm run dev` asks a server that runs beside it.
const server = process.env["LONGTHREAD_URL"] ?? "http://127.0.0.1:8765";

export default defineConfig({
  plugins: [react(), fonts(), early(), licences(), worker(), gzip(), ...(process.env["VITEST"] ? [] : [compiled()])],
  // The server puts the nonce of each answer in its place.
  html: { cspNonce: "NONCE-OF-THE-ANSWER" },
  // It reads what a class composes without a warning.
  css: { transformer: "lightningcss" },
  build: {
    outDir: OUT,
    emptyOutDir: true,
    assetsInlineLimit: 0,
    chunkSizeWarningLimit: 1000,
    modulePreload: { polyfill: false },
    // What the first view needs is one file, and what a conversation needs besides is another. Else whatever another part
    // shares becomes a file of its own: 50 more.
    rolldownOptions: {
      output: {
        codeSplitting: {
          groups: [
            { name: "base", tags: ["$initial"], priority: 2 },
            { name: "conversation", test: /\/src\/(chat\/Thread|results\/ResultCardView)\.tsx$/, priority: 1 },
          ],
        },
      },
    },
  },
  server: { proxy: { "/api": { target: server, changeOrigin: false } } },
  test: { include: ["src/**/*.test.ts", "src/**/*.test.tsx"] },
} as Parameters<typeof defineConfig>[0]);

import { readFileSync, readdirSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { gzipSync } from "node:zlib";
import react from "@vitejs/plugin-react";
import { type Plugin, defineConfig } from "vite";

const OUT = "../src/longthread/server/page";

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

// `npm run dev` asks a server that runs beside it.
const server = process.env["LONGTHREAD_URL"] ?? "http://127.0.0.1:8765";

export default defineConfig({
  plugins: [react(), gzip()],
  // The server puts the nonce of each answer in its place.
  html: { cspNonce: "NONCE-OF-THE-ANSWER" },
  build: { outDir: OUT, emptyOutDir: true, assetsInlineLimit: 0, modulePreload: { polyfill: false } },
  server: { proxy: { "/api": { target: server, changeOrigin: false } } },
  test: { include: ["src/**/*.test.ts", "src/**/*.test.tsx"] },
} as Parameters<typeof defineConfig>[0]);

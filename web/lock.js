// Takes the addresses out of the lock file that npm has written.

import { readFileSync, writeFileSync } from "node:fs";

const file = new URL("package-lock.json", import.meta.url);
const lock = JSON.parse(readFileSync(file, "utf8"));
for (const each of Object.values(lock.packages)) delete each.funding;
writeFileSync(file, `${JSON.stringify(lock, null, 2)}\n`);

import { compileMessage } from "@lingui/message-utils/compileMessage";
import { expect, test } from "vitest";
import { messages as enFirst } from "./en";
import { account as enAccount } from "./en/account";
import { boards as enBoards } from "./en/boards";
import { catalog as enCatalog } from "./en/catalog";
import { chart as enChart } from "./en/chart";
import { sql as enSql } from "./en/sql";
import { connect as enConnect } from "./en/connect";
import { feedback as enFeedback } from "./en/feedback";
import { files as enFiles } from "./en/files";
import { login as enLogin } from "./en/login";
import { projects as enProjects } from "./en/projects";
import { settings as enSettings } from "./en/settings";
import { share as enShare } from "./en/share";
import { team as enTeam } from "./en/team";
import { messages as zhFirst } from "./zh";
import { account as zhAccount } from "./zh/account";
import { boards as zhBoards } from "./zh/boards";
import { catalog as zhCatalog } from "./zh/catalog";
import { chart as zhChart } from "./zh/chart";
import { sql as zhSql } from "./zh/sql";
import { connect as zhConnect } from "./zh/connect";
import { feedback as zhFeedback } from "./zh/feedback";
import { files as zhFiles } from "./zh/files";
import { login as zhLogin } from "./zh/login";
import { projects as zhProjects } from "./zh/projects";
import { settings as zhSettings } from "./zh/settings";
import { share as zhShare } from "./zh/share";
import { team as zhTeam } from "./zh/team";

const en = {
  ...enFirst,
  ...enCatalog,
  ...enProjects,
  ...enSettings,
  ...enShare,
  ...enConnect,
  ...enChart,
  ...enFiles,
  ...enLogin,
  ...enAccount,
  ...enTeam,
  ...enSql,
  ...enBoards,
  ...enFeedback,
};
const zh = {
  ...zhFirst,
  ...zhCatalog,
  ...zhProjects,
  ...zhSettings,
  ...zhShare,
  ...zhConnect,
  ...zhChart,
  ...zhFiles,
  ...zhLogin,
  ...zhAccount,
  ...zhTeam,
  ...zhSql,
  ...zhBoards,
  ...zhFeedback,
};

/** The names that a message is filled with. */
function names(message: string): string[] {
  const found = new Set<string>();
  const look = (part: unknown) => {
    if (!Array.isArray(part)) return;
    if (typeof part[0] === "string") found.add(part[0]);
    const forms: unknown = part[2];
    if (forms && typeof forms === "object")
      Object.values(forms).forEach((form) => Array.isArray(form) && form.forEach(look));
  };
  const compiled: unknown = compileMessage(message);
  if (Array.isArray(compiled)) compiled.forEach(look);
  return [...found].toSorted();
}

test("both languages fill a message with the same values", () => {
  expect(names("{n, plural, one {# step by {who}} other {# steps}}")).toEqual(["n", "who"]);
  for (const id of Object.keys(en) as (keyof typeof en)[]) expect(names(zh[id]), id).toEqual(names(en[id]));
});

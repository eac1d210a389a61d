import "./tokens.css";
import "./base.css";
import { CSPProvider } from "@base-ui/react/csp-provider";
import { Tooltip } from "@base-ui/react/tooltip";
import { i18n } from "@lingui/core";
import { I18nProvider } from "@lingui/react";
import { QueryClientProvider } from "@tanstack/react-query";
import { StrictMode } from "react";
import { createRoot } from "react-dom/client";
import { queryClient } from "./api/cache";
import { App } from "./app";
import { Thread } from "./chat/Conversation";
import { begin } from "./i18n";
import { nonce } from "./nonce";
import { ResultCardView } from "./results/ResultCard";
import { currentRoute } from "./route";
import { Toasts, Tooltips } from "./ui";

// An address of earlier versions, such as `/#/c/ID`.
if (location.pathname === "/" && location.hash.startsWith("#/c/"))
  history.replaceState(null, "", location.hash.slice(1));

// `early.js` has asked for both.
const needed =
  currentRoute().page === "conversation"
    ? Promise.all([Thread.load(), ResultCardView.load()]).catch(() => undefined)
    : null;

const AGAIN = "longthread.again";
const root = document.getElementById("root");
if (!root) throw new Error("index.html has no #root");

/** A file is missing, perhaps after an update: the page is asked for once more. */
function again(box: HTMLElement) {
  try {
    if (sessionStorage.getItem(AGAIN) === null) {
      sessionStorage.setItem(AGAIN, "");
      location.reload();
      return;
    }
  } catch {
    // The browser keeps nothing.
  }
  box.textContent = "The page could not be loaded. Reload it. 页面加载失败，请重新加载。";
}

function drawn() {
  try {
    sessionStorage.removeItem(AGAIN);
  } catch {
    // The browser keeps nothing.
  }
}

// No `await` of this module: the files of a conversation import the file that it stands in, and would wait for it.
Promise.all([begin(), needed])
  .then(() => {
    createRoot(root).render(
      <StrictMode>
        <CSPProvider nonce={nonce}>
          <I18nProvider i18n={i18n}>
            <QueryClientProvider client={queryClient}>
              <Tooltip.Provider delay={500}>
                <App />
                <Toasts />
                <Tooltips />
              </Tooltip.Provider>
            </QueryClientProvider>
          </I18nProvider>
        </CSPProvider>
      </StrictMode>,
    );
    drawn();
    if (import.meta.env.PROD && !currentRoute().page.startsWith("shared"))
      void import("./worker").then(
        ({ registerWorker }) => registerWorker(),
        () => undefined,
      );
  })
  .catch(() => again(root));

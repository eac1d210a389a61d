// The page: what is shown, and what the user does.

import { AgentChoice } from "./agents.js";
import * as api from "./api.js";
import { pathOf } from "./below.js";
import { Conversation } from "./conversation.js";
import { byId, el } from "./dom.js";
import { otherLanguage, switchLanguage, t, translate } from "./i18n.js";
import { ConversationList } from "./list.js";

const narrow = matchMedia("(max-width: 760px)");
let info = { demo: false, model: "", source: null, sources: "any" };

const conversation = new Conversation({ changed, trouble });
const agents = new AgentChoice({ changed: () => (offerSource(), welcome(), refresh()) });
const list = new ConversationList({
  open: (id) => go(id),
  gone: (id) => id === conversation.id && go(null),
  renamed: (id, label) => {
    if (id !== conversation.id) return;
    conversation.label = label;
    refresh();
  },
  trouble,
});

// Where we are stands in the address, so that a reload and the back button find it again.

function go(id) {
  const wanted = id ? pathOf(id) : "#/";
  if (location.hash === wanted) show();
  else location.hash = wanted;
}

function place() {
  const found = /^#\/c\/(.+)$/u.exec(location.hash);
  return found ? decodeURIComponent(found[1]) : null;
}

async function show() {
  const id = place();
  closeSide();
  trouble(null);
  list.select(id);
  if (id === null) {
    conversation.clear();
    welcome();
    if (agents.chosen.source !== null || !byId("source").value) offerSource();
    agents.load().then(refresh, trouble);
  } else if (id !== conversation.id) {
    try {
      await conversation.load(id);
      if (list.waits(id)) list.refresh();  // it may wait no longer
    } catch (error) {
      if (place() !== id) return;
      conversation.clear();
      trouble(error.status === 404 ? new Error(t("deleted")) : error);
    }
  }
  refresh();
  if (!narrow.matches) byId("question").focus();
}

function welcome() {
  if (!agents.isDefault) {
    const { name } = agents.chosen;
    byId("thread").replaceChildren(el("section.welcome", {}, el("h2", { dir: "auto" }, name), el("p", { dir: "auto" }, agents.about())));
    return;
  }
  const texts = info.source === "demo" || byId("source").value.trim() === "demo" ? t("examples").split("|") : [t("exampleAny")];
  const examples = texts.map((text) => el("li", {}, el("button", { type: "button", onclick: () => submit(text) }, text)));
  byId("thread").replaceChildren(
    el("section.welcome", {}, el("h2", {}, t("welcome")), el("p", {}, t("welcomeText")),
      el("p.note", {}, t("tryThis")), el("ul.examples", {}, examples)),
  );
}

/** The source that the chosen agent is asked with: its own, which stays, or the one that is chosen here. */
function offerSource() {
  byId("source").value = agents.chosen.source ?? info.source ?? "";
}

/** What can be done now has changed. `view` is the turn whose run has ended. */
function changed(view) {
  refresh();
  if (view) {
    byId("announce").textContent = view.status === "finished" ? t("answerReady") : (view.foot.querySelector("strong")?.textContent ?? "");
    list.refresh();
  } else if (list.waits(conversation.id)) {
    list.refresh();
  }
}

function refresh() {
  const { id, label, running, waits, source, agent, parent } = conversation;
  byId("title").textContent = label || list.label(id) || (id ? "" : t("newConversation"));
  document.title = id && byId("title").textContent ? `${byId("title").textContent} · Longthread` : "Longthread";
  byId("stop").hidden = !(running || waits);
  byId("model").textContent = info.model;
  document.body.classList.toggle("demo", info.demo);
  byId("demo-badge").hidden = !info.demo;
  byId("where").textContent = info.version ? `Longthread ${info.version}` : "";
  byId("where").title = info.database ?? "";
  byId("language").textContent = otherLanguage();
  byId("parent").hidden = !parent;
  byId("parent").href = parent ? pathOf(parent.id) : "";
  byId("parent").textContent = parent ? t("askedIn", { label: parent.label || t("untitled") }) : "";
  byId("question").placeholder = (id === null ? agents.chosen.asksSource : source) ? t("placeholder") : t("question");
  byId("agents").hidden = id !== null;
  byId("agents").title = agents.about();
  byId("agent").hidden = id === null;
  byId("agent").textContent = agent?.name ?? "";
  const fixed = id !== null || agents.chosen.source !== null;
  const choices = Array.isArray(info.sources) && !fixed;
  const input = byId("source");
  byId("source-field").hidden = id === null ? !agents.chosen.asksSource : !source;
  input.hidden = choices;
  byId("sources").hidden = !choices;
  input.readOnly = fixed;
  if (id !== null) input.value = source ?? "";
}

function trouble(error) {
  const box = byId("problem");
  box.hidden = !error;
  box.textContent = error ? (error instanceof TypeError ? t("offline") : error.message) : "";
}

// Asking.

const question = byId("question");

function chosenSource() {
  if (!agents.chosen.asksSource || agents.chosen.source !== null) return null;
  const field = Array.isArray(info.sources) ? byId("sources") : byId("source");
  return field.value.trim() || null;
}

async function submit(text) {
  if (!text.trim() || submit.busy) return;
  submit.busy = true;
  trouble(null);
  const source = conversation.source ?? chosenSource();
  const agent = agents.chosen;
  try {
    const isNew = await conversation.ask(text, { source, ...(agents.isDefault ? {} : { agent: agent.id }) });
    if (isNew === null) return list.refresh();
    conversation.source = source ?? agent.source;
    conversation.agent ??= agent;
    if (question.value === text) question.value = "";
    grow();
    if (isNew) {
      conversation.label = text.trim().slice(0, 50);
      history.pushState(null, "", pathOf(conversation.id));
      list.active = conversation.id;
      list.refresh();
    }
    refresh();
  } catch (error) {
    trouble(error);
    // Another tab asked meanwhile: show what is under way there.
    if (error.code === "run_in_progress") await conversation.again().catch(trouble);
    refresh();
  } finally {
    submit.busy = false;
  }
}

function grow() {
  question.style.height = "auto";
  question.style.height = `${Math.min(question.scrollHeight, window.innerHeight * 0.4)}px`;
}

byId("composer").addEventListener("submit", (event) => {
  event.preventDefault();
  submit(question.value);
});

question.addEventListener("input", grow);
question.addEventListener("keydown", (event) => {
  // While an input method composes, Enter chooses a word. Some browsers tell that only by the key code.
  if (event.key !== "Enter" || event.shiftKey || event.isComposing || event.keyCode === 229) return;
  event.preventDefault();
  submit(question.value);
});

byId("stop").addEventListener("click", async () => {
  byId("stop").disabled = true;
  try {
    await conversation.stop();
    // What runs tells its end itself.
    if (!conversation.running) await Promise.all([conversation.again(), list.refresh()]);
  } catch (error) {
    trouble(error);
  } finally {
    byId("stop").disabled = false;
    refresh();
  }
});

byId("source").addEventListener("change", () => conversation.id === null && welcome());

// The list, which is a drawer on a narrow screen.

function openSide() {
  document.body.classList.add("side-open");
  byId("veil").hidden = false;
  sideState();
  byId("search").focus();
}

function closeSide() {
  const open = document.body.classList.contains("side-open");
  document.body.classList.remove("side-open");
  byId("veil").hidden = true;
  sideState();
  if (open) byId("open-side").focus();
}

function sideState() {
  const open = document.body.classList.contains("side-open");
  byId("side").inert = narrow.matches && !open;
  document.querySelector(".main").inert = narrow.matches && open;
  byId("open-side").setAttribute("aria-expanded", String(open));
}

byId("open-side").addEventListener("click", openSide);
byId("close-side").addEventListener("click", closeSide);
byId("veil").addEventListener("click", closeSide);
byId("new").addEventListener("click", () => go(null));
narrow.addEventListener("change", closeSide);
document.addEventListener("keydown", (event) => event.key === "Escape" && document.body.classList.contains("side-open") && closeSide());

byId("language").addEventListener("click", async () => {
  switchLanguage();
  translate();
  list.render();
  if (conversation.wanted) await conversation.again().catch(trouble);
  else welcome();
  refresh();
});

window.addEventListener("hashchange", show);
document.addEventListener("visibilitychange", async () => {
  if (document.hidden) return;
  await list.refresh();
  try {
    if (conversation.id && !conversation.running && (await conversation.isStale())) await conversation.again();
  } catch (error) {
    trouble(error);
  }
  refresh();
});

async function begin() {
  translate();
  sideState();
  try {
    info = await api.info();
    // What was typed meanwhile stays.
    byId("source").value ||= info.source ?? "";
    if (Array.isArray(info.sources)) byId("sources").replaceChildren(...info.sources.map((name) => el("option", { value: name, selected: name === info.source }, name)));
  } catch (error) {
    trouble(error);
  }
  await Promise.all([list.refresh(), show()]);
  refresh();
}

begin();

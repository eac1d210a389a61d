import { queryClient } from "../api/cache";
import type { Info } from "../api/types";
import { type Language, type MessageId, choose, current, t } from "../i18n";
import { toggleInspector } from "../inspector/selection";
import { currentRoute, navigate, toBoards, toNew, toSettings } from "../route";
import { pagesOf } from "../settings/pages";
import { THEMES, theme } from "../theme";
import type { IconName } from "../ui";
import { openApps, openConnect, openKeys, openShare } from "./open";

export interface Command {
  id: string;
  label: string;
  note?: string;
  icon: IconName;
  keys?: string;
  act: () => void;
}

/** All that can be done from anywhere. */
export function commands(): Command[] {
  const other: Language = current() === "en" ? "zh" : "en";
  const route = currentRoute();
  const auth = queryClient.getQueryData<Info>(["info"])?.auth;
  const pages = pagesOf(auth === undefined || auth.mode === "local" ? null : auth.user);
  return [
    { id: "new", label: t("shell.new"), icon: "plus", keys: "Mod+Shift+O", act: () => navigate(toNew) },
    ...(route.page === "conversation"
      ? [inspector(), ...(auth?.share === "off" ? [] : [share(route.id)]), apps(route.id)]
      : []),
    {
      id: "connect",
      label: t("shell.connect"),
      icon: "model",
      act: () => openConnect(route.page === "conversation" ? route.id : null),
    },
    { id: "boards", label: t("shell.boards"), icon: "board", act: () => navigate(toBoards) },
    ...pages.map(({ id }) => settings(id, `settings.page.${id}`)),
    ...(pages.some(({ id }) => id === "usage") ? [] : [settings("usage", "settings.usage")]),
    ...THEMES.map((each) => ({
      id: `theme-${each}`,
      label: `${t("settings.theme")}: ${t(`settings.theme.${each}`)}`,
      ...(each === theme.get() ? { note: t("palette.current") } : {}),
      icon: "settings" as const,
      act: () => theme.set(each),
    })),
    // Each language calls itself by its own name.
    { id: "language", label: { en: "English", zh: "中文" }[other], icon: "settings", act: () => void choose(other) },
    { id: "keys", label: t("keys.title"), icon: "more", keys: "?", act: openKeys },
  ];
}

const inspector = (): Command => ({
  id: "inspector",
  label: t("shell.inspector"),
  icon: "panel",
  keys: "Mod+.",
  act: toggleInspector,
});

const share = (thread: string): Command => ({
  id: "share",
  label: t("share.open"),
  icon: "share",
  act: () => openShare(thread),
});

const apps = (thread: string): Command => ({
  id: "apps",
  label: t("apps.open"),
  icon: "code",
  act: () => openApps(thread),
});

const settings = (section: Parameters<typeof toSettings>[0], title: MessageId): Command => ({
  id: `settings-${section}`,
  label: `${t("shell.settings")}: ${t(title)}`,
  icon: "settings",
  act: () => navigate(toSettings(section)),
});

import { Conversation } from "./chat/Conversation";
import { toggleInspector } from "./inspector/selection";
import { Boundary } from "./layout/Boundary";
import { Layout } from "./layout/Layout";
import { useKeys } from "./layout/keys";
import { Unknown } from "./layout/Unknown";
import { Keys } from "./palette/Keys";
import { Palette } from "./palette/Palette";
import { openKeys, openPalette } from "./palette/open";
import { type Route, navigate, toNew, useRoute } from "./route";
import { Settings } from "./settings/Settings";
import { useLiveList } from "./sidebar/list";

export function App() {
  const route = useRoute();
  useLiveList();
  useKeys({
    "Mod+K": openPalette,
    "Mod+Shift+O": () => navigate(toNew),
    "Mod+.": () => route.page === "conversation" && toggleInspector(),
    "?": openKeys,
  });
  return (
    <>
      <Page route={route} />
      <Palette />
      <Keys />
    </>
  );
}

function Page({ route }: { route: Route }) {
  if (route.page === "settings") {
    return (
      <Layout thread={null}>
        <Settings section={route.section} />
      </Layout>
    );
  }
  if (route.page === "new" || route.page === "conversation") {
    const thread = route.page === "conversation" ? route.id : null;
    return (
      <Layout thread={thread} inspects={thread !== null}>
        <Boundary>
          <Conversation threadId={thread} at={route.page === "conversation" ? route.at : null} />
        </Boundary>
      </Layout>
    );
  }
  return <Unknown />;
}

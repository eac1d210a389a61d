import { Suspense, lazy } from "react";
import { Conversation } from "./chat/Conversation";
import { toggleInspector } from "./inspector/selection";
import { Boundary } from "./layout/Boundary";
import { Layout } from "./layout/Layout";
import { useKeys } from "./layout/keys";
import { Unknown } from "./layout/Unknown";
import { Overlays } from "./palette/Overlays";
import { openKeys, openPalette } from "./palette/open";
import { type Route, navigate, toNew, useRoute } from "./route";
import { useLiveList } from "./sidebar/list";
import { DropAnywhere } from "./upload/DropAnywhere";

const SharedPage = lazy(async () => {
  const { bringMessages } = await import("./share/messages");
  await bringMessages();
  return { default: (await import("./share/SharedPage")).SharedPage };
});
const Boards = lazy(() => import("./boards/load").then(({ load }) => load()));
const Projects = lazy(() => import("./projects/load").then(({ load }) => load()));
const LoginPage = lazy(() => import("./login/load").then(({ load }) => load()));
const Settings = lazy(() => import("./settings/load").then(({ load }) => load()));

export function App() {
  const route = useRoute();
  if (route.page !== "shared" && route.page !== "sharedBoard" && route.page !== "login") return <Own route={route} />;
  return (
    <Boundary>
      <Suspense>
        {route.page === "login" && <LoginPage />}
        {route.page === "shared" && <SharedPage token={route.token} at={route.at} />}
        {route.page === "sharedBoard" && <Boards route={route} />}
      </Suspense>
    </Boundary>
  );
}

/** The page of who asks here. A shared one knows nothing of it. */
function Own({ route }: { route: Route }) {
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
      <Overlays />
      <DropAnywhere />
    </>
  );
}

function Page({ route }: { route: Route }) {
  if (route.page === "settings" || route.page === "projects" || route.page === "boards" || route.page === "board") {
    return (
      <Layout thread={null}>
        <Boundary>
          <Suspense>
            {route.page === "settings" ? (
              <Settings section={route.section} name={route.name} part={route.part} />
            ) : route.page === "projects" ? (
              <Projects id={route.id} />
            ) : (
              <Boards route={route} />
            )}
          </Suspense>
        </Boundary>
      </Layout>
    );
  }
  if (route.page === "new" || route.page === "conversation") {
    const thread = route.page === "conversation" ? route.id : null;
    return (
      <Layout thread={thread} inspects={thread !== null}>
        <Boundary>
          <Conversation
            threadId={thread}
            at={route.page === "conversation" ? route.at : null}
            project={route.page === "new" ? route.project : undefined}
          />
        </Boundary>
      </Layout>
    );
  }
  return <Unknown />;
}

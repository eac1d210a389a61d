import { Conversation } from "./chat/Conversation";
import { Boundary } from "./layout/Boundary";
import { Layout } from "./layout/Layout";
import { Unknown } from "./layout/Unknown";
import { useRoute } from "./route";
import { Settings } from "./settings/Settings";

export function App() {
  const route = useRoute();
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

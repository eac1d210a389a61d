import { BoardList } from "./BoardList";
import { BoardPage } from "./BoardPage";
import { SharedBoard } from "./SharedBoard";

type BoardRoute = { page: "boards" } | { page: "board"; id: string } | { page: "sharedBoard"; token: string };

/** All boards, one of them, or one that others may read. */
export function Boards({ route }: { route: BoardRoute }) {
  if (route.page === "boards") return <BoardList />;
  return route.page === "board" ? <BoardPage key={route.id} id={route.id} /> : <SharedBoard token={route.token} />;
}

import { useEffect } from "react";
import type { MeView } from "../api/types";
import { useT } from "../i18n";
import { takeBrowser } from "../login/own";
import { navigate, toSettings } from "../route";
import { Icon, Menu, MenuItem } from "../ui";
import styles from "./UserMenu.module.css";
import { leave } from "./leave";
import { useAct } from "./useAct";

/** Who is logged in, and what there is to do about that. */
export default function UserMenu({ user }: { user: MeView }) {
  const t = useT();
  const { act } = useAct();
  useEffect(() => {
    if (takeBrowser(user.id)) location.reload();
  }, [user.id]);
  return (
    <Menu
      align="start"
      trigger={
        <button type="button" className={styles["user"]}>
          <Icon name="person" size={16} />
          <span className={styles["name"]} dir="auto">
            {user.display || user.name}
          </span>
        </button>
      }
    >
      <MenuItem icon="person" onClick={() => navigate(toSettings("account"))}>
        {t("shell.account")}
      </MenuItem>
      {/* A proxy would log in again with the next request. */}
      {user.via !== "proxy" && (
        <MenuItem icon="leave" onClick={() => void act(() => leave(user))}>
          {t("shell.logOut")}
        </MenuItem>
      )}
    </Menu>
  );
}

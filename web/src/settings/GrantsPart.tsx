import { Suspense, lazy, useState } from "react";
import type { GrantKind } from "../api/administration";
import { useUser } from "../api/server";
import { useT } from "../i18n";
import { Button, Dialog, Skeleton } from "../ui";
import { Part } from "./parts";

const Grants = lazy(async () => (await import("../team/loadGrants")).load());

interface Item {
  kind: GrantKind;
  /** The id of a definition, or the name of what has none. */
  item: string;
}

/** Who may use a definition. Administrators see it, where users log in. */
export function GrantsPart({ kind, item }: Item) {
  const t = useT();
  if (useUser()?.role !== "admin") return null;
  return (
    <Part title={t("settings.grants")}>
      <Suspense fallback={<Skeleton label={t("list.loading")} />}>
        <Grants kind={kind} item={item} />
      </Suspense>
    </Part>
  );
}

/** A button that opens it, for what has no page of its own. */
export function GrantsButton({ kind, item }: Item) {
  const t = useT();
  const [open, setOpen] = useState(false);
  if (useUser()?.role !== "admin") return null;
  return (
    <>
      <Button aria-label={t("settings.grantsOf", { name: item })} onClick={() => setOpen(true)}>
        {t("settings.rights")}
      </Button>
      <Dialog open={open} onClose={() => setOpen(false)} title={t("settings.grantsOf", { name: item })}>
        <Suspense fallback={<Skeleton label={t("list.loading")} />}>
          <Grants kind={kind} item={item} />
        </Suspense>
      </Dialog>
    </>
  );
}

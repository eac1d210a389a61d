import { useQueryClient } from "@tanstack/react-query";
import { useState } from "react";
import * as api from "../api/results";
import { useChosen, useGiven } from "../formats/chosen";
import { useT } from "../i18n";
import { number } from "../i18n/format";
import { sentence } from "../i18n/sentence";
import { openInspector } from "../inspector/selection";
import { Dialog, IconButton, Menu, MenuItem, MenuLink, MenuSeparator, later, say } from "../ui";
import type { ChartChoice } from "./choices";
import { asTsv } from "./copied";
import type { QueryResult, Row } from "./result";
import { useWords } from "./words";

interface CardMenuProps {
  threadId: string;
  result: QueryResult | null;
  /** The chart that is shown. */
  chart: ChartChoice | undefined;
}

const SaveDialog = later(async () => (await import("../boards/load")).loadSave());
const FORMATS = ["csv", "xlsx", "parquet"] as const;
const PICTURES = ["png", "svg"] as const;
const MOST_COPIED = 1000;

/** What can be done with a result as a whole. */
export function CardMenu({ threadId, result, chart }: CardMenuProps) {
  const t = useT();
  const words = useWords();
  const client = useQueryClient();
  const given = useGiven(threadId, result);
  const chosen = useChosen(threadId);
  const step = result?.step ?? null;
  const [saving, setSaving] = useState(false);
  const save = async (shown: ChartChoice, format: "png" | "svg") => {
    try {
      const { saveChart, specQuery } = await import("./saveChart");
      const spec = await client.ensureQueryData(specQuery(threadId, result, shown));
      await saveChart(spec, given, shown.title || (result?.label ?? "chart"), words, format);
    } catch (error) {
      say({ text: t("results.chartFailed", { reason: sentence(error) }), kind: "bad" });
    }
  };
  return (
    <>
      <Menu trigger={<IconButton icon="more" label={t("results.more")} />}>
        {result && (
          <MenuItem icon="copy" onClick={() => void copy(threadId, result, t)}>
            {t("results.copy")}
          </MenuItem>
        )}
        {step !== null &&
          FORMATS.map((format) => (
            <MenuLink key={format} icon="download" href={api.filePath(threadId, step, format, chosen)} download>
              {t("results.file", { format: { csv: "CSV", xlsx: "Excel", parquet: "Parquet" }[format] })}
            </MenuLink>
          ))}
        {step !== null && (
          <MenuLink icon="download" href={api.filePath(threadId, step, "csv", chosen, true)} download>
            {t("results.fileShown")}
          </MenuLink>
        )}
        {chart && (
          <>
            {result && <MenuSeparator />}
            {PICTURES.map((format) => (
              <MenuItem key={format} icon="download" onClick={() => void save(chart, format)}>
                {t("results.picture", { format: format.toUpperCase() })}
              </MenuItem>
            ))}
          </>
        )}
        {step !== null && (
          <>
            <MenuSeparator />
            <MenuItem icon="board" onClick={() => setSaving(true)}>
              {t("results.save")}
            </MenuItem>
            <MenuItem icon="panel" onClick={() => openInspector({ tab: "query", step })}>
              {t("results.inspect")}
            </MenuItem>
          </>
        )}
      </Menu>
      {result && (
        <Dialog open={saving} onClose={() => setSaving(false)} title={t("results.save")}>
          <SaveDialog
            threadId={threadId}
            result={result}
            chart={chart}
            onDone={() => setSaving(false)}
            fallback={null}
          />
        </Dialog>
      )}
    </>
  );
}

/** Copies the rows, at most 1,000: the others are in the files. */
async function copy(threadId: string, { columns, rows, total, step }: QueryResult, t: ReturnType<typeof useT>) {
  try {
    const isHere = step === null || total === rows.length;
    const all = isHere
      ? rows
      : ((await api.page(threadId, step, { offset: 0, limit: MOST_COPIED, sort: null, descending: false }))
          .rows as readonly Row[]);
    await navigator.clipboard.writeText(asTsv(columns, all));
    const isCut = total === null || all.length < total;
    say({ text: t(isCut ? "results.copiedFirst" : "results.copied", { n: all.length, shown: number(all.length) }) });
  } catch (error) {
    say({ text: sentence(error), kind: "bad" });
  }
}

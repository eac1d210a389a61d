// Sources, and files that become one.

import { get, post, query, refuse, request } from "./client";
import { Offline } from "./problem";
import type { JsonObject, NewSource, SourceList, SourcePreview, SourceView, UploadView } from "./types";

export const sources = (signal?: AbortSignal) => get<SourceList>("/api/sources", signal);
export const addSource = (source: NewSource) => post<SourceView>("/api/sources", source);
export const addFiles = (name: string, uploads: string[]) =>
  post<SourceView>(`/api/sources/${encodeURIComponent(name)}/files`, { uploads });
export const preview = (name: string, signal?: AbortSignal) =>
  get<SourcePreview>(`/api/sources/${encodeURIComponent(name)}/preview`, signal);
export const removeSource = (name: string) => request<void>("DELETE", `/api/sources/${encodeURIComponent(name)}`);
export const discard = (upload: string) => request<void>("DELETE", `/api/uploads/${encodeURIComponent(upload)}`);

/** What becomes of a file with the name of a source's file; empty: it is refused. */
export type OnConflict = "" | "replace" | "keep_both";

/** Sends a file. `encoding` is that of a file of text, empty: it is found out. `onProgress` is told the part that is sent, from 0 to 1; `cancel` ends it and leaves nothing. */
export function upload(
  file: File,
  { encoding, onConflict }: { encoding: string; onConflict: OnConflict },
  onProgress: (part: number) => void,
): { answer: Promise<UploadView>; cancel: () => void } {
  // fetch tells nothing of what it sends.
  const sending = new XMLHttpRequest();
  const answer = new Promise<UploadView>((resolve, reject) => {
    sending.upload.addEventListener("progress", ({ loaded, total }) => onProgress(total ? loaded / total : 0));
    sending.addEventListener("load", () => {
      const body = (sending.response ?? {}) as JsonObject;
      if (sending.status === 201) resolve(body as unknown as UploadView);
      else void refuse(sending.status, body).catch(reject);
    });
    sending.addEventListener("error", () => reject(new Offline("the upload broke off")));
  });
  sending.open("POST", `/api/uploads${query({ name: file.name, encoding, on_conflict: onConflict })}`);
  sending.responseType = "json";
  sending.send(file);
  return { answer, cancel: () => sending.abort() };
}

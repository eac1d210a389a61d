// Files that were dropped, attached or pasted, and wait in the dialog to be added.

import { createStore } from "../store";

export interface Offer {
  id: number;
  file: File;
  /** Puts into the question what was pasted: the file is made of it. */
  asText?: () => void;
}

let count = 0;

export const offered = createStore<readonly Offer[]>([]);

export const offer = (files: Iterable<File>, asText?: () => void) =>
  offered.set([...offered.get(), ...[...files].map((file) => ({ id: ++count, file, ...(asText && { asText }) }))]);
export const leave = (ids: readonly number[]) => offered.set(offered.get().filter(({ id }) => !ids.includes(id)));
export const leaveAll = () => offered.set([]);

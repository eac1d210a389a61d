// Files that were dropped or attached, and wait to be looked at one after the other.

import { createStore } from "../store";

export const offered = createStore<readonly File[]>([]);

export const offer = (files: Iterable<File>) => offered.set([...offered.get(), ...files]);
/** The first one is done with. */
export const next = () => offered.set(offered.get().slice(1));
export const leaveAll = () => offered.set([]);

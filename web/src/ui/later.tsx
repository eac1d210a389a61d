import { type ComponentType, type ReactNode, useEffect, useState } from "react";

/** A component whose code comes when it is first drawn, or after `load()`. */
export interface Later<Props> {
  (props: Props & { fallback: ReactNode }): ReactNode;
  load: () => Promise<void>;
}

/**
 * As React's `lazy`, but code that is there is drawn at once. `lazy` would draw what stands in its place first, and keep
 * that for 300 ms.
 */
export function later<Props extends object>(get: () => Promise<ComponentType<Props>>): Later<Props> {
  let found: ComponentType<Props> | null = null;
  const load = async () => void (found ??= await get());
  function Drawn({ fallback, ...props }: Props & { fallback: ReactNode }) {
    const [Known, setKnown] = useState(() => found);
    useEffect(() => {
      if (Known) return;
      const failed = (error: unknown) =>
        setKnown(() => {
          throw error;
        });
      load().then(() => setKnown(() => found), failed);
    }, [Known]);
    return Known ? <Known {...(props as unknown as Props)} /> : fallback;
  }
  return Object.assign(Drawn, { load });
}

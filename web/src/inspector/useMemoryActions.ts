import { useMutation, useQueryClient } from "@tanstack/react-query";
import * as api from "../api/memories";
import { sentence } from "../i18n/sentence";
import { say } from "../ui";

/** What can be done with memories. Whatever shows some asks again afterwards; what fails is said. */
export function useMemoryActions() {
  const client = useQueryClient();
  const after = {
    onSuccess: () => client.invalidateQueries({ queryKey: ["memory"] }),
    onError: (error: unknown) => void say({ text: sentence(error), kind: "bad" }),
  };
  const change = useMutation({
    mutationFn: ({ id, ...fields }: { id: string; content?: string; pinned?: boolean }) => api.change(id, fields),
    ...after,
  });
  const forget = useMutation({ mutationFn: api.forget, ...after });
  const remember = useMutation({ mutationFn: api.remember, ...after });
  return { change, forget, remember };
}

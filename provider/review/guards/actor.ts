import type { Identity } from "@gatehouse-access/sdk";
import type { Estate } from "../estate.ts";
import type { Actor } from "./capabilities.ts";

/** Whoever a credential is of, in a namespace. An API key's role is not told to who uses it. */
export function actorOf({ kind, userId }: Identity, { members }: Pick<Estate, "members">): Actor {
  if (kind === "apiKey") return { kind: "apikey", role: undefined };
  return { kind: "user", role: members?.find(({ id }) => id === userId)?.role };
}

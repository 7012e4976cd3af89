import {
  type AnyOperation,
  type Client,
  hasDifference,
  type RequestParts,
  type RequestResult,
  type ResponseHeaders,
} from "@gatehouse-access/sdk";
import type { z } from "zod";
import { completeList } from "./absence.ts";
import { lengthOf, type Source } from "./listings.ts";

/** An object in the list that an operation returns. */
export type ItemOf<O extends AnyOperation<z.ZodArray>> = RequestResult<O["success"]["body"]>["body"][number];

/**
 * Returns a source for objects that the service returns in one list without pages.
 * @param look requests one object; default: reads a new list and searches it
 */
export function wholeSource<Item extends { readonly id: string }>(
  kind: string,
  read: () => Promise<WholeList<Item>>,
  look?: Source<Item>["look"],
): Source<Item> {
  async function* pages() {
    const { headers, body } = await read();
    yield { items: body, total: lengthOf(body, headers) };
  }
  const idOf = ({ id }: Item) => id;
  return {
    kind,
    keysOf: (item) => [idOf(item)],
    pages,
    look: look ?? (async (id) => (await completeList(kind, pages, idOf)).find((item) => idOf(item) === id)),
  };
}

/** A list that the service returns without pages. */
interface WholeList<Item> {
  readonly headers: ResponseHeaders;
  readonly body: readonly Item[];
}

/** The empty list of a server that does not have these objects. */
const NONE = { headers: { "x-total-count": "0" }, body: [] } as const;

/** Returns true if the server has access policies, service accounts and install keys. */
export const hasAccessModes = async (client: Client): Promise<boolean> =>
  hasDifference((await client.serverVersion()).dialect, "access modes");

/** Requests a list. Returns an empty list if the server does not have these objects. */
export async function listOf<Items extends z.ZodArray>(
  client: Client,
  operation: AnyOperation<Items>,
  parts: RequestParts = {},
): Promise<WholeList<RequestResult<Items>["body"][number]>> {
  return (await hasAccessModes(client)) ? client.request(operation, parts) : NONE;
}

import { issueText } from "@gatehouse-access/sdk/contract";
import { z } from "zod";
import { type Network, parseNetwork } from "../words/network.ts";
import type { AccessQuery } from "./written/query.ts";

/** A query whose networks are read. */
export interface ReadQuery extends Omit<AccessQuery, "from"> {
  readonly from: readonly Network[] | undefined;
}

const text = z.string().min(1, "must not be empty");
const networks = z.union([text, z.array(text).min(1, "must name one network or more")], {
  error: "must be an address, a network, or a list of them",
});
// A field that is there but undefined is mostly a variable that was not set, and would mean everything.
const schema = z.strictObject({
  key: text.exactOptional(),
  login: text.exactOptional(),
  device: z
    .strictObject({
      name: text.exactOptional(),
      tag: text.exactOptional(),
      uid: text.exactOptional(),
    })
    .exactOptional(),
  from: networks.exactOptional(),
  where: z
    .custom<NonNullable<AccessQuery["where"]>>((value) => typeof value === "function", "must be a function")
    .exactOptional(),
});

/**
 * Checks a query. Node.js only takes the types of a policy file away, so nobody else does.
 * @throws TypeError naming the field
 */
export function readQuery(matcher: string, query: unknown): ReadQuery {
  const result = schema.safeParse(query, { error: issueText });
  if (!result.success) throw misuse(matcher, result.error);
  const { from, ...rest } = result.data;
  return { ...rest, from: from === undefined ? undefined : readNetworks(matcher, from) };
}

/**
 * Checks networks.
 * @throws TypeError naming the one that is wrong, and what is allowed
 */
export function readNetworks(matcher: string, given: unknown): Network[] {
  const result = networks.safeParse(given, { error: issueText });
  if (!result.success) throw misuse(matcher, result.error);
  return [result.data].flat().map(parseNetwork);
}

function misuse(matcher: string, { issues }: z.ZodError): TypeError {
  const faults = issues.map(({ path, message }) =>
    path.length > 0 ? `${path.join(".")}: ${message}` : message,
  );
  return new TypeError(`${matcher}(): ${faults.join("; ")}`);
}

import type { Operation } from "@gatehouse-access/sdk/contract";
import type { z } from "zod";
import { InvalidError, WrongTypeError } from "../../errors.ts";
import { parse } from "./validation.ts";

/** The parameters of a list that are moved into their limits instead of being refused (rules section 6). */
const PAGING: Readonly<Record<string, (value: number) => number | undefined>> = {
  page: (value) => Math.min(Math.max(value, 1), 1_000_000),
  per_page: (value) => (value === 0 ? undefined : Math.min(Math.max(value, 1), 100)),
};

/** Names of the parameters whose limits refuse no request. */
export const MOVED_INTO_BOUNDS: ReadonlySet<string> = new Set(Object.keys(PAGING));

/** True for an operation that gives a list in pages. */
export const isList = ({ query }: Operation): boolean =>
  Object.keys(PAGING).some((name) => name in query.shape);

/**
 * The query, validated by the operation's schema; unknown parameters are ignored, an empty one counts as absent.
 * @throws WrongTypeError page or per_page is not a whole number
 * @throws InvalidError a value is not allowed, or a parameter is given twice
 */
export function readQuery<O extends Operation>(operation: O, query: unknown): z.output<O["query"]> {
  const given = query as Record<string, string | string[]>;
  const values: Record<string, unknown> = {};
  for (const name of Object.keys(operation.query.shape)) {
    const value = given[name];
    if (value === undefined || value === "") continue;
    // The intended one of two values is unknown; a proxy may have checked the other one.
    if (Array.isArray(value)) throw new InvalidError(`${name}: must be given once`);
    values[name] = PAGING[name] ? PAGING[name](wholeNumber(name, value)) : value;
  }
  return parse<O["query"]>(operation.query, values, "");
}

function wholeNumber(name: string, text: string): number {
  if (!/^[+-]?\d+$/.test(text)) throw new WrongTypeError(`${name}: must be a whole number`);
  return Number(text);
}

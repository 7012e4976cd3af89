import { decode, ExtData, encode } from "@msgpack/msgpack";
import { UNKNOWN } from "../../engineMarks.ts";
import type { Row } from "../../terraform/types.ts";

/** A value in a message of the plugin protocol. */
export interface WireValue {
  readonly msgpack?: Uint8Array;
  readonly json?: Uint8Array;
}

const NOT_KNOWN = new ExtData(0, new Uint8Array());

/** Decodes the value in a message. Returns undefined if the message contains no value. */
export function decoded(value: WireValue | undefined): unknown {
  if (value?.msgpack?.length) return known(decode(value.msgpack, { useBigInt64: true }));
  return value?.json?.length ? parsed(value.json) : undefined;
}

/** Decodes the object in a message. Returns undefined if the object is null or missing. */
export const decodedRow = (value: WireValue | undefined): Row | undefined =>
  (decoded(value) as Row | null | undefined) ?? undefined;

/** Decodes the object in a message. Returns an empty object if the object is null or missing. */
export const rowIn = (value: WireValue | undefined): Row => decodedRow(value) ?? {};

/**
 * Parses JSON. Numbers that JavaScript would round become strings.
 * @throws Error if the content is not JSON
 */
export function parsed(json: Uint8Array): unknown {
  return JSON.parse(Buffer.from(json).toString("utf8"), ((
    _key: string,
    value: unknown,
    context: { readonly source?: string },
  ) =>
    typeof value === "number" && Number.isInteger(value) && !Number.isSafeInteger(value)
      ? (context.source ?? value)
      : value) as (key: string, value: unknown) => unknown);
}

/** Encodes a value for a message. Undefined becomes null. */
export const encoded = (value: unknown): WireValue => ({ msgpack: encode(unmarked(value) ?? null) });

/** Converts each kind of unknown value to {@link UNKNOWN}, and integers in the safe range to numbers. */
function known(value: unknown): unknown {
  if (value instanceof ExtData) return UNKNOWN;
  if (typeof value === "bigint") return Number.isSafeInteger(Number(value)) ? Number(value) : String(value);
  if (Array.isArray(value)) return value.map(known);
  return isObject(value) ? each(value, known) : value;
}

function unmarked(value: unknown): unknown {
  if (value === UNKNOWN) return NOT_KNOWN;
  // Numbers are sent as strings, because Terraform then parses them with the same precision as the number in its state.
  // With any other encoding, `plan -refresh-only -detailed-exitcode` reports a change although the number is equal.
  if (typeof value === "number") return String(value);
  if (Array.isArray(value)) return value.map(unmarked);
  return isObject(value) ? each(value, unmarked) : value;
}

const each = (values: Row, of: (value: unknown) => unknown): Row =>
  Object.fromEntries(Object.entries(values).map(([name, value]) => [name, of(value)]));

const isObject = (value: unknown): value is Row =>
  typeof value === "object" && value !== null && !(value instanceof Uint8Array);

import { isDeepStrictEqual } from "node:util";
import proto from "@pulumi/pulumi/proto/provider_pb.js";
import type { InputChange } from "../../lifecycle/diff.ts";

const { ADD, ADD_REPLACE, DELETE, DELETE_REPLACE, UPDATE, UPDATE_REPLACE } = proto.PropertyDiff.Kind;

/** Without and with a replacement. */
const KINDS = {
  ADD: [ADD, ADD_REPLACE],
  DELETE: [DELETE, DELETE_REPLACE],
  UPDATE: [UPDATE, UPDATE_REPLACE],
} as const;

/** One place in a resource's inputs whose value changes. */
interface Difference {
  /** As the engine writes paths: `filter.tags`, `keepers["a key"]`. */
  readonly path: string;
  readonly kind: keyof typeof KINDS;
}

/** Adds what changes to a diff, field by field within objects, each place marked with whether it replaces. */
export function addDetails(
  response: InstanceType<typeof proto.DiffResponse>,
  changes: readonly InputChange[],
): void {
  response.setHasdetaileddiff(true);
  for (const { field, before, after, replaces } of changes) {
    for (const { path, kind } of differences(field, before, after)) {
      const detail = new proto.PropertyDiff();
      detail.setKind(KINDS[kind][replaces ? 1 : 0]);
      response.getDetaileddiffMap().set(path, detail);
    }
  }
}

/** Where two values differ. A list counts as one value: its order means nothing. */
function differences(path: string, before: unknown, after: unknown): Difference[] {
  if (isObject(before) && isObject(after)) {
    const inside = [...new Set([...Object.keys(before), ...Object.keys(after)])].filter(
      (key) => !isDeepStrictEqual(before[key], after[key]),
    );
    // Engines read no backslash in a path.
    if (inside.length > 0 && !inside.some((key) => key.includes("\\"))) {
      return inside.flatMap((key) => differences(member(path, key), before[key], after[key]));
    }
  }
  return [{ path, kind: before === undefined ? "ADD" : after === undefined ? "DELETE" : "UPDATE" }];
}

const member = (path: string, key: string) =>
  /^[A-Za-z_]\w*$/.test(key) ? `${path}.${key}` : `${path}["${key.replaceAll('"', '\\"')}"]`;

const isObject = (value: unknown): value is Readonly<Record<string, unknown>> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

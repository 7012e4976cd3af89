import { readFileSync } from "node:fs";

/** An operation in the handwritten list of the service's operations. */
export interface Listed {
  readonly id: string;
  readonly part: string;
  readonly method: string;
  readonly path: string;
  readonly aliases: readonly string[];
  readonly edition: string;
  readonly auth: readonly string[];
  readonly minRole: string | null;
  readonly query: readonly string[];
  readonly pathParams: readonly string[];
  /**
   * The type of each field, and whether the field is required: `"type, required"` or `"type, optional"`. Null without a
   * body.
   */
  readonly body: Readonly<Record<string, string>> | null;
  readonly success: {
    readonly status: number;
    readonly headers: readonly string[];
    readonly body: string | null;
  };
  readonly errors: readonly { readonly status: number }[];
}

const file = new URL("operations.json", import.meta.url);

/** The service's operations by id, from a handwritten list that is independent of the contract. */
export const listed: ReadonlyMap<string, Listed> = new Map(
  (JSON.parse(readFileSync(file, "utf8")) as Listed[]).map((entry) => [entry.id, entry]),
);

import { ResourceError, said } from "../resourceError.ts";

/** A value of each part that ids have, for examples. */
const EXAMPLES = {
  tenant: "3dd0d1f8-8246-4519-b11a-a3dd33717f65",
  userId: "507f1f77bcf86cd799439011",
  fingerprint: "73:d4:40:0a:6b:59:d2:1e:c0:7f:15:6d:35:e0:c4:91",
  ruleId: "507f191e810c19729de860ea",
  uid: "13b0c8ea878e61ff849db69461795006a9594c8f6a6390ce0000100b0c9d7d0a",
  tag: "edge",
  name: "staging",
} as const;

/** A part of an id. Only a name may hold slashes; it comes last. */
type Part = keyof typeof EXAMPLES;

/** The form of a resource's ids: parts with slashes between them. */
export class IdForm<P extends Part> {
  /** The parts, as in `tenant/uid`. */
  readonly text: string;
  /** An id of this form. */
  readonly example: string;
  readonly #resource: string;
  readonly #pattern: RegExp;

  constructor(resource: string, ...parts: readonly P[]) {
    this.text = parts.join("/");
    this.example = parts.map((part) => EXAMPLES[part]).join("/");
    this.#resource = resource;
    const groups = parts.map((part) => `(?<${part}>${part === "name" ? ".+" : "[^/]+"})`);
    this.#pattern = new RegExp(`^${groups.join("/")}$`, "s");
  }

  /**
   * The parts of an id.
   * @throws Error naming the form that is expected
   */
  split(id: string): { readonly [Name in P]: string } {
    const groups = this.#pattern.exec(id)?.groups;
    if (!groups) {
      const detail = said`id "${id}": must be ${this.text}`;
      throw new ResourceError(this.#resource, { code: "invalid_id", detail });
    }
    return groups as { readonly [Name in P]: string };
  }
}

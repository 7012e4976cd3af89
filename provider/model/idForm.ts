import { ResourceError, said } from "../resourceError.ts";

/** An example value for each part of an id. */
const EXAMPLES = {
  tenant: "3dd0d1f8-8246-4519-b11a-a3dd33717f65",
  userId: "507f1f77bcf86cd799439011",
  fingerprint: "73:d4:40:0a:6b:59:d2:1e:c0:7f:15:6d:35:e0:c4:91",
  ruleId: "507f191e810c19729de860ea",
  workloadId: "65a1f0c2d3e4b5a697887766",
  policyId: "2f1c3a52-9d0e-4c0b-8a51-6f0f6d3f0a11",
  accountId: "7506174b-8351-4509-8190-622626608dc5",
  installKeyId: "05c5f511c6f0fd667bd9732ddb67f89763b6ae398980aa487a60b6fa36a9aa60",
  uid: "13b0c8ea878e61ff849db69461795006a9594c8f6a6390ce0000100b0c9d7d0a",
  tag: "edge",
  name: "staging",
} as const;

/** A part of an id. Only a name may contain slashes, so a name is always the last part. */
type Part = keyof typeof EXAMPLES;

/** The form of a resource's ids: parts separated by slashes. */
export class IdForm<P extends Part> {
  /** The parts, as in `tenant/uid`. */
  readonly text: string;
  /** An example id of this form. */
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
   * Splits an id into its parts.
   * @throws Error with the expected form
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

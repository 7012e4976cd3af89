import { ResourceError, said } from "../resourceError.ts";

/** An example of the id of a namespace, which is the first part of each id. */
export const EXAMPLE_TENANT = "3dd0d1f8-8246-4519-b11a-a3dd33717f65";

/** An example of the uid of a device. */
export const EXAMPLE_UID = "13b0c8ea878e61ff849db69461795006a9594c8f6a6390ce0000100b0c9d7d0a";

/** The form of a resource's ids: parts separated by slashes. */
export class IdForm<P extends string> {
  /** The parts, as in `tenant/uid`. */
  readonly text: string;
  /** An example id of this form. */
  readonly example: string;
  readonly #resource: string;
  readonly #pattern: RegExp;

  /**
   * Defines a form of ids.
   * @param parts the name of each part, with an example. Only a name may contain slashes, so the name is always the
   *   last part.
   */
  constructor(resource: string, parts: Readonly<Record<P, string>>) {
    const names = Object.keys(parts);
    this.text = names.join("/");
    this.example = Object.values(parts).join("/");
    this.#resource = resource;
    const groups = names.map((part) => `(?<${part}>${part === "name" ? ".+" : "[^/]+"})`);
    this.#pattern = new RegExp(`^${groups.join("/")}$`, "s");
  }

  /**
   * Splits an id into its parts.
   * @throws Error with the expected form if the id has a different form
   */
  split(id: string): { readonly [Name in P]: string } {
    const groups = this.#pattern.exec(id)?.groups;
    if (!groups) {
      const detail = said`The id "${id}" must be ${this.text}`;
      throw new ResourceError(this.#resource, { code: "invalid_id", detail });
    }
    return groups as { readonly [Name in P]: string };
  }
}

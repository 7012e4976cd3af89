import { z } from "zod";
import { type Operation, writesObject } from "./operation.ts";

/**
 * Header of a write that says which resource of which program declares the object. It is a hint for people: whoever may
 * write can send any, and nothing is decided by it. An addition of this service; others ignore it.
 */
export const DECLARED_BY = "Gatehouse-Declared-By";

/** Longest value of {@link DECLARED_BY}, in bytes. */
const LONGEST = 1024;

const PART = "(?:[A-Za-z0-9._~!*'()-]|%[0-9A-Fa-f]{2})+";
const ALLOWED = `must be project/stack/resource, each percent-encoded UTF-8 without control characters and not empty, of at most ${LONGEST} bytes in all`;

/** Value of {@link DECLARED_BY}. */
export const declaredByHeader = z
  .string()
  .regex(new RegExp(`^(?=.{1,${LONGEST}}$)${PART}/${PART}/${PART}$`), { error: ALLOWED, abort: true })
  .refine((text) => partsOf(text)?.every((part) => !/\p{Cc}/u.test(part)) ?? false, ALLOWED)
  .describe(
    "project/stack/resource of the program that declares the object, each percent-encoded. A hint for people, shown " +
      "with the object and in the audit trail: nothing is decided by it",
  );

const declarationFields = { project: z.string(), stack: z.string(), resource: z.string() };

/** The resource of a program that a request said it is of. */
export const declaration = z.object(declarationFields);

/** A resource of a Pulumi program: the names of its project, its stack and itself. */
export type Declaration = Readonly<z.output<typeof declaration>>;

/** Which resource of which program declared an object last, by what requests said; absent where none said it. */
export const declaredBy = z
  .object({ ...declarationFields, at: z.iso.datetime({ offset: false }) })
  .optional()
  .describe("What declared it last, as that request said: a hint that any writer can forge");

/** Kinds of objects that no program declares. */
const UNDECLARED: ReadonlySet<string> = new Set(["tunnel", "connector"]);

/** True for an operation that takes {@link DECLARED_BY}. */
export const takesDeclaredBy = (operation: Operation): boolean =>
  writesObject(operation) && !UNDECLARED.has(operation.object);

/** What a value of {@link DECLARED_BY} says, which fits {@link declaredByHeader}. */
export function declarationOf(text: string): Declaration {
  const [project = "", stack = "", resource = ""] = partsOf(text) ?? [];
  return { project, stack, resource };
}

/** The value of {@link DECLARED_BY}; undefined for what the header cannot hold. */
export function declaredByText({ project, stack, resource }: Declaration): string | undefined {
  const text = [project, stack, resource].map((part) => encodeURIComponent(part.toWellFormed())).join("/");
  return declaredByHeader.safeParse(text).success ? text : undefined;
}

function partsOf(text: string): string[] | undefined {
  try {
    return text.split("/").map(decodeURIComponent);
  } catch {
    // Bytes that are no UTF-8.
    return undefined;
  }
}

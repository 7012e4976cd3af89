/** What a message names, and each front end writes in its own way. */
export type Term =
  /** An input or output, and the value that it is to have. */
  { readonly field: string; readonly value?: unknown } | { readonly phrase: keyof typeof PHRASES };

/** A message as data: text that stays as it is, such as a user's, and terms. */
export type Message = readonly (string | Term)[];

/** How a front end writes terms. */
export type Words = (term: Term) => string;

const PHRASES = {
  elsewhere: "made by hand or by another program",
  inTurn: "by an up of its own",
  takeOver: "to take it over",
  refresh: "run with --refresh",
  ofThisProgram: "resource of this program",
  ofTheProgram: "resource of the program",
  dependsOn: "dependsOn",
} as const;

/** What other front ends write in place of Pulumi's phrases. */
export type Phrases = Readonly<Record<keyof typeof PHRASES, string>>;

const pulumiWords: Words = (term) => {
  if ("phrase" in term) return PHRASES[term.phrase];
  return term.value === undefined ? term.field : `${term.field}: ${JSON.stringify(term.value)}`;
};

/** A template as a message. */
export const said = (
  strings: TemplateStringsArray,
  ...values: readonly (string | number | Term | Message)[]
): Message =>
  strings.flatMap((text, index) => {
    const value = values[index] ?? "";
    return [text, ...(typeof value === "number" ? [String(value)] : [value].flat())];
  });

/** A message as text. @param words default those of Pulumi */
export const textOf = (message: Message, words: Words = pulumiWords): string =>
  message.map((part) => (typeof part === "string" ? part : words(part))).join("");

/** What is wrong with a resource. The text of the error is Pulumi's; other front ends write {@link said}. */
export class ResourceError extends Error {
  override readonly name: string = "ResourceError";
  /** Name of the definition. */
  readonly resource: string;
  /** The input that it is about, with the path inside its value; undefined where it is about none. */
  readonly field: string | undefined;
  readonly said: Message;

  constructor(resource: string, field: string | undefined, message: Message, options?: ErrorOptions) {
    super(`${resource}${field === undefined ? "" : `.${field}`}: ${textOf(message)}`, options);
    this.resource = resource;
    this.field = field;
    this.said = message;
  }
}

import {
  errorText,
  type FieldPath,
  GatehouseError,
  printedError,
  withCode,
} from "@gatehouse-access/sdk/errors";
import type { ResourceErrorCode } from "./errorCodes.ts";

/** A term in an error message. Each front end (Pulumi or Terraform) has its own notation or wording for the term. */
type Term =
  /** An input or output, and the value that the program sets. */
  { readonly field: string; readonly value?: unknown } | { readonly phrase: keyof typeof PHRASES };

/**
 * A string in an error message that comes from this project's source code. Secret masking does not change it, because
 * it contains no user data.
 */
interface Own {
  readonly own: string;
}

/** An error message as a list of segments: external strings such as user data, strings of this project, and terms. */
export type Message = readonly (string | Own | Term)[];

/** A function that formats a term for a front end. */
export type Words = (term: Term) => string;

const PHRASES = {
  elsewhere: "created manually or by another program",
  inTurn: "in a separate up",
  adopt: "to adopt it",
  refresh: "run with --refresh",
  ofThisProgram: "resource of this program",
  ofTheProgram: "resource of the program",
  dependsOn: "dependsOn",
} as const;

/** A front end's wording for each of the phrases in `PHRASES`. The values in `PHRASES` are the wording for Pulumi. */
export type Phrases = Readonly<Record<keyof typeof PHRASES, string>>;

const pulumiWords: Words = (term) => {
  if ("phrase" in term) return PHRASES[term.phrase];
  return term.value === undefined ? term.field : `${term.field}: ${JSON.stringify(term.value)}`;
};

/**
 * Creates a message from a template literal. The literal parts are treated as strings of this project, and the inserted
 * values as external strings.
 */
export const said = (
  strings: TemplateStringsArray,
  ...values: readonly (string | number | Term | Message)[]
): Message =>
  strings.flatMap((text, index) => {
    const value = values[index] ?? "";
    return [{ own: text }, ...(typeof value === "number" ? [String(value)] : [value].flat())];
  });

/** Returns a message as a string, by default with Pulumi's terms. */
export const messageText = (message: Message, words: Words = pulumiWords): string =>
  message.map((part) => (typeof part === "string" ? part : "own" in part ? part.own : words(part))).join("");

/**
 * Returns the segments of a message that come from this project's source code. Omits segments with fewer than two
 * words.
 */
const ownTextsOf = (message: Message): string[] =>
  message
    .flatMap((part) => (typeof part === "object" && "own" in part ? [part.own.trim()] : []))
    .filter((text) => /\p{L}\s+\p{L}/u.test(text));

/** The data of an error that concerns a resource. */
export interface ResourceFault {
  readonly code: ResourceErrorCode;
  /** The invalid input, with the path inside its value. Undefined if the error is not about an input. */
  readonly field?: FieldPath | undefined;
  /** The value of the field. Undefined if the value is secret. */
  readonly value?: unknown;
  readonly detail: Message;
  readonly remedy?: Message | undefined;
}

/**
 * Thrown when a resource cannot be created, changed or found as declared. The message of the error uses Pulumi's terms.
 */
export class ResourceError extends GatehouseError {
  override readonly name: string = "ResourceError";
  readonly fault: ResourceFault;

  /** @param resource the name of the definition */
  constructor(resource: string, fault: ResourceFault, options?: ErrorOptions) {
    super({ ...written(fault, pulumiWords), code: fault.code, resource }, options);
    this.fault = fault;
  }

  /**
   * The sentences in the error message that come from this project's source code. Secret masking does not change them.
   */
  get ownTexts(): readonly string[] {
    const { detail, remedy = [] } = this.fault;
    return [...ownTextsOf(detail), ...ownTextsOf(remedy)];
  }

  /**
   * Returns the field, the detail and the remedy in the terms of a front end, by default Pulumi's. Omits the resource.
   * @param field the name of the field in the front end
   */
  textIn(words: Words = pulumiWords, field: FieldPath = this.fault.field ?? []): string {
    return errorText({ ...written(this.fault, words), code: this.code, field });
  }
}

/**
 * Returns the message and the code of an error, in the form in which a provider reports the error to an engine. Omits
 * the resource, since engines print the title of the resource before the message.
 */
export const engineText = (error: unknown): string =>
  error instanceof ResourceError ? withCode(error.textIn(), error) : printedError(error);

const written = ({ field, value, detail, remedy }: ResourceFault, words: Words) => ({
  field,
  value,
  detail: messageText(detail, words),
  remedy: remedy && messageText(remedy, words),
});

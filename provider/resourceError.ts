import {
  errorText,
  type FieldPath,
  GatehouseError,
  printedError,
  withCode,
} from "@gatehouse-access/sdk/errors";
import type { ResourceErrorCode } from "./errorCodes.ts";

/** A term in an error message for which each front end (Pulumi or Terraform) has its own notation or wording. */
type Term =
  /** An input or output, and the value that the program sets. */
  { readonly field: string; readonly value?: unknown } | { readonly phrase: keyof typeof PHRASES };

/**
 * A text in an error message that comes from this project's source code. It contains no user data, so secret masking
 * does not change it.
 */
interface Own {
  readonly own: string;
}

/** An error message as a list of segments: external texts such as user data, texts of this project, and terms. */
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

/** The wording that a front end uses for each of the above phrases, which are written for Pulumi. */
export type Phrases = Readonly<Record<keyof typeof PHRASES, string>>;

const pulumiWords: Words = (term) => {
  if ("phrase" in term) return PHRASES[term.phrase];
  return term.value === undefined ? term.field : `${term.field}: ${JSON.stringify(term.value)}`;
};

/**
 * Creates a message from a template literal. The literal text counts as text of this project. The inserted values count
 * as external text.
 */
export const said = (
  strings: TemplateStringsArray,
  ...values: readonly (string | number | Term | Message)[]
): Message =>
  strings.flatMap((text, index) => {
    const value = values[index] ?? "";
    return [{ own: text }, ...(typeof value === "number" ? [String(value)] : [value].flat())];
  });

/** Returns a message as text, by default with Pulumi's terms. */
export const messageText = (message: Message, words: Words = pulumiWords): string =>
  message.map((part) => (typeof part === "string" ? part : "own" in part ? part.own : words(part))).join("");

/**
 * Returns the segments of a message that come from this project's source code. Omits segments of fewer than two words.
 */
const ownTextsOf = (message: Message): string[] =>
  message
    .flatMap((part) => (typeof part === "object" && "own" in part ? [part.own.trim()] : []))
    .filter((text) => /\p{L}\s+\p{L}/u.test(text));

/** The data of an error that concerns a resource. */
export interface ResourceFault {
  readonly code: ResourceErrorCode;
  /** The invalid input, with the path inside its value. Undefined if no input is invalid. */
  readonly field?: FieldPath | undefined;
  /** The value of the field. Undefined if the value is secret. */
  readonly value?: unknown;
  readonly detail: Message;
  readonly remedy?: Message | undefined;
}

/** Thrown when a resource cannot be created, changed or found as declared. The error's own text uses Pulumi's terms. */
export class ResourceError extends GatehouseError {
  override readonly name: string = "ResourceError";
  readonly fault: ResourceFault;

  /** @param resource the name of the definition */
  constructor(resource: string, fault: ResourceFault, options?: ErrorOptions) {
    super({ ...written(fault, pulumiWords), code: fault.code, resource }, options);
    this.fault = fault;
  }

  /** The sentences of this project in the error's text. Secret masking does not change them. */
  get ownTexts(): readonly string[] {
    const { detail, remedy = [] } = this.fault;
    return [...ownTextsOf(detail), ...ownTextsOf(remedy)];
  }

  /**
   * Returns the field, the detail and the remedy with the terms of a front end, without the name of the resource.
   * @param field the field as the front end names it
   */
  textIn(words: Words, field: FieldPath = this.fault.field ?? []): string {
    return errorText({ ...written(this.fault, words), code: this.code, field });
  }
}

/**
 * Returns the text of an error with its code, as a provider reports it to an engine. The text omits the resource, since
 * engines print the title of the resource before the text.
 */
export const engineText = (error: unknown): string =>
  error instanceof ResourceError ? withCode(error.textIn(pulumiWords), error) : printedError(error);

const written = ({ field, value, detail, remedy }: ResourceFault, words: Words) => ({
  field,
  value,
  detail: messageText(detail, words),
  remedy: remedy && messageText(remedy, words),
});

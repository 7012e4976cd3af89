import { printable } from "./words.ts";

/** Escapes text from the service, so that names cannot control a terminal or format a comment. */
export interface Style {
  /** Formats a name: in backticks, bold, or plain. */
  readonly name: (name: string) => string;
  /** Escapes text that is not a name. */
  readonly text: (text: string) => string;
}

/** The style of plain text. */
export const PLAIN: Style = { name: printable, text: printable };

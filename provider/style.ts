import { printable } from "./words.ts";

/** Functions that escape strings from the service, so that names cannot control a terminal or format a comment. */
export interface Style {
  /** Escapes a name, and formats it in backticks, bold, or plain. */
  readonly name: (name: string) => string;
  /** Escapes a string that is not a name. */
  readonly text: (text: string) => string;
}

/** The style of plain text. */
export const PLAIN: Style = { name: printable, text: printable };

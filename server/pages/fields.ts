import { z } from "zod";

/** A field of a form; its name is that in the operation's body. */
export interface Field {
  readonly name: string;
  readonly label: string;
  /** What the operation takes: the hint says how long it may be. */
  readonly schema: z.ZodType;
  readonly type?: "text" | "email" | "password";
  readonly autocomplete: string;
  /** What else the hint says. */
  readonly hint?: string;
  readonly inputMode?: "numeric" | "email";
  /** May be left empty. */
  readonly optional?: true;
}

interface Limits {
  readonly minLength?: number;
  readonly maxLength?: number;
}

/** A part of a page that the script shows when it is its turn; without the script there is none that could be sent. */
export function formHtml(id: string, fields: readonly Field[], button: string, more = ""): string {
  // With POST, a browser that would send it in spite of the script puts nothing into the address.
  return `<form id="${id}" method="post" data-part hidden>
${fields.map((field) => fieldHtml(id, field)).join("")}${more}<button type="submit">${button}</button>
</form>
`;
}

// Length and form are not checked in the browser: what the service says of them is shown, which knows them.
function fieldHtml(form: string, { name, label, type = "text", autocomplete, ...field }: Field): string {
  const id = `${form}-${name}`;
  const hint = [...lengthOf(field.schema), ...(field.hint ? [field.hint] : [])].join(": ");
  const described = [...(hint ? [`${id}-hint`] : []), `${id}-error`].join(" ");
  const mode = field.inputMode ? ` inputmode="${field.inputMode}"` : "";
  const plain = type === "password" ? "" : ` autocapitalize="none" spellcheck="false"`;
  return `<div class="field">
<label for="${id}">${label}</label>
${hint ? `<p class="hint" id="${id}-hint">${hint}</p>\n` : ""}<input id="${id}" name="${name}" type="${type}" autocomplete="${autocomplete}"${mode}${plain}${field.optional ? "" : " required"} aria-describedby="${described}">
<p class="error" id="${id}-error"></p>
</div>
${type === "password" ? shownPassword(name) : ""}`;
}

const shownPassword = (name: string): string =>
  `<p class="check"><label><input type="checkbox" data-shows="${name}"> Show the password</label></p>\n`;

/** "3 to 20 characters"; nothing where every length is allowed that people use. */
function lengthOf(schema: z.ZodType): string[] {
  const { minLength, maxLength } = z.toJSONSchema(schema, { io: "input", unrepresentable: "any" }) as Limits;
  if (minLength === undefined || maxLength === undefined || minLength <= 1) return [];
  return [`${minLength} to ${maxLength} characters`];
}

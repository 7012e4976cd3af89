import { z } from "zod";

/** A field of a form. It has the name of the field in the operation's body. */
export interface Field {
  readonly name: string;
  readonly label: string;
  /** The operation's schema of the value. The hint shows the allowed lengths. */
  readonly schema: z.ZodType;
  readonly type?: "text" | "email" | "password";
  readonly autocomplete: string;
  /** Additional text of the hint. */
  readonly hint?: string;
  readonly inputMode?: "numeric" | "email";
  /** True if the field may be empty. */
  readonly optional?: true;
}

interface Limits {
  readonly minLength?: number;
  readonly maxLength?: number;
}

/**
 * Returns a form that the script shows when needed. Without the script the form stays hidden, so that a user cannot
 * send anything.
 */
export function formHtml(id: string, fields: readonly Field[], button: string, more = ""): string {
  // With POST, a browser that submits the form without the script puts no values into the address.
  return `<form id="${id}" method="post" data-part hidden>
${fields.map((field) => fieldHtml(id, field)).join("")}${more}<button type="submit">${button}</button>
</form>
`;
}

// The browser does not check length and format. The service checks them, and the page shows the service's message.
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

/** Returns "3 to 20 characters", for example; empty if all usual lengths are allowed. */
function lengthOf(schema: z.ZodType): string[] {
  const { minLength, maxLength } = z.toJSONSchema(schema, { io: "input", unrepresentable: "any" }) as Limits;
  if (minLength === undefined || maxLength === undefined || minLength <= 1) return [];
  return [`${minLength} to ${maxLength} characters`];
}

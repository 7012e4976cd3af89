import { z } from "zod";

/** A field of a form. It has the same name as a field in the operation's request body. */
export interface Field {
  readonly name: string;
  readonly label: string;
  /**
   * Schema of the field in the operation's request body. The allowed length in the field's hint comes from this schema.
   */
  readonly schema: z.ZodType;
  readonly type?: "text" | "email" | "password";
  readonly autocomplete: string;
  /** Text that follows the allowed length in the hint. */
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
 * Returns the HTML of a form. The form stays hidden until the page's script shows it, so a user cannot submit the form
 * without the script.
 */
export function formHtml(id: string, fields: readonly Field[], button: string, more = ""): string {
  // Use POST. With GET, a browser that submits the form without the script would put the values into the address.
  return `<form id="${id}" method="post" data-part hidden>
${fields.map((field) => fieldHtml(id, field)).join("")}${more}<button type="submit">${button}</button>
</form>
`;
}

// The browser does not check the length and format of a value. Instead, the service checks the value, and the page
// shows the service's error message.
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

/**
 * Returns the hint for the allowed length, for example "3 to 20 characters". Returns an empty list if the schema has no
 * such limits.
 */
function lengthOf(schema: z.ZodType): string[] {
  const { minLength, maxLength } = z.toJSONSchema(schema, { io: "input", unrepresentable: "any" }) as Limits;
  if (minLength === undefined || maxLength === undefined || minLength <= 1) return [];
  return [`${minLength} to ${maxLength} characters`];
}

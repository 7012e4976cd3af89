import type { z } from "zod";

const TYPE_NAMES: Readonly<Record<string, string>> = {
  string: "a string",
  number: "a number",
  int: "a whole number",
  boolean: "true or false",
  array: "an array",
  object: "an object",
  record: "an object",
};

const UNITS: Readonly<Record<string, string>> = { string: "character", array: "item" };

/** "have at least 3 characters", "be at least 3". */
function bound(how: string, limit: number | bigint, origin: string): string {
  const unit = UNITS[origin];
  return unit ? `must have ${how} ${limit} ${unit}${limit === 1 ? "" : "s"}` : `must be ${how} ${limit}`;
}

/**
 * What a value must be, as the end of a sentence that begins with the field's name: "must have at least 3 characters".
 * It replaces zod's own messages, but not those of a schema: `schema.safeParse(value, { error: issueText })`.
 */
export function issueText(issue: z.core.$ZodRawIssue): string {
  switch (issue.code) {
    case "invalid_type": {
      const expected = TYPE_NAMES[issue.expected] ?? issue.expected;
      return issue.input === undefined ? `must be given: ${expected}` : `must be ${expected}`;
    }
    case "too_small":
      return bound("at least", issue.minimum, issue.origin);
    case "too_big":
      return bound("at most", issue.maximum, issue.origin);
    case "invalid_value": {
      const values = issue.values.map((value) => (value === "" ? "empty" : String(value)));
      if (issue.input === undefined) return `must be given: ${values.join(", ")}`;
      return values.length === 1 ? `must be ${values[0]}` : `must be one of ${values.join(", ")}`;
    }
    case "invalid_format":
      return `must be a valid ${issue.format}`;
    case "unrecognized_keys":
      return `must not have ${issue.keys.map((key) => JSON.stringify(key)).join(", ")}`;
    case "invalid_union":
      return [...new Set(issue.errors.flatMap(([first]) => first?.message ?? []))].join(", or ");
    default:
      return "must be allowed here";
  }
}

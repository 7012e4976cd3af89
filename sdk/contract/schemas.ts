import { RE2JS } from "re2js";
import { z } from "zod";
import { ROLES } from "./operation.ts";
import { PATTERN_SIZE_MAX, patternSize } from "./patternSize.ts";

/** The named schemas of the contract. Each becomes a component of the OpenAPI document. */
export const models = z.registry<{ id: string; description?: string }>();

/** Registers a schema under its name in models.md. */
export function model<T extends z.ZodType>(id: string, description: string, schema: T): T {
  models.add(schema, { id, description });
  return schema;
}

/** Metadata key of fields that other servers with this API do not have. The OpenAPI document also contains the key. */
export const ADDITION = "x-addition";

/**
 * Marks a field of a request body as an addition of this service: other servers with this API do not have the field.
 */
export const addition = <T extends z.ZodType>(schema: T): T =>
  schema.meta({ ...schema.meta(), [ADDITION]: true });

/** A time in RFC 3339 format, in UTC. */
export const dateTime = z.iso.datetime({ offset: false });

/**
 * The expiry time of the access that an object gives. Servers of version 0.19 do not have this field. In responses, the
 * field is omitted if the access does not expire.
 */
export const accessEnd = dateTime
  .optional()
  .describe("The time when the access expires; omitted if the access does not expire");

/**
 * The expiry time of the access that an object gives, in a request. If an update omits the field, the time does not
 * change, so that a client that does not support the field cannot prolong the access. Null removes the time.
 */
export const requestedEnd = z.iso
  .datetime({ offset: true })
  .refine((time) => !Number.isNaN(Date.parse(time)), "must be a time in RFC 3339 format, with an offset")
  .nullable()
  .optional()
  .describe("Time when the access expires, with an offset. Must be in the future when the object is created");

/** The time that represents "no date" in requests and responses (models section 0). */
export const ZERO_DATE = "0001-01-01T00:00:00Z";

/** Id of a namespace: a UUID of any version. Ids from users or older servers may have a version other than 4. */
export const tenantId = z
  .string()
  .regex(
    /^[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}$/,
    "must be a lower-case uuid, the id of a namespace",
  )
  .describe("Namespace id, a uuid");
/** Id of a user. */
export const userId = z.string().regex(/^[0-9a-f]{24}$/, "must be 24 lower-case hex characters");
/** Id of a device. */
export const uid = z.string().regex(/^[0-9a-f]{64}$/, "must be 64 lower-case hex characters");
/** Fingerprint of a public key. */
export const fingerprint = z
  .string()
  .regex(/^([0-9a-f]{2}:){15}[0-9a-f]{2}$/, "must be 16 colon-separated lower-case hex pairs");
/** Role of a namespace's member. */
export const role = z.enum(ROLES);

/** E-mail address, with the maximum length that mail servers accept (RFC 5321, section 4.5.3.1). */
export const email = z
  .email()
  .max(254)
  .regex(/^[^@]{0,64}(@|$)/, "must have at most 64 characters before the @");
/** Name with which a user logs in. */
export const username = z
  .string()
  .min(3)
  .max(30)
  .regex(/^[a-zA-Z0-9._@-]+$/, "may contain letters, digits and - _ . @");

/** Maximum length of a password in bytes of UTF-8: bcrypt ignores all further bytes. */
export const PASSWORD_BYTES = 72;

/** A new password (rules section 20). */
export const password = z
  .string()
  .min(5)
  .max(30)
  .refine(
    (text) => new TextEncoder().encode(text).length <= PASSWORD_BYTES,
    `must have at most ${PASSWORD_BYTES} bytes in UTF-8`,
  );

/** Name of a tag. */
export const tag = z
  .string()
  .min(3)
  .max(255)
  .regex(/^[a-zA-Z0-9]+$/, "may contain only ASCII letters and digits");

/** Returns the schema of a list of one to `max` distinct tags. */
export const tagsUpTo = (max: number) =>
  z
    .array(tag)
    .min(1)
    .max(max)
    .meta({ uniqueItems: true })
    .refine((list) => new Set(list).size === list.length, "must not repeat a tag");

/** One to three distinct tags (rules section 16). */
export const tags = tagsUpTo(3);

/** Maximum length of a pattern, in characters. */
export const PATTERN_MAX = 1024;

const VALID_KEPT = 100;
/**
 * A cache of the patterns that most recently passed the check. A small cache is enough, because many objects share a
 * few patterns.
 */
const valid = new Set<string>();

/** Returns the reason why the service rejects a pattern. Returns undefined if the service accepts the pattern. */
function patternFault(text: string): string | undefined {
  if (valid.has(text)) return undefined;
  const size = patternSize(text);
  if (size > PATTERN_SIZE_MAX) {
    return `must have a size of at most ${PATTERN_SIZE_MAX} after its repetitions are expanded; it has ${size}`;
  }
  try {
    RE2JS.compile(text);
  } catch (error) {
    const reason = error instanceof Error ? error.message : String(error);
    return `must be a regular expression in RE2 syntax: ${reason}`;
  }
  valid.add(text);
  const [oldest = ""] = valid;
  if (valid.size > VALID_KEPT) valid.delete(oldest);
  return undefined;
}

/** The text of a pattern. This schema checks only the length. {@link checkPatterns} checks the syntax. */
export const patternText = z.string().min(1).max(PATTERN_MAX);

/** A regular expression in RE2 syntax, unanchored (rules section 13). */
export const pattern = patternText.superRefine((text, context) => {
  // `max` already reports a pattern that is too long. Skip the syntax check for such a pattern, because compiling a
  // pattern of one megabyte would take seconds.
  const message = text.length > PATTERN_MAX ? undefined : patternFault(text);
  if (message !== undefined) context.addIssue({ code: "custom", message });
});

/**
 * Checks a list of items that contain patterns of the schema {@link patternText}: first the total size of the patterns,
 * then the syntax of each pattern. The size is checked first, because the syntax check of a large pattern takes
 * milliseconds.
 * @param max maximum sum of the sizes of the patterns
 */
export function checkPatterns<Field extends string>(
  list: readonly Readonly<Record<Field, string>>[],
  fields: readonly Field[],
  max: number,
  context: z.RefinementCtx,
): void {
  const patterns = list.flatMap((item, index) =>
    fields.map((field) => ({ path: [index, field], text: item[field] })),
  );
  const size = patterns.reduce((sum, { text }) => sum + patternSize(text), 0);
  if (size > max) {
    const message = `must have patterns with a total size of at most ${max} after their repetitions are expanded; they have ${size}`;
    context.addIssue({ code: "custom", message });
    return;
  }
  for (const { path, text } of patterns) {
    const message = text.length > PATTERN_MAX ? undefined : patternFault(text);
    if (message !== undefined) context.addIssue({ code: "custom", message, path });
  }
}

/** Selects the devices of a key or rule, either by a name pattern or by tags (models section 5). */
export const filter = model(
  "Filter",
  "Selects devices by a pattern on the device name, or by tags. A device matches if it has at least one " +
    "of the tags",
  z
    .object({ hostname: pattern.optional(), tags: tags.optional() })
    .meta({ oneOf: [{ required: ["hostname"] }, { required: ["tags"] }] })
    .refine(
      (value) => (value.hostname === undefined) !== (value.tags === undefined),
      "must have exactly one of hostname and tags",
    ),
);

/**
 * A filter in a response (models section 5). The schema does not check the values, because the service checked them
 * before it stored them.
 */
export const wireFilter = z.object({
  hostname: z.string().optional(),
  tags: z.array(z.string()).optional(),
});

/** Body of an error response. */
export const message = model("Error", "The body of an error response", z.object({ message: z.string() }));

/**
 * Codes in response bodies of this service. A body with one of these codes proves that the service itself sent the
 * response. The codes contain the name of this project, so that no proxy or other server with this API sends them.
 */
export const SERVICE_CODES = {
  /** An object that the request refers to does not exist. */
  notFound: "gatehouse_not_found",
  /** The service deleted the object. */
  deleted: "gatehouse_deleted",
  /** The service wrote the object. */
  done: "gatehouse_done",
} as const;

/**
 * Body of a 404 response of an operation. A 404 for an unknown path has no code, because such a response does not prove
 * that an object does not exist.
 */
export const notFound = model(
  "NotFound",
  "The body of a 404 response. The code proves that the service itself sent the response",
  z.object({ message: z.string(), code: z.literal(SERVICE_CODES.notFound) }),
);

/**
 * Body of the response to a successful write whose operation returns no object. Clients of other servers must accept an
 * empty body.
 */
export const acknowledgement = model(
  "Acknowledgement",
  "The body of a successful write that returns no object. The code proves that the service itself sent the response",
  z.object({ code: z.enum([SERVICE_CODES.done, SERVICE_CODES.deleted]) }),
);

const page = z.int().min(1).max(1_000_000).default(1).describe("Page number, starting at 1");
const perPage = z.int().min(1).max(100).default(10).describe("Number of items on a page");
/** Query fields of a paginated list. */
export const paging = { page, per_page: perPage };

const filterParameter = z
  .string()
  .max(16_384)
  .optional()
  .describe(
    "Base64 of a JSON array of `property` and `operator` items. Maximum: 100 items, 100 compared values, and " +
      "20 searches in strings, lists or counts",
  );
/** Query fields of a list with a filter. */
export const filtering = { filter: filterParameter, ...paging };
/** Query fields of a list that can be sorted. */
export const sorting = {
  sort_by: z
    .string()
    .max(64)
    .optional()
    .describe("Field to sort by. For an unknown field, the service uses the default order"),
  order_by: z.enum(["asc", "desc"]).optional().describe("Default: `desc`"),
};

/** Response header of a paginated list: the number of items in the whole list. */
export const TOTAL_COUNT = "X-Total-Count";

/**
 * Request header that prevents a repeated create request from creating a second object. Some operations do not accept
 * the header.
 */
export const IDEMPOTENCY_KEY = "Idempotency-Key";

/** Value of {@link IDEMPOTENCY_KEY}. */
export const idempotencyKey = z
  .string()
  .regex(/^[\x21-\x7e]{1,255}$/, "must be 1 to 255 visible ASCII characters")
  .describe(
    "A key that the client chooses for each object. While the object that was created with the key " +
      "exists, a request with the same key returns this object in its current state, and does not create " +
      "another object. A body that describes a different object (by name, key, secret, e-mail address or " +
      "tag) is refused with 409",
  );

/**
 * Request header that makes a write conditional: the write succeeds only if the object still has the revision in the
 * header.
 */
export const IF_MATCH = "If-Match";

/** Value of {@link IF_MATCH}: entity tags in the format of RFC 9110, or `*`. Any other value matches no object. */
export const ifMatch = z
  .string()
  .describe(
    '`*`, or revisions (ETag) in quotes: "…", "…". The write succeeds only if the object has one of these revisions; otherwise the status is 412',
  );

/** Revision of an object: a digest of its declared fields. Other servers with this API send no revision. */
export const revision = z
  .string()
  .optional()
  .describe(
    "Revision of the object. It changes only with the declared fields. A response that contains only " +
      "this object has the revision as its ETag",
  );

const TYPE_NAMES: Readonly<Record<string, string>> = {
  string: "a string",
  number: "a number",
  int: "a whole number",
  boolean: "true or false",
  array: "an array",
  object: "an object",
  record: "an object",
};

const FORMATS: Readonly<Record<string, string>> = {
  email: "an e-mail address such as ana@example.com",
  datetime: "a time such as 2027-01-31T00:00:00Z",
  url: "a URL such as https://access.example.org",
};

const UNITS: Readonly<Record<string, string>> = { string: "character", array: "item" };

/** Returns the end of a message about a limit: "must have at least 3 characters", "must be at least 3". */
function bound(how: string, limit: number | bigint, origin: string): string {
  const unit = UNITS[origin];
  return unit ? `must have ${how} ${limit} ${unit}${limit === 1 ? "" : "s"}` : `must be ${how} ${limit}`;
}

/**
 * Returns the requirement on a value, as the end of a sentence that begins with the field's name: "must have at least 3
 * characters". Pass this function to zod, as in `schema.safeParse(value, { error: issueText })`. The result then
 * replaces zod's default messages, but not the messages that a schema defines.
 */
export function issueText(issue: z.core.$ZodRawIssue): string {
  switch (issue.code) {
    case "invalid_type": {
      const expected = TYPE_NAMES[issue.expected] ?? issue.expected;
      return issue.input === undefined ? `is required and must be ${expected}` : `must be ${expected}`;
    }
    case "too_small":
      return bound("at least", issue.minimum, issue.origin);
    case "too_big":
      return bound("at most", issue.maximum, issue.origin);
    case "invalid_value": {
      const values = issue.values.map((value) => (value === "" ? "empty" : String(value)));
      const requirement =
        values.length === 1 ? `must be ${values[0]}` : `must be one of ${values.join(", ")}`;
      return issue.input === undefined ? `is required and ${requirement}` : requirement;
    }
    case "invalid_format":
      return `must be ${FORMATS[issue.format] ?? `a valid ${issue.format}`}`;
    case "unrecognized_keys":
      return `must not have ${issue.keys.map((key) => JSON.stringify(key)).join(", ")}`;
    case "invalid_union":
      return [...new Set(issue.errors.flatMap(([first]) => first?.message ?? []))].join(", or ");
    default:
      return "must be valid";
  }
}

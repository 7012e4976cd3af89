import { camelKey, GatehouseError } from "@gatehouse-access/sdk";
import { issueText, operations, tenantId } from "@gatehouse-access/sdk/contract";
import { z } from "zod";
import { jsonSchema, readOnlyText, type Schema } from "../model/jsonSchema.ts";
import { definitions } from "../resources/index.ts";
import type { Connection } from "../service/connection.ts";
import {
  apiKeysOf,
  devicesOf,
  firewallRulesOf,
  HINTS,
  membersOf,
  namespaceOf,
  publicKeysOf,
  tagsOf,
} from "../service/lookups.ts";
import type { Values } from "../values.ts";

/** A function of the plugin. It only reads from the service. */
export interface PluginFunction {
  readonly name: string;
  readonly description: string;
  /** The arguments, each with a description. */
  readonly args: z.ZodObject;
  /**
   * The form of the result. If `file` is set, the result is an object that this schema file of the package describes.
   * Otherwise, the result contains the fields of a service object: in the property `property`, or directly if
   * `property` is omitted.
   */
  readonly result:
    | {
        readonly property?: string;
        readonly schema: z.ZodType;
        /**
         * The names of resource types. A field of the result gets the description of the field with the same name in
         * these resource types.
         */
        readonly describedBy?: readonly string[];
      }
    | { readonly file: string };
  run(service: Connection, args: Values): Promise<Values>;
}

interface FunctionOf<Args extends z.ZodObject> extends Omit<PluginFunction, "run" | "args"> {
  readonly args: Args;
  run(service: Connection, args: z.output<Args>): Promise<Values>;
}

const define = <Args extends z.ZodObject>(definition: FunctionOf<Args>): PluginFunction =>
  definition as unknown as PluginFunction;

const tenant = tenantId
  .optional()
  .describe("The ID of the namespace. Defaults to the namespace in the provider configuration.");
const text = z.string().min(1);
const ofNamespace = z.strictObject({ tenant });
const namespace = operations.getNamespace.success.body;

export const functions: readonly PluginFunction[] = [
  define({
    name: "getDevices",
    description: "The devices of a namespace that match all given arguments.",
    args: z.strictObject({
      tenant,
      tags: z.array(text).optional().describe("Only devices that have all of these tags."),
      status: operations.getDevices.query.shape.status.optional().describe("Only devices with this status."),
      name: text.optional().describe("Only the device with this name."),
      online: z
        .boolean()
        .optional()
        .describe(
          "Only devices that reported within two minutes (`true`), or only all other devices (`false`).",
        ),
    }),
    result: {
      property: "devices",
      schema: operations.getDevices.success.body,
      describedBy: ["Device", "DeviceTags"],
    },
    run: async (service, args) => ({ devices: await devicesOf(service, args) }),
  }),
  define({
    name: "getNamespace",
    description:
      "A namespace with its members, selected by ID or by name. Defaults to the namespace in the provider configuration.",
    args: z.strictObject({ tenant, name: text.optional().describe("The name of the namespace.") }),
    result: { schema: namespace, describedBy: ["Namespace"] },
    run: async (service, args) => ({ ...(await namespaceOf(service, args)) }),
  }),
  define({
    name: "getMembers",
    description: "The members of a namespace, including the owner.",
    args: ofNamespace,
    result: { property: "members", schema: namespace.shape.members },
    run: async (service, args) => ({ members: await membersOf(service, args) }),
  }),
  define({
    name: "getPublicKeys",
    description:
      "The public keys of a namespace, oldest first. `data` is the OpenSSH line in the form that `PublicKey` accepts.",
    args: ofNamespace,
    result: {
      property: "publicKeys",
      schema: operations.getPublicKeys.success.body,
      describedBy: ["PublicKey"],
    },
    run: async (service, args) => ({ publicKeys: await publicKeysOf(service, args) }),
  }),
  define({
    name: "getFirewallRules",
    description: "The firewall rules of a namespace, lowest priority first.",
    args: ofNamespace,
    result: {
      property: "firewallRules",
      schema: operations.getFirewallRules.success.body,
      describedBy: ["FirewallRule"],
    },
    run: async (service, args) => ({ firewallRules: await firewallRulesOf(service, args) }),
  }),
  define({
    name: "getApiKeys",
    description: "The API keys of a namespace, without their secrets.",
    args: ofNamespace,
    result: { property: "apiKeys", schema: operations.listApiKeys.success.body, describedBy: ["ApiKey"] },
    run: async (service, args) => ({ apiKeys: await apiKeysOf(service, args) }),
  }),
  define({
    name: "getTags",
    description: "The tags of all devices, public keys and firewall rules of a namespace.",
    args: ofNamespace,
    result: { property: "tags", schema: operations.getTags.success.body },
    run: async (service, args) => ({ tags: await tagsOf(service, args) }),
  }),
  define({
    name: "getAccess",
    description:
      "The access to the devices of a namespace: for each device, the public keys, logins, client addresses and firewall rules that allow a login, or the users, service accounts and access policies. Equals the output of `gatehouse access --json`.",
    args: z.strictObject({
      tenant,
      devices: z
        .array(text)
        .optional()
        .describe(
          "Only devices with one of these UIDs, tags or names. In a name, `*` matches any text and `?` matches one character.",
        ),
      keys: z
        .array(text)
        .optional()
        .describe(
          "Only keys with one of these fingerprints, beginnings of fingerprints, or names. In a name, `*` matches any text.",
        ),
      users: z
        .array(text)
        .optional()
        .describe(
          "Only users and service accounts with one of these e-mail addresses, names or IDs. Only namespaces in identity mode support this filter. In an address or name, `*` matches any text.",
        ),
      logins: z.array(text).optional().describe("Only these login names."),
      addresses: z
        .array(z.union([z.ipv4(), z.ipv6()], { error: "must be an IPv4 or IPv6 address" }))
        .optional()
        .describe("Only connections from these client IP addresses."),
    }),
    result: { file: "access.schema.json" },
    async run(service, { tenant, devices = [], keys = [], users = [], logins = [], addresses = [] }) {
      const { accessAnswer } = await import("../access/answer.ts");
      const { AccessInquiryError, accessInquiry } = await import("../access/inquiry.ts");
      const { readNamespace } = await import("../namespace/readNamespace.ts");
      const inquiry = accessInquiry(
        { device: devices, key: keys, user: users, login: logins, from: addresses },
        "json",
      );
      // A program may query objects that the same run has changed, so the function uses a connection without cached
      // reads.
      const estate = await readNamespace(service.fresh(), tenant);
      if (estate.accessUnknown !== undefined)
        throw new GatehouseError({
          code: "access_unknown",
          field: ["getAccess"],
          detail: estate.accessUnknown,
        });
      try {
        return JSON.parse([...accessAnswer(estate, inquiry).output].join("")) as Values;
      } catch (error) {
        if (!(error instanceof AccessInquiryError)) throw error;
        // The error contains a command-line flag of `gatehouse access`, such as `--device`. The name of the function's
        // argument is the plural of the flag's name, such as `devices`.
        throw new GatehouseError(
          { ...error.toJSON(), field: ["getAccess", `${error.flag}s`] },
          { cause: error },
        );
      }
    },
  }),
];

/** A validation error in a function argument. */
interface ArgumentFailure {
  /** The argument's name, followed by the path inside its value. */
  readonly path: readonly string[];
  readonly reason: string;
}

/**
 * Checks the arguments of a function, and calls the function if they are valid.
 * @param service opens the connection; called only if the arguments are valid
 * @returns the errors in the arguments, or the result
 */
export async function callFunction(
  { args, run }: PluginFunction,
  service: () => Connection,
  given: Values,
): Promise<{ readonly failures: readonly ArgumentFailure[]; readonly result: Values }> {
  const known = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== null));
  const checked = args.safeParse(known, { error: issueText });
  if (checked.success) return { failures: [], result: await run(service(), checked.data) };
  const failures = checked.error.issues.map(({ path, message }) => {
    return { path: path.map(String), reason: message };
  });
  return { failures, result: {} };
}

/**
 * Returns the schema of a function's result. The result is always an object, and each property in the schema has a
 * description.
 * @param schemaFile returns the JSON Schema in a file of the package
 */
export function resultSchema(
  { result, description }: Pick<PluginFunction, "result" | "description">,
  schemaFile: (file: string) => Schema,
): Schema {
  if ("file" in result) {
    const schema = schemaFile(result.file);
    return withDescriptions(schema, {}, schema.definitions);
  }
  const { property, schema, describedBy = [] } = result;
  const wire = inCamelCase(z.toJSONSchema(schema, { io: "output", unrepresentable: "any" }) as Schema);
  const fields = fieldsOf(describedBy);
  const answer = withDescriptions(wire, fields);
  if (property === undefined) return answer;
  return { type: "object", properties: { [property]: { ...answer, description } }, required: [property] };
}

/**
 * Returns the field schemas of the resource types with these names, by field name. If several resource types have the
 * same field, the resource type that comes first in `names` takes precedence.
 */
function fieldsOf(names: readonly string[]): NonNullable<Schema["properties"]> {
  const all = names
    .toReversed()
    .flatMap((name) => definitions.filter((definition) => definition.name === name));
  const entries = all.flatMap(({ inputs, outputs }) =>
    Object.entries({ ...inputs, ...outputs }).map(([name, { schema, description }]) => [
      name,
      { ...jsonSchema(schema), description },
    ]),
  );
  return Object.fromEntries(entries);
}

/**
 * Adds a description to each property of a schema. Uses the first description that exists: the description of the
 * resource field with the same name, then the property's own description, then the description of the property's type.
 */
function withDescriptions(
  schema: Schema,
  fields: NonNullable<Schema["properties"]>,
  types: Schema["definitions"] = {},
): Schema {
  const typeOf = ({ $ref }: Schema) => types[$ref?.split("/").at(-1) ?? ""];
  const described = (name: string, member: Schema): Schema => {
    const field = fields[name];
    const items = member.items ?? {};
    const text =
      ((field?.description && readOnlyText(field.description)) || member.description) ??
      typeOf(member)?.description ??
      items.description ??
      typeOf(items)?.description;
    return {
      ...withDescriptions(member, nestedFields(field), types),
      ...(text && { description: /[.?!]$/.test(text) ? text : `${text}.` }),
    };
  };
  const { properties, items, anyOf, definitions: named } = schema;
  const all = (members: NonNullable<Schema["properties"]>, of: (name: string, member: Schema) => Schema) =>
    Object.fromEntries(Object.entries(members).map(([name, member]) => [name, of(name, member)]));
  return {
    ...schema,
    ...(properties && { properties: all(properties, described) }),
    ...(items && { items: withDescriptions(items, fields, types) }),
    ...(anyOf && { anyOf: anyOf.map((form) => withDescriptions(form, fields, types)) }),
    ...(named && { definitions: all(named, (_, type) => withDescriptions(type, {}, types)) }),
  };
}

/** Returns the members of a field's schema. Includes the members of its items and of all its variants. */
const nestedFields = (field: Schema | undefined): NonNullable<Schema["properties"]> =>
  Object.assign(
    {},
    ...(field?.anyOf ?? []).map(nestedFields),
    field?.items && nestedFields(field.items),
    field?.properties,
  );

/** Converts the property names in the schema of an API response to the camel case names of the client. */
function inCamelCase(schema: Schema): Schema {
  const { properties, items, anyOf, required } = schema;
  return {
    ...schema,
    ...(properties && {
      properties: Object.fromEntries(
        Object.entries(properties)
          .filter(([name]) => !HINTS.has(camelKey(name)))
          .map(([name, member]) => [camelKey(name), inCamelCase(member)]),
      ),
    }),
    ...(required && { required: required.map(camelKey) }),
    ...(items && { items: inCamelCase(items) }),
    ...(anyOf && { anyOf: anyOf.map(inCamelCase) }),
  };
}

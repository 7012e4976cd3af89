import { camelKey, GatehouseError } from "@gatehouse-access/sdk";
import { issueText, operations, tenantId } from "@gatehouse-access/sdk/contract";
import { z } from "zod";
import type { Schema } from "../resources/definition.ts";
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

type Values = Readonly<Record<string, unknown>>;

/** A function of the plugin: it asks the service, and changes nothing. */
export interface PluginFunction {
  readonly name: string;
  readonly description: string;
  /** What it takes; each argument has a description. */
  readonly args: z.ZodObject;
  /**
   * What it gives: the fields of an object of the service, in one property or as they are; or what a schema file of the
   * package describes.
   */
  readonly result: { readonly property?: string; readonly schema: z.ZodType } | { readonly file: string };
  ask(service: Connection, args: Values): Promise<Values>;
}

interface FunctionOf<Args extends z.ZodObject> extends Omit<PluginFunction, "ask" | "args"> {
  readonly args: Args;
  ask(service: Connection, args: z.output<Args>): Promise<Values>;
}

const define = <Args extends z.ZodObject>(definition: FunctionOf<Args>): PluginFunction =>
  definition as unknown as PluginFunction;

const tenant = tenantId.optional().describe("Id of the namespace. Left out: that of the provider.");
const text = z.string().min(1);
const ofNamespace = z.strictObject({ tenant });
const namespace = operations.getNamespace.success.body;

export const functions: readonly PluginFunction[] = [
  define({
    name: "getDevices",
    description: "The devices of a namespace that meet all conditions.",
    args: z.strictObject({
      tenant,
      tags: z.array(text).optional().describe("Devices that carry all of these tags."),
      status: operations.getDevices.query.shape.status.optional().describe("Devices of this status."),
      name: text.optional().describe("The device with this name."),
      online: z
        .boolean()
        .optional()
        .describe("True for devices that reported within two minutes, false for those that did not."),
    }),
    result: { property: "devices", schema: operations.getDevices.success.body },
    ask: async (service, args) => ({ devices: await devicesOf(service, args) }),
  }),
  define({
    name: "getNamespace",
    description: "A namespace with its members, by tenant or by name; without either, that of the provider.",
    args: z.strictObject({ tenant, name: text.optional().describe("Name of the namespace.") }),
    result: { schema: namespace },
    ask: async (service, args) => ({ ...(await namespaceOf(service, args)) }),
  }),
  define({
    name: "getMembers",
    description: "The members of a namespace, the owner among them.",
    args: ofNamespace,
    result: { property: "members", schema: namespace.shape.members },
    ask: async (service, args) => ({ members: await membersOf(service, args) }),
  }),
  define({
    name: "getPublicKeys",
    description:
      "The public keys of a namespace, oldest first; `data` is the OpenSSH line, as PublicKey takes it.",
    args: ofNamespace,
    result: { property: "publicKeys", schema: operations.getPublicKeys.success.body },
    ask: async (service, args) => ({ publicKeys: await publicKeysOf(service, args) }),
  }),
  define({
    name: "getFirewallRules",
    description: "The firewall rules of a namespace, the lowest priority first.",
    args: ofNamespace,
    result: { property: "firewallRules", schema: operations.getFirewallRules.success.body },
    ask: async (service, args) => ({ firewallRules: await firewallRulesOf(service, args) }),
  }),
  define({
    name: "getApiKeys",
    description: "The API keys of a namespace, without their secrets.",
    args: ofNamespace,
    result: { property: "apiKeys", schema: operations.listApiKeys.success.body },
    ask: async (service, args) => ({ apiKeys: await apiKeysOf(service, args) }),
  }),
  define({
    name: "getTags",
    description: "The tags that devices, keys or rules of a namespace carry.",
    args: ofNamespace,
    result: { property: "tags", schema: operations.getTags.success.body },
    ask: async (service, args) => ({ tags: await tagsOf(service, args) }),
  }),
  define({
    name: "getAccess",
    description:
      "Who can reach which devices of a namespace, by which key and rule: what `gatehouse access` says.",
    args: z.strictObject({
      tenant,
      devices: z
        .array(text)
        .optional()
        .describe("Only these devices: name (* stands for any text, ? for one character), uid or tag."),
      keys: z
        .array(text)
        .optional()
        .describe("Only these keys: fingerprint, its beginning, or name (* stands for any text)."),
      logins: z.array(text).optional().describe("Only these login names."),
      addresses: z
        .array(z.union([z.ipv4(), z.ipv6()], { error: "must be an IPv4 or IPv6 address" }))
        .optional()
        .describe("Only from these IP addresses."),
    }),
    result: { file: "access.schema.json" },
    async ask(service, { tenant, devices = [], keys = [], logins = [], addresses = [] }) {
      const { accessAnswer } = await import("../access/answer.ts");
      const { AccessInquiryError, accessInquiry } = await import("../access/inquiry.ts");
      const { readEstate } = await import("../estate/namespaceState.ts");
      const inquiry = accessInquiry({ device: devices, key: keys, login: logins, from: addresses }, "json");
      // A program may ask for what it has changed before.
      const estate = await readEstate(service.fresh(), tenant);
      try {
        return JSON.parse([...accessAnswer(estate, inquiry).output].join("")) as Values;
      } catch (error) {
        if (!(error instanceof AccessInquiryError)) throw error;
        // The function's arguments are the command's flags in the plural.
        throw new GatehouseError(
          { ...error.toJSON(), field: ["getAccess", `${error.flag}s`] },
          { cause: error },
        );
      }
    },
  }),
];

/** What is wrong with an argument. */
export interface ArgumentFailure {
  /** Its name, and the path inside its value. */
  readonly path: readonly string[];
  readonly reason: string;
}

/**
 * Asks what a function answers.
 * @param service opened once the arguments are right
 * @returns what is wrong with the arguments, or the result
 */
export async function callFunction(
  { args, ask }: PluginFunction,
  service: () => Connection,
  given: Values,
): Promise<{ readonly failures: readonly ArgumentFailure[]; readonly result: Values }> {
  const known = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== null));
  const checked = args.safeParse(known, { error: issueText });
  if (checked.success) return { failures: [], result: await ask(service(), checked.data) };
  const failures = checked.error.issues.map(({ path, message }) => {
    return { path: path.map(String), reason: message };
  });
  return { failures, result: {} };
}

/**
 * What a function gives, as an object.
 * @param schemaFile gives the JSON Schema in a file of the package
 */
export function resultSchema(result: PluginFunction["result"], schemaFile: (file: string) => Schema): Schema {
  if ("file" in result) return schemaFile(result.file);
  const answered = inCamelCase(
    z.toJSONSchema(result.schema, { io: "output", unrepresentable: "any" }) as Schema,
  );
  const { property } = result;
  if (property === undefined) return answered;
  return { type: "object", properties: { [property]: answered }, required: [property] };
}

/** The schema of a value of the wire, as the client gives it. */
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

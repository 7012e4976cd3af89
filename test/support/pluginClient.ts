import grpc from "@grpc/grpc-js";
import rpc from "@pulumi/pulumi/proto/provider_grpc_pb.js";
import proto from "@pulumi/pulumi/proto/provider_pb.js";
import statusProto from "@pulumi/pulumi/proto/status_pb.js";
import structProto from "google-protobuf/google/protobuf/struct_pb.js";

/**
 * A message in JSON. It has only fields with a value, under their names in Pulumi's generated code (`oldInputs`,
 * `failuresList`, `detaileddiffMap`). A struct is the value that it represents, and bytes are in base64.
 */
// biome-ignore lint/suspicious/noExplicitAny: tests look into responses, whose shapes the protocol has
export type Message = Readonly<Record<string, any>>;

/** The plugin's response to a call, or its error. */
export type PluginResponse =
  | { readonly response: Message }
  | { readonly error: { readonly code: string; readonly message: string; readonly initFailed?: Message } };

/** A message class in the generated code of google-protobuf. The fields are accessible only through methods. */
interface MessageClass {
  new (): object;
  readonly prototype: object;
}
type Accessors = Readonly<Record<string, ((value?: unknown) => unknown) | undefined>>;
type StructMap = Map<string, unknown>;

/** The methods of `pulumirpc.ResourceProvider`, by their names in client code, for example `checkConfig`. */
export const methods = rpc.ResourceProviderService as unknown as Readonly<
  Record<string, { readonly requestType: MessageClass }>
>;

/** Classes of the messages that are nested in request messages, except structs. */
const NESTED: Readonly<Record<string, MessageClass>> = {
  Autonaming: proto.CheckRequest.AutonamingOptions as unknown as MessageClass,
};

/** A client that calls a plugin in the same way as an engine. */
export class PluginClient {
  readonly #client: InstanceType<typeof rpc.ResourceProviderClient>;

  constructor(port: number) {
    this.#client = new rpc.ResourceProviderClient(`127.0.0.1:${port}`, grpc.credentials.createInsecure(), {
      "grpc.enable_http_proxy": 0,
    });
  }

  /**
   * Calls a method.
   * @throws grpc.ServiceError
   */
  async call(method: string, request: object = {}): Promise<Message> {
    const { requestType } = methods[method] ?? {};
    if (!requestType) throw new Error(`a plugin has no method ${method}`);
    const message = fromJson(requestType, JSON.parse(JSON.stringify(request)));
    return toJson(await this.pass(method, message)) as Message;
  }

  /** Calls a method. The request and the response are message objects of the generated code. */
  pass(method: string, request: unknown): Promise<unknown> {
    type Method = (request: unknown, done: (error: Error | null, answer: unknown) => void) => unknown;
    return new Promise((resolve, reject) => {
      (this.#client[method as "check"] as Method).call(this.#client, request, (error, answer) =>
        error ? reject(error) : resolve(answer),
      );
    });
  }

  close(): void {
    this.#client.close();
  }
}

/** Converts a message, or a value in a message, to JSON. */
export function toJson(value: unknown): unknown {
  if (value instanceof structProto.Struct || value instanceof structProto.Value) return value.toJavaScript();
  if (Array.isArray(value)) return value.map(toJson);
  if (typeof value !== "object" || value === null) return value;
  const message = value as Accessors;
  const fields = fieldsOf(Object.getPrototypeOf(value)).flatMap((field): [string, unknown][] => {
    const isThere = message[`has${field}`]?.();
    const fieldValue = message[`get${field}_asB64`]?.() ?? message[`get${field}`]?.();
    // Omits a field without presence if it has the default value, since protobuf does not transmit such a field.
    if (isThere === false || (isThere === undefined && !fieldValue)) return [];
    const json = isMap(field)
      ? Object.fromEntries(
          [...(fieldValue as StructMap).entries()].map(([key, member]) => [key, toJson(member)]),
        )
      : toJson(fieldValue);
    const isEmpty = /(Map|List)$/.test(field) && Object.keys(json as object).length === 0;
    return isEmpty ? [] : [[jsonName(field), json]];
  });
  return Object.fromEntries(fields);
}

/** Converts JSON to a message of this class. It is the inverse of {@link toJson}. */
function fromJson(of: MessageClass, json: Message): object {
  const message = new of();
  const accessors = message as Accessors;
  const fields = fieldsOf(of.prototype);
  const unknownNames = Object.keys(json).filter((name) => !fields.some((field) => jsonName(field) === name));
  if (unknownNames.length > 0) throw new Error(`the request has no ${unknownNames}`);
  for (const field of fields) {
    const value = json[jsonName(field)];
    if (value === undefined) continue;
    if (isMap(field)) {
      const map = accessors[`get${field}`]?.() as StructMap;
      for (const [key, member] of Object.entries(value)) map.set(key, member);
    } else {
      const isMessage = typeof value === "object" && value !== null && !Array.isArray(value);
      accessors[`set${field}`]?.(isMessage ? nested(field, value) : value);
    }
  }
  return message;
}

const nested = (field: string, value: Message): object =>
  NESTED[field] ? fromJson(NESTED[field], value) : structProto.Struct.fromJavaScript(value);

/**
 * Returns the outcome of a call that failed. Its field `initFailed` contains an object that was created incompletely.
 */
export function failureOf(error: unknown): Extract<PluginResponse, { error: unknown }> {
  const { code, details, metadata } = error as grpc.ServiceError;
  const [bytes] = metadata?.get("grpc-status-details-bin") ?? [];
  const [detail] = Buffer.isBuffer(bytes)
    ? statusProto.Status.deserializeBinary(bytes).getDetailsList()
    : [undefined];
  const failed = detail && proto.ErrorResourceInitFailed.deserializeBinary(detail.getValue_asU8());
  const initFailed = failed && { initFailed: toJson(failed) as Message };
  return { error: { code: String(grpc.status[code]), message: details, ...initFailed } };
}

/** Returns the field names of a message, in the spelling of its accessors: `OldInputs`, `DiffsList`, `VariablesMap`. */
const fieldsOf = (prototype: object): string[] =>
  Object.getOwnPropertyNames(prototype)
    .filter((name) => name.startsWith("get") && !/_as(U8|B64)$/.test(name))
    .map((name) => name.slice("get".length));

const isMap = (field: string) => field.endsWith("Map");

const jsonName = (field: string) => field.charAt(0).toLowerCase() + field.slice(1);

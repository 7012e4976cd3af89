import grpc from "@grpc/grpc-js";
import rpc from "@pulumi/pulumi/proto/provider_grpc_pb.js";
import proto from "@pulumi/pulumi/proto/provider_pb.js";
import statusProto from "@pulumi/pulumi/proto/status_pb.js";
import structProto from "google-protobuf/google/protobuf/struct_pb.js";

/** A message as a person reads it: fields that have a value, structs as what they stand for, bytes as base64. */
export type Json = null | boolean | number | string | readonly Json[] | { readonly [name: string]: Json };

/** What a provider answers in place of a response. */
export interface Refusal {
  readonly code: string;
  readonly message: string;
  /** Of an object that was made but not completed: what the engine shall keep of it. */
  readonly initFailed?: Json;
}

/** What came of a call. */
export type Outcome = { readonly response: Json } | { readonly error: Refusal };

/** A method of `pulumirpc.ResourceProvider`. */
export interface Method {
  readonly name: string;
  readonly path: string;
  readonly request: MessageClass;
  readonly response: MessageClass;
}

/** A message of google-protobuf's generated code, which says by its accessors alone what fields it has. */
interface Message {
  serializeBinary(): Uint8Array;
}
interface MessageClass {
  new (): Message;
  readonly prototype: Message;
  deserializeBinary(bytes: Uint8Array): Message;
}
/** The map fields of generated code. */
interface MessageMap {
  set(key: string, value: unknown): void;
  forEach(each: (value: unknown, key: string) => void): void;
}
type Accessors = Readonly<Record<string, ((value?: unknown) => unknown) | undefined>>;

const definitions = rpc.ResourceProviderService as unknown as Readonly<
  Record<string, { path: string; requestType: MessageClass; responseType: MessageClass }>
>;

/** All methods of a provider. */
export const methods: readonly Method[] = Object.values(definitions).map(
  ({ path, requestType, responseType }) => ({
    name: path.slice(path.lastIndexOf("/") + 1),
    path,
    request: requestType,
    response: responseType,
  }),
);

/** Messages within requests that are no structs. */
const NESTED: Readonly<Record<string, MessageClass>> = {
  Autonaming: proto.CheckRequest.AutonamingOptions as unknown as MessageClass,
};

/** The method of this name, as `Create`. */
export function methodOf(name: string): Method {
  const found = methods.find((method) => method.name === name);
  if (!found) throw new Error(`a provider has no method ${name}`);
  return found;
}

/**
 * Reads a request.
 * @throws Error where the message cannot be made again of what was read: then this file has to learn more
 */
export function readRequest(method: Method, bytes: Uint8Array): Json {
  const json = toJson(method.request.deserializeBinary(bytes));
  const again = writeRequest(method, json);
  if (again.length !== bytes.length || JSON.stringify(readResponse(method.request, again)) !== text(json)) {
    throw new Error(`${method.name}: ${again.length} of ${bytes.length} bytes come back from ${text(json)}`);
  }
  return json;
}

/** The bytes of a request that was read. */
export function writeRequest(method: Method, json: Json): Uint8Array {
  return fromJson(method.request, json).serializeBinary();
}

/** Reads any message of a class. */
export function readResponse(of: MessageClass, bytes: Uint8Array): Json {
  return toJson(of.deserializeBinary(bytes));
}

/** Reads the error of a call. */
export function readError({ code, details, metadata }: grpc.ServiceError): Refusal {
  const [packed] = metadata.get("grpc-status-details-bin");
  const refusal = { code: grpc.status[code] ?? String(code), message: details };
  if (packed === undefined) return refusal;
  const [detail, ...more] = statusProto.Status.deserializeBinary(packed as Buffer).getDetailsList();
  const failed = detail?.unpack(
    proto.ErrorResourceInitFailed.deserializeBinary,
    "pulumirpc.ErrorResourceInitFailed",
  );
  if (!failed || more.length > 0) throw new Error(`an error has details that nobody knows: ${details}`);
  return { ...refusal, initFailed: toJson(failed as unknown as Message) };
}

const text = (json: Json) => JSON.stringify(json);

function toJson(value: unknown): Json {
  if (value instanceof structProto.Struct || value instanceof structProto.Value) {
    return sorted(value.toJavaScript() as Json);
  }
  if (typeof value !== "object" || value === null) return value as Json;
  const accessors = value as unknown as Accessors;
  const fields = fieldsOf(Object.getPrototypeOf(value) as object).flatMap((field): [string, Json][] => {
    const json = fieldToJson(accessors, field);
    return json === undefined ? [] : [[jsonName(field), json]];
  });
  return Object.fromEntries(fields);
}

function fieldToJson(message: Accessors, field: string): Json | undefined {
  const isThere = message[`has${field}`]?.();
  if (isThere === false) return undefined;
  const bytes = message[`get${field}_asB64`]?.();
  const value = bytes ?? message[`get${field}`]?.();
  if (isMap(field)) return mapToJson(value as MessageMap);
  if (Array.isArray(value)) return value.length > 0 ? value.map(toJson) : undefined;
  // What has no presence of its own is not sent where it is the default.
  return isThere === undefined && !value ? undefined : toJson(value);
}

function mapToJson(map: MessageMap): Json | undefined {
  const members: [string, Json][] = [];
  map.forEach((value, key) => {
    members.push([key, toJson(value)]);
  });
  return members.length > 0 ? sorted(Object.fromEntries(members)) : undefined;
}

function fromJson(of: MessageClass, json: Json): Message {
  const message = new of();
  const accessors = message as unknown as Accessors;
  const values = json as Readonly<Record<string, Json>>;
  for (const field of fieldsOf(of.prototype)) {
    const value = values[jsonName(field)];
    if (value === undefined) continue;
    if (isMap(field)) {
      const map = accessors[`get${field}`]?.() as MessageMap;
      for (const [key, member] of Object.entries(value ?? {})) map.set(key, member);
    } else accessors[`set${field}`]?.(isMessage(value) ? nested(field, value) : value);
  }
  return message;
}

const isMessage = (value: Json) => typeof value === "object" && value !== null && !Array.isArray(value);

function nested(field: string, value: Json): unknown {
  const other = NESTED[field];
  if (other) return fromJson(other, value);
  return structProto.Struct.fromJavaScript(value as Parameters<typeof structProto.Struct.fromJavaScript>[0]);
}

/** The fields of a message as its accessors name them: `OldInputs`, `DiffsList`, `VariablesMap`. */
const fieldsOf = (prototype: object): string[] =>
  Object.getOwnPropertyNames(prototype)
    .filter((name) => name.startsWith("get") && !/_as(U8|B64)$/.test(name))
    .map((name) => name.slice("get".length));

const isMap = (field: string) => field.endsWith("Map");

const jsonName = (field: string) => field.charAt(0).toLowerCase() + field.slice(1);

/** With the members of all objects in order: engines send them in any. */
function sorted(json: Json): Json {
  if (Array.isArray(json)) return json.map(sorted);
  if (!isMessage(json)) return json;
  const members = Object.entries(json as Readonly<Record<string, Json>>);
  return Object.fromEntries(
    members.sort(([a], [b]) => (a < b ? -1 : 1)).map(([name, value]) => [name, sorted(value)]),
  );
}

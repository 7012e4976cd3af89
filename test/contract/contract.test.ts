import { describe, expect, test } from "vitest";
import { z } from "zod";
import { jsonKind } from "../../sdk/case.ts";
import { JSON_TYPE } from "../../sdk/contract/index.ts";
import { ADDITION } from "../../sdk/contract/schemas.ts";
import { camelKey, models, type Operation, operations, publicOperations, ROLES } from "../../sdk/index.ts";
import { type Listed, listed } from "./listed.ts";

const ours = Object.entries(publicOperations as Record<string, Operation>);

/**
 * Minimum roles of the operations for which the operation list contains no role. For offlineDevice, question Q3 of the
 * rules document decides the role.
 */
const DECIDED_ROLES: Readonly<Record<string, string>> = {
  authSshPublicKey: "observer",
  offlineDevice: "operator",
};

/** Operations that only Gatehouse has. API clients of version 0.19 never call them. */
const OWN_OPERATIONS: readonly string[] = ["challengeDevice", "agentConnection"];
const specified = ours.filter(([id]) => !OWN_OPERATIONS.includes(id));

test("the contract contains the operations of the operation list and of OWN_OPERATIONS, and no others", () => {
  expect(listed.size).toBe(120);
  expect([...listed.keys()].filter((id) => !Object.hasOwn(publicOperations, id))).toEqual([]);
  expect(ours.filter(([id, operation]) => operation.id !== id)).toEqual([]);
  expect(specified.filter(([id]) => !listed.has(id))).toEqual([]);
  expect(specified).toHaveLength(ours.length - OWN_OPERATIONS.length);
});

test("marks the settings of a namespace that the operation list does not have, and no others, as additions", () => {
  const text = listed.get("editNamespace")?.body?.settings ?? "";
  const settings = publicOperations.editNamespace.body.shape.settings.unwrap().shape as Record<
    string,
    z.ZodType
  >;
  const marked = Object.keys(settings).filter((name) => settings[name]?.meta()?.[ADDITION] === true);
  expect(marked).toEqual(Object.keys(settings).filter((name) => !text.includes(`${name} `)));
  expect(marked).toContain("session_max_minutes");
});

test("the bodies of operations that the operation list does not have are strict", () => {
  const all: [string, Operation][] = Object.entries(operations);
  const own = all.filter(([id, { body }]) => !listed.has(id) && body instanceof z.ZodObject);
  expect(own.map(([id]) => id)).toContain("createTrustedWorkload");
  const lenient = own.filter(([, { body }]) =>
    body?.safeParse({ no_such_field: 1 }).error?.issues.every(({ code }) => code !== "unrecognized_keys"),
  );
  expect(lenient.map(([id]) => id)).toEqual([]);
});

function requiredInList(body: Listed["body"]): string[] {
  const fields = Object.entries(body ?? {});
  return fields.filter(([, text]) => /^[^,]*, required(?! when)/.test(text)).map(([field]) => field);
}

function requiredInOurs(operation: Operation): string[] {
  const schema = operation.body;
  if (!(schema instanceof z.ZodObject)) {
    return [];
  }
  const fields = Object.entries(schema.shape as Record<string, z.ZodType>);
  return fields.filter(([, field]) => !field.safeParse(undefined).success).map(([name]) => name);
}

/**
 * Error statuses that the operation list does not contain, by operation: for exceeded limits, failures of other
 * services and deleted objects.
 */
const OWN_ERRORS: Readonly<Record<string, readonly number[]>> = {
  authDevice: [403],
  getSession: [400],
  // Status 409: the lockout guard refuses the write.
  updateMember: [409],
  removeMember: [409],
  deleteApiKey: [409],
  // Status 424: a service that the operation depends on, such as the SSH gateway, failed.
  acceptDevice: [424],
  updateDeviceStatus: [424],
  updateContainerStatus: [424],
  deleteNamespace: [424],
  createBillingPortal: [424],
  deviceConnection: [404],
  streamWebTerminal: [400],
};

/** Optional body fields that the operation list does not have, by operation. */
const OWN_FIELDS: Readonly<Record<string, readonly string[]>> = {
  updateUser: ["code"],
  authDevice: ["proof"],
  recordSession: ["stream"],
  createPublicKey: ["expires_at", "owner"],
  updatePublicKey: ["expires_at", "owner"],
  createFirewallRule: ["expires_at"],
  updateFirewallRule: ["expires_at"],
  generateInvitationLink: ["access_expires_at"],
  inviteMember: ["access_expires_at"],
  updateMember: ["access_expires_at"],
};

/** Optional query parameters that the operation list does not have, by operation. */
const OWN_PARAMETERS: Readonly<Record<string, readonly string[]>> = {
  getSessions: ["key_fingerprint", "user_id"],
  getSession: ["events_after"],
};

/**
 * Operations whose responses have a body, although the operation list has none: the model of the body, by operation.
 * Clients may ignore these bodies.
 */
const OWN_RESPONSES: Readonly<Record<string, string>> = {
  updateUser: "PendingAddresses",
  updateUserData: "PendingAddresses",
};

/** Operations without status 500 in the operation list. */
const NO_INTERNAL_ERROR: readonly string[] = ["healthcheck", "openWebTerminal", "streamWebTerminal"];

const statuses = (values: readonly number[]) => [...new Set(values)].sort((a, b) => a - b);

/**
 * Statuses of features that only Gatehouse has: 412 for conditional requests (If-Match), and 429 for additional rate
 * limits.
 */
const ADDED: ReadonlySet<number> = new Set([412, 429]);

describe.each(specified)("%s", (id, operation) => {
  const entry = listed.get(id) as Listed;

  test("has the method, path, edition and permission of the operation list", () => {
    const { method, path, aliases, edition, auth, minRole, part } = operation;
    // Only this service has workloads.
    const kinds = auth.filter((kind) => kind !== "workload");
    expect({ method, path, aliases, edition, auth: kinds, minRole, part }).toEqual({
      method: entry.method,
      path: entry.path,
      aliases: entry.aliases,
      edition: entry.edition,
      auth: entry.auth,
      minRole: entry.minRole ?? DECIDED_ROLES[id] ?? null,
      part: entry.part,
    });
  });

  test("has the parameters, body fields and required fields of the operation list", () => {
    expect(Object.keys(operation.params.shape)).toEqual(entry.pathParams);
    expect(Object.keys(operation.query.shape).sort()).toEqual(
      [...entry.query, ...(OWN_PARAMETERS[id] ?? [])].sort(),
    );
    expect(operation.body !== undefined).toBe(entry.body !== null);
    const shape = operation.body instanceof z.ZodObject ? operation.body.shape : {};
    const fields = [...Object.keys(entry.body ?? {}), ...(OWN_FIELDS[id] ?? [])];
    expect(Object.keys(shape).sort()).toEqual(fields.sort());
    expect(requiredInOurs(operation).sort()).toEqual(requiredInList(entry.body).sort());
  });

  test("marks the body fields that the operation list does not have, and no others, as additions", () => {
    const fields = operation.body instanceof z.ZodObject ? Object.entries(operation.body.shape) : [];
    const marked = fields.filter(([, field]) => (field as z.ZodType).meta()?.[ADDITION] === true);
    expect(marked.map(([name]) => name).sort()).toEqual([...(OWN_FIELDS[id] ?? [])].sort());
  });

  test("has the success and error statuses of the operation list", () => {
    expect(operation.success.status).toBe(entry.success.status);
    expect(operation.success.headers).toEqual(entry.success.headers);
    // Every operation can fail with status 500. The operation list omits this status for the operations in
    // NO_INTERNAL_ERROR.
    const errors = statuses([...entry.errors.map((error) => error.status), 500]);
    const expected = statuses([...errors, ...(OWN_ERRORS[id] ?? [])]);
    const ours = statuses(Object.keys(operation.errors).map(Number));
    expect(ours.filter((status) => expected.includes(status) || !ADDED.has(status))).toEqual(expected);
    expect(errors.filter((status) => !entry.errors.some((error) => error.status === status))).toEqual(
      NO_INTERNAL_ERROR.includes(id) ? [500] : [],
    );
  });

  test("has the response model of the operation list", () => {
    const schema = operation.success.body;
    const own = OWN_RESPONSES[id];
    if (own !== undefined) {
      expect([entry.success.body, operation.success.mayBeEmpty]).toEqual([null, true]);
      expect(schema && models.get(schema)?.id).toBe(own);
      return;
    }
    // Status 101 switches to a WebSocket, so the response has no body. What the operation list describes as its body
    // are the WebSocket messages.
    const hasBody = entry.success.body !== null && entry.success.status !== 101;
    expect(schema !== undefined).toBe(hasBody);
    if (!schema || entry.success.body === null) {
      return;
    }
    if (entry.success.body === "bare JSON boolean") {
      expect(schema).toBeInstanceOf(z.ZodBoolean);
      return;
    }
    if (entry.success.body.endsWith("passed through")) {
      expect(schema).toBeInstanceOf(z.ZodRecord);
      return;
    }
    if (operation.success.mediaType !== JSON_TYPE) {
      expect(entry.success.body).toContain(operation.success.mediaType);
      expect(schema).toBeInstanceOf(z.ZodString);
      return;
    }
    const list = /^array of (\w+)/.exec(entry.success.body)?.[1];
    const item = schema instanceof z.ZodArray ? (schema.element as z.ZodType) : schema;
    expect(jsonKind(schema)).toBe(list ? "array" : "object");
    const name = list ?? /^(?:empty; )?(\w+)/.exec(entry.success.body)?.[1];
    expect(item instanceof z.ZodString ? "string" : models.get(item)?.id).toBe(name);
    expect(operation.success.mayBeEmpty).toBe(/else empty|^empty; /.test(entry.success.body));
  });

  test("requires no role without authentication, and otherwise no role or a known one", () => {
    const role = operation.minRole;
    expect(role === null || ROLES.includes(role)).toBe(true);
    expect(operation.auth.includes("none") && role !== null).toBe(false);
  });

  test("uses each camelCase key once in params, query and body", () => {
    const shapes = [operation.params, operation.query, operation.body].map((schema) =>
      schema instanceof z.ZodObject ? Object.keys(schema.shape) : [],
    );
    for (const keys of shapes) {
      expect(new Set(keys.map(camelKey)).size).toBe(keys.length);
    }
  });
});

import { expect, expectTypeOf, test } from "vitest";
import {
  type CallResult,
  type Client,
  createClient,
  type ItemOf,
  type ListId,
  type OperationId,
  operations,
  type RequestOf,
  type ResponseOf,
  where,
} from "../../sdk/index.ts";

const client: Client = createClient({ url: "http://127.0.0.1:9" });

/** The compiler only checks the types of the calls. The calls do not run, since a request would need a server. */
const never = (_calls: () => unknown) => {};

test("uses the keys of the contract as operation ids", () => {
  expectTypeOf<OperationId>().not.toBeAny();
  expectTypeOf<"login">().toExtend<OperationId>();
  expectTypeOf<"createPublicKey">().toExtend<OperationId>();
  expectTypeOf<"username">().not.toExtend<OperationId>();
});

test("types requests in camelCase and requires the fields that the contract requires", () => {
  expectTypeOf<RequestOf<"getNamespace">>().toEqualTypeOf<{ readonly params: { tenant: string } }>();
  expectTypeOf<RequestOf<"healthcheck">>().toEqualTypeOf<Record<never, never>>();
  expectTypeOf<RequestOf<"setSessionRecord">["body"]>().toEqualTypeOf<
    { sessionRecord?: boolean | undefined } | undefined
  >();
  expectTypeOf<RequestOf<"createPublicKey">["body"]["filter"]["tags"]>().toEqualTypeOf<
    readonly string[] | undefined
  >();
  expectTypeOf<RequestOf<"createApiKey">["body"]["expiresAt"]>().toEqualTypeOf<-1 | 30 | 60 | 90 | 365>();
  never(() => client.healthcheck());
  never(() => client.getDevices());
  never(() => client.getDevices({ query: { filter: where("online").eq(true), perPage: 5, sortBy: "name" } }));
  never(() => client.setSessionRecord({ params: { tenant: "t" }, body: { sessionRecord: true } }));
  // @ts-expect-error the operation requires params
  never(() => client.getNamespace());
  // @ts-expect-error the client uses camelCase
  never(() => client.getDevices({ query: { per_page: 5 } }));
  // @ts-expect-error the operation requires a body
  never(() => client.updateMember({ params: { tenant: "t" } }));
  // @ts-expect-error getNamespace has no body
  never(() => client.getNamespace({ params: { tenant: "t" }, body: {} }));
});

test("types responses in camelCase at every level", () => {
  expectTypeOf<ResponseOf<"getNamespace">["tenantId"]>().toEqualTypeOf<string>();
  expectTypeOf<ResponseOf<"getNamespace">["settings"]>().toEqualTypeOf<{
    sessionRecord: boolean;
    connectionAnnouncement: string;
    deviceProof?: "optional" | "required" | undefined;
    sessionMaxMinutes?: number | undefined;
    sessionIdleMinutes?: number | undefined;
    sessionRecordMode?: "all" | "default" | "terminals" | undefined;
    sessionRecordMegabytes?: number | undefined;
    sessionRecordFailure?: "continue" | "end" | undefined;
    sshForwarding?: { login: string; target: string }[] | undefined;
  }>();
  expectTypeOf<ResponseOf<"getDevices">[number]["info"]["prettyName"]>().toEqualTypeOf<string>();
  expectTypeOf<ResponseOf<"getNamespace">["members"][number]["role"]>().toEqualTypeOf<
    "observer" | "operator" | "administrator" | "owner"
  >();
  expectTypeOf<ResponseOf<"deleteDevice">>().toEqualTypeOf<undefined>();
  expectTypeOf(client.getTags).returns.resolves.toEqualTypeOf<string[]>();
  expectTypeOf(client.call<"getInfo">).returns.resolves.toEqualTypeOf<CallResult<"getInfo">>();
});

test("iterates only list operations", () => {
  expectTypeOf<ListId>().toEqualTypeOf<
    | "getNamespaces"
    | "getDevices"
    | "getContainers"
    | "getPublicKeys"
    | "getFirewallRules"
    | "getSessions"
    | "listApiKeys"
    | "listTrustedWorkloads"
    | "getAuditTrail"
    | "listTunnels"
    | "connectorList"
    | "listAnnouncements"
  >();
  expectTypeOf<ItemOf<"getPublicKeys">["createdAt"]>().toEqualTypeOf<string>();
  // @ts-expect-error the operation does not return a list
  never(() => client.iterate("getNamespace", { params: { tenant: "t" } }));
});

test("types operations with an optional response body as possibly undefined", () => {
  expectTypeOf<undefined>().toExtend<ResponseOf<"leaveNamespace">>();
  expectTypeOf<undefined>().toExtend<ResponseOf<"registerUser">>();
  expectTypeOf<undefined>().not.toExtend<ResponseOf<"getNamespace">>();
  const emptyable = Object.values(operations).filter((operation) => operation.success.mayBeEmpty);
  expect(emptyable.map((operation) => operation.id)).toEqual([
    "updateUser",
    "registerUser",
    "updateUserData",
    "leaveNamespace",
  ]);
});

test("has a method for every operation, and no method hides another member of the client", () => {
  const methods = Object.getPrototypeOf(client) as Record<string, unknown>;
  const ids = Object.keys(operations);
  expect(ids.length).toBeGreaterThan(40);
  expect(ids.filter((id) => typeof methods[id] !== "function" || !Object.hasOwn(methods, id))).toEqual([]);
  const members = Object.getPrototypeOf(methods);
  expect(Object.getOwnPropertyNames(members).filter((name) => ids.includes(name))).toEqual([]);
});

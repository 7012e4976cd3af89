import { describe, expect, test } from "vitest";
import { z } from "zod";
import type { ApiKey, TrustedWorkload } from "../../../server/db/generated/sqlite/client.ts";
import { presentApiKey } from "../../../server/features/apiKeys/apiKeys.ts";
import { presentConnector } from "../../../server/features/connectors/connectors.ts";
import { changesFrom, columnsFrom, presenter } from "../../../server/features/fields.ts";
import { objects } from "../../../server/features/objects.ts";
import {
  presentWorkload,
  workloadColumns,
} from "../../../server/features/trustedWorkloads/trustedWorkloads.ts";

interface Row {
  readonly name: string;
  readonly note: string | null;
  readonly expiresAt: Date | null;
  readonly sizeLimit: bigint;
  readonly isActive: boolean;
  readonly allowedTargets: string;
  readonly labelValues: string;
  readonly digest: string;
}

const response = z.object({
  name: z.string(),
  note: z.string().optional(),
  expires_at: z.iso.datetime().nullable(),
  size_limit: z.int(),
  is_active: z.boolean(),
  allowed_targets: z.array(z.string()),
});

const row: Row = {
  name: "a",
  note: null,
  expiresAt: new Date("2026-01-02T03:04:05.678Z"),
  sizeLimit: 7n,
  isActive: true,
  allowedTargets: '["x"]',
  labelValues: "{}",
  digest: "secret",
};

describe("an object of a response", () => {
  const present = presenter<Row, typeof response>(response, {});

  test("has the converted values of its columns, and no other column", () => {
    expect(present(row)).toStrictEqual({
      name: "a",
      note: undefined,
      expires_at: "2026-01-02T03:04:05.678Z",
      size_limit: 7,
      is_active: true,
      allowed_targets: ["x"],
    });
  });

  test("has null for an absent field that can be null", () => {
    expect(present({ ...row, expiresAt: null }).expires_at).toBeNull();
  });

  test("has no secret of an API key or a connector", () => {
    const at = new Date(0);
    const times = { createdAt: at, updatedAt: at, creationKey: "SECRET", declaredBy: null };
    const key: ApiKey = {
      ...times,
      digest: "SECRET",
      tenantId: "t",
      name: "ci",
      role: "observer",
      createdBy: "u",
      expiresIn: -1n,
    };
    const connector = {
      uid: "c",
      tenantId: "t",
      enable: true,
      secure: true,
      address: "host",
      port: 1,
      createdAt: at,
      sealedTls: "SECRET",
      tlsDigest: "SECRET",
    };
    for (const object of [presentApiKey(key), presentConnector(connector)])
      expect(JSON.stringify(object)).not.toContain("SECRET");
  });
});

describe("a request body", () => {
  const body = z.object({
    name: z.string(),
    note: z.string().optional(),
    label_values: z.record(z.string(), z.string()),
  });
  const given = { name: "a", label_values: { b: "2", a: "1" } };
  const foreign = { tenant_id: "other", tenantId: "other", digest: "chosen", id: "chosen" };

  test("sets the columns of its fields, and no other column", () => {
    const columns = columnsFrom<Row, typeof body>(body, {});
    expect(columns({ ...given, ...foreign } as typeof given)).toStrictEqual({
      name: "a",
      note: null,
      labelValues: '{"a":"1","b":"2"}',
    });
  });

  test("of an update sets no column of an absent field", () => {
    const part = body.partial();
    const changes = changesFrom<Row, typeof part>(part, {});
    expect(changes({ ...foreign, note: "x" } as { note: string })).toStrictEqual({ note: "x" });
  });

  test("of a workload reaches only the columns of the settings", () => {
    const settings = {
      name: "ci",
      issuer: "https://issuer.example",
      audience: "a",
      claims: { sub: "x" },
      role: "operator" as const,
      max_session_minutes: 60,
      single_use: false,
    };
    const names = ["audience", "claims", "issuer", "maxSessionMinutes", "name", "role", "singleUse"];
    expect(Object.keys(workloadColumns({ ...settings, ...foreign })).sort()).toEqual(names);
  });
});

// `npm run check` compiles this block. It fails if one of these lines is valid. No test runs the compiler.
{
  const lost = z.object({ name: z.string(), other_field: z.string() });
  // @ts-expect-error `other_field` has no column
  presenter<Row, typeof lost>(lost, {});
  // @ts-expect-error `other_field` has no column
  columnsFrom<Row, typeof lost>(lost, {});
  const wrong = z.object({ is_active: z.string() });
  // @ts-expect-error the column `isActive` contains no text
  presenter<Row, typeof wrong>(wrong, {});
  const required = z.object({ note: z.string() });
  // @ts-expect-error the column `note` can be null, and the field is required
  presenter<Row, typeof required>(required, {});
  const end = z.object({ expires_at: z.string() });
  // @ts-expect-error a text of a request is no valid time
  columnsFrom<Row, typeof end>(end, {});
}

test("a field of another type is rejected at the start of the service", () => {
  const schema = z.object({ name: z.union([z.string(), z.int()]) });
  expect(() => presenter(schema, {} as never)).toThrow("a field of the type union has no column");
});

test("the declared fields of an object keep their order, on which its revision depends", () => {
  const workload: TrustedWorkload = {
    id: "i",
    tenantId: "t",
    name: "ci",
    issuer: "https://issuer.example",
    audience: "a",
    claims: "{}",
    role: "observer",
    maxSessionMinutes: 60,
    singleUse: false,
    createdBy: "u",
    createdAt: new Date(0),
    updatedAt: new Date(0),
    creationKey: null,
    declaredBy: null,
  };
  expect(presentWorkload(workload).revision).toBe("E_atWWevUHGz4NWHfd3Yub");
  const filtered = { hostname: ".*", tags: [], expiresAt: null, ownerId: null };
  const orders: Readonly<Record<string, readonly string[]>> = {
    device: ["name", "status", "public_url"],
    member: ["role", "access_expires_at"],
    apiKey: ["name", "role", "expires_in"],
    publicKey: ["name", "username", "filter", "expires_at", "owner"],
    firewallRule: ["action", "active", "priority", "source_ip", "username", "filter", "expires_at"],
    tunnel: ["device", "host", "port", "ttl"],
    connector: ["enable", "secure", "address", "port", "tls"],
  };
  for (const [kind, order] of Object.entries(orders))
    expect(Object.keys(objects[kind as keyof typeof objects].declared(filtered) ?? {}), kind).toEqual(order);
});

import { type Operation, publicOperations } from "@gatehouse-access/sdk/contract";
import { afterAll, beforeAll, expect, test } from "vitest";
import { startApp, type TestApp } from "./testApp.ts";

/** A limited operation may always answer 429; the contract names what else its operations answer. */
const statusesOf = ({ success, errors, limit }: Operation) => [
  ...new Set([success.status, ...Object.keys(errors).map(Number), ...(limit ? [429] : [])]),
];

let app: TestApp;
beforeAll(async () => {
  app = await startApp();
});
afterAll(() => app.stop());

test("the document has every operation, on every path", async () => {
  const { status, body } = await app.send("GET", "/openapi.json");
  expect(status).toBe(200);
  expect(body.openapi).toBe("3.1.0");
  for (const operation of Object.values(publicOperations)) {
    for (const path of [operation.path, ...operation.aliases]) {
      const entry = body.paths[path]?.[operation.method.toLowerCase()];
      expect(entry?.operationId, path).toMatch(new RegExp(`^${operation.id}(Alias)?$`));
      expect(Object.keys(entry.responses), path).toEqual(statusesOf(operation).map(String).sort());
      const headers = entry.parameters.filter((parameter: { in: string }) => parameter.in === "header");
      expect(
        headers.map(({ name, required, schema }: Record<string, unknown>) => [name, required, schema]),
      ).toEqual(
        operation.idempotencyKey
          ? [["Idempotency-Key", false, expect.objectContaining({ type: "string" })]]
          : [],
      );
      expect(entry.security.length > 0, path).toBe(operation.scope !== "public");
    }
  }
});

test("ids are unique, and every reference leads to a schema", async () => {
  const { body, text } = await app.send("GET", "/openapi.json");
  const ids = Object.values<Record<string, { operationId: string }>>(body.paths).flatMap((path) =>
    Object.values(path).map((entry) => entry.operationId),
  );
  expect(new Set(ids).size).toBe(ids.length);
  const references = [...text.matchAll(/"\$ref":"([^"]+)"/g)].map((match) => match[1] ?? "");
  expect(references.length).toBeGreaterThan(20);
  for (const reference of references) {
    const name = /^#\/components\/schemas\/(\w+)$/.exec(reference)?.[1];
    expect(body.components.schemas, reference).toHaveProperty([name ?? reference]);
  }
  expect(text).not.toContain("$defs");
});

test("operations of a higher edition are neither in it nor routed", async () => {
  const community = await startApp({ edition: "community" });
  const { body } = await community.send("GET", "/openapi.json");
  expect(body.paths).not.toHaveProperty(["/api/user/mfa/auth"]);
  expect((await community.send("POST", "/api/user/mfa/auth")).status).toBe(404);
  expect((await community.send("GET", "/api/user/mfa/generate")).status).toBe(404);
  await community.stop();
});

import { operations, takesDeclaredBy, takesIfMatch, takesLockoutGuard } from "@gatehouse-access/sdk/contract";
import { Validator } from "@seriousme/openapi-schema-validator";
import { expect, test } from "vitest";
import { CONNECTION_ERRORS, commonErrors } from "../../../server/http/contract/openapi.ts";
import { testApp, withSharedApp } from "./appOfTest.ts";

// The cloud edition has all operations.
const app = withSharedApp({ edition: "cloud" });

test("the document has every operation, on every path", async () => {
  const { status, body } = await app.send("GET", "/openapi.json");
  expect(status).toBe(200);
  expect(body.openapi).toBe("3.1.0");
  for (const operation of Object.values(operations)) {
    for (const path of [operation.path, ...operation.aliases]) {
      const entry = body.paths[path]?.[operation.method.toLowerCase()];
      expect(entry?.operationId, path).toMatch(new RegExp(`^${operation.id}(Alias\\d?)?$`));
      expect(Object.keys(entry.responses), path).toEqual(
        Object.keys({
          [operation.success.status]: "",
          ...operation.errors,
          ...commonErrors(operation),
          ...CONNECTION_ERRORS,
        }),
      );
      const headers = entry.parameters.filter((parameter: { in: string }) => parameter.in === "header");
      expect(
        headers.map(({ name, required, schema }: Record<string, unknown>) => [name, required, schema]),
      ).toEqual(
        [
          operation.idempotencyKey && "Idempotency-Key",
          takesIfMatch(operation) && "If-Match",
          takesDeclaredBy(operation) && "Gatehouse-Declared-By",
          takesLockoutGuard(operation) && "Gatehouse-Lockout-Guard",
        ]
          .filter((name) => name !== false)
          .map((name) => [name, false, expect.objectContaining({ type: "string" })]),
      );
      expect(entry.security.length > 0, path).toBe(operation.scope !== "public");
    }
  }
});

test("the document is valid OpenAPI 3.1", async () => {
  const { body } = await app.send("GET", "/openapi.json");
  expect(await new Validator().validate(body)).toEqual({ valid: true });
  const broken = { ...body, paths: { "/x": { get: { responses: { 200: {} } } } } };
  expect((await new Validator().validate(broken)).valid).toBe(false);
});

test("every response has the id of its request, and every list has its total", async () => {
  const { body } = await app.send("GET", "/openapi.json");
  const { responses } = body.paths["/api/devices"].get;
  expect(Object.keys(responses[200].headers)).toEqual(["X-Request-ID", "X-Total-Count"]);
  expect(Object.keys(responses[401].headers)).toEqual(["X-Request-ID"]);
  expect(responses[431]).not.toHaveProperty("headers");
  const login = body.paths["/api/login"].post.responses[429];
  expect(Object.keys(login.headers)).toEqual(["X-Request-ID", "X-Account-Lockout", "X-MFA-Token"]);
});

test("a response whose type depends on Accept has all of its types, and the header Vary", async () => {
  const { body } = await app.send("GET", "/openapi.json");
  const { content, headers } = body.paths["/api/sessions/{uid}/records/{seat}"].get.responses[200];
  expect(Object.keys(content)).toEqual(["application/json", "application/x-asciicast", "text/plain"]);
  expect(Object.keys(headers)).toEqual(["X-Request-ID", "Vary"]);
});

test("parameters that the server adjusts or replaces have no limits, and its other checks are documented", async () => {
  const { body } = await app.send("GET", "/openapi.json");
  const schemaOf = (path: string, name: string) =>
    body.paths[path].get.parameters.find((parameter: { name: string }) => parameter.name === name).schema;
  expect(schemaOf("/api/devices", "per_page")).toEqual({
    type: "integer",
    default: 10,
    description: expect.stringContaining("1 to 100"),
  });
  expect(schemaOf("/api/devices", "order_by")).not.toHaveProperty("enum");
  expect(schemaOf("/api/namespaces/api-key", "order_by").enum).toEqual(["asc", "desc"]);
  expect(body.components.schemas.Filter.oneOf).toEqual([{ required: ["hostname"] }, { required: ["tags"] }]);
  const bodyOf = (path: string, method: string) => body.paths[path][method].requestBody;
  expect(bodyOf("/api/devices/{uid}", "put").required).toBe(false);
  expect(bodyOf("/api/devices/{uid}", "patch").required).toBe(true);
  const names = body.paths["/api/users"].patch.responses[400].content["application/json"].schema;
  expect(names.anyOf[0]).toEqual({ type: "array", items: { type: "string" } });
});

test("ids are unique, and every reference resolves to a schema", async () => {
  const { body, text } = await app.send("GET", "/openapi.json");
  const ids = Object.values<Record<string, { operationId: string }>>(body.paths).flatMap((path) =>
    Object.values(path).map((entry) => entry.operationId),
  );
  expect(new Set(ids).size).toBe(ids.length);
  const references = [...text.matchAll(/"\$ref":"([^"]+)"/g)].map((match) => match[1] ?? "");
  expect(references.length).toBeGreaterThan(20);
  for (const reference of references) {
    const name = /^#\/components\/schemas\/(\w+)$/.exec(reference)?.[1];
    const header = /^#\/components\/headers\/([\w-]+)$/.exec(reference)?.[1];
    const place = header ? body.components.headers : body.components.schemas;
    expect(place, reference).toHaveProperty([header ?? name ?? reference]);
  }
  expect(text).not.toContain("$defs");
});

test("operations of a higher edition are neither documented nor routed", async () => {
  const community = await testApp({ edition: "community" });
  const { body } = await community.send("GET", "/openapi.json");
  expect(body.paths).not.toHaveProperty(["/api/user/mfa/auth"]);
  expect((await community.send("POST", "/api/user/mfa/auth")).status).toBe(404);
  expect((await community.send("GET", "/api/user/mfa/generate")).status).toBe(404);
});

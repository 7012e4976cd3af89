import { beforeAll, expect, test } from "vitest";
import { call } from "../../support/call.ts";
import { startService } from "../../support/service.ts";
import { shared } from "../../support/shared.ts";

const service = shared(startService);
let credentials: { username: string; password: string };
beforeAll(async () => {
  credentials = await service.setup();
});

test("a user logs in, creates a key, uses it, and revokes it", async () => {
  const session = await call(service, "POST /api/login", { body: credentials });
  expect(session.status).toBe(200);
  const { token } = session.body;
  const body = { name: "ci-key", expires_at: 30 };
  const key = await call(service, "POST /api/namespaces/api-key", { token, body });
  expect(key.status).toBe(200);
  const list = () => call(service, "GET /api/devices", { apiKey: key.body.id });
  expect((await list()).headers.get("x-total-count")).toBe("0");
  expect((await call(service, "DELETE /api/namespaces/api-key/ci-key", { token })).status).toBe(200);
  expect((await list()).status).toBe(401);
});

test("logs one line for every request, with its id and without its secrets", async () => {
  const wrong = { ...credentials, password: "a-wrong-password" };
  const secret = "c2a1f0de-7a51-4f2e-9c0b-2f7d5b8e4a10";
  const answer = await call(service, "POST /api/login?token=in-the-url", {
    body: wrong,
    apiKey: secret,
    token: "in-the-header",
  });
  expect(answer.status).toBe(401);
  const id = answer.headers.get("x-request-id");
  const linesOf = () => service.logs().filter((line) => line.reqId === id);
  await expect.poll(() => linesOf().length).toBe(1);
  expect(linesOf()[0]).toMatchObject({
    msg: "request",
    statusCode: 401,
    req: { method: "POST", remoteAddress: "127.0.0.1" },
  });
  for (const text of [credentials.password, "a-wrong-password", secret, "in-the-url", "in-the-header"]) {
    expect(service.output()).not.toContain(text);
  }
});

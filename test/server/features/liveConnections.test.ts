import { request } from "node:http";
import { beforeAll, expect, test } from "vitest";
import { withSharedApp } from "../http/lab.ts";
import { enrol } from "../http/testApp.ts";

let deviceToken: string;
let token: string;
const app = withSharedApp();
beforeAll(async () => {
  const ana = await app.user("ana", "lab");
  token = ana.token;
  ({ token: deviceToken } = await enrol(app, ana.tenant, "00:00:00:00:00:01"));
});

const REFUSAL = "live connections to devices come in a later version of this service";

/** A request for a WebSocket, as agents and browsers send it. */
function upgrade(path: string, authorization?: string): Promise<[number | undefined, string]> {
  const headers = {
    connection: "Upgrade",
    upgrade: "websocket",
    "sec-websocket-version": "13",
    "sec-websocket-key": "AAAAAAAAAAAAAAAAAAAAAA==",
    ...(authorization && { authorization: `Bearer ${authorization}` }),
  };
  return new Promise((resolve, reject) => {
    request(app.url + path, { headers, agent: false }, (response) => {
      let text = "";
      response.setEncoding("utf8").on("data", (more: string) => {
        text += more;
      });
      response.on("end", () => resolve([response.statusCode, JSON.parse(text).message]));
    })
      .on("error", reject)
      .end();
  });
}

test("an agent is told that there is no tunnel yet, and nobody else is told anything", async () => {
  expect(await upgrade("/ssh/connection", deviceToken)).toEqual([501, REFUSAL]);
  expect((await upgrade("/ssh/connection"))[0]).toBe(401);
  expect((await upgrade("/ssh/connection", token))[0]).toBe(403);
});

test.each(["/ssh/revdial?revdial.dialer=0f&uuid=0", "/ws/ssh?token=t&cols=80&rows=24"])(
  "%s is refused the same way",
  async (path) => {
    expect(await upgrade(path)).toEqual([501, REFUSAL]);
  },
);

test("a web terminal is refused after its request was checked", async () => {
  const device = "0".repeat(64);
  const open = (body: object) => app.call("openWebTerminal", { body });
  expect((await open({ device, username: "root", password: "secret" })).status).toBe(501);
  expect((await open({ device: "web-1", username: "root" })).body.message).toBe(
    "device: must be 64 lower-case hex characters",
  );
});

import { describe, expect, test } from "vitest";
import { expectError, statusesOf } from "../http/answers.ts";
import { testApp } from "../http/appOfTest.ts";
import { type Answer, DENY_RULE, enroll, type TestApp, type TestUser } from "../http/testApp.ts";

/** The requests of a user for objects of a kind. */
interface Requests {
  create(): Promise<Answer>;
  list(): Promise<Answer>;
  /** Deletes an object of the list. */
  remove(object: { readonly [field: string]: string }): Promise<Answer>;
}

interface Kind {
  readonly name: string;
  readonly setting: "maximumFirewallRules" | "maximumConnectors" | "maximumTunnels";
  /** The message of the refusal at a maximum of two objects. */
  readonly refusal: string;
  requests(app: TestApp, user: TestUser): Promise<Requests>;
}

const KINDS: readonly Kind[] = [
  {
    name: "firewall rules",
    setting: "maximumFirewallRules",
    refusal: "the namespace has the maximum of 2 firewall rules: delete one",
    requests: async (_, user) => ({
      create: () => user.call("createFirewallRule", { body: DENY_RULE }),
      list: () => user.call("getFirewallRules"),
      remove: ({ id = "" }) => user.call("deleteFirewallRule", { params: { id } }),
    }),
  },
  {
    name: "connectors",
    setting: "maximumConnectors",
    refusal: "the namespace has the maximum of 2 connectors: delete one",
    requests: async (_, user) => ({
      create: () => user.call("connectorCreate", { body: { address: "engine.example.org", port: 2376 } }),
      list: () => user.call("connectorList"),
      remove: ({ uid = "" }) => user.call("connectorDelete", { params: { uid } }),
    }),
  },
  {
    name: "tunnels of a device",
    setting: "maximumTunnels",
    refusal: "the device has the maximum of 2 tunnels: delete one",
    requests: async (app, user) => {
      const { uid } = await enroll(app, user.tenant, "00:00:00:00:00:01");
      const body = { host: "127.0.0.1", port: 8080, ttl: 3600 };
      return {
        create: () => user.call("createTunnel", { params: { uid }, body }),
        list: () => user.call("listTunnels", { params: { uid } }),
        remove: ({ address = "" }) => user.call("deleteTunnel", { params: { uid, address } }),
      };
    },
  },
];

describe.each(KINDS)("the limit of $name", ({ setting, refusal, requests }) => {
  const start = async (maximum: number) => {
    const app = await testApp({ edition: "cloud", [setting]: maximum });
    const ana = await requests(app, await app.user("ana", "lab"));
    return { ana, eve: await requests(app, await app.user("eve", "eves")) };
  };

  test("is configurable and separate for each owner, and deleting an object allows another one", async () => {
    const { ana, eve } = await start(2);
    expect(await statusesOf([ana.create(), ana.create()])).toEqual([200, 200]);
    expectError(await ana.create(), 403, refusal);
    expect((await eve.create()).status).toBe(200);
    const [first] = (await ana.list()).body;
    expect((await ana.remove(first)).status).toBe(200);
    expect((await ana.create()).status).toBe(200);
  });

  test("holds for concurrent creations", async () => {
    const { ana } = await start(3);
    const statuses = await statusesOf(Array.from({ length: 8 }, ana.create));
    expect(statuses).toEqual([200, 200, 200, 403, 403, 403, 403, 403]);
    expect((await ana.list()).body).toHaveLength(3);
  });

  test("is off with 0", async () => {
    const { ana } = await start(0);
    for (let count = 0; count < 12; count += 1) expect((await ana.create()).status).toBe(200);
  });
});

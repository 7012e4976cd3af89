import { beforeEach, expect, test } from "vitest";
import { withAppAndUser } from "../http/appOfTest.ts";
import { encodeFilter, enroll, property } from "../http/testApp.ts";

let device: string;
let container: string;
const { app, ana } = withAppAndUser();
beforeEach(async () => {
  ({ uid: device } = await enroll(app, ana.tenant, "00:00:00:00:00:01"));
  container = await enrollContainer("00:00:00:00:00:02", "web");
});

const enrollContainer = async (mac: string, hostname: string): Promise<string> => {
  const info = {
    id: "alpine",
    pretty_name: "Alpine",
    version: "v0.19.0",
    arch: "amd64",
    platform: "connector",
  };
  return (await enroll(app, ana.tenant, mac, { info, hostname })).uid;
};
const on = (uid: string, token = ana.token) => ({ token, params: { uid } });
const uids = (body: { uid: string }[]) => body.map((item) => item.uid);

test("lists devices and containers separately", async () => {
  const devices = await ana.call("getDevices");
  expect([uids(devices.body), devices.headers.get("x-total-count")]).toEqual([[device], "1"]);
  const containers = await ana.call("getContainers");
  expect([uids(containers.body), containers.headers.get("x-total-count")]).toEqual([[container], "1"]);
});

test("filters, sorts, pages and selects container lists by status like device lists", async () => {
  const second = await enrollContainer("00:00:00:00:00:03", "db");
  await ana.call("updateContainerStatus", { params: { uid: second, status: "accept" } });
  const list = async (query: Record<string, string | number>) =>
    uids((await ana.call("getContainers", { query })).body);
  expect(await list({ status: "accepted" })).toEqual([second]);
  expect(await list({ sort_by: "name", order_by: "asc" })).toEqual([second, container]);
  expect(await list({ sort_by: "name", order_by: "asc", per_page: 1, page: 2 })).toEqual([container]);
  expect(await list({ filter: encodeFilter([property("name", "eq", "web")]) })).toEqual([container]);
  expect(await list({ filter: encodeFilter([property("info.platform", "eq", "native")]) })).toEqual([]);
});

test("reads, changes, tags and deletes a container under its own path", async () => {
  const { body } = await app.call("getContainer", on(container));
  expect(body).toMatchObject({ uid: container, name: "web", info: { platform: "connector" } });
  const changed = { name: "Shop", public_url: true };
  expect((await app.call("updateContainer", { ...on(container), body: changed })).status).toBe(200);
  expect((await app.call("createContainerTag", { ...on(container), body: { tag: "edge" } })).status).toBe(
    200,
  );
  const tags = { ...on(container), body: { tags: ["edge", "core"] } };
  expect((await app.call("updateContainerTags", tags)).status).toBe(200);
  const removal = { token: ana.token, params: { uid: container, tag: "edge" } };
  expect((await app.call("deleteContainerTag", removal)).status).toBe(200);
  expect((await app.call("getContainer", on(container))).body).toMatchObject({
    name: "shop",
    public_url: true,
    tags: ["core"],
  });
  expect((await app.call("deleteContainer", on(container))).status).toBe(200);
  expect((await app.call("getContainer", on(container))).status).toBe(404);
});

test("answers 404 for a device, and for a container of another namespace", async () => {
  const { token } = await app.user("eve", "eves");
  for (const target of [on(device), on(container, token)]) {
    const withTag = { ...target, params: { ...target.params, tag: "edge", status: "accept" } };
    const answers = [
      await app.call("getContainer", target),
      await app.call("deleteContainer", target),
      await app.call("updateContainer", { ...target, body: { name: "mine" } }),
      await app.call("updateContainerStatus", withTag),
      await app.call("createContainerTag", { ...target, body: { tag: "edge" } }),
      await app.call("updateContainerTags", { ...target, body: { tags: ["edge"] } }),
      await app.call("deleteContainerTag", withTag),
    ];
    for (const { status, body } of answers)
      expect([status, body.message]).toEqual([404, "no such container"]);
  }
  expect((await app.call("getContainers", { token })).body).toEqual([]);
});

test("accepts a container in operations on one device", async () => {
  expect((await app.call("getDevice", on(container))).body.uid).toBe(container);
  expect((await app.call("acceptDevice", on(container))).status).toBe(200);
  expect((await app.call("getContainer", on(container))).body.status).toBe("accepted");
});

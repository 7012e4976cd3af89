import { beforeEach, expect, test } from "vitest";
import { expectError, NOT_FOUND } from "../http/answers.ts";
import { withAppAndUser } from "../http/appOfTest.ts";
import { encodeFilter, enroll, property, reportOf, valuesOf } from "../http/testApp.ts";

let device: string;
let container: string;
const { app, ana } = withAppAndUser();
beforeEach(async () => {
  ({ uid: device } = await enroll(app, ana.tenant, "00:00:00:00:00:01"));
  container = await enrollContainer("00:00:00:00:00:02", "web");
});

const enrollContainer = async (mac: string, hostname: string): Promise<string> => {
  const info = { ...reportOf("", "").info, platform: "connector" };
  return (await enroll(app, ana.tenant, mac, { info, hostname })).uid;
};
const on = (uid: string, body?: object) => ({ params: { uid }, body });

test("lists devices and containers separately", async () => {
  const devices = await ana.call("getDevices");
  expect([valuesOf(devices.body, "uid"), devices.headers.get("x-total-count")]).toEqual([[device], "1"]);
  const containers = await ana.call("getContainers");
  expect([valuesOf(containers.body, "uid"), containers.headers.get("x-total-count")]).toEqual([
    [container],
    "1",
  ]);
});

test("filters, sorts, pages and selects container lists by status like device lists", async () => {
  const second = await enrollContainer("00:00:00:00:00:03", "db");
  await ana.call("updateContainerStatus", { params: { uid: second, status: "accept" } });
  const list = async (query: Record<string, string | number>) =>
    valuesOf((await ana.call("getContainers", { query })).body, "uid");
  expect(await list({ status: "accepted" })).toEqual([second]);
  expect(await list({ sort_by: "name", order_by: "asc" })).toEqual([second, container]);
  expect(await list({ sort_by: "name", order_by: "asc", per_page: 1, page: 2 })).toEqual([container]);
  expect(await list({ filter: encodeFilter([property("name", "eq", "web")]) })).toEqual([container]);
  expect(await list({ filter: encodeFilter([property("info.platform", "eq", "native")]) })).toEqual([]);
});

test("reads, changes, tags and deletes a container under its own path", async () => {
  const { body } = await ana.call("getContainer", on(container));
  expect(body).toMatchObject({ uid: container, name: "web", info: { platform: "connector" } });
  const answers = [
    await ana.call("updateContainer", on(container, { name: "Shop", public_url: true })),
    await ana.call("createContainerTag", on(container, { tag: "edge" })),
    await ana.call("updateContainerTags", on(container, { tags: ["edge", "core"] })),
    await ana.call("deleteContainerTag", { params: { uid: container, tag: "edge" } }),
  ];
  expect(answers.map(({ status }) => status)).toEqual([200, 200, 200, 200]);
  const changed = { name: "shop", public_url: true, tags: ["core"] };
  expect((await ana.call("getContainer", on(container))).body).toMatchObject(changed);
  expect((await ana.call("deleteContainer", on(container))).status).toBe(200);
  expect((await ana.call("getContainer", on(container))).status).toBe(404);
});

test("answers 404 for a device", async () => {
  const withTag = { params: { uid: device, tag: "edge", status: "accept" } };
  const answers = [
    await ana.call("getContainer", on(device)),
    await ana.call("deleteContainer", on(device)),
    await ana.call("updateContainer", on(device, { name: "mine" })),
    await ana.call("updateContainerStatus", withTag),
    await ana.call("createContainerTag", on(device, { tag: "edge" })),
    await ana.call("updateContainerTags", on(device, { tags: ["edge"] })),
    await ana.call("deleteContainerTag", withTag),
  ];
  for (const answer of answers) expectError(answer, 404, "no such container", NOT_FOUND);
});

test("accepts a container in operations on one device", async () => {
  expect((await ana.call("getDevice", on(container))).body.uid).toBe(container);
  expect((await ana.call("acceptDevice", on(container))).status).toBe(200);
  expect((await ana.call("getContainer", on(container))).body.status).toBe("accepted");
});

import { expect, test } from "vitest";
import { buildApp } from "../../../server/app.ts";
import { startApp } from "./testApp.ts";

const build = async () => {
  const { services, gateway, stop } = await startApp();
  return { app: await buildApp(services, gateway), stop };
};

test("a route that does not declare who may call it keeps the server from starting", async () => {
  const { app, stop } = await build();
  expect(() => app.get("/forgotten", async () => "secret")).toThrow(/GET \/forgotten does not declare/);
  await app.close();
  await stop();
});

test("so does one of a plugin, and one whose reason is empty", async () => {
  const { app, stop } = await build();
  app.register(async (plugin) => {
    plugin.get("/forgotten", { config: { publicBecause: "" } }, async () => "secret");
  });
  await expect(app.ready()).rejects.toThrow(/does not declare/);
  await stop();
});

test("one that says why it is open starts", async () => {
  const { app, stop } = await build();
  app.get("/open", { config: { publicBecause: "a test" } }, async () => ({ open: true }));
  await app.ready();
  await app.close();
  await stop();
});

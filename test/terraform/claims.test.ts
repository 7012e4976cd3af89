import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { sshKeyLine } from "../provider/support/programs.ts";
import { type Fleet, startFleet } from "../support/fleet.ts";
import { testFolder } from "../support/folder.ts";
import { requestsDuring } from "../support/requests.ts";
import {
  type AttachedProvider,
  hasTerraform,
  installedProvider,
  LABEL,
  RootModule,
  startProvider,
} from "./support/terraform.ts";

describe.runIf(hasTerraform)(`objects of several configurations of ${LABEL}`, () => {
  let fleet: Fleet;
  let provider: AttachedProvider;
  beforeAll(async () => {
    fleet = await startFleet();
    provider = await startProvider(fleet.env);
  });
  afterAll(async () => {
    await provider.stop();
    await fleet.stop();
  });
  afterEach(async () => {
    for (const { fingerprint } of await keys())
      await fleet.client.deletePublicKey({ params: { fingerprint } });
  });

  const keys = () => fleet.client.getPublicKeys();
  const owner = async () => (await keys())[0]?.declaredBy;
  const newModule = (folder = testFolder()) => new RootModule(folder, { ...provider.env, ...fleet.env });
  const words = (output: string) => output.replaceAll(/[│\s]+/g, " ");
  const data = sshKeyLine("ana");
  const resource = (more: object = {}, name = "one") => ({
    gatehouse_public_key: {
      [name]: { name: "ana", data, username: "^ana$", filter: { hostname: ".*" }, ...more },
    },
  });
  /** Returns a configuration of a project. */
  const of = (project: string | undefined, more: object = { resource: resource() }) => ({
    ...(project !== undefined && { provider: { gatehouse: { project } } }),
    ...more,
  });
  const idOf = (root: RootModule) => String(root.state().resources[0]?.instances[0]?.attributes.id);
  const fileOf = (root: RootModule) => join(root.folder, "terraform.tfstate");

  it("are claimed by the folder to which a state is moved, and the claim is the only change", async () => {
    const first = newModule();
    first.write(of("first"));
    await first.apply();
    const [before] = await keys();
    const second = newModule();
    second.write(of("second"));
    await first.must(
      "state",
      "mv",
      `-state=${fileOf(first)}`,
      `-state-out=${fileOf(second)}`,
      "gatehouse_public_key.one",
      "gatehouse_public_key.one",
    );
    const { output } = await second.run("plan", "-out=plan");
    expect(words(output)).toContain(
      "claims the object, which gatehouse_public_key of first/default declared before",
    );
    expect(output).toContain("0 to add, 1 to change, 0 to destroy");
    await second.must("apply", "plan");
    expect(await second.changes()).toEqual([]);
    const [after] = await keys();
    expect(after?.declaredBy).toMatchObject({ project: "second", stack: "default" });
    // A claim is no change of the object.
    expect({ ...after, declaredBy: undefined }).toEqual({ ...before, declaredBy: undefined });
    expect(await first.must("destroy", "-auto-approve")).toContain("0 destroyed");
    expect(await keys()).toHaveLength(1);
    await second.must("destroy", "-auto-approve");
    expect(await keys()).toEqual([]);
  });

  it("stay if a restored older state still contains a moved object, and the destroy warns", async () => {
    const first = newModule();
    first.write(of("first"));
    await first.apply();
    const older = readFileSync(fileOf(first), "utf8");
    const second = newModule();
    second.write(of("second"));
    writeFileSync(fileOf(second), older);
    await second.apply();
    const text = words(await first.must("destroy", "-auto-approve"));
    expect(text).toMatch(
      /left the object \S+ on the service: gatehouse_public_key of second\/default has declared it last/,
    );
    expect(await keys()).toHaveLength(1);
    writeFileSync(fileOf(first), JSON.stringify({ ...JSON.parse(older), serial: 100 }));
    await first.must("destroy", "-auto-approve");
    expect(await keys()).toHaveLength(1);
    // The setting deletes the object.
    writeFileSync(fileOf(first), JSON.stringify({ ...JSON.parse(older), serial: 200 }));
    const deleting = new RootModule(first.folder, { ...first.env, GATEHOUSE_DELETE_CLAIMED: "true" });
    first.write({ provider: { gatehouse: { project: "first", delete_claimed: "true" } } });
    await deleting.apply();
    expect(await keys()).toEqual([]);
  });

  it("stay after a removed block with destroy = false and an import, which sends no claim", async () => {
    const first = newModule();
    first.write(of("first"));
    await first.apply();
    const id = idOf(first);
    first.write(
      of("first", { removed: { from: "gatehouse_public_key.one", lifecycle: { destroy: false } } }),
    );
    await first.apply();
    const second = newModule();
    second.write({ ...of("second"), import: { to: "gatehouse_public_key.one", id } });
    await second.apply();
    expect(await second.changes()).toEqual([]);
    expect(await owner()).toMatchObject({ project: "first" });
    expect(await first.must("destroy", "-auto-approve")).toContain("0 destroyed");
    expect(await keys()).toHaveLength(1);
    // The import is the last step of the move, so a destroy of the new folder deletes the object.
    const text = readFileSync(fileOf(second), "utf8");
    await second.must("destroy", "-auto-approve");
    expect(await keys()).toEqual([]);
    writeFileSync(fileOf(second), "");
    second.write(of("first"));
    await second.apply();
    writeFileSync(fileOf(second), JSON.stringify({ ...JSON.parse(text), serial: 100 }));
    // The first update after the import declares the object.
    second.write(of("second", { resource: resource({ username: "^root$" }) }));
    await second.apply();
    expect(await owner()).toMatchObject({ project: "second" });
    // From then on, a declaration by the first folder is newer than the import.
    first.write(of("first", { resource: resource({ adopt: "overwrite" }) }));
    await first.apply();
    expect(words(await second.must("destroy", "-auto-approve"))).toContain(
      "of first/default has declared it",
    );
    expect(await keys()).toHaveLength(1);
  });

  it("are claimed by an adoption, so that the folder that declared them before leaves them", async () => {
    const first = newModule();
    first.write(of("first"));
    await first.apply();
    const second = newModule();
    second.write(of("second", { resource: resource({ adopt: true }) }));
    await second.apply();
    expect(await owner()).toMatchObject({ project: "second" });
    const text = words(await first.must("destroy", "-auto-approve"));
    expect(text).toContain("of second/default has declared it last");
    expect(await keys()).toHaveLength(1);
    await second.must("destroy", "-auto-approve");
    expect(await keys()).toEqual([]);
  });

  it("are claimed after a moved block only if the folder changes, and after a new value of project", async () => {
    const root = newModule();
    root.write(of("first"));
    await root.apply();
    const moved = { from: "gatehouse_public_key.one", to: "gatehouse_public_key.two" };
    root.write({ ...of("first", { resource: resource({}, "two") }), moved });
    expect(await root.changes()).toEqual([]);
    await root.apply();
    root.write(of("renamed", { resource: resource({}, "two") }));
    expect(await root.changes()).toEqual(["gatehouse_public_key.two: update"]);
    await root.must("apply", "plan");
    expect(await root.changes()).toEqual([]);
    expect(await owner()).toMatchObject({ project: "renamed" });
  });

  it("have an empty plan with a state of an earlier version, which contains no private data", async () => {
    const root = newModule();
    root.write(of("first"));
    await root.apply();
    for (const data of [undefined, "bm90IEpTT04=", Buffer.from('{"replaces":"x"}').toString("base64")]) {
      const state = JSON.parse(readFileSync(fileOf(root), "utf8"));
      state.resources[0].instances[0].private = data;
      writeFileSync(fileOf(root), JSON.stringify({ ...state, serial: state.serial + 1 }));
      root.write(of("second"));
      expect(await root.changes(), data).toEqual([]);
    }
    root.write(of("second", { resource: resource({ username: "^root$" }) }));
    await root.apply();
    root.write(of("third", { resource: resource({ username: "^root$" }) }));
    expect(await root.changes()).toEqual(["gatehouse_public_key.one: update"]);
  });

  it("are adopted again after a lost state, and the restored older state does not delete them", async () => {
    const root = newModule();
    root.write(of("first"));
    await root.apply();
    const older = readFileSync(fileOf(root), "utf8");
    writeFileSync(fileOf(root), "");
    root.write(of("first", { resource: resource({ adopt: true }) }));
    await root.apply();
    expect(await root.changes()).toEqual([]);
    const newer = readFileSync(fileOf(root), "utf8");
    writeFileSync(fileOf(root), older);
    expect(words(await root.must("destroy", "-auto-approve"))).toContain("has declared it last");
    expect(await keys()).toHaveLength(1);
    writeFileSync(fileOf(root), JSON.stringify({ ...JSON.parse(newer), serial: 100 }));
    await root.must("destroy", "-auto-approve");
    expect(await keys()).toEqual([]);
  });

  it("of two folders with one name belong to two projects if the folders set project", async () => {
    const [first, second] = ["a", "b"].map((name) => newModule(join(testFolder(), name, "access")));
    if (!first || !second) throw new Error("no folders");
    first.write(of("first"));
    await first.apply();
    second.write(of("second", { resource: resource({ adopt: true }) }));
    await second.apply();
    await first.must("destroy", "-auto-approve");
    expect(await keys()).toHaveLength(1);
  });

  // Long, because Terraform starts the provider for each step.
  it("of two folders with one name and no project stay if the other folder has adopted them", {
    tags: ["long"],
  }, async () => {
    const env = { ...installedProvider(), ...fleet.env };
    const [first, second] = ["a", "b"].map((name) => new RootModule(join(testFolder(), name, "access"), env));
    if (!first || !second) throw new Error("no folders");
    first.write(of(undefined));
    await first.apply();
    expect(await owner()).toMatchObject({ project: "access" });
    second.write(of(undefined, { resource: resource({ adopt: true }) }));
    await second.apply();
    expect(words(await first.must("destroy", "-auto-approve"))).toContain("has declared it last");
    expect(await keys()).toHaveLength(1);
    await second.must("destroy", "-auto-approve");
    expect(await keys()).toEqual([]);
  });

  it("have no project that a declaration cannot contain", async () => {
    const root = newModule();
    root.write(of("a\nb"));
    const { code, output } = await root.run("plan");
    expect(code).toBe(1);
    expect(words(output)).toContain("project: must be a text without control characters");
  });
});

describe.runIf(hasTerraform)(`out-of-band changes under ${LABEL}`, () => {
  let fleet: Fleet;
  let provider: AttachedProvider;
  beforeAll(async () => {
    fleet = await startFleet();
    provider = await startProvider(fleet.env);
  });
  afterAll(async () => {
    await provider.stop();
    await fleet.stop();
  });

  const data = sshKeyLine("ana");
  const key = (more: object = {}) => ({
    resource: {
      gatehouse_public_key: {
        one: { name: "ana", data, username: "^(ana|root)$", filter: { hostname: ".*" }, ...more },
      },
    },
  });

  it("are reported by a plan without a refresh, and shown by a plan with a refresh", async () => {
    const root = new RootModule(testFolder(), { ...provider.env, ...fleet.env });
    root.write(key());
    await root.apply();
    const [before] = await fleet.client.getPublicKeys();
    const { fingerprint = "", name = "", filter } = before ?? {};
    const body = { name, filter: filter as { hostname: string }, username: "^ana$" };
    await fleet.client.updatePublicKey({ params: { fingerprint }, body });

    root.write(key({ name: "laptop" }));
    const { code, output } = await root.run("plan", "-refresh=false");
    expect(code).toBe(1);
    const text = output.replaceAll(/[│\s]+/g, " ");
    expect(text).toContain(
      'username is "^ana$" on the service, and "^(ana|root)$" in the state; last changed by user',
    );
    expect(text).toContain("[changed_out_of_band]");
    expect(await root.changes()).toEqual(["gatehouse_public_key.one: update"]);
    const plan = JSON.parse(await root.must("show", "-json", "plan"));
    expect(plan.resource_changes[0].change).toMatchObject({
      before: { name: "ana", username: "^ana$" },
      after: { name: "laptop", username: "^(ana|root)$" },
    });

    // The declared value equals the live value: no conflict.
    root.write(key({ name: "laptop", username: "^ana$" }));
    expect(await root.changes("-refresh=false")).toEqual(["gatehouse_public_key.one: update"]);
    await root.must("apply", "plan");
    expect(await fleet.client.getPublicKeys()).toMatchObject([{ name: "laptop", username: "^ana$" }]);
  });

  it("cost no additional request in a plan with a refresh", async () => {
    const root = new RootModule(testFolder(), { ...provider.env, ...fleet.env });
    const line = sshKeyLine("counted");
    const configuration = (username: string) => key({ data: line, name: "counted", username });
    root.write(configuration("^ana$"));
    await root.apply();
    const requests = async () => (await requestsDuring(fleet.service, () => root.must("plan"))).sort();
    const unchanged = await requests();
    root.write(configuration("^anna$"));
    expect(await requests()).toEqual(unchanged);
    await root.must("destroy", "-auto-approve");
  });

  it("after the plan are reported by the apply", async () => {
    const root = new RootModule(testFolder(), { ...provider.env, ...fleet.env });
    root.write(key({ data: sshKeyLine("bob"), name: "bob" }));
    await root.apply();
    root.write(
      key({
        data: JSON.parse(readFileSync(join(root.folder, "main.tf.json"), "utf8")).resource
          .gatehouse_public_key.one.data,
        name: "laptop",
      }),
    );
    await root.must("plan", "-out=plan");
    const before = (await fleet.client.getPublicKeys()).find(({ name }) => name === "bob");
    const { fingerprint = "", filter } = before ?? {};
    const body = { name: "bob", filter: filter as { hostname: string }, username: "^ana$" };
    await fleet.client.updatePublicKey({ params: { fingerprint }, body });
    const { code, output } = await root.run("apply", "plan");
    expect(code).toBe(1);
    expect(output).toContain("[changed_out_of_band]");
    const after = (await fleet.client.getPublicKeys()).find((one) => one.fingerprint === fingerprint);
    expect(after).toMatchObject({ name: "bob", username: "^ana$" });
  });
});

import { readFileSync, writeFileSync } from "node:fs";
import { join } from "node:path";
import { afterEach, describe, expect, it } from "vitest";
import { changeKey } from "../support/fleet.ts";
import { testFolder } from "../support/folder.ts";
import { keyData } from "../support/policy.ts";
import { requestsDuring } from "../support/requests.ts";
import {
  hasTerraform,
  installedProvider,
  keyArguments,
  LABEL,
  RootModule,
  resources,
  sharedTerraform,
  unframed,
} from "./support/terraform.ts";

/** The resource `one`, which is the key `ana`. */
const one = (more: object = {}) => resources({ public_key: { one: keyArguments(more) } });
const ADDRESS = "gatehouse_public_key.one";
const UPDATE = [`${ADDRESS}: update`];

// Long tests apply more than three configurations.
describe.runIf(hasTerraform)(`objects of several configurations of ${LABEL}`, () => {
  const fleet = sharedTerraform();
  afterEach(() => fleet.clear());

  const keys = () => fleet.client.getPublicKeys();
  const owner = async () => (await keys())[0]?.declaredBy;
  /** Returns a configuration of a project. */
  const of = (project: string, more: object = one()) => ({ provider: { gatehouse: { project } }, ...more });
  const stateIn = ({ stateFile }: RootModule) => JSON.parse(readFileSync(stateFile, "utf8"));
  /** Creates a root module and applies a configuration of a project in it. */
  async function folderOf(project: string, more?: object): Promise<RootModule> {
    const root = fleet.newModule();
    await root.applied(of(project, more));
    return root;
  }
  /** Destroys the resources of a folder, which leaves the key on the service. Returns the output. */
  async function expectLeft(root: RootModule): Promise<string> {
    const output = await root.destroy();
    expect(await keys()).toHaveLength(1);
    return output;
  }
  /** Destroys the resources of a folder, which deletes the key. */
  async function expectDeleted(root: RootModule): Promise<void> {
    await root.destroy();
    expect(await keys()).toEqual([]);
  }

  it("are claimed by the folder to which a state is moved, and the claim is the only change", {
    tags: ["long"],
  }, async () => {
    const first = await folderOf("first");
    const [before] = await keys();
    const second = fleet.newModule();
    second.write(of("second"));
    const files = [`-state=${first.stateFile}`, `-state-out=${second.stateFile}`];
    await first.must("state", "mv", ...files, ADDRESS, ADDRESS);
    const { output } = await second.run("plan", "-out=plan");
    expect(unframed(output)).toContain(
      "claims the object, which gatehouse_public_key of first/default declared before",
    );
    expect(output).toContain("0 to add, 1 to change, 0 to destroy");
    await second.must("apply", "plan");
    expect(await second.changes()).toEqual([]);
    const [after] = await keys();
    expect(after?.declaredBy).toMatchObject({ project: "second", stack: "default" });
    // A claim is no change of the object.
    expect({ ...after, declaredBy: undefined }).toEqual({ ...before, declaredBy: undefined });
    expect(await expectLeft(first)).toContain("0 destroyed");
    await expectDeleted(second);
  });

  it("stay if a restored older state still contains a moved object, and the destroy warns", async () => {
    const first = await folderOf("first");
    const older = stateIn(first);
    const second = fleet.newModule();
    second.writeState(older, older.serial);
    await second.applied(of("second"));
    expect(await expectLeft(first)).toMatch(
      /left the object \S+ on the service: gatehouse_public_key of second\/default has declared it last/,
    );
    first.writeState(older, 100);
    await expectLeft(first);
    // The setting deletes the object.
    first.writeState(older, 200);
    const deleting = new RootModule(first.folder, { ...first.env, GATEHOUSE_DELETE_CLAIMED: "true" });
    await deleting.applied({ provider: { gatehouse: { project: "first", delete_claimed: "true" } } });
    expect(await keys()).toEqual([]);
  });

  it("stay after a removed block with destroy = false and an import, which sends no claim", {
    tags: ["long"],
  }, async () => {
    const first = await folderOf("first");
    const id = String(first.state().resources[0]?.instances[0]?.attributes.id);
    await first.applied(of("first", { removed: { from: ADDRESS, lifecycle: { destroy: false } } }));
    const second = await folderOf("second", { ...one(), import: { to: ADDRESS, id } });
    expect(await second.changes()).toEqual([]);
    expect(await owner()).toMatchObject({ project: "first" });
    expect(await expectLeft(first)).toContain("0 destroyed");
    // The import is the last step of the move, so a destroy of the new folder deletes the object.
    const imported = stateIn(second);
    await expectDeleted(second);
    writeFileSync(second.stateFile, "");
    await second.applied(of("first"));
    second.writeState(imported, 100);
    // The first update after the import declares the object.
    await second.applied(of("second", one({ username: "^ana$" })));
    expect(await owner()).toMatchObject({ project: "second" });
    // From then on, a declaration by the first folder is newer than the import.
    await first.applied(of("first", one({ adopt: "overwrite" })));
    expect(await expectLeft(second)).toContain("of first/default has declared it");
  });

  it("are claimed by an adoption, so that the folder that declared them before leaves them", async () => {
    const first = await folderOf("first");
    const second = await folderOf("second", one({ adopt: true }));
    expect(await owner()).toMatchObject({ project: "second" });
    expect(await expectLeft(first)).toContain("of second/default has declared it last");
    await expectDeleted(second);
  });

  it("are claimed after a moved block only if the folder changes, and after a new value of project", {
    tags: ["long"],
  }, async () => {
    const root = await folderOf("first");
    const two = resources({ public_key: { two: keyArguments() } });
    root.write(of("first", { ...two, moved: { from: ADDRESS, to: "gatehouse_public_key.two" } }));
    expect(await root.changes()).toEqual([]);
    await root.apply();
    root.write(of("renamed", two));
    expect(await root.changes()).toEqual(["gatehouse_public_key.two: update"]);
    await root.must("apply", "plan");
    expect(await root.changes()).toEqual([]);
    expect(await owner()).toMatchObject({ project: "renamed" });
  });

  it("have an empty plan with a state of an earlier version, which contains no private data", {
    tags: ["long"],
  }, async () => {
    const root = await folderOf("first");
    for (const data of [undefined, "bm90IEpTT04=", Buffer.from('{"replaces":"x"}').toString("base64")]) {
      const state = stateIn(root);
      state.resources[0].instances[0].private = data;
      root.writeState(state);
      root.write(of("second"));
      expect(await root.changes(), data).toEqual([]);
    }
    await root.applied(of("second", one({ username: "^ana$" })));
    root.write(of("third", one({ username: "^ana$" })));
    expect(await root.changes()).toEqual(UPDATE);
  });

  it("are adopted again after a lost state, and the restored older state does not delete them", {
    tags: ["long"],
  }, async () => {
    const root = await folderOf("first");
    const older = readFileSync(root.stateFile, "utf8");
    writeFileSync(root.stateFile, "");
    await root.applied(of("first", one({ adopt: true })));
    expect(await root.changes()).toEqual([]);
    const newer = stateIn(root);
    writeFileSync(root.stateFile, older);
    expect(await expectLeft(root)).toContain("has declared it last");
    root.writeState(newer, 100);
    await expectDeleted(root);
  });

  // Long, because Terraform starts the provider for each step.
  it("of two folders with one name and no project stay if the other folder has adopted them", {
    tags: ["long"],
  }, async () => {
    const env = { ...installedProvider(), ...fleet.env };
    const [first, second] = ["a", "b"].map((name) => new RootModule(join(testFolder(), name, "access"), env));
    if (!first || !second) throw new Error("no folders");
    await first.applied(one());
    expect(await owner()).toMatchObject({ project: "access" });
    await second.applied(one({ adopt: true }));
    expect(await expectLeft(first)).toContain("has declared it last");
    await expectDeleted(second);
  });

  it("have no project that a declaration cannot contain", async () => {
    const root = fleet.newModule();
    root.write(of("a\nb"));
    expect(await root.rejected("plan")).toContain("project must be a text without control characters");
  });
});

describe.runIf(hasTerraform)(`out-of-band changes under ${LABEL}`, () => {
  const fleet = sharedTerraform();
  let root: RootModule;
  afterEach(() => fleet.clear());

  /** Creates a root module and applies the key `ana` in it. */
  async function applyKey(): Promise<void> {
    root = fleet.newModule();
    await root.applied(one({ username: "^(ana|root)$" }));
  }
  const laptop = (more: object) => one({ name: "laptop", username: "^(ana|root)$", ...more });
  const live = () => fleet.client.getPublicKeys();

  it("are reported by a plan without a refresh, and shown by a plan with a refresh", {
    tags: ["long"],
  }, async () => {
    await applyKey();
    await changeKey(fleet.client, "ana", { username: "^ana$" });
    root.write(laptop({}));
    const text = await root.rejected("plan", "-refresh=false");
    expect(text).toContain(
      'username is "^ana$" on the service, and "^(ana|root)$" in the state; last changed by user',
    );
    expect(text).toContain("[changed_out_of_band]");
    expect((await root.plan()).resource_changes).toMatchObject([
      {
        address: ADDRESS,
        change: {
          actions: ["update"],
          before: { name: "ana", username: "^ana$" },
          after: { name: "laptop", username: "^(ana|root)$" },
        },
      },
    ]);

    // The declared value equals the live value: no conflict.
    root.write(laptop({ username: "^ana$" }));
    expect(await root.changes("-refresh=false")).toEqual(UPDATE);
    await root.must("apply", "plan");
    expect(await live()).toMatchObject([{ name: "laptop", username: "^ana$" }]);
  });

  it("cost no additional request in a plan with a refresh", async () => {
    await applyKey();
    const requests = async () => (await requestsDuring(fleet.service, () => root.must("plan"))).sort();
    const unchanged = await requests();
    root.write(one({ username: "^anna$" }));
    expect(await requests()).toEqual(unchanged);
  });

  it("after the plan are reported by the apply", async () => {
    await applyKey();
    root.write(laptop({ data: keyData("ana") }));
    await root.must("plan", "-out=plan");
    await changeKey(fleet.client, "ana", { username: "^ana$" });
    expect(await root.rejected("apply", "plan")).toContain("[changed_out_of_band]");
    expect(await live()).toMatchObject([{ name: "ana", username: "^ana$" }]);
  });
});

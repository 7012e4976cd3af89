import { isDeepStrictEqual } from "node:util";
import { afterAll, beforeAll, expect, it, vi } from "vitest";
import { sharedFleet } from "../support/sharedFleet.ts";
import {
  Choices,
  type Fields,
  keyOf,
  objectsOf,
  randomFields,
  type Shown,
  SLOTS,
  type Slot,
  type Snapshot,
  slotOf,
  startWalk,
  unshownChanges,
  type WalkObject,
  type WalkService,
  walkSeed,
} from "../support/walk.ts";
import { Harness, type Program } from "./support/harness.ts";

// A random walk of two stacks, with an administrator who changes objects manually. The test has a model of its own: the
// programs, the values that each state contains, and the values on the service before each run. The model predicts each
// preview, and the objects after each run. So the test never compares the product with itself.

const STEPS = Number(process.env.TEST_WALK_STEPS ?? "2000");

/** The state of a resource according to the model. */
interface Known {
  readonly id: string;
  /** The values that the last run or refresh stored. */
  readonly fields: Fields;
  /** The stack that wrote the object last, according to the state. */
  readonly declarer: string;
}

/** A stack: its engine, its program, and the model of its state. */
class WalkStack {
  readonly name: string;
  readonly harness: Harness;
  readonly program = new Map<string, Program[string]>();
  readonly known = new Map<string, Known>();
  /**
   * The objects that the service created for each idempotency key of this stack. A later creation with the same key
   * finds this object, also if the state lost it. A key consists of the resource, and of the objects before that
   * another stack declared.
   */
  readonly created = new Map<string, string>();

  constructor(name: string, env: Readonly<Record<string, string>>) {
    this.name = name;
    this.harness = new Harness(env, name);
  }

  get resources(): Program {
    return Object.fromEntries(this.program);
  }

  declared(name: string): Fields {
    const { args = {} } = this.program.get(name) ?? {};
    return Object.fromEntries(Object.keys(slotOf(name).pools).map((field) => [field, args[field]]));
  }
}

/** The expected result of one step of a run. */
interface PredictedStep {
  readonly shown: Shown;
  /** Codes of the errors, one of which must occur. Empty if the step must succeed. */
  readonly errors: readonly string[];
  /** True if an adoption may take an equal object instead of a creation. */
  readonly mayAdopt: boolean;
  /** The object of an earlier creation, which this stack still declares. The step takes it instead of a creation. */
  readonly earlier?: string | undefined;
}

const fleet = sharedFleet();
let service: WalkService;
let stacks: readonly WalkStack[];
/** The actor who changed each object last. A claim is no change. */
const writers = new Map<string, string>();
let log: string[] = [];

beforeAll(async () => {
  service = await startWalk(fleet);
  const { token } = await fleet.client.login({ body: { username: "admin", password: "correct-horse" } });
  const { GATEHOUSE_USERNAME: _name, GATEHOUSE_PASSWORD: _password, ...env } = fleet.env;
  // A token saves a login in each run.
  stacks = ["one", "two"].map((name) => new WalkStack(name, { ...env, GATEHOUSE_TOKEN: token }));
});
afterAll(async () => {
  await Promise.all((stacks ?? []).map(({ harness }) => harness.close()));
  await service?.close();
});

/** Returns the object of a resource on the service. A device without tags has the object with no tag. */
function liveOf(snapshot: Snapshot, { kind, fixed }: Slot, id: string): WalkObject | undefined {
  const found = snapshot.get(keyOf({ kind, id }));
  const none = { kind, id, fields: { ...fixed, tags: [] }, owner: undefined };
  return found ?? (kind === "DeviceTags" ? none : undefined);
}

/**
 * Returns the idempotency key of a creation, and the object of an earlier creation with this key. Rules have no
 * identity: if another stack has declared the object, the creation continues with another key.
 */
function earlierCreation(stack: WalkStack, { name, kind }: Slot, live: Snapshot) {
  let key = name;
  for (;;) {
    const id = stack.created.get(key);
    const object = id === undefined ? undefined : live.get(keyOf({ kind, id }));
    if (!object || object.owner === stack.name || kind !== "FirewallRule") return { key, object };
    key += ` ${id}`;
  }
}

const equalIn = (fields: readonly string[], one: Fields, two: Fields) =>
  fields.every((field) => isDeepStrictEqual(one[field], two[field]));

/** Predicts a run from the model and from the objects right before the run. */
function predict(stack: WalkStack, live: Snapshot): PredictedStep[] {
  const outcomes: PredictedStep[] = [];
  for (const [name, { args }] of stack.program) {
    const slot = slotOf(name);
    const { kind } = slot;
    const old = stack.known.get(name);
    const declared = stack.declared(name);
    const names = Object.keys(slot.pools);
    // API key names are unique. The order of the steps decides whether another key has the name at that time.
    const isNameTaken =
      kind === "ApiKey" &&
      [...live.values()].some(
        (object) => object.kind === kind && object.fields.name === declared.name && object.id !== old?.id,
      );
    if (!old) {
      const shown: Shown = {
        op: "create",
        name,
        kind,
        id: undefined,
        fields: Object.fromEntries(
          names.map((field) => [field, { before: undefined, after: declared[field] }]),
        ),
      };
      const existing = objectsOf(slot, live);
      const isEqual = existing.some(({ fields }) => equalIn(names, fields, declared));
      const isTaken = kind === "ApiKey" ? isNameTaken : kind !== "FirewallRule" && existing.length > 0;
      const mayAdopt = isEqual && (args.adopt === true || kind === "DeviceTags");
      // The service does not return the secret of an existing API key, so a creation never takes one.
      const earlier = kind === "ApiKey" ? undefined : earlierCreation(stack, slot, live).object;
      // The creation returns the object of an earlier creation. It may change the object only if no other actor did.
      const isOwn =
        earlier?.owner === stack.name &&
        (equalIn(names, earlier.fields, declared) || writers.get(keyOf(earlier)) === stack.name);
      // An adoption searches the object first, and changes no object.
      const isSearched = kind === "DeviceTags" || (args.adopt === true && kind !== "FirewallRule");
      const isRefused = isSearched && existing.length > 0 && !isEqual;
      const fails = isRefused || (!mayAdopt && (earlier ? !isOwn : isTaken));
      const errors = fails ? ["already_exists", "conflict"] : [];
      outcomes.push({ shown, mayAdopt, errors, earlier: mayAdopt || fails ? undefined : earlier?.id });
      continue;
    }
    const changed = names.filter((field) => !isDeepStrictEqual(old.fields[field], declared[field]));
    if (changed.length === 0 && old.declarer === stack.name) continue;
    const shown: Shown = {
      op: "update",
      name,
      kind,
      id: old.id,
      fields: Object.fromEntries(
        changed.map((field) => [field, { before: old.fields[field], after: declared[field] }]),
      ),
    };
    const now = liveOf(live, slot, old.id);
    const errors: string[] = [];
    if (changed.length > 0) {
      const undone = names.filter(
        (field) =>
          now &&
          !isDeepStrictEqual(now.fields[field], old.fields[field]) &&
          !isDeepStrictEqual(now.fields[field], declared[field]),
      );
      if (!now) errors.push("object_deleted");
      else if (undone.length > 0) errors.push("changed_out_of_band");
      else if (isNameTaken && now.fields.name !== declared.name) errors.push("conflict", "already_exists");
    }
    outcomes.push({ shown, errors, mayAdopt: false });
  }
  for (const [name, { id, declarer }] of stack.known) {
    if (stack.program.has(name)) continue;
    const { kind } = slotOf(name);
    outcomes.push({
      shown: { op: "delete", name, kind, id, declarer, fields: {} },
      errors: [],
      mayAdopt: false,
    });
  }
  return outcomes;
}

const stepsOf = (outcomes: readonly PredictedStep[]) =>
  outcomes.map(({ shown: { op, name } }) => `${op} ${name}`).sort();

/** The id on the service of the object in a state of the harness. */
function idInState({ harness }: WalkStack, name: string): string | undefined {
  const entry = harness.state.get(name);
  if (!entry) return undefined;
  if (entry.type === "ApiKey") return String(entry.outputs.createdAt);
  return entry.id.split("/").at(-1);
}

async function manualChange(choices: Choices): Promise<void> {
  const live = await service.snapshot();
  const slot = choices.of(SLOTS);
  const objects = objectsOf(slot, live);
  if (objects.length === 0 || choices.chance(0.05)) {
    const isPossible = objects.length === 0 || slot.kind === "FirewallRule";
    if (!isPossible || slot.kind === "ApiKey") return;
    const fields = randomFields(slot, choices);
    log.push(`administrator: create ${slot.name} ${JSON.stringify(fields)}`);
    await service.create(slot, fields);
    return;
  }
  const object = choices.of(objects);
  if (choices.chance(0.15) && slot.kind !== "Namespace") {
    log.push(`administrator: delete ${keyOf(object)} (${slot.name})`);
    await service.remove(object);
    forgetDeleted(await service.snapshot());
    return;
  }
  const field = choices.of(Object.keys(slot.pools));
  const value = choices.of(slot.pools[field] ?? []);
  const isTaken =
    field === "name" &&
    slot.kind === "ApiKey" &&
    [...live.values()].some(({ kind, fields }) => kind === slot.kind && fields.name === value);
  if (isDeepStrictEqual(object.fields[field], value) || isTaken) return;
  log.push(`administrator: ${keyOf(object)} (${slot.name}) ${field} = ${JSON.stringify(value)}`);
  writers.set(keyOf(object), service.administrator);
  await service.change(object, field, value);
}

/** Checks that all changes since the last check are changes of the administrator. */
async function requireManualOnly(): Promise<void> {
  for (const entry of await service.newEntries()) {
    expect([entry.operation, entry.actor.name, entry.declaredBy]).toEqual([
      entry.operation,
      service.administrator,
      undefined,
    ]);
  }
}

async function preview(stack: WalkStack): Promise<PredictedStep[]> {
  const live = await service.snapshot();
  const outcomes = predict(stack, live);
  expect(await stack.harness.preview(stack.resources)).toEqual(stepsOf(outcomes));
  expect(await service.snapshot()).toEqual(live);
  return outcomes;
}

async function refresh(stack: WalkStack): Promise<void> {
  log.push(`${stack.name}: refresh`);
  const live = await service.snapshot();
  await stack.harness.refresh();
  expect(await service.snapshot()).toEqual(live);
  for (const [name, known] of stack.known) {
    const slot = slotOf(name);
    const now = liveOf(live, slot, known.id);
    if (now) {
      const fields = Object.keys(slot.pools).map((field) => [field, now.fields[field]]);
      stack.known.set(name, { ...known, fields: Object.fromEntries(fields) });
    } else stack.known.delete(name);
  }
  expect([...stack.harness.state.keys()].sort()).toEqual([...stack.known.keys()].sort());
}

/** Previews and runs a program, and checks each change of the service. */
async function up(stack: WalkStack, choices: Choices): Promise<void> {
  const planned = await preview(stack);
  const steps = stepsOf(planned);
  log.push(`${stack.name}: up ${steps.join(", ")}`);
  if (choices.chance(0.2)) await manualChange(choices);
  await requireManualOnly();
  const before = await service.snapshot();
  const outcomes = predict(stack, before);
  expect(stepsOf(outcomes)).toEqual(steps);
  await stack.harness.up(stack.resources).then(
    (done) => expect(done).toEqual(steps),
    (error: unknown) => expect(error).toBeInstanceOf(AggregateError),
  );
  const after = await service.snapshot();
  // The preview showed the creation of an object that an earlier creation of the same resource left behind.
  const taken = outcomes.flatMap(({ earlier, shown: { kind } }) =>
    earlier === undefined ? [] : [keyOf({ kind, id: earlier })],
  );
  const without = (snapshot: Snapshot) => new Map([...snapshot].filter(([key]) => !taken.includes(key)));
  const shown = planned.map((one) => one.shown);
  expect(unshownChanges(without(before), without(after), shown, stack.name)).toEqual([]);
  checkErrors(outcomes, stack.harness.failures);
  await checkObjects(stack, outcomes, before, after);
  forgetDeleted(after);
  checkEntries(stack, outcomes, before, await service.newEntries());
}

/**
 * Removes the creations of objects that the service no longer has. A later object may have the same id, such as the
 * fingerprint of a key, but the service returns it for no earlier creation.
 */
function forgetDeleted(live: Snapshot): void {
  for (const { created } of stacks) {
    for (const [key, id] of created) {
      const { kind } = slotOf(key.split(" ", 1)[0] ?? "");
      if (!live.has(keyOf({ kind, id }))) created.delete(key);
    }
  }
}

/** Checks that each entry of the audit trail belongs to a resource that the preview showed and that did not fail. */
function checkEntries(
  stack: WalkStack,
  outcomes: readonly PredictedStep[],
  before: Snapshot,
  entries: Awaited<ReturnType<WalkService["newEntries"]>>,
): void {
  const written = outcomes.filter(({ errors }) => errors.length === 0).map(({ shown }) => shown);
  const changed = written.filter(({ op }) => op !== "delete").map(({ name }) => name);
  // Dynamic providers do not know the name of a resource that they delete.
  const deleted = written.flatMap(({ op, kind, id = "" }) => {
    const { fields } = before.get(keyOf({ kind, id })) ?? {};
    return op === "delete" ? [kind === "ApiKey" ? fields?.name : id] : [];
  });
  for (const { operation, actor, declaredBy, object, before: old, after: now } of entries) {
    const isShown = declaredBy
      ? declaredBy.stack === stack.name && changed.includes(declaredBy.resource)
      : deleted.includes(object.id);
    expect({ operation, actor: actor.name, object, declaredBy, isShown }).toEqual({
      operation,
      object,
      declaredBy,
      isShown: true,
      actor: "admin",
    });
    expect(old).not.toEqual(now);
  }
}

/** Checks that the run failed exactly for the resources for which the model predicts an error. */
function checkErrors(outcomes: readonly PredictedStep[], failures: Harness["failures"]): void {
  const expected = outcomes.filter(({ errors }) => errors.length > 0);
  const texts = failures.map(([name, error]) => `${name}: ${error}`);
  const open = [...texts];
  for (const { shown, errors } of expected) {
    const index = open.findIndex(
      (text) => text.startsWith(`${shown.name}: `) && errors.some((code) => text.includes(`[${code}]`)),
    );
    if (index < 0)
      throw new Error(`${shown.op} ${shown.name}: expected ${errors}, found ${texts.join("\n")}`);
    open.splice(index, 1);
  }
  expect(open).toEqual([]);
}

/** Checks the objects after a run against the model, and updates the model. */
async function checkObjects(
  stack: WalkStack,
  outcomes: readonly PredictedStep[],
  before: Snapshot,
  after: Snapshot,
): Promise<void> {
  const expected = new Map(before);
  const put = (object: WalkObject) => expected.set(keyOf(object), object);
  for (const { shown, errors, mayAdopt, earlier } of outcomes) {
    const { op, name, kind } = shown;
    const slot = slotOf(name);
    if (op === "delete") {
      const id = shown.id ?? "";
      const known = stack.known.get(name);
      stack.known.delete(name);
      const object = before.get(keyOf({ kind, id }));
      const owners = [undefined, stack.name, shown.declarer];
      if (!object || !owners.includes(object.owner)) continue;
      const own = kind === "DeviceTags" ? (known?.fields.tags as string[]) : [];
      const left = ((object.fields.tags ?? []) as string[]).filter((tag) => !own.includes(tag));
      if (left.length === 0) expected.delete(keyOf(object));
      else
        put({ ...object, fields: { ...object.fields, tags: left }, owner: after.get(keyOf(object))?.owner });
      continue;
    }
    if (errors.length > 0) {
      expect(idInState(stack, name)).toBe(stack.known.get(name)?.id);
      continue;
    }
    const id = idInState(stack, name);
    if (id === undefined) throw new Error(`the state has no ${name} after ${op}`);
    const declared = stack.declared(name);
    const old = liveOf(before, slot, id);
    if (op === "create" && kind !== "DeviceTags") {
      const isAdopted = old !== undefined;
      if (isAdopted && !mayAdopt && id !== earlier)
        throw new Error(`${name}: the creation took over ${kind} ${id}`);
      if (isAdopted && id !== earlier) expect(old.fields).toMatchObject(declared);
      if (!isAdopted) stack.created.set(earlierCreation(stack, slot, before).key, id);
    }
    const isUpdated = Object.keys(shown.fields).length > 0;
    if (!old || !equalIn(Object.keys(declared), old.fields, declared))
      writers.set(keyOf({ kind, id }), stack.name);
    if (op === "update" && !isUpdated && !before.has(keyOf({ kind, id }))) {
      // The object of a claim was deleted manually. The next refresh detects this.
      stack.known.set(name, { ...(stack.known.get(name) as Known), declarer: stack.name });
      continue;
    }
    const created = after.get(keyOf({ kind, id }));
    if (!created) throw new Error(`${op} ${name}: ${kind} ${id} does not exist`);
    const fields = isUpdated ? { ...(old ?? created).fields, ...declared } : created.fields;
    put({ kind, id, fields: isUpdated ? fields : (old?.fields ?? fields), owner: stack.name });
    const stored = isUpdated || op === "create" ? declared : (stack.known.get(name)?.fields ?? {});
    stack.known.set(name, { id, fields: stored, declarer: stack.name });
  }
  expect(after).toEqual(expected);
  expect([...stack.harness.state.keys()].sort()).toEqual([...stack.known.keys()].sort());
}

/** Changes a program: adds, changes or removes a resource. */
async function edit(stack: WalkStack, choices: Choices): Promise<void> {
  const slot = choices.of(SLOTS);
  const { name, kind, fixed, pools } = slot;
  const given = stack.program.get(name);
  if (!given) {
    const live = objectsOf(slot, await service.snapshot());
    const isAdoption = kind !== "ApiKey" && live.length > 0 && choices.chance(0.7);
    const fields = isAdoption
      ? Object.fromEntries(Object.keys(pools).map((field) => [field, live[0]?.fields[field]]))
      : randomFields(slot, choices);
    const adopt = isAdoption && { adopt: true };
    stack.program.set(name, { type: kind, args: { ...fixed, ...fields, ...adopt } });
    log.push(`${stack.name}: declare ${name} ${JSON.stringify({ ...fields, ...adopt })}`);
    return;
  }
  // The deletion of the namespace would end the walk for its settings.
  if (choices.chance(0.3) && (kind !== "Namespace" || !stack.known.has(name))) {
    log.push(`${stack.name}: remove ${name}`);
    stack.program.delete(name);
    return;
  }
  const field = choices.of(Object.keys(pools));
  const value = choices.of(pools[field] ?? []);
  log.push(`${stack.name}: ${name} ${field} = ${JSON.stringify(value)}`);
  stack.program.set(name, { ...given, args: { ...given.args, [field]: value } });
}

/** Moves a resource to the other stack: its entry in the state, and its declaration. */
function move(from: WalkStack, to: WalkStack, choices: Choices): void {
  const names = [...from.known.keys()].filter((name) => !to.known.has(name));
  if (names.length === 0) return;
  const name = choices.of(names);
  log.push(`${from.name}: move ${name} to ${to.name}`);
  const entry = from.harness.state.get(name);
  const known = from.known.get(name);
  const declaration = from.program.get(name) ?? to.program.get(name);
  if (!entry || !known) throw new Error(`the state has no ${name}`);
  from.harness.state.delete(name);
  from.known.delete(name);
  from.program.delete(name);
  to.harness.state.set(name, entry);
  to.known.set(name, known);
  if (declaration) to.program.set(name, declaration);
}

/** Removes a resource from the state and the program, as after a lost state. */
function forget(stack: WalkStack, choices: Choices): void {
  const names = [...stack.known.keys()];
  if (names.length === 0) return;
  const name = choices.of(names);
  log.push(`${stack.name}: forget ${name}`);
  stack.harness.state.delete(name);
  stack.known.delete(name);
  if (choices.chance(0.7)) stack.program.delete(name);
}

async function step(choices: Choices): Promise<void> {
  const stack = choices.of(stacks);
  const other = stacks.find((one) => one !== stack) ?? stack;
  const kind = choices.weighted({
    edit: 40,
    manual: 15,
    up: 22,
    refresh: 8,
    preview: 5,
    move: 6,
    forget: 2,
    destroy: 2,
  });
  switch (kind) {
    case "edit":
      return edit(stack, choices);
    case "manual":
      return manualChange(choices);
    case "up":
      return up(stack, choices);
    case "refresh":
      return refresh(stack);
    case "preview":
      await preview(stack);
      return undefined;
    case "move":
      return move(stack, other, choices);
    case "forget":
      return forget(stack, choices);
    case "destroy": {
      const names = [...stack.program.keys()].filter((name) => slotOf(name).kind !== "Namespace");
      if (names.length === 0) return undefined;
      stack.program.delete(choices.of(names));
      return up(stack, choices);
    }
  }
}

// Takes three minutes on a busy machine, since each run is a real run. TEST_WALK_STEPS sets another number of steps.
it(`a random walk of ${STEPS} steps: each change was shown by the preview or made by another actor, and no change of another actor was undone unseen`, {
  tags: ["long"],
  timeout: 1_800_000,
}, async () => {
  const printed = vi.spyOn(console, "log").mockImplementation(() => {});
  const seed = walkSeed(5);
  const choices = new Choices(seed);
  log = [];
  try {
    for (let index = 0; index < STEPS; index += 1) await step(choices);
  } catch (error) {
    const last = log.slice(-60).join("\n");
    throw new Error(`${error}\n\nThe last steps:\n${last}\n\nTo repeat: TEST_WALK_SEED=${seed}`, {
      cause: error,
    });
  } finally {
    printed.mockRestore();
  }
});

import { copyFileSync, existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { dirname, join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { DriftReport } from "../../provider/drift/driftReport.ts";
import type { FieldChange, Result } from "../../provider/engine/index.ts";
import { DECLARER } from "../../provider/engineMarks.ts";
import type { CommandResult } from "../support/command.ts";
import { type Fleet, startFleet } from "../support/fleet.ts";
import { engines, type Stack } from "../support/gatehouse.ts";
import { type Policy, policyEnv } from "../support/policy.ts";
import { PolicyProgram } from "../support/policyProgram.ts";
import {
  Choices,
  type Fields,
  objectsOf,
  randomFields,
  type Shown,
  SLOTS,
  type Snapshot,
  slotOf,
  startWalk,
  unshownChanges,
  type WalkKind,
  type WalkObject,
  type WalkService,
  walkSeed,
} from "../support/walk.ts";

// A random walk of two stacks with the command `gatehouse`, and an administrator who changes objects manually. The test
// reads the service before and after each command, and compares the changes with the output of the preview before.

const PROJECT = "commonjs-program";
const STEPS = Number(process.env.TEST_WALK_STEPS ?? "12");
const STEPS_WITH_CLI = Number(process.env.TEST_WALK_STEPS ?? "100");

/** The errors that a run may report: the walk causes each of them with changes of the administrator. */
const EXPECTED_ERRORS =
  /changed_out_of_band|would revert a change|already.(exists|has)|object_deleted|no longer exists|conflict/;

interface Entry {
  readonly urn: string;
  readonly type: string;
  readonly id?: string;
  readonly outputs?: Readonly<Record<string, unknown>>;
}

type State = { checkpoint: { latest: { resources: Entry[] } } };

const nameIn = ({ urn }: Entry) => urn.split("::").at(-1) ?? "";
const isSlot = (name: string) => SLOTS.some((slot) => slot.name === name);

/** Returns the values by the paths that steps contain, such as `filter.hostname`. */
function flat(value: unknown, path = ""): Record<string, unknown> {
  if (typeof value !== "object" || value === null || Array.isArray(value)) return { [path]: value };
  return Object.assign(
    {},
    ...Object.entries(value).map(([name, member]) => flat(member, path === "" ? name : `${path}.${name}`)),
  );
}

const flatten = (snapshot: Snapshot): Snapshot =>
  new Map([...snapshot].map(([key, object]) => [key, { ...object, fields: flat(object.fields) }]));

/** A stack of the walk: its program, and its state file. */
class WalkStack {
  readonly stack: Stack;
  readonly policy = new Map<string, Policy[string]>();
  /** Resources that left the state. The walk does not declare them again in this stack. */
  readonly left = new Set<string>();
  readonly #program: PolicyProgram;

  constructor(program: PolicyProgram, stack: Stack) {
    this.#program = program;
    this.stack = stack;
  }

  get name(): string {
    return this.stack.name;
  }

  get env(): Record<string, string> {
    return policyEnv(Object.fromEntries(this.policy));
  }

  get #file(): string {
    return join(this.#program.states, ".pulumi", "stacks", PROJECT, `${this.name}.json`);
  }

  get #state(): State {
    return JSON.parse(readFileSync(this.#file, "utf8")) as State;
  }

  get resources(): readonly Entry[] {
    if (!existsSync(this.#file)) return [];
    return this.#state.checkpoint.latest.resources ?? [];
  }

  /** The names of the walk's resources in the state, sorted, since the engine writes them in any order. */
  get names(): readonly string[] {
    return this.resources.map(nameIn).filter(isSlot).sort();
  }

  write(resources: readonly Entry[]): void {
    const { checkpoint, ...file } = this.#state;
    const latest = { ...checkpoint.latest, resources };
    mkdirSync(dirname(this.#file), { recursive: true });
    writeFileSync(this.#file, JSON.stringify({ ...file, checkpoint: { ...checkpoint, latest } }));
  }

  /** Returns the id on the service of the object in the state. */
  idOf(name: string): string | undefined {
    const entry = this.resources.find((one) => nameIn(one) === name);
    if (!entry?.id) return undefined;
    return slotOf(name).kind === "ApiKey" ? String(entry.outputs?.createdAt) : entry.id.split("/").at(-1);
  }

  /** Returns the stack that declared the object of a resource last, according to the state. */
  declarerOf(name: string): string | undefined {
    const marked = this.resources.find((one) => nameIn(one) === name)?.outputs?.[DECLARER];
    return typeof marked === "string" ? marked.split("/")[1] : undefined;
  }
}

/** A walk with one engine. */
class Walk {
  readonly log: string[] = [];
  /** The number of changes of the service that runs made. */
  changes = 0;
  readonly #service: WalkService;
  readonly #stacks: readonly [WalkStack, WalkStack];
  readonly #choices: Choices;
  readonly #program: PolicyProgram;

  constructor(
    service: WalkService,
    program: PolicyProgram,
    stacks: readonly [Stack, Stack],
    choices: Choices,
  ) {
    this.#service = service;
    this.#program = program;
    this.#choices = choices;
    const [one, two] = stacks;
    this.#stacks = [new WalkStack(program, one), new WalkStack(program, two)];
  }

  /** Creates both stacks. They have one key for secrets, so that secrets can move between them. */
  async start(): Promise<void> {
    const [one, two] = this.#stacks;
    for (const name of ["key-a", "rule-a", "rule-b", "api-a", "walk-ana"]) this.#declare(one, name);
    for (const name of ["key-b", "rule-c", "api-b", "walk-bob", "walk-device-b"]) this.#declare(two, name);
    await this.#up(one);
    copyFileSync(this.#settings(one), this.#settings(two));
    await this.#up(two);
  }

  #declare({ policy }: WalkStack, name: string): void {
    const slot = slotOf(name);
    policy.set(name, { type: slot.kind, args: { ...slot.fixed, ...randomFields(slot, this.#choices) } });
  }

  #settings({ name }: WalkStack): string {
    return join(this.#program.folder, `Pulumi.${name}.yaml`);
  }

  async step(): Promise<void> {
    const choices = this.#choices;
    const stack = choices.of(this.#stacks);
    const other = this.#stacks.find((one) => one !== stack) ?? stack;
    const kind = choices.weighted({
      edit: 25,
      manual: 15,
      up: 25,
      refresh: 6,
      move: 8,
      forget: 5,
      repair: 15,
      destroy: 3,
    });
    if (kind === "edit") for (let index = 0; index < 4; index += 1) await this.#edit(stack);
    else if (kind === "manual") await this.#manual();
    else if (kind === "up") await this.#up(stack);
    else if (kind === "refresh") await this.#refresh(stack);
    else if (kind === "move") this.#move(stack, other);
    else if (kind === "forget") this.#forget(stack);
    else if (kind === "repair") await this.#repair(stack);
    else await this.#destroyOne(stack);
  }

  /** Ends the walk with a lost entry of each state, a move, a repair and the destruction of each stack. */
  async end(): Promise<void> {
    const [one, two] = this.#stacks;
    for (const stack of this.#stacks) this.#forget(stack);
    this.#move(one, two);
    for (const stack of this.#stacks) await this.#repair(stack, false);
    for (const stack of this.#stacks) {
      // The deletion of the namespace would end the service's objects at once.
      this.#forget(stack, ["trials"]);
      const shown = stack.names.map((name) => this.#deletion(stack, name));
      await this.#checked(
        stack,
        shown,
        `destroy`,
        () => stack.stack.run(["destroy", "--yes"], stack.env),
        [0, 2],
      );
    }
  }

  /** Runs a command, and checks that it changes only what `shown` contains. */
  async #checked(
    stack: WalkStack,
    shown: readonly Shown[],
    text: string,
    run: () => Promise<CommandResult>,
    codes: readonly number[],
  ): Promise<number | null> {
    this.log.push(`${stack.name}: ${text}: ${shown.map(({ op, name }) => `${op} ${name}`).join(", ")}`);
    await this.#service.newEntries();
    const before = flatten(await this.#service.snapshot());
    const { code, stdout, stderr } = await run();
    const after = flatten(await this.#service.snapshot());
    expect(unshownChanges(before, after, shown, stack.name)).toEqual([]);
    const isExpected = codes.includes(code ?? -1) || (code === 1 && EXPECTED_ERRORS.test(stdout + stderr));
    if (!isExpected) throw new Error(`${text} ended with ${code}:\n${stdout}\n${stderr}`);
    for (const { operation, actor } of await this.#service.newEntries()) {
      expect([operation, actor.name]).toEqual([operation, "admin"]);
      this.changes += 1;
    }
    this.log.push(`  ended with ${code}`);
    return code;
  }

  #deletion(stack: WalkStack, name: string): Shown {
    const declarer = stack.declarerOf(name);
    const { kind } = slotOf(name);
    return { op: "delete", name, kind, id: stack.idOf(name), fields: {}, ...(declarer && { declarer }) };
  }

  /** Converts the steps of a preview. */
  #shownIn(stack: WalkStack, { steps = [] }: Partial<Result>): Shown[] {
    return steps.flatMap(({ op, name, fields }): Shown[] => {
      if (!isSlot(name) || op === "same") return [];
      const { kind } = slotOf(name);
      if (op === "delete") return [this.#deletion(stack, name)];
      const declared = stack.policy.get(name)?.args ?? {};
      if (op === "create") {
        const created = Object.entries(flat(declared)).filter(([path]) => isObserved(kind, path));
        const values = created.map(([path, after]) => [path, { before: undefined, after }] as const);
        return [
          {
            op,
            name,
            kind,
            id: kind === "DeviceTags" ? undefined : undefined,
            fields: Object.fromEntries(values),
          },
        ];
      }
      if (op !== "update") throw new Error(`${op} ${name}`);
      return [{ op, name, kind, id: stack.idOf(name), fields: shownFields(fields) }];
    });
  }

  async #up(stack: WalkStack): Promise<void> {
    const { stdout, stderr } = await stack.stack.run(["preview", "--create", "--json"], stack.env);
    const result = (stdout === "" ? {} : JSON.parse(stdout)) as Partial<Result>;
    if (!result.steps && !EXPECTED_ERRORS.test(stderr)) throw new Error(`preview: ${stdout}\n${stderr}`);
    const shown = this.#shownIn(stack, result);
    if (this.#choices.chance(0.3)) await this.#manual();
    const run = () => stack.stack.run(["up", "--yes"], stack.env);
    const code = await this.#checked(stack, shown, "up", run, [0, 2]);
    if (code !== 1) return;
    // The user solves the conflicts, so that the walk continues.
    for (const name of stack.policy.keys()) if (stack.idOf(name) === undefined) stack.policy.delete(name);
    if (this.#choices.chance(0.7)) await this.#refresh(stack);
  }

  async #refresh(stack: WalkStack): Promise<void> {
    await this.#checked(stack, [], "refresh", () => stack.stack.run(["refresh", "--yes"], stack.env), [0]);
  }

  async #destroyOne(stack: WalkStack): Promise<void> {
    const names = stack.names.filter((name) => slotOf(name).kind !== "Namespace");
    if (names.length === 0) return;
    const name = this.#choices.of(names);
    const { urn = "" } = stack.resources.find((one) => nameIn(one) === name) ?? {};
    const run = () => stack.stack.run(["destroy", "--yes", "--target", urn], stack.env);
    await this.#checked(stack, [this.#deletion(stack, name)], "destroy", run, [0, 2]);
    stack.policy.delete(name);
  }

  /** Repairs the drift of a stack. The report before contains all changes of the repair. */
  async #repair(stack: WalkStack, deletesForgotten = this.#choices.chance(0.3)): Promise<void> {
    const { stdout, stderr, code } = await stack.stack.run(["drift", "--json"], stack.env);
    if (code === 1 && EXPECTED_ERRORS.test(stderr)) return;
    if (stdout === "") throw new Error(`drift ended with ${code}: ${stderr}`);
    const report = JSON.parse(stdout) as DriftReport;
    const before = await this.#service.snapshot();
    const restored = report.drifted
      .filter(({ name }) => isSlot(name))
      .map(({ op, name, fields }): Shown => {
        const { kind } = slotOf(name);
        const { args = {} } = stack.policy.get(name) ?? {};
        const declared = Object.entries(flat(args)).filter(([path]) => isObserved(kind, path));
        const values = declared.map(([path, after]) => [path, { before: undefined, after }] as const);
        if (op === "delete")
          return { op: "create", name, kind, id: undefined, fields: Object.fromEntries(values) };
        // The report contains the value in the state first, and the live value second.
        const turned = fields.map((field) => ({ ...field, old: field.new, new: field.old }) as FieldChange);
        return { op: "update", name, kind, id: stack.idOf(name), fields: shownFields(turned) };
      });
    // Without --delete-forgotten, a repair deletes only objects that no stack declared.
    const removable = [...before.values()].filter(
      ({ owner }) => owner === undefined || (deletesForgotten && owner === stack.name),
    );
    const removed = removable.map(
      ({ kind, id }): Shown => ({ op: "delete", name: id, kind, id, fields: {} }),
    );
    const flags = deletesForgotten ? ["--delete-forgotten"] : [];
    const run = () => stack.stack.run(["drift", "--repair", "--yes", ...flags], stack.env);
    await this.#checked(stack, [...restored, ...removed], `repair ${flags}`, run, [0, 2]);
  }

  async #manual(): Promise<void> {
    const choices = this.#choices;
    const live = await this.#service.snapshot();
    const slot = choices.of(SLOTS);
    const objects = objectsOf(slot, live);
    if (objects.length === 0) {
      if (slot.kind === "ApiKey" || slot.kind === "Namespace") return;
      const fields = randomFields(slot, choices);
      this.log.push(`administrator: create ${slot.name} ${JSON.stringify(fields)}`);
      await this.#service.create(slot, fields);
      return;
    }
    const object = choices.of(objects);
    if (choices.chance(0.15) && slot.kind !== "Namespace") {
      this.log.push(`administrator: delete ${slot.name}`);
      await this.#service.remove(object);
      return;
    }
    const field = choices.of(Object.keys(slot.pools));
    const value = choices.of(slot.pools[field] ?? []);
    this.log.push(`administrator: ${slot.name} ${field} = ${JSON.stringify(value)}`);
    if (JSON.stringify(object.fields[field]) !== JSON.stringify(value))
      await this.#service.change(object, field, value);
  }

  async #edit(stack: WalkStack): Promise<void> {
    const choices = this.#choices;
    const slot = choices.of(SLOTS);
    const { name, kind, fixed, pools } = slot;
    const given = stack.policy.get(name);
    if (!given) {
      if (stack.left.has(name)) return;
      const [live] = objectsOf(slot, await this.#service.snapshot());
      const isAdoption = kind !== "ApiKey" && live !== undefined;
      const fields: Fields = isAdoption ? observed(slot.pools, live) : randomFields(slot, choices);
      const adopt = isAdoption && { adopt: true };
      this.log.push(`${stack.name}: declare ${name} ${JSON.stringify({ ...fields, ...adopt })}`);
      stack.policy.set(name, { type: kind, args: { ...fixed, ...fields, ...adopt } });
      return;
    }
    if (choices.chance(0.25) && kind !== "Namespace") {
      this.log.push(`${stack.name}: remove ${name}`);
      stack.policy.delete(name);
      return;
    }
    const field = choices.of(Object.keys(pools));
    const value = choices.of(pools[field] ?? []);
    this.log.push(`${stack.name}: ${name} ${field} = ${JSON.stringify(value)}`);
    stack.policy.set(name, { ...given, args: { ...given.args, [field]: value } });
  }

  /** Moves a resource between the states, as `pulumi state move` does, and its declaration. */
  #move(from: WalkStack, to: WalkStack): void {
    const names = from.names.filter((name) => !to.names.includes(name));
    if (names.length === 0) return;
    const name = this.#choices.of(names);
    this.log.push(`${from.name}: move ${name} to ${to.name}`);
    const isProvider = ({ type }: Entry) => type.startsWith("pulumi:providers:");
    const provider = to.resources.find(isProvider);
    const moved = from.resources.filter((entry) => nameIn(entry) === name);
    const renamed = (old: string) => old.replace(`urn:pulumi:${from.name}::`, `urn:pulumi:${to.name}::`);
    const entries = moved.map((entry) => {
      const { urn, parent } = entry as Entry & { parent: string };
      const reference = provider ? `${provider.urn}::${provider.id}` : undefined;
      return { ...entry, urn: renamed(urn), parent: renamed(parent), provider: reference };
    });
    from.write(from.resources.filter((entry) => nameIn(entry) !== name));
    to.write([...to.resources, ...entries]);
    const declaration = from.policy.get(name) ?? to.policy.get(name);
    from.policy.delete(name);
    from.left.add(name);
    to.left.delete(name);
    if (declaration) to.policy.set(name, declaration);
  }

  /** Removes a resource from the state and the program, as after a lost state. */
  #forget(stack: WalkStack, names = stack.names): void {
    const present = names.filter((name) => stack.idOf(name) !== undefined);
    if (present.length === 0) return;
    const name = this.#choices.of(present);
    this.log.push(`${stack.name}: forget ${name}`);
    stack.write(stack.resources.filter((entry) => nameIn(entry) !== name));
    stack.policy.delete(name);
    stack.left.add(name);
  }
}

const observed = (pools: Readonly<Record<string, unknown>>, { fields }: WalkObject): Fields =>
  Object.fromEntries(Object.keys(pools).map((field) => [field, fields[field]]));

/** Returns true for inputs that the lists of the service contain. */
const isObserved = (kind: WalkKind, path: string): boolean =>
  !["adopt", "validDays", "data"].includes(path) && !(kind === "Namespace" && path === "name");

const shownFields = (fields: readonly FieldChange[]): Shown["fields"] =>
  Object.fromEntries(fields.map(({ path, old, new: after }) => [path, { before: old, after }]));

describe.each(engines)("a random walk with the $label", ({ engine, available }) => {
  let fleet: Fleet;
  let service: WalkService;
  let program: PolicyProgram;

  beforeEach(async () => {
    if (!available) return;
    fleet = await startFleet();
    service = await startWalk(fleet);
    program = new PolicyProgram();
    // A repair removes unmanaged members, but the administrator must stay.
    program.write(
      "access.ignore",
      `Member ${service.administrator}@example.com until 2099-01-01: the walk\n`,
    );
  });
  afterEach(async () => {
    program?.remove();
    await service?.close();
    await fleet?.stop();
  });

  const steps = engine === "cli" ? STEPS_WITH_CLI : STEPS;
  // Takes two minutes on a busy machine, since each step runs commands. TEST_WALK_STEPS sets another number of steps.
  it.runIf(available)(
    `of ${steps} steps makes only changes that a preview or report showed, and undoes no change of another actor unseen`,
    { tags: ["long"], timeout: 3_600_000 },
    async () => {
      const stacks = [
        program.stack({ env: fleet.env, engine, name: "one" }),
        program.stack({ env: fleet.env, engine, name: "two" }),
      ] as const;
      const seed = walkSeed(4);
      const walk = new Walk(service, program, stacks, new Choices(seed));
      try {
        await walk.start();
        for (let index = 0; index < steps; index += 1) await walk.step();
        await walk.end();
      } catch (error) {
        const text = `${error}\n\nThe last steps:\n${walk.log.slice(-60).join("\n")}`;
        throw new Error(`${text}\n\nTo repeat: TEST_WALK_SEED=${seed}`, { cause: error });
      }
      expect(walk.changes).toBeGreaterThan(0);
    },
  );
});

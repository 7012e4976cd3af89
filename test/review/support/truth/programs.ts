import { HOUR } from "../../../../sdk/times.ts";
import { keyData } from "../../../support/policy.ts";
import type { Choices } from "../../../support/walk.ts";
import { AUDIENCE, emailOf, JOBS, macOf, USERS } from "./TruthService.ts";

type Args = Record<string, unknown>;

/** A resource of a program. */
export interface Declared {
  readonly type: string;
  readonly args: Readonly<Record<string, unknown>>;
  /** True if the deletion of the resource leaves its object on the service. */
  readonly retained?: boolean;
}

/** The resources of a program, by name, in the order of their creation. */
export type Program = Readonly<Record<string, Declared>>;

/** One object that programs may declare. Each program declares it at most once, under the slot's name. */
interface Slot {
  readonly name: string;
  readonly type: string;
  /** Number in the order of creation: engines create the objects of a lower rank before objects that need them. */
  readonly rank: number;
  /** The inputs that identify the object. */
  readonly fixed: Args;
  /** Returns a random value of each other input. */
  readonly random: Readonly<Record<string, (choices: Choices) => unknown>>;
}

const from =
  <T>(...values: readonly T[]) =>
  (choices: Choices): T =>
    choices.of(values);

/** Returns no end, or an end within some days. */
const randomEnd = (choices: Choices) =>
  choices.chance(0.65) ? undefined : new Date(Date.now() + choices.of([3, 30, 80, 200]) * HOUR).toISOString();

const FILTERS: readonly Args[] = [
  ...[".*", "^edge-", "^db-01$", "^(lab|web)-"].map((hostname) => ({ hostname })),
  ...[["prod"], ["lab"], ["edge", "prod"], ["ZONE"], ["ZONE", "lab"]].map((tags) => ({ tags })),
];

/** Tags that always exist, since a pending device has them. */
export const TAGS = ["prod", "lab", "edge"];

const USERNAMES = ["^root$", "^(ana|root)$", "^ana$", ".*"];
const ROLES = ["observer", "operator", "administrator"];

export const RANDOM = {
  username: from(...USERNAMES),
  filter: from(...FILTERS),
  expiresAt: randomEnd,
  owner: (choices: Choices) => (choices.chance(0.4) ? undefined : emailOf(choices.of(USERS))),
  action: from("allow", "deny"),
  priority: from(1, 2, 2, 3),
  sourceIp: from(".*", "^10\\.", "^203\\."),
  active: from(true, true, true, false),
  role: from(...ROLES),
  tags: from<readonly string[]>(
    ["edge"],
    ["lab", "prod"],
    ["edge", "prod"],
    ["prod"],
    ["ZONE"],
    ["lab", "ZONE"],
  ),
  claims: from<Args>(
    ...JOBS,
    { repository: "octo-org/*", environment: "prod" },
    { repository: "octo-org/octo-repo" },
  ),
  maxSessionMinutes: from(60, 240),
  singleUse: from(false, true),
  adopt: from<unknown>(undefined, true, "overwrite"),
  settings: (choices: Choices): Args => ({
    sessionRecord: choices.chance(0.5),
    deviceProof: choices.of(["optional", "required"]),
    sessionMaxMinutes: choices.of([0, 60, 600]),
    sessionIdleMinutes: choices.of([0, 15]),
    sshForwarding: choices.of([
      [],
      [{ login: "^ana$", target: "^localhost:80$" }],
      [{ login: ".*", target: ".*" }],
    ]),
  }),
};

/** Returns the functions of {@link RANDOM} for these inputs. */
const pick = (...inputs: (keyof typeof RANDOM)[]): Slot["random"] =>
  Object.fromEntries(inputs.map((input) => [input, RANDOM[input]]));

const keySlot = (name: string): Slot => ({
  name,
  type: "PublicKey",
  rank: 4,
  fixed: { name, data: keyData(name) },
  random: pick("username", "filter", "owner", "expiresAt", "adopt"),
});

const ruleSlot = (name: string): Slot => ({
  name,
  type: "FirewallRule",
  rank: 4,
  fixed: {},
  random: {
    ...pick("action", "priority", "sourceIp", "username", "filter", "active", "expiresAt"),
    adopt: from(undefined, true),
  },
});

const memberSlot = (user: string): Slot => ({
  name: `member-${user}`,
  type: "Member",
  rank: 3,
  fixed: { email: emailOf(user) },
  random: pick("role", "expiresAt", "adopt"),
});

const apiKeySlot = (name: string): Slot => ({
  name,
  type: "ApiKey",
  rank: 4,
  fixed: { name },
  random: {
    role: RANDOM.role,
    validDays: from(30, 60, -1),
    keepers: from(undefined, { rotation: "1" }, { rotation: "2" }),
    overlap: from(undefined, undefined, 2),
  },
});

const workloadSlot = (name: string, issuer: string): Slot => ({
  name,
  type: "TrustedWorkload",
  rank: 4,
  fixed: { name, audience: AUDIENCE, issuer },
  random: pick("role", "claims", "maxSessionMinutes", "singleUse", "adopt"),
});

const tagsSlot = (name: string, device: string | undefined): Slot => ({
  name: `tags-${name}`,
  type: "DeviceTags",
  rank: 2,
  fixed: { device, adopt: "overwrite" },
  random: pick("tags"),
});

/** The facts of the service that programs contain. */
interface ProgramFacts {
  readonly uids: readonly string[];
  readonly issuer: string;
  readonly namespace: string;
}

/** Returns all objects that programs declare. */
export const slotsOf = ({ uids, issuer, namespace }: ProgramFacts): readonly Slot[] => [
  {
    name: "home",
    type: "Namespace",
    rank: 0,
    fixed: { name: namespace, adopt: "overwrite" },
    random: pick("settings"),
  },
  { name: "zone", type: "Tag", rank: 1, fixed: {}, random: { name: () => "ZONE" } },
  {
    name: "edge-02",
    type: "Device",
    rank: 1,
    fixed: { device: macOf(1) },
    random: { name: from("edge-02", "web-02", undefined) },
  },
  {
    name: "fresh",
    type: "Device",
    rank: 1,
    fixed: { device: macOf(9), status: "accepted" },
    random: { name: from("fresh-01", "edge-09") },
  },
  tagsSlot("edge-01", uids[0]),
  tagsSlot("db-01", uids[2]),
  {
    name: "tag-edge-02",
    type: "DeviceTagAttachment",
    rank: 2,
    fixed: { device: uids[1], adopt: true },
    random: { tag: from("prod", "lab", "ZONE") },
  },
  ...USERS.map(memberSlot),
  ...["key-a", "key-b", "key-c"].map(keySlot),
  ...["rule-a", "rule-b", "rule-c", "rule-d"].map(ruleSlot),
  ...["api-a", "api-b"].map(apiKeySlot),
  ...["job-a", "job-b"].map((name) => workloadSlot(name, issuer)),
];

interface DeclaredSlot {
  readonly slot: Slot;
  readonly args: Args;
  readonly retained: boolean;
}

/** A program that changes at random. */
export class RandomProgram {
  readonly #slots: readonly Slot[];
  readonly #choices: Choices;
  readonly #tagPrefix: string;
  readonly #declared = new Map<string, DeclaredSlot>();
  /** The owner of each key in the last program, by the name of the slot. */
  #owners = new Map<string, unknown>();
  #renames = 0;

  /** @param tagPrefix beginning of the names of the tag that the program renames */
  constructor(slots: readonly Slot[], choices: Choices, tagPrefix: string) {
    this.#slots = slots;
    this.#choices = choices;
    this.#tagPrefix = tagPrefix;
    this.#declared.set("zone", { slot: this.#slot("zone"), args: { name: "ZONE" }, retained: false });
  }

  /** The current name of the tag that the program renames. */
  get zone(): string {
    return `${this.#tagPrefix}n${this.#renames}`;
  }

  #slot(name: string): Slot {
    const slot = this.#slots.find((one) => one.name === name);
    if (!slot) throw new Error(`no slot ${name}`);
    return slot;
  }

  /** Declares each object with a probability. */
  fill(probability: number): void {
    for (const slot of this.#slots) if (this.#choices.chance(probability)) this.#declare(slot);
  }

  /** Adds, changes or removes some resources. */
  edit(): void {
    const count = 1 + Math.floor(this.#choices.next() * 4);
    for (let index = 0; index < count; index += 1) this.#editOne();
  }

  #declare(slot: Slot): void {
    const args = Object.fromEntries(
      Object.entries(slot.random).map(([field, random]) => [field, random(this.#choices)]),
    );
    const isRetained = ["PublicKey", "FirewallRule"].includes(slot.type) && this.#choices.chance(0.08);
    this.#declared.set(slot.name, { slot, args, retained: isRetained });
  }

  #editOne(): void {
    const choices = this.#choices;
    const slot = choices.of(this.#slots);
    const known = this.#declared.get(slot.name);
    if (slot.name === "zone") {
      this.#renames += 1;
    } else if (!known) {
      this.#declare(slot);
    } else if (choices.chance(0.35) && slot.type !== "Namespace") {
      this.#declared.delete(slot.name);
    } else {
      const [field, random] = choices.of(Object.entries(slot.random));
      this.#declared.set(slot.name, { ...known, args: { ...known.args, [field]: random(choices) } });
    }
  }

  /**
   * Returns the inputs of a resource. A new owner of a key must be a member of the program, as in real programs, which
   * use an output of the member.
   */
  #argsOf({ slot: { name }, args }: DeclaredSlot): Args {
    const { owner, ...others } = args;
    const isMember = [...this.#declared.values()].some(({ slot }) => slot.fixed.email === owner);
    return owner === undefined || isMember || this.#owners.get(name) === owner ? args : others;
  }

  /** Returns the program. Resources that do not need each other are in random order, since engines run them at once. */
  build(): Program {
    const shuffled = [...this.#declared.values()]
      .map((one) => ({ one, place: one.slot.rank + this.#choices.next() }))
      .sort((left, right) => left.place - right.place)
      .map(({ one }) => one);
    const owners = new Map<string, unknown>();
    const program = Object.fromEntries(
      shuffled.map((declared): [string, Declared] => {
        const { slot, retained } = declared;
        const args = this.#argsOf(declared);
        owners.set(slot.name, args.owner);
        const given = Object.entries({ ...slot.fixed, ...args }).filter(([, value]) => value !== undefined);
        const named = JSON.parse(JSON.stringify(Object.fromEntries(given)).replaceAll("ZONE", this.zone));
        return [slot.name, { type: slot.type, args: named, ...(retained && { retained }) }];
      }),
    );
    this.#owners = owners;
    return program;
  }
}

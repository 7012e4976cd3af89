import { randomUUID } from "node:crypto";
import { liveReader } from "../../../provider/drift/liveReader.ts";
import { ownResources } from "../../../provider/namespace/coverage.ts";
import { definitionNamed } from "../../../provider/namespace/liveObjects.ts";
import { readTerraformPlan, type TerraformPlan } from "../../../provider/plan/terraform/readTerraformPlan.ts";
import { definitions } from "../../../provider/resources/index.ts";
import type { Connection } from "../../../provider/service/connection.ts";
import { workspaceIn } from "../../../provider/terraform/workspace.ts";
import type { Program } from "../../review/support/truth/programs.ts";
import { InvalidProgramError, type TruthEngine } from "../../review/support/truth/TruthRound.ts";
import type { TruthService } from "../../review/support/truth/TruthService.ts";
import { configurationOf, typeOf } from "./configurations.ts";
import type { RootModule } from "./terraform.ts";

const kinds = new Map(definitions.map((definition) => [typeOf(definition), definition.name]));

/** A root module that plans and applies the programs of a round with real Terraform commands. */
export class TerraformTruth implements TruthEngine {
  readonly #root: RootModule;
  readonly #truth: TruthService;
  /** True if the plans until the next apply read the live objects. */
  #refreshes = false;
  readonly #secrets = new Map<string, string>();
  /** The secrets that the last configuration chose for new API keys, by name. */
  #chosen = new Map<string, string>();

  constructor(root: RootModule, truth: TruthService) {
    this.#root = root;
    this.#truth = truth;
  }

  async plan(program: Program) {
    const { plan, notEvaluated } = await this.#read(program);
    return { plan, notEvaluated };
  }

  async up(): Promise<Error[]> {
    this.#refreshes = false;
    const { code, output } = await this.#root.run("apply", "plan");
    await this.#keepSecrets();
    return code === 0 ? [] : [new Error(output)];
  }

  async refresh(): Promise<void> {
    this.#refreshes = true;
  }

  async search(program: Program, connection: Connection) {
    const { url } = connection.client;
    const terraform = await this.#read(program);
    const live = await terraform.compareWithLive(url, liveReader(connection));
    const stack = { drift: async () => live.drift, preview: async () => live.plan };
    const notEvaluated = [...terraform.notEvaluated, ...live.notEvaluated];
    return { stack, own: ownResources(live.resources, url), language: "terraform" as const, notEvaluated };
  }

  managed(): ReadonlySet<string> {
    return new Set(
      this.#root
        .state()
        .resources.flatMap(({ type, instances }) =>
          instances.map(({ attributes }) => `${kinds.get(type)} ${String(attributes.id).split("/").at(-1)}`),
        ),
    );
  }

  async secrets(): Promise<ReadonlyMap<string, string>> {
    return this.#secrets;
  }

  /** Keeps the secrets of the API keys that the last apply created. */
  async #keepSecrets(): Promise<void> {
    for (const { name, createdAt } of await this.#truth.client.listApiKeys({ query: { perPage: 100 } })) {
      const secret = this.#chosen.get(name);
      const isKnown = this.#secrets.has(createdAt) || this.#truth.secrets.has(createdAt);
      if (secret !== undefined && !isKnown) this.#secrets.set(createdAt, secret);
    }
  }

  async #read(program: Program): Promise<TerraformPlan> {
    this.#write(program);
    const { code, output } = await this.#root.run("plan", "-out=plan", `-refresh=${this.#refreshes}`);
    if (code !== 0) throw new InvalidProgramError(output);
    const text = await this.#root.must("show", "-json", "plan");
    return readTerraformPlan(text, {
      name: "a plan",
      workspace: workspaceIn(this.#root.folder, {}),
      isSettingAlone: () => false,
      isInPlan: () => false,
    });
  }

  /** Writes the program with references, which give Terraform the order of the resources. */
  #write(program: Program): void {
    const zone = String(program.zone?.args.name);
    const owners = new Map(
      Object.entries(program).flatMap(([name, { type, args }]) =>
        type === "Member" ? [[String(args.email), `\${gatehouse_member.${name}.email}`] as const] : [],
      ),
    );
    this.#chosen = new Map();
    const resource: Record<string, Record<string, object>> = {};
    for (const [name, { type, args }] of Object.entries(program)) {
      const written = configurationOf(args);
      if (type === "ApiKey") {
        const secret = randomUUID();
        this.#chosen.set(name, secret);
        written.key_wo = secret;
      }
      if (type === "PublicKey" && owners.has(String(args.owner)))
        written.owner = owners.get(String(args.owner));
      const text = JSON.stringify(written);
      const referring = type === "Tag" ? text : text.replaceAll(`"${zone}"`, `"\${gatehouse_tag.zone.name}"`);
      const kind = typeOf(definitionNamed(type));
      resource[kind] = { ...resource[kind], [name]: JSON.parse(referring) };
    }
    this.#root.write({ resource });
  }
}

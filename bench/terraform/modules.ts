import { readFileSync, writeFileSync } from "node:fs";
import { delimiter, dirname, join } from "node:path";
import { installProvider as installFor, mirrorText } from "../../provider/terraform/installProvider.ts";
import { TERRAFORM_CLIS } from "../../provider/terraform/source.ts";
import { RootModule } from "../../test/terraform/support/terraform.ts";

/** What is compared: rules of a service, and as many resources that do nothing. */
export const KINDS = ["gatehouse", "builtin"] as const;
export type Kind = (typeof KINDS)[number];

/** What starts the provider: the Node that runs the benchmark. */
export const PATH = [dirname(process.execPath), process.env.PATH].join(delimiter);

/** A provider that was installed. */
export interface Installed {
  readonly file: string;
  /** What Terraform needs to find it. */
  readonly env: Readonly<Record<string, string>>;
}

/** Installs the provider in a mirror within the folder. */
export async function installProvider(folder: string): Promise<Installed> {
  const mirror = join(folder, "mirror");
  const { files } = await installFor(process.env, [TERRAFORM_CLIS.terraform], mirror);
  const config = join(folder, "terraform.rc");
  writeFileSync(config, mirrorText(mirror));
  return { file: files[0]?.file ?? "", env: { TF_CLI_CONFIG_FILE: config, PATH } };
}

const inputs = <T>(index: T) => ({
  action: "allow" as const,
  priority: index,
  source_ip: `^10\\.0\\.0\\.${index}$`,
  username: ".*",
});

/** What the resource of this number declares, in both kinds. */
export const inputsAt = (index: number) => inputs(index);

/** The same in a configuration, for the number that Terraform counts. */
const COUNTED = inputs("$" + "{count.index}");

const configurationOf = (kind: Kind, count: number) =>
  kind === "gatehouse"
    ? { resource: { gatehouse_firewall_rule: { bench: { count, ...COUNTED, filter: { hostname: ".*" } } } } }
    : // Without `required_providers`: a provider that is named there is started, needed or not.
      { terraform: {}, resource: { terraform_data: { bench: { count, input: COUNTED } } } };

interface State {
  readonly resources: readonly {
    readonly instances: readonly { readonly attributes: Readonly<Record<string, unknown>> }[];
  }[];
}

/** A root module with resources of one kind, whose commands are timed, in seconds, and must do what they are to do. */
export class TimedModule {
  readonly #root: RootModule;
  readonly #count: number;

  private constructor(root: RootModule, count: number) {
    this.#root = root;
    this.#count = count;
  }

  /** Makes the module, and initialises it. */
  static async make(
    kind: Kind,
    count: number,
    folder: string,
    env: Readonly<Record<string, string>>,
  ): Promise<TimedModule> {
    const root = new RootModule(folder, env);
    root.write(configurationOf(kind, count));
    await root.must("init", "-no-color", "-input=false");
    return new TimedModule(root, count);
  }

  planCreate(): Promise<number> {
    return this.#timed(`Plan: ${this.#count} to add, 0 to change, 0 to destroy.`, "plan");
  }

  planNothing(): Promise<number> {
    return this.#timed("No changes. Your infrastructure matches the configuration.", "plan");
  }

  apply(): Promise<number> {
    const outcome = `Apply complete! Resources: ${this.#count} added, 0 changed, 0 destroyed.`;
    return this.#timed(outcome, "apply", "-auto-approve");
  }

  destroy(): Promise<number> {
    const outcome = `Destroy complete! Resources: ${this.#count} destroyed.`;
    return this.#timed(outcome, "destroy", "-auto-approve");
  }

  /** The same module with other settings of the provider. */
  with(env: Readonly<Record<string, string>>): TimedModule {
    const { folder, env: before } = this.#root;
    return new TimedModule(new RootModule(folder, { ...before, ...env }), this.#count);
  }

  state(): State {
    return JSON.parse(readFileSync(this.#stateFile(), "utf8")) as State;
  }

  /** Writes the state of a smaller module of this kind with these attributes instead, resource by resource. */
  writeState(smaller: State, rows: readonly Readonly<Record<string, unknown>>[]): void {
    const resources = smaller.resources.map((resource) => {
      const [like] = resource.instances;
      const instances = rows.map((row, index) => ({
        ...like,
        index_key: index,
        attributes: { ...like?.attributes, ...row },
      }));
      return { ...resource, instances };
    });
    writeFileSync(this.#stateFile(), JSON.stringify({ ...smaller, resources }, null, 2));
  }

  #stateFile(): string {
    return join(this.#root.folder, "terraform.tfstate");
  }

  async #timed(outcome: string, command: string, ...flags: readonly string[]): Promise<number> {
    const started = performance.now();
    const output = await this.#root.must(command, "-no-color", "-input=false", ...flags);
    const seconds = (performance.now() - started) / 1000;
    if (!output.includes(outcome)) {
      throw new Error(`terraform ${command} did not say “${outcome}”:\n${output.slice(-2000)}`);
    }
    return seconds;
  }
}

/** What the state of a resource that does nothing says of it. @param smaller one of fewer such resources */
export function builtinRows(smaller: State, count: number): Record<string, unknown>[] {
  const like = smaller.resources[0]?.instances[0]?.attributes as { readonly input: object } | undefined;
  return Array.from({ length: count }, (_, index) => {
    const value = { ...like?.input, value: inputsAt(index) };
    return { id: crypto.randomUUID(), input: value, output: value };
  });
}

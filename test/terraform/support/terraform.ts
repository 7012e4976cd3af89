import { spawn } from "node:child_process";
import { once } from "node:events";
import { existsSync, mkdirSync, readFileSync, writeFileSync } from "node:fs";
import { delimiter, dirname, join } from "node:path";
import { createInterface } from "node:readline";
import { fileURLToPath } from "node:url";
import { SOURCE, type TerraformCli } from "../../../provider/terraform/source.ts";
import { environmentWithout } from "../../support/command.ts";
import { type Fleet, startFleet } from "../../support/fleet.ts";
import { testFolder } from "../../support/folder.ts";
import { keyData } from "../../support/policy.ts";
import { shared } from "../../support/shared.ts";

/** The path of the built provider program, as it is published. */
export const PROVIDER = fileURLToPath(
  new URL("../../../provider/dist/terraform/terraform-provider-gatehouse", import.meta.url),
);

const isOnPath = (command: string): boolean =>
  (process.env.PATH ?? "").split(delimiter).some((folder) => existsSync(join(folder, command)));

export const hasTerraform = isOnPath("terraform");

/** The label for test titles. If Terraform is not installed, the label contains the reason for the skipped tests. */
export const LABEL = hasTerraform ? "Terraform" : "Terraform (skipped: there is no terraform on the PATH)";

export const hasTofu = isOnPath("tofu");

/** The label for tests of OpenTofu, like {@link LABEL}. */
export const TOFU_LABEL = hasTofu ? "OpenTofu" : "OpenTofu (skipped: there is no tofu on the PATH)";

/** The outcome of a command. */
interface TerraformResult {
  readonly code: number | null;
  /** Standard output and standard error, in the order in which the lines arrive. */
  readonly output: string;
}

/** A running provider process to which Terraform commands attach. */
export interface AttachedProvider {
  /** Environment variables with which commands attach to the provider. */
  readonly env: Readonly<Record<string, string>>;
  readonly pid: number;
  stop(): Promise<void>;
}

/** Starts the provider in debug mode, like a developer with a debugger. */
export async function startProvider(env: Readonly<Record<string, string>>): Promise<AttachedProvider> {
  const child = spawn(PROVIDER, ["-debug"], {
    env: { ...environmentWithout("GATEHOUSE_", "TF_"), ...env },
    stdio: ["ignore", "pipe", "inherit"],
  });
  for await (const line of createInterface({ input: child.stdout })) {
    const [, value] = /^TF_REATTACH_PROVIDERS='(.*)'$/.exec(line) ?? [];
    if (value === undefined || child.pid === undefined) throw new Error(`the provider printed ${line}`);
    return {
      env: { TF_REATTACH_PROVIDERS: value },
      pid: child.pid,
      async stop() {
        if (child.exitCode !== null || child.signalCode !== null) return;
        const ended = once(child, "exit");
        child.kill("SIGTERM");
        await ended;
      },
    };
  }
  throw new Error("the provider ended without output");
}

/**
 * Returns environment variables with which Terraform starts the built provider itself, in the folder of each root
 * module.
 */
export function installedProvider(): Readonly<Record<string, string>> {
  const file = join(testFolder(), "terraformrc");
  const overrides = `dev_overrides {\n    "${SOURCE}" = "${dirname(PROVIDER)}"\n  }`;
  writeFileSync(file, `provider_installation {\n  ${overrides}\n  direct {}\n}\n`);
  return { TF_CLI_CONFIG_FILE: file };
}

/** A fleet with a provider process that connects to its service. */
export type TerraformFleet<F extends Fleet = Fleet> = F & {
  /** Creates a root module whose commands attach to the provider. */
  newModule(folder?: string): RootModule;
  /** Kills the provider, as after a killed run, and starts another one. */
  restartProvider(): Promise<void>;
};

/** Starts a fleet and the Terraform provider for the surrounding tests. */
export const sharedTerraform = <F extends Fleet = Fleet>(
  start: () => Promise<F> = startFleet as () => Promise<F>,
): TerraformFleet<F> =>
  shared(async () => {
    const fleet = await start();
    let provider = await startProvider(fleet.env);
    return {
      ...fleet,
      newModule: (folder = testFolder()) => new RootModule(folder, { ...provider.env, ...fleet.env }),
      async restartProvider() {
        await provider.stop();
        provider = await startProvider(fleet.env);
      },
      async stop() {
        await provider.stop();
        await fleet.stop();
      },
    };
  });

type Json = Readonly<Record<string, unknown>>;

/** Returns a configuration of resources: their arguments, by kind (such as `public_key`) and name. */
export const resources = (kinds: Readonly<Record<string, object>>) => ({
  resource: Object.fromEntries(Object.entries(kinds).map(([kind, all]) => [`gatehouse_${kind}`, all])),
});

/** Returns the arguments of a public key. By default, the key `ana` allows root on every device. */
export const keyArguments = (more: object = {}) => ({
  name: "ana",
  data: keyData("ana"),
  username: "^root$",
  filter: { hostname: ".*" },
  ...more,
});

/** Returns the arguments of a firewall rule. By default, the rule denies root every login. */
export const ruleArguments = (more: object = {}) => ({
  action: "deny",
  priority: 1,
  source_ip: ".*",
  username: "^root$",
  filter: { hostname: ".*" },
  ...more,
});

/** Returns an expression in the form of a JSON configuration. */
export const ref = (expression: string) => `\${${expression}}`;

/** Returns the output of a command without line breaks and frames. */
export const unframed = (output: string) => output.replaceAll(/[│\s]+/g, " ");

/** A folder with a root module, and the commands that run in it. */
export class RootModule {
  readonly folder: string;
  readonly env: Readonly<Record<string, string>>;
  readonly #command: TerraformCli["command"];

  /**
   * @param env the provider's settings, and the variables with which Terraform finds the provider
   * @param command the program: terraform or tofu
   */
  constructor(
    folder: string,
    env: Readonly<Record<string, string>>,
    command: TerraformCli["command"] = "terraform",
  ) {
    this.folder = folder;
    this.env = env;
    this.#command = command;
    mkdirSync(folder, { recursive: true });
  }

  /** Writes the configuration as JSON, which Terraform accepts in place of its native syntax. */
  write(configuration: Json, file = "main.tf.json"): void {
    const terraform = { required_providers: { gatehouse: { source: SOURCE } } };
    const text = JSON.stringify({ terraform, ...configuration }, null, 2);
    writeFileSync(join(this.folder, file), text);
  }

  /** Runs a command until it ends. */
  async run(...args: readonly string[]): Promise<TerraformResult> {
    return this.start(...args).ended;
  }

  /** Starts a command. */
  start(...args: readonly string[]) {
    const child = spawn(this.#command, args, {
      cwd: this.folder,
      env: {
        ...environmentWithout("GATEHOUSE_", "TF_"),
        CHECKPOINT_DISABLE: "1",
        TF_IN_AUTOMATION: "1",
        TF_CLI_CONFIG_FILE: "/dev/null",
        TF_CLI_ARGS: "-no-color",
        ...this.env,
      },
      // Starts the command in a separate process group, like a terminal.
      detached: true,
    });
    let output = "";
    for (const stream of [child.stdout, child.stderr])
      stream.setEncoding("utf8").on("data", (text: string) => {
        output += text;
      });
    const ended = once(child, "close").then(
      ([code]): TerraformResult => ({ code: code as number | null, output }),
    );
    return { child, ended, output: () => output };
  }

  /** Runs a command, and throws an error if the command fails. */
  async must(...args: readonly string[]): Promise<string> {
    const { code, output } = await this.run(...args);
    if (code !== 0) throw new Error(`${this.#command} ${args.join(" ")} ended with ${code}:\n${output}`);
    return output;
  }

  /** Runs a command that must end with exit code 1. Returns its output without line breaks and frames. */
  async rejected(...args: readonly string[]): Promise<string> {
    const { code, output } = await this.run(...args);
    if (code !== 1) throw new Error(`${this.#command} ${args.join(" ")} ended with ${code}:\n${output}`);
    return unframed(output);
  }

  apply(...flags: readonly string[]): Promise<string> {
    return this.must("apply", "-auto-approve", ...flags);
  }

  /** Writes a configuration and applies it. */
  applied(configuration: Json, ...flags: readonly string[]): Promise<string> {
    this.write(configuration);
    return this.apply(...flags);
  }

  /** Destroys all resources. Returns the output without line breaks and frames. */
  async destroy(): Promise<string> {
    return unframed(await this.must("destroy", "-auto-approve"));
  }

  /** Creates a plan, and returns its changes, each as `address: actions`. */
  async changes(...flags: readonly string[]): Promise<string[]> {
    return changesIn(await this.plan(...flags));
  }

  /** Creates a plan, and returns it in the JSON format of `terraform show -json`. */
  async plan(...flags: readonly string[]): Promise<PlanJson> {
    await this.must("plan", "-out=plan", ...flags);
    return JSON.parse(await this.must("show", "-json", "plan")) as PlanJson;
  }

  /** Creates a plan, and writes it to a file in the format of `terraform show -json`. Returns the file's path. */
  async planFile(...flags: readonly string[]): Promise<string> {
    const file = join(this.folder, "plan.json");
    writeFileSync(file, JSON.stringify(await this.plan(...flags)));
    return file;
  }

  state(): StateFile {
    return JSON.parse(readFileSync(this.stateFile, "utf8")) as StateFile;
  }

  get stateFile(): string {
    return join(this.folder, "terraform.tfstate");
  }

  /** Replaces the state file. Its serial must increase, or Terraform rejects the file. */
  writeState(state: object, serial = this.state().serial + 1): void {
    writeFileSync(this.stateFile, JSON.stringify({ ...state, serial }));
  }
}

export interface PlanJson {
  readonly resource_changes?: readonly {
    readonly address: string;
    readonly change: {
      readonly actions: readonly string[];
      readonly importing?: object;
      readonly before: Json | null;
      readonly after: Json | null;
      readonly after_unknown: Json;
    };
  }[];
  readonly resource_drift?: readonly { readonly address: string }[];
  readonly [key: string]: unknown;
}

export interface StateFile {
  readonly serial: number;
  readonly resources: readonly {
    readonly type: string;
    readonly name: string;
    readonly instances: { private?: string; deposed?: string; readonly status?: string; attributes: Json }[];
  }[];
}

/** Returns the changes in a plan, each as `address: actions`. */
export const changesIn = ({ resource_changes: all = [] }: PlanJson): string[] =>
  all
    .filter(({ change }) => change.actions.join() !== "no-op" || change.importing !== undefined)
    .map(
      ({ address, change }) =>
        `${address}: ${[...change.actions, ...(change.importing ? ["import"] : [])].join("+")}`,
    );

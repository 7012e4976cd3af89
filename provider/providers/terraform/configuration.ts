import { AsyncLocalStorage } from "node:async_hooks";
import { ConfigurationError } from "@gatehouse-access/sdk";
import { printedError } from "@gatehouse-access/sdk/errors";
import type { Notice } from "../../lifecycle/lifecycle.ts";
import { hasUnknown } from "../../resources/values.ts";
import type { Connection } from "../../service/connection.ts";
import { SETTINGS, type Setting, settingText } from "../../service/newConnection.ts";
import { lookupSchema } from "../../terraform/attributes.ts";
import { type Member, memberOf, type Row, STRING, terraformName, valuesOf } from "../../terraform/types.ts";
import { type Workspace, workspaceIn } from "../../terraform/workspace.ts";
import { checkInstance, connectionOf, type Instance, tenantOf } from "../instanceSettings.ts";
import { type Diagnostic, errorAt } from "./diagnostics.ts";

/** The settings of a provider block. */
const MEMBERS: readonly (Member & { readonly sensitive: boolean })[] = Object.entries(
  SETTINGS as Readonly<Record<string, Setting>>,
).map(([property, setting]) => ({
  ...memberOf(property, settingText(setting), STRING),
  sensitive: setting.secret ?? false,
}));

/** The settings that are no secrets. */
const PUBLIC_SETTINGS = Object.fromEntries(
  Object.entries(SETTINGS as Readonly<Record<string, Setting>>).filter(([, { secret }]) => !secret),
);

/** The schema of a provider block. */
export const configurationSchema = (): object =>
  lookupSchema(
    "A service, a credential and a namespace. What a configuration leaves open is taken from the environment; but no credential for another service than the environment names.",
    MEMBERS,
    [],
  );

/** A provider block: the service, by what it says and what the environment adds. Nothing is requested before it is needed. */
export class Configuration {
  readonly #env: NodeJS.ProcessEnv;
  readonly #instance: Instance | undefined;
  #connection: Connection | undefined;
  #reading: Connection | undefined;
  #workspace: Workspace | undefined;
  readonly #stop = new AbortController();
  /** Calls that have a message about a wait. */
  readonly #waited = new WeakSet<Notice[]>();
  /** What the call in hand tells whoever runs Terraform: its answer shows that as warnings. */
  readonly notices = new AsyncLocalStorage<Notice[]>();
  /** What is wrong with it, as far as it is known. */
  readonly errors: readonly Diagnostic[];
  /** True where a part of it is not known yet. */
  readonly isUnknown: boolean;
  /** Id of the namespace of resources that name none, as far as settings tell. */
  readonly tenant: string | undefined;

  /** @param row the block; left out before Terraform says it */
  constructor(env: NodeJS.ProcessEnv, row?: Row) {
    this.#env = env;
    // A block wins over the environment, as in every provider of Terraform.
    const instance = row && { isDefault: false, inputs: valuesOf(MEMBERS, row) };
    this.#instance = instance;
    this.isUnknown = hasUnknown(instance?.inputs);
    this.errors = instance ? errorsOf(instance, env) : [];
    const isSettled = instance && this.errors.length === 0;
    this.tenant = isSettled ? tenantOf(instance, env) : undefined;
  }

  /** The root module's: Terraform starts its providers in its folder. */
  get workspace(): Workspace {
    this.#workspace ??= workspaceIn(".", this.#env);
    return this.#workspace;
  }

  /**
   * The service.
   * @throws ConfigurationError naming the setting that is missing or wrong, or that it is not known yet
   */
  service(): Connection {
    if (!this.#instance) throw new ConfigurationError("the provider is not configured");
    if (this.isUnknown) {
      throw new ConfigurationError(
        "a part of the provider configuration is not known before apply, so the service cannot be asked now",
        { remedy: "apply what it depends on first (with -target), or give a value that is known" },
      );
    }
    const waiting = { tell: (line: string) => this.#tellWait(line), stop: this.#stop.signal };
    this.#connection ??= connectionOf(this.#instance, waiting, this.#env);
    return this.#connection;
  }

  /** The service, without what was read of it before the last write. @throws as {@link service} */
  reading(): Connection {
    this.#reading ??= this.service().fresh();
    return this.#reading;
  }

  /** Terraform shows nothing while a call goes on: its log has each line, and the answer of a call the first one. */
  #tellWait(line: string): void {
    console.error(`[WARN] ${line}`);
    const notices = this.notices.getStore();
    if (!notices || this.#waited.has(notices)) return;
    this.#waited.add(notices);
    notices.push({ text: line });
  }

  /** Ends all waits for the service: their requests fail at once. */
  stopWaiting(): void {
    this.#stop.abort();
  }

  /** Takes note of a write. */
  written(): void {
    this.#reading = undefined;
  }

  /** Closes the connection, if there is one. */
  async close(): Promise<void> {
    await this.#connection?.client.close();
  }
}

function errorsOf(instance: Instance, env: NodeJS.ProcessEnv): Diagnostic[] {
  const { failures } = checkInstance(instance, {}, env);
  // Terraform shows the line of an attribute, and an address may hold a password.
  const isShown = (name: string) => name !== "url" && name in PUBLIC_SETTINGS;
  return failures.map((failure) => {
    const [name] = failure.field ?? [];
    const path = typeof name === "string" && isShown(name) ? [terraformName(name)] : [];
    return errorAt(path, "Invalid provider configuration", printedError(failure));
  });
}

import { AsyncLocalStorage } from "node:async_hooks";
import { ConfigurationError } from "@gatehouse-access/sdk";
import { declaredByText } from "@gatehouse-access/sdk/contract";
import { printedError } from "@gatehouse-access/sdk/errors";
import type { Notice } from "../../lifecycle/lifecycle.ts";
import { hasUnknown } from "../../model/values.ts";
import type { Connection } from "../../service/connection.ts";
import {
  PROJECT_SETTING,
  SETTINGS,
  type Setting,
  SKIP_PREFLIGHT_SETTING,
  settingText,
} from "../../service/newConnection.ts";
import { lookupSchema } from "../../terraform/attributes.ts";
import { type Member, memberOf, type Row, STRING, terraformName, valuesOf } from "../../terraform/types.ts";
import { namedProject, type Workspace, workspaceIn } from "../../terraform/workspace.ts";
import { checkInstance, connectionOf, type Instance, tenantOf } from "../instanceSettings.ts";
import { type Diagnostic, errorAt } from "./diagnostics.ts";

/** The arguments of a provider block that configure the connection. */
const MEMBERS: readonly (Member & { readonly sensitive: boolean })[] = Object.entries(
  SETTINGS as Readonly<Record<string, Setting>>,
).map(([property, setting]) => ({
  ...memberOf(property, settingText(setting), STRING),
  sensitive: setting.secret ?? false,
}));

/** The argument of a provider block that sets the project's name. */
const PROJECT = { ...memberOf("project", settingText(PROJECT_SETTING), STRING), sensitive: false };

/** The argument of a provider block that turns off the check of the connection. */
const SKIP_PREFLIGHT = {
  ...memberOf("skipPreflight", settingText(SKIP_PREFLIGHT_SETTING), STRING),
  sensitive: false,
};

/** The settings that are not secret. */
const PUBLIC_SETTINGS = Object.fromEntries(
  Object.entries(SETTINGS as Readonly<Record<string, Setting>>).filter(([, { secret }]) => !secret),
);

/** Returns the schema of a provider block. */
export const configurationSchema = (): object =>
  lookupSchema(
    "Configures the service, a credential and a namespace. Omitted arguments default to environment variables. The credential in the environment is used only if `GATEHOUSE_URL` is the address of the same service.",
    [...MEMBERS, PROJECT, SKIP_PREFLIGHT],
    [],
  );

/**
 * The messages that the current call collects. The response to the call contains the messages as warnings. All
 * configurations use the same `AsyncLocalStorage`, because each additional one slows down every asynchronous step of
 * the process.
 */
export const noticesOfCall = new AsyncLocalStorage<Notice[]>();

/**
 * The configuration of a provider block, completed with settings from the environment. It sends no request until a call
 * needs the service.
 */
export class Configuration {
  readonly #env: NodeJS.ProcessEnv;
  readonly #instance: Instance | undefined;
  /** The argument `project` of the block. */
  readonly #project: unknown;
  /** The argument `skip_preflight` of the block. If the block omits it, the value of its environment variable. */
  readonly #skipsPreflight: unknown;
  #connection: Connection | undefined;
  #reading: Connection | undefined;
  #workspace: Workspace | undefined;
  readonly #stop = new AbortController();
  /** The message lists of calls that have already reported a wait for the service. Each call reports a wait once. */
  readonly #waited = new WeakSet<Notice[]>();
  /**
   * The errors in the settings from the provider block and the environment. A value that is unknown before the apply
   * causes no error.
   */
  readonly errors: readonly Diagnostic[];
  /** True if the provider block contains a value that is unknown before the apply. */
  readonly isUnknown: boolean;
  /** The id of the default namespace. Undefined if no setting defines it, or if a setting has an error. */
  readonly tenant: string | undefined;

  /**
   * Reads the settings of a provider block and of the environment.
   * @param row the provider block's values; undefined before Terraform configures the provider
   */
  constructor(env: NodeJS.ProcessEnv, row?: Row) {
    this.#env = env;
    // The block takes precedence over the environment, as in every Terraform provider.
    const instance = row && { isDefault: false, inputs: valuesOf(MEMBERS, row) };
    this.#instance = instance;
    this.#project = row && valuesOf([PROJECT], row).project;
    this.#skipsPreflight =
      (row && valuesOf([SKIP_PREFLIGHT], row).skipPreflight) || env[SKIP_PREFLIGHT_SETTING.variable];
    this.isUnknown = hasUnknown(instance?.inputs);
    this.errors = instance
      ? [...errorsOf(instance, env), ...this.#projectErrors(), ...this.#preflightErrors()]
      : [];
    const isSettled = instance && this.errors.length === 0;
    this.tenant = isSettled ? tenantOf(instance, env) : undefined;
  }

  /**
   * The workspace of the root module. It is found in the working directory, because Terraform starts providers in the
   * directory of the root module. Undefined if the project is unknown before the apply.
   */
  get workspace(): Workspace | undefined {
    if (hasUnknown(this.#project)) return undefined;
    this.#workspace ??= workspaceIn(".", this.#env, namedProject(this.#project, this.#env));
    return this.#workspace;
  }

  #projectErrors(): Diagnostic[] {
    const project = hasUnknown(this.#project) ? undefined : namedProject(this.#project, this.#env);
    if (project === undefined) return [];
    // The header with a declaration has a maximum length. A project is valid only if the header has enough space for
    // the longest name of a resource type.
    const isValid = declaredByText({ project, stack: "default", resource: "x".repeat(100) }) !== undefined;
    const detail = `project must be a text without control characters, at most 255 bytes, not ${JSON.stringify(project)}.`;
    return isValid && Buffer.byteLength(project) <= 255
      ? []
      : [errorAt(["project"], "Invalid provider configuration", detail)];
  }

  #preflightErrors(): Diagnostic[] {
    const value = this.#skipsPreflight;
    if (value === undefined || hasUnknown(value) || ["", "true", "false"].includes(String(value))) return [];
    const detail = `skip_preflight must be true or false, not ${JSON.stringify(value)}.`;
    return [errorAt(["skip_preflight"], "Invalid provider configuration", detail)];
  }

  /**
   * Checks the connection to the service and the credential, so that a wrong configuration fails at plan. Without this
   * check, a plan that only creates objects would send no request and would not fail. Does nothing if a value is
   * unknown, or if `skip_preflight` is set.
   * @throws ConfigurationError if a setting is missing
   * @throws RequestError if the service cannot be reached, or rejects the credential
   */
  async preflight(): Promise<void> {
    if (this.isUnknown || this.#skipsPreflight === "true" || hasUnknown(this.#skipsPreflight)) return;
    const { client } = this.service();
    const { kind } = await client.identity();
    // The method `identity()` sends no request for a token, because it reads the identity from the token itself.
    if (kind === "token") await client.getNamespaces({ query: { perPage: 1 } });
  }

  /**
   * Returns the connection to the service.
   * @throws ConfigurationError if a setting is missing, invalid or not yet known. If a setting is invalid, the error
   *   contains its name
   */
  service(): Connection {
    if (!this.#instance) throw new ConfigurationError("the provider is not configured");
    if (this.isUnknown) {
      throw new ConfigurationError(
        "cannot connect to the service: a part of the provider configuration is not known before apply",
        {
          remedy:
            "apply the resources that the provider configuration depends on first (with -target), or set known values",
        },
      );
    }
    const waiting = { tell: (line: string) => this.#reportWait(line), stop: this.#stop.signal };
    this.#connection ??= connectionOf(this.#instance, waiting, this.#env, "terraform");
    return this.#connection;
  }

  /**
   * Returns a connection for reads. It does not use results that were cached before the last write.
   * @throws ConfigurationError in the same cases as {@link service}
   */
  reading(): Connection {
    this.#reading ??= this.service().fresh();
    return this.#reading;
  }

  /**
   * Reports that a request waits for an unavailable service. Terraform prints nothing while a call is running. Each
   * line is therefore written to Terraform's log, and the response to the call contains the first line as a warning.
   */
  #reportWait(line: string): void {
    console.error(`[WARN] ${line}`);
    const notices = noticesOfCall.getStore();
    if (!notices || this.#waited.has(notices)) return;
    this.#waited.add(notices);
    notices.push({ text: line });
  }

  /** Stops all waits for the service, so that the waiting requests fail immediately. */
  stopWaiting(): void {
    this.#stop.abort();
  }

  /** Records that a write has happened. Later reads do not use results that were cached before the write. */
  written(): void {
    this.#reading = undefined;
  }

  /** Closes the connection, if it is open. */
  async close(): Promise<void> {
    await this.#connection?.client.close();
  }
}

function errorsOf(instance: Instance, env: NodeJS.ProcessEnv): Diagnostic[] {
  const { failures } = checkInstance(instance, {}, env);
  // If an error refers to an attribute, Terraform prints the source line of the attribute. An address may contain a
  // password, so errors about the address refer to no attribute.
  const isShown = (name: string) => name !== "url" && name in PUBLIC_SETTINGS;
  return failures.map((failure) => {
    const [name] = failure.field ?? [];
    const path = typeof name === "string" && isShown(name) ? [terraformName(name)] : [];
    return errorAt(path, "Invalid provider configuration", printedError(failure));
  });
}

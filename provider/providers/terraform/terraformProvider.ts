import { misspelledVariables } from "@gatehouse-access/sdk/errors";
import { Command } from "commander";
import { lookupSchema, resourceSchema } from "../../terraform/attributes.ts";
import { describedInTerraform, memberOf, type Row, STRING, valuesOf } from "../../terraform/types.ts";
import { Configuration, configurationSchema } from "./configuration.ts";
import { type DataSource, dataSourceSchema, dataSourcesOf } from "./dataSources.ts";
import { type Diagnostic, warning } from "./diagnostics.ts";
import { callFunction, functionSchemas } from "./providerFunctions.ts";
import { Replacements } from "./replacements.ts";
import { ResourceCalls, resources, type WithConfig, withDiagnostics } from "./resourceCalls.ts";
import { encoded, rowIn } from "./wireValues.ts";

/** The type name of the ephemeral resource that contains the session token. */
const TOKEN = "gatehouse_session_token";
const TENANT = memberOf(
  "tenant",
  "The ID of the namespace. Defaults to the namespace in the provider configuration.",
  STRING,
);

/** Returns a warning for each environment variable that looks like a misspelled setting of the provider. */
const misspelled = (env: NodeJS.ProcessEnv): Diagnostic[] =>
  misspelledVariables(Object.keys(env), () => new Command()).map((text) =>
    warning("Unknown environment variable", text),
  );

let known: ReadonlyMap<string, DataSource> | undefined;

/**
 * Returns all data sources. They are created on first use, because most of the processes that Terraform starts need no
 * data source.
 */
function dataSources(): ReadonlyMap<string, DataSource> {
  known ??= new Map(dataSourcesOf([...resources.values()]).map((source) => [source.typeName, source]));
  return known;
}

/**
 * Returns the schemas of the provider block, and of all resources, data sources, ephemeral resources and functions.
 */
export const providerSchema = () => ({
  provider: configurationSchema(),
  resourceSchemas: Object.fromEntries(
    [...resources].map(([typeName, { definition, attributes }]) => [
      typeName,
      resourceSchema(describedInTerraform(definition.description), attributes),
    ]),
  ),
  dataSourceSchemas: Object.fromEntries(
    [...dataSources()].map(([typeName, source]) => [typeName, dataSourceSchema(source)]),
  ),
  functions: functionSchemas(),
  ephemeralResourceSchemas: {
    [TOKEN]: lookupSchema(
      "A session token of the credential's user for a namespace. A client with the token has the permissions of that user. The token expires after some days, or after 15 minutes for a workload. It is not stored in state or plan.",
      [{ ...TENANT, computed: true }],
      [{ ...TENANT, name: "token", description: "The session token.", sensitive: true }],
    ),
  },
});

/** The Terraform provider. It implements the service `Provider` of Terraform's plugin protocol. */
export class TerraformProvider {
  readonly #env: NodeJS.ProcessEnv;
  #configuration: Configuration;
  readonly #replacements: Replacements;
  #calls: ResourceCalls;

  /**
   * Creates a provider that is not configured yet.
   * @param dataFolder Terraform's data directory; undefined if this process runs all plans and applies
   */
  constructor(env: NodeJS.ProcessEnv = process.env, dataFolder?: string) {
    this.#env = env;
    this.#configuration = new Configuration(env);
    this.#replacements = new Replacements(dataFolder);
    this.#calls = new ResourceCalls(this.#configuration, this.#replacements);
  }

  /** Returns the methods, by their names in the protocol. */
  methods() {
    const ofResource =
      <Name extends "validate" | "upgrade" | "move" | "read" | "plan" | "apply" | "import">(name: Name) =>
      (request: Parameters<ResourceCalls[Name]>[0]) =>
        this.#calls[name](request as never);
    return {
      GetProviderSchema: () => ({
        ...providerSchema(),
        serverCapabilities: { planDestroy: true, getProviderSchemaOptional: true, moveResourceState: true },
      }),
      ValidateProviderConfig: ({ config }: WithConfig) => ({
        diagnostics: [...misspelled(this.#env), ...new Configuration(this.#env, rowIn(config)).errors],
      }),
      ConfigureProvider: ({ config }: WithConfig) => this.#configure(rowIn(config)),
      ValidateResourceConfig: ofResource("validate"),
      ValidateDataResourceConfig: () => ({}),
      ValidateEphemeralResourceConfig: () => ({}),
      UpgradeResourceState: ofResource("upgrade"),
      MoveResourceState: ofResource("move"),
      ReadResource: ofResource("read"),
      PlanResourceChange: ofResource("plan"),
      ApplyResourceChange: ofResource("apply"),
      ImportResourceState: ofResource("import"),
      ReadDataSource: (request: WithConfig) => this.#readData(request),
      OpenEphemeralResource: (request: WithConfig) => this.#openToken(request),
      CloseEphemeralResource: () => ({}),
      GetFunctions: () => ({ functions: functionSchemas() }),
      CallFunction: callFunction,
      StopProvider: () => {
        this.#calls.stop();
        return {};
      },
    };
  }

  /**
   * Configures the provider for a command. A provider that runs already, and to which Terraform attaches, is configured
   * again for each command.
   */
  async #configure(row: Row): Promise<object> {
    const configuration = new Configuration(this.#env, row);
    if (configuration.errors.length > 0) return { diagnostics: configuration.errors };
    void this.#configuration.close();
    this.#configuration = configuration;
    this.#calls = new ResourceCalls(configuration, this.#replacements);
    return withDiagnostics("The provider cannot connect", async () => {
      await configuration.preflight();
      return {};
    });
  }

  #readData({ typeName, config }: WithConfig): Promise<object> {
    return withDiagnostics("Could not be read", async () => {
      const source = dataSources().get(typeName);
      if (!source) throw new Error(`${typeName} is not a data source of this provider`);
      const answer = await source.read(() => this.#configuration.reading(), rowIn(config));
      return isDiagnostics(answer) ? { diagnostics: answer } : { state: encoded(answer) };
    });
  }

  /**
   * Opens the ephemeral resource for the session token. Terraform opens it at plan, and again at apply. Both times, the
   * result is the token of the provider's own session.
   */
  #openToken({ typeName, config }: WithConfig): Promise<object> {
    return withDiagnostics("No session token", async () => {
      if (typeName !== TOKEN) throw new Error(`${typeName} is not an ephemeral resource of this provider`);
      const { tenant: requested } = valuesOf([TENANT], rowIn(config));
      const service = this.#configuration.service();
      const { tenant, client } = await service.tenant(requested as string | undefined);
      return { result: encoded({ tenant, token: await client.sessionToken() }) };
    });
  }
}

const isDiagnostics = (answer: Row | readonly Diagnostic[]): answer is readonly Diagnostic[] =>
  Array.isArray(answer);
